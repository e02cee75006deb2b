// Indices and their limits.
#pragma once

#include "meganeura/graph.h"

namespace meganeura::ops {

// bool: 0 <= index < extent.
Tensor in_range(Tensor indices, int64_t extent);

// Lowers the checked limit of the integer input that the indices are a view of; false where they
// are computed, so that nobody checks them.
bool limit_indices(Tensor indices, int64_t limit);

}  // namespace meganeura::ops
