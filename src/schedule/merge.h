// Merges elementwise kernels that hand values on point by point.
#pragma once

#include <cstdint>

#include "schedule/schedule.h"

namespace meganeura::schedule {

// A pointwise kernel whose results another pointwise kernel over the same extents reads at the
// same places becomes part of it (which then has several outputs). Temporaries nobody else reads
// are no longer stored. Kernels bind at most `max_slots` buffers. Returns whether it changed
// anything.
bool merge_elementwise(Schedule& schedule, uint32_t max_slots);

}  // namespace meganeura::schedule
