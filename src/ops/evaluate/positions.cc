#include "ops/evaluate/positions.h"

#include <algorithm>

namespace meganeura {

std::vector<int64_t> positions(std::span<const int64_t> extents, int64_t offset,
                               std::span<const int64_t> strides) {
  std::vector<int64_t> result(static_cast<size_t>(product(extents)));
  if (result.empty()) return result;
  std::vector<int64_t> index(extents.size(), 0);
  int64_t position = offset;
  for (int64_t& out : result) {
    out = position;
    for (size_t axis = extents.size(); axis-- > 0;) {
      position += strides[axis];
      if (++index[axis] < extents[axis]) break;
      position -= strides[axis] * extents[axis];
      index[axis] = 0;
    }
  }
  return result;
}

std::vector<int64_t> other_axes(int rank, std::span<const int64_t> listed) {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (std::find(listed.begin(), listed.end(), axis) == listed.end()) axes.push_back(axis);
  }
  return axes;
}

std::vector<int64_t> pick(std::span<const int64_t> values, std::span<const int64_t> axes) {
  std::vector<int64_t> picked;
  for (int64_t axis : axes) picked.push_back(values[static_cast<size_t>(axis)]);
  return picked;
}

int64_t product(std::span<const int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents) result *= extent;
  return result;
}

}  // namespace meganeura
