// Which values get a buffer and which are computed where they are used.
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "meganeura/graph.h"
#include "schedule/schedule.h"

namespace meganeura::schedule {

struct FusionPlan {
  std::set<uint32_t> buffered;  // tensors with a buffer of their own
  std::map<uint32_t, uint32_t>
      anchor_of;  // root → the reduction or contraction it is an epilogue of
};

// `order`: everything a segment reaches, operands first; `required`: values that must have a
// buffer. Elementwise values used once are computed in their user; cheap ones are recomputed.
FusionPlan plan_fusion(std::span<const Tensor> order, const std::set<uint32_t>& required,
                       const ScheduleOptions& options);

// Reductions, contractions and scatter-adds: they are kernels of their own.
bool is_heavy(const Node& node);

}  // namespace meganeura::schedule
