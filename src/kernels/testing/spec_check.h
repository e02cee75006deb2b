// For tests: runs every candidate of a spec and compares it with the reference.
#pragma once

#include <string>
#include <vector>

#include "kernel_ir/capabilities.h"
#include "kernels/testing/spec_reference.h"

namespace meganeura::kernels {

// Subgroups of 4 to 64 lanes over all device classes, with and without exact arithmetic.
std::vector<Capabilities> test_capabilities();

// Builds every candidate, validates its SPIR-V where a validator exists, runs it on the
// interpreter and compares all outputs, and every byte that must not change. Failures are gtest
// failures that name `what`, capabilities and tile. Returns the tiles it saw.
std::vector<std::string> check_candidates(const std::string& what, const KernelSpec& spec,
                                          const SlotMemory& memory,
                                          const std::vector<Capabilities>& devices);

}  // namespace meganeura::kernels
