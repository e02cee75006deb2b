// Small dense arrays for expected values, written index by index.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "meganeura/shape.h"

namespace meganeura {

using Index = std::span<const int64_t>;

struct Array {
  Shape shape;
  std::vector<double> values;

  double at(Index index) const {
    const std::vector<int64_t> strides = shape.strides();
    int64_t position = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) position += index[axis] * strides[axis];
    return values[static_cast<size_t>(position)];
  }
  double at(std::initializer_list<int64_t> index) const {
    return at(Index(index.begin(), index.size()));
  }
  // As NumPy broadcasts: axes align at the end, extents of 1 repeat.
  double broadcast_at(Index index) const {
    std::vector<int64_t> own(static_cast<size_t>(shape.rank()));
    const size_t skipped = index.size() - own.size();
    for (size_t axis = 0; axis < own.size(); ++axis) {
      own[axis] = shape.extents()[axis] == 1 ? 0 : index[skipped + axis];
    }
    return at(Index(own));
  }
};

// The row-major values of f(index) over a shape.
template <class F>
std::vector<double> fill(const Shape& shape, F f) {
  std::vector<double> values;
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()), 0);
  for (int64_t count = shape.elements(); count > 0; --count) {
    values.push_back(f(Index(index)));
    for (size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < shape.extents()[axis]) break;
      index[axis] = 0;
    }
  }
  return values;
}

}  // namespace meganeura
