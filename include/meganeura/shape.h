// Static tensor shapes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "meganeura/dtype.h"
#include "meganeura/export.h"

namespace meganeura {

// Extents of a dense row-major tensor; rank 0 is a scalar, an extent of 0 is legal.
class MEGANEURA_API Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents);
  explicit Shape(std::vector<int64_t> extents);

  int rank() const { return static_cast<int>(extents_.size()); }
  int64_t operator[](int axis) const { return extents_[static_cast<size_t>(axis)]; }
  std::span<const int64_t> extents() const { return extents_; }
  auto begin() const { return extents_.begin(); }
  auto end() const { return extents_.end(); }

  // The number of elements; 1 for rank 0. The constructor has checked that it fits 63 bits.
  int64_t elements() const;
  // Row-major strides in elements.
  std::vector<int64_t> strides() const;
  // "[64, 1, 28, 28]".
  std::string to_string() const;

  bool operator==(const Shape&) const = default;

 private:
  std::vector<int64_t> extents_;
};

// Bytes that a dense tensor occupies; throws when they do not fit 63 bits.
MEGANEURA_API uint64_t storage_bytes(const Shape& shape, DType dtype);

// NumPy broadcasting of two shapes; throws Error(kShape) naming both when they do not fit.
MEGANEURA_API Shape broadcast_shapes(const Shape& a, const Shape& b);

// Maps an axis in [-rank, rank) to [0, rank); throws Error(kShape) otherwise.
MEGANEURA_API int normalize_axis(int64_t axis, int rank);

}  // namespace meganeura
