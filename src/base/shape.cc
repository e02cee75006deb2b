#include "meganeura/shape.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace meganeura {
namespace {

void validate(const std::vector<int64_t>& extents) {
  int64_t product = 1;
  bool has_zero = false;
  for (int64_t extent : extents) {
    if (extent < 0) {
      fail(ErrorKind::kShape, "The shape [", join(extents), "] has the negative extent ", extent,
           "; extents are 0 or more.");
    }
    has_zero = has_zero || extent == 0;
  }
  if (has_zero) return;
  for (int64_t extent : extents) {
    if (product > std::numeric_limits<int64_t>::max() / extent) {
      fail(ErrorKind::kShape, "The shape [", join(extents),
           "] has more elements than 63 bits can count.");
    }
    product *= extent;
  }
}

}  // namespace

Shape::Shape(std::initializer_list<int64_t> extents) : extents_(extents) { validate(extents_); }
Shape::Shape(std::vector<int64_t> extents) : extents_(std::move(extents)) { validate(extents_); }

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int64_t extent : extents_) {
    if (extent == 0) return 0;
  }
  for (int64_t extent : extents_) product *= extent;
  return product;
}

std::vector<int64_t> Shape::strides() const {
  std::vector<int64_t> strides(extents_.size());
  int64_t stride = 1;
  for (size_t axis = extents_.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= std::max<int64_t>(extents_[axis], 1);
  }
  return strides;
}

std::string Shape::to_string() const { return cat("[", join(extents_), "]"); }

uint64_t storage_bytes(const Shape& shape, DType dtype) {
  const DTypeInfo& row = info(dtype);
  const auto elements = static_cast<uint64_t>(shape.elements());
  const uint64_t blocks = (elements + row.block_elements - 1) / row.block_elements;
  if (blocks > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / row.block_bytes) {
    fail(ErrorKind::kShape, "A tensor of shape ", shape, " and dtype ", dtype,
         " needs more bytes than 63 bits can count.");
  }
  return blocks * row.block_bytes;
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> extents(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const int axis_a = a.rank() - 1 - i;
    const int axis_b = b.rank() - 1 - i;
    const int64_t extent_a = axis_a >= 0 ? a[axis_a] : 1;
    const int64_t extent_b = axis_b >= 0 ? b[axis_b] : 1;
    if (extent_a != extent_b && extent_a != 1 && extent_b != 1) {
      fail(ErrorKind::kShape, "The shapes ", a, " and ", b, " do not broadcast: extents ", extent_a,
           " and ", extent_b,
           " differ and neither is 1. Reshape or broadcast one of the operands first.");
    }
    extents[static_cast<size_t>(rank - 1 - i)] = extent_a == 1 ? extent_b : extent_a;
  }
  return Shape(std::move(extents));
}

int normalize_axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    fail(ErrorKind::kShape, "Axis ", axis, " does not exist in a tensor of rank ", rank,
         "; it must lie in [", -rank, ", ", rank, ").");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace meganeura
