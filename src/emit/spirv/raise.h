// Raise passes: kernel IR → kernel IR that SPIR-V says instruction by instruction.
//
// Kernel IR promises results where SPIR-V leaves them undefined (division by zero, conversion out
// of range, NaN in min and max) or has no such instruction (fmod, half precision by bits).
#pragma once

#include <span>
#include <string_view>

#include "emit/spirv/rewriter.h"
#include "kernel_ir/capabilities.h"
#include "kernel_ir/kernel.h"

namespace meganeura::spirv {

struct RaisePass {
  std::string_view name;
  Rewriter::Rule rule;
};

// In the order in which they must run: a pass may emit what a later one rewrites.
std::span<const RaisePass> raise_passes();
// The pass with that name; Error(kInternal) if there is none.
const RaisePass& raise_pass(std::string_view name);
// Only for BindingMode::kDescriptor, after the others: vector accesses of slots become scalar ones.
const RaisePass& split_slot_vectors();

// All passes that the target needs.
kir::Kernel raise(const kir::Kernel& kernel, const Capabilities& capabilities);

}  // namespace meganeura::spirv
