// Raised kernel IR → SPIR-V words. Decides nothing: every choice is in the tables (op_table.h) or
// was made by a raise pass.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel_ir/capabilities.h"
#include "kernel_ir/kernel.h"

namespace meganeura::spirv {

std::vector<uint32_t> print(const kir::Kernel& raised, const Capabilities& capabilities);

}  // namespace meganeura::spirv
