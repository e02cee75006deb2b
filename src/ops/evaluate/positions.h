// Positions of elements, for ops that only move values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "meganeura/shape.h"

namespace meganeura {

// Where the row-major elements of a box lie: offset + Σ index·stride.
std::vector<int64_t> positions(std::span<const int64_t> extents, int64_t offset,
                               std::span<const int64_t> strides);

// The axes of [0, rank) that are not listed, ascending.
std::vector<int64_t> other_axes(int rank, std::span<const int64_t> listed);

// The entries of `values` at these axes.
std::vector<int64_t> pick(std::span<const int64_t> values, std::span<const int64_t> axes);

// The product of the extents.
int64_t product(std::span<const int64_t> extents);

}  // namespace meganeura
