// Kernel IR → SPIR-V 1.5 for Vulkan 1.2.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel_ir/capabilities.h"
#include "kernel_ir/kernel.h"

namespace meganeura {

// The words of a module with entry point "main"; equal input gives equal words on every host.
// Bindings: kAddress: push constants hold the slots' addresses (8 bytes each), then the u32 params;
// kDescriptor: slot i is storage buffer binding i of set 0, params start the push constants.
// Slots may overlap in memory. Throws Error(kUnsupported) naming the limit or feature when the
// kernel asks for more than the capabilities offer.
std::vector<uint32_t> emit_spirv(const kir::Kernel& kernel, const Capabilities& capabilities);

// Bytes of push constants the module of such a kernel uses.
uint32_t push_constant_bytes(const kir::Kernel& kernel, BindingMode binding);

}  // namespace meganeura
