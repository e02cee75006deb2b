// Text of kernels beside to_string and parse_kernel, and how it travels in module words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_ir/kernel.h"

namespace meganeura::kir {

// One instruction with the value ids of the kernel, nested blocks left out; for messages. Works on
// kernels that verify refuses.
std::string describe(const Kernel& kernel, const Instruction& instruction);

// Text as little-endian words, padded with zeros to a multiple of four bytes, and its inverse.
std::vector<uint32_t> pack_text(std::string_view text);
std::string unpack_text(std::span<const uint32_t> words);

}  // namespace meganeura::kir
