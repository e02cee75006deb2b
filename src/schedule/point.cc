#include <algorithm>

#include "base/check.h"
#include "graph/node.h"
#include "schedule/expand.h"

namespace meganeura::schedule {
namespace {

using kernels::Affine;
using kernels::Guard;
using kernels::IndexTerm;

void append_key(std::string& out, const Affine& affine) {
  append_to(out, affine.offset);
  for (int64_t stride : affine.strides) out += cat(",", stride);
}

void append_key(std::string& out, const std::vector<IndexTerm>& terms) {
  for (const IndexTerm& term : terms) {
    out += cat("<", term.slot, ":", term.limit, ":", term.stride, ":", term.is_signed, ":");
    append_key(out, term.at);
    out += ">";
  }
}

Affine constant_affine(int64_t offset, size_t rank) {
  return {offset, std::vector<int64_t>(rank, 0)};
}

Affine scaled(const Affine& affine, int64_t factor, int64_t shift) {
  Affine out = affine;
  out.offset = affine.offset * factor + shift;
  for (int64_t& stride : out.strides) stride *= factor;
  return out;
}

Coordinate scaled(const Coordinate& coordinate, int64_t factor, int64_t shift) {
  Coordinate out{scaled(coordinate.affine, factor, shift), coordinate.terms};
  for (IndexTerm& term : out.terms) term.stride *= factor;
  return out;
}

void add_to(Affine& sum, const Affine& term, int64_t factor) {
  sum.offset += term.offset * factor;
  for (size_t d = 0; d < sum.strides.size(); ++d) sum.strides[d] += term.strides[d] * factor;
}

struct QuotientRemainder {
  Affine quotient;
  Affine remainder;
};

// affine = quotient·divisor + remainder with 0 ≤ remainder < divisor over the whole iteration
// space. Throws NeedsSplit where splitting a dimension makes that possible, NeedsBuffer elsewhere.
QuotientRemainder divide(const Affine& affine, int64_t divisor, std::span<const int64_t> extents,
                         uint32_t operand) {
  if (affine.offset < 0) throw NeedsBuffer{operand};
  QuotientRemainder result{constant_affine(affine.offset / divisor, extents.size()),
                           constant_affine(affine.offset % divisor, extents.size())};
  int64_t largest = result.remainder.offset;
  for (size_t d = 0; d < extents.size(); ++d) {
    const int64_t stride = affine.strides[d];
    if (stride < 0) throw NeedsBuffer{operand};
    const int64_t steps = std::max<int64_t>(extents[d] - 1, 0);
    const int64_t rest = stride % divisor;
    result.quotient.strides[d] = stride / divisor;
    result.remainder.strides[d] = rest;
    if (rest != 0 && rest * steps >= divisor) {
      const int64_t factor = divisor / rest;
      if (divisor % rest == 0 && factor > 1 && extents[d] % factor == 0) {
        throw NeedsSplit{d, factor};
      }
      throw NeedsBuffer{operand};
    }
    largest += rest * steps;
  }
  if (largest >= divisor) throw NeedsBuffer{operand};
  return result;
}

// Axes of extent other than 1, in order.
std::vector<int> long_axes(const Shape& shape) {
  std::vector<int> axes;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] != 1) axes.push_back(axis);
  }
  return axes;
}

}  // namespace

Point reshape_point(const Shape& from, const Shape& to, const Point& point,
                    std::span<const int64_t> extents, uint32_t operand) {
  Point out{std::vector<Coordinate>(static_cast<size_t>(to.rank()),
                                    {constant_affine(0, extents.size()), {}}),
            point.guards};
  const std::vector<int> from_axes = long_axes(from);
  const std::vector<int> to_axes = long_axes(to);
  const bool same = std::equal(from_axes.begin(), from_axes.end(), to_axes.begin(), to_axes.end(),
                               [&](int a, int b) { return from[a] == to[b]; });
  if (same) {
    for (size_t i = 0; i < to_axes.size(); ++i) {
      out.coordinates[static_cast<size_t>(to_axes[i])] =
          point.coordinates[static_cast<size_t>(from_axes[i])];
    }
    return out;
  }
  Affine flat = constant_affine(0, extents.size());
  const std::vector<int64_t> strides = from.strides();
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    if (!point.coordinates[axis].terms.empty()) throw NeedsBuffer{operand};
    add_to(flat, point.coordinates[axis].affine, strides[axis]);
  }
  for (auto axis = to_axes.rbegin(); axis != to_axes.rend(); ++axis) {
    Coordinate& coordinate = out.coordinates[static_cast<size_t>(*axis)];
    if (axis + 1 == to_axes.rend()) {
      coordinate.affine = flat;
    } else {
      QuotientRemainder parts = divide(flat, to[*axis], extents, operand);
      coordinate.affine = std::move(parts.remainder);
      flat = std::move(parts.quotient);
    }
  }
  return out;
}

