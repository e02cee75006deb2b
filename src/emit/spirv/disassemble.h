// SPIR-V as text, for dumps.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace meganeura {

// One instruction a line, "%12 = OpFAdd %3 %10 %11", for the instructions that emit_spirv writes;
// others appear by number. Malformed words end the text with a remark.
std::string disassemble_spirv(std::span<const uint32_t> words);

}  // namespace meganeura
