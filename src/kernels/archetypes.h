// Archetypes: spec + capabilities (+ tile) → kernels. Pure and deterministic.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel_ir/capabilities.h"
#include "kernel_ir/kernel.h"
#include "kernels/spec.h"

namespace meganeura::kernels {

// One dispatch of a plan. Kernel slot i is bound to spec slot slots[i], or to the plan's scratch
// where slots[i] == kScratch.
struct Stage {
  static constexpr uint32_t kScratch = ~0u;
  kir::Kernel kernel;
  std::array<uint32_t, 3> grid = {1, 1, 1};  // workgroups; all > 0
  std::vector<uint32_t> slots;
  std::vector<uint32_t> params;
};

// Stages run in order with a barrier between. Empty iteration spaces give no stages.
struct KernelPlan {
  std::vector<Stage> stages;
  uint64_t scratch_bytes = 0;
  std::string tile;  // "pointwise v4 l64", for reports
  int64_t cost = 0;  // estimated nanoseconds on the device class; integer, deterministic
};

// Every legal way for this spec on this device, most promising first; at least one. Throws
// Error(kUnsupported) for what no tile can do (a dtype that is not computable, more than 2^31
// elements in one slot, more slots than push constants hold), naming the limit.
std::vector<KernelPlan> candidates(const KernelSpec& spec, const Capabilities& capabilities);

// The first candidate by cost.
KernelPlan build(const KernelSpec& spec, const Capabilities& capabilities);

// How many slots a kernel with that many run-time arguments can bind; what fusion must respect.
uint32_t max_slots(const Capabilities& capabilities, uint32_t params);

}  // namespace meganeura::kernels