namespace {

// A loaded index along one axis: clamp(indices[at], 0, limit).
Coordinate loaded(Tensor indices, const Point& at, int64_t limit, Tensor user, SlotTable& slots,
                  std::span<const int64_t> extents) {
  SlotTable& table = slots;
  Expander loader(table, {extents.begin(), extents.end()});
  const kernels::Input input = loader.input(indices, at);
  if (!input.terms.empty() || !input.guards.empty()) throw NeedsBuffer{user.id()};
  IndexTerm term;
  term.slot = input.slot;
  term.at = input.access;
  term.limit = std::max<int64_t>(limit, 0);
  term.stride = 1;
  term.is_signed = is_signed(indices.dtype());
  return {constant_affine(0, extents.size()), {term}};
}

Point gather_point(Tensor tensor, const Point& point, SlotTable& slots,
                   std::span<const int64_t> extents) {
  const Node& node = tensor.node();
  const Tensor data = node.operands[0];
  const Tensor indices = node.operands[1];
  const auto axis = static_cast<size_t>(node.get<int64_t>("axis"));
  const auto index_rank = static_cast<size_t>(indices.rank());
  if (!point.guards.empty()) throw NeedsBuffer{tensor.id()};
  Point at;
  at.coordinates.assign(point.coordinates.begin() + static_cast<ptrdiff_t>(axis),
                        point.coordinates.begin() + static_cast<ptrdiff_t>(axis + index_rank));
  for (const Coordinate& coordinate : at.coordinates) {
    if (!coordinate.terms.empty()) throw NeedsBuffer{tensor.id()};
  }
  Point out;
  for (size_t i = 0; i < static_cast<size_t>(data.rank()); ++i) {
    if (i < axis) {
      out.coordinates.push_back(point.coordinates[i]);
    } else if (i == axis) {
      out.coordinates.push_back(
          loaded(indices, at, data.shape()[static_cast<int>(axis)] - 1, tensor, slots, extents));
    } else {
      out.coordinates.push_back(point.coordinates[i - 1 + index_rank]);
    }
  }
  return out;
}

Point dynamic_slice_point(Tensor tensor, const Point& point, SlotTable& slots,
                          std::span<const int64_t> extents) {
  const Node& node = tensor.node();
  const Shape& outer = node.operands[0].shape();
  Point out = point;
  for (size_t axis = 0; axis < out.coordinates.size(); ++axis) {
    const int64_t slack = outer[static_cast<int>(axis)] - node.shape[static_cast<int>(axis)];
    if (slack == 0) continue;
    if (!point.guards.empty()) throw NeedsBuffer{tensor.id()};
    Point at{{{constant_affine(static_cast<int64_t>(axis), extents.size()), {}}}, {}};
    Coordinate start = loaded(node.operands[1], at, slack, tensor, slots, extents);
    out.coordinates[axis].terms.push_back(start.terms[0]);
  }
  return out;
}

}  // namespace

std::string key(const Point& point) {
  std::string out;
  for (const Coordinate& coordinate : point.coordinates) {
    out += "|";
    append_key(out, coordinate.affine);
    append_key(out, coordinate.terms);
  }
  for (const Guard& guard : point.guards) {
    out += cat("?", guard.extent, ":");
    append_key(out, guard.position);
    append_key(out, guard.terms);
  }
  return out;
}

Point identity_point(std::span<const size_t> first, std::span<const int64_t> extents) {
  Point point;
  for (size_t axis = 0; axis + 1 < first.size(); ++axis) {
    Coordinate coordinate{constant_affine(0, extents.size()), {}};
    int64_t stride = 1;
    for (size_t d = first[axis + 1]; d-- > first[axis];) {
      coordinate.affine.strides[d] = stride;
      stride *= extents[d];
    }
    point.coordinates.push_back(std::move(coordinate));
  }
  return point;
}

std::optional<Point> view_point(Tensor tensor, const Point& point, SlotTable& slots,
                                std::span<const int64_t> extents) {
  const Node& node = tensor.node();
  switch (node.row->lowering) {
    case Lowering::kIdentity:
      return point;
    case Lowering::kReshape:
      return reshape_point(node.shape, node.operands[0].shape(), point, extents,
                           node.operands[0].id());
    case Lowering::kPermute: {
      const auto& order = node.get<std::vector<int64_t>>("order");
      Point out{std::vector<Coordinate>(order.size()), point.guards};
      for (size_t i = 0; i < order.size(); ++i) {
        out.coordinates[static_cast<size_t>(order[i])] = point.coordinates[i];
      }
      return out;
    }
    case Lowering::kBroadcast: {
      const auto& axes = node.get<std::vector<int64_t>>("axes");
      const Shape& shape = node.operands[0].shape();
      Point out{{}, point.guards};
      for (size_t i = 0; i < axes.size(); ++i) {
        const auto axis = static_cast<int>(axes[i]);
        const bool stretched = shape[static_cast<int>(i)] != node.shape[axis];
        out.coordinates.push_back(stretched ? Coordinate{constant_affine(0, extents.size()), {}}
                                            : point.coordinates[static_cast<size_t>(axis)]);
      }
      return out;
    }
    case Lowering::kSlice: {
      const auto& starts = node.get<std::vector<int64_t>>("starts");
      const auto& steps = node.get<std::vector<int64_t>>("steps");
      Point out = point;
      for (size_t i = 0; i < starts.size(); ++i) {
        out.coordinates[i] = scaled(point.coordinates[i], steps[i], starts[i]);
      }
      return out;
    }
    case Lowering::kDynamicSlice:
      return dynamic_slice_point(tensor, point, slots, extents);
    case Lowering::kGather:
      return gather_point(tensor, point, slots, extents);
    default:
      return std::nullopt;
  }
}

}  // namespace meganeura::schedule
