// Ops that move values: views, windows and indexed access.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "graph/values.h"
#include "ops/evaluate/node_values.h"
#include "ops/evaluate/positions.h"

namespace meganeura {
namespace {

using Ints = std::vector<int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// out[i] = in[source[i]].
NodeValues take(const NodeValues& in, const Ints& source, const EvaluationMode& mode) {
  NodeValues out(source.size(), mode);
  for (size_t i = 0; i < source.size(); ++i) {
    out.values[i] = in.values[static_cast<size_t>(source[i])];
    if (mode.bounds) out.errors[i] = in.errors[static_cast<size_t>(source[i])];
  }
  return out;
}

// out[destination[i]] = in[i].
void place(const NodeValues& in, const Ints& destination, NodeValues& out) {
  for (size_t i = 0; i < destination.size(); ++i) {
    out.values[static_cast<size_t>(destination[i])] = in.values[i];
    if (!out.errors.empty()) out.errors[static_cast<size_t>(destination[i])] = in.errors[i];
  }
}

int64_t dot(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), int64_t{0});
}

// Where the elements of a box of this shape at `corner` lie in a tensor of shape `whole`.
Ints window(const Shape& whole, const Shape& box, std::span<const int64_t> corner) {
  const Ints strides = whole.strides();
  return positions(box.extents(), dot(corner, strides), strides);
}

NodeValues permute_values(const Node& node, OperandValues operands, const EvaluationMode& mode) {
  const Ints strides = node.operands[0].shape().strides();
  return take(*operands[0],
              positions(node.shape.extents(), 0, pick(strides, node.get<Ints>("order"))), mode);
}

NodeValues broadcast_values(const Node& node, OperandValues operands, const EvaluationMode& mode) {
  const Shape& from = node.operands[0].shape();
  const auto& axes = node.get<Ints>("axes");
  const Ints from_strides = from.strides();
  Ints strides(static_cast<size_t>(node.shape.rank()), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool stretched = from[static_cast<int>(i)] == 1;
    strides[static_cast<size_t>(axes[i])] = stretched ? 0 : from_strides[i];
  }
  return take(*operands[0], positions(node.shape.extents(), 0, strides), mode);
}

NodeValues slice_values(const Node& node, OperandValues operands, const EvaluationMode& mode) {
  const Ints from_strides = node.operands[0].shape().strides();
  const auto& steps = node.get<Ints>("steps");
  Ints strides = from_strides;
  for (size_t i = 0; i < strides.size(); ++i) strides[i] *= steps[i];
  const int64_t corner = dot(node.get<Ints>("starts"), from_strides);
  return take(*operands[0], positions(node.shape.extents(), corner, strides), mode);
}

NodeValues pad_values(const Node& node, OperandValues operands, const EvaluationMode& mode) {
  NodeValues out(static_cast<size_t>(node.shape.elements()), mode);
  const double value = node.get<double>("value");
  std::fill(out.values.begin(), out.values.end(),
            mode.bounds ? as_stored(node.dtype, value) : value);
  place(*operands[0], window(node.shape, node.operands[0].shape(), node.get<Ints>("low")), out);
  return out;
}

NodeValues concat_values(const Node& node, OperandValues operands, const EvaluationMode& mode) {
  NodeValues out(static_cast<size_t>(node.shape.elements()), mode);
  const auto axis = static_cast<size_t>(node.get<int64_t>("axis"));
  Ints corner(static_cast<size_t>(node.shape.rank()), 0);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Shape& part = node.operands[i].shape();
    place(*operands[i], window(node.shape, part, corner), out);
    corner[axis] += part[static_cast<int>(axis)];
  }
  return out;
}

// The corner of a dynamic window, clamped so that the window fits.
Ints dynamic_corner(const NodeValues& starts, const Shape& whole, const Shape& box) {
  Ints corner;
  for (int axis = 0; axis < whole.rank(); ++axis) {
    const double last = static_cast<double>(whole[axis] - box[axis]);
    const double start = starts.values[static_cast<size_t>(axis)];
    corner.push_back(static_cast<int64_t>(std::clamp(start, 0.0, last)));
  }
  return corner;
}

bool uncertain(const NodeValues& integers) {
  return std::any_of(integers.errors.begin(), integers.errors.end(),
                     [](double error) { return error != 0.0; });
}

void forget(NodeValues& out) { std::fill(out.errors.begin(), out.errors.end(), kInfinity); }

NodeValues dynamic_slice_values(const Node& node, OperandValues operands,
                                const EvaluationMode& mode) {
  const Shape& whole = node.operands[0].shape();
  const Ints corner = dynamic_corner(*operands[1], whole, node.shape);
  NodeValues out = take(*operands[0], window(whole, node.shape, corner), mode);
  if (uncertain(*operands[1])) forget(out);
  return out;
}

NodeValues dynamic_update_slice_values(const Node& node, OperandValues operands,
                                       const EvaluationMode&) {
  NodeValues out = *operands[0];
  const Shape& box = node.operands[1].shape();
  const Ints corner = dynamic_corner(*operands[2], node.shape, box);
  place(*operands[1], window(node.shape, box, corner), out);
  if (uncertain(*operands[2])) forget(out);
  return out;
}

}  // namespace

NodeValues evaluate_gather(const Node& node, OperandValues operands, const EvaluationMode& mode) {
  const Shape& shape = node.operands[0].shape();
  const auto axis = static_cast<size_t>(node.get<int64_t>("axis"));
  const int64_t extent = shape.extents()[axis];
  const int64_t outer = product(shape.extents().first(axis));
  const int64_t inner = product(shape.extents().subspan(axis + 1));
  const NodeValues& indices = *operands[1];
  NodeValues out(static_cast<size_t>(node.shape.elements()), mode);
  if (out.values.empty()) return out;
  MG_CHECK(extent > 0, describe(node), " reads from an empty axis");
  size_t at = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < indices.values.size(); ++i) {
      const double last = static_cast<double>(extent - 1);
      const auto index = static_cast<int64_t>(std::clamp(indices.values[i], 0.0, last));
      const auto from = static_cast<size_t>((o * extent + index) * inner);
      for (size_t k = 0; k < static_cast<size_t>(inner); ++k, ++at) {
        out.values[at] = operands[0]->values[from + k];
        if (!mode.bounds) continue;
        out.errors[at] = indices.errors[i] != 0.0 ? kInfinity : operands[0]->errors[from + k];
      }
    }
  }
  return out;
}

NodeValues evaluate_scatter_add(const Node& node, OperandValues operands,
                                const EvaluationMode& mode) {
  const int64_t inner = product(node.shape.extents().subspan(1));
  const NodeValues& x = *operands[0];
  const NodeValues& indices = *operands[1];
  const NodeValues& updates = *operands[2];
  std::vector<BoundedSum> sums(x.values.size());
  std::vector<int64_t> terms(x.values.size(), 1);
  for (size_t i = 0; i < sums.size(); ++i) sums[i].add(x.values[i], mode.bounds ? x.errors[i] : 0);
  for (size_t i = 0; i < indices.values.size(); ++i) {
    const double index = indices.values[i];
    if (index < 0.0 || index >= static_cast<double>(node.shape[0])) continue;
    for (int64_t k = 0; k < inner; ++k) {
      const auto to = static_cast<size_t>(static_cast<int64_t>(index) * inner + k);
      const size_t from = i * static_cast<size_t>(inner) + static_cast<size_t>(k);
      sums[to].add(updates.values[from], mode.bounds ? updates.errors[from] : 0.0);
      ++terms[to];
    }
  }
  NodeValues out(sums.size(), mode);
  for (size_t i = 0; i < sums.size(); ++i) {
    out.values[i] = sums[i].value();
    if (mode.bounds) out.errors[i] = is_float(node.dtype) ? sums[i].error(terms[i]) : 0.0;
  }
  if (uncertain(indices)) forget(out);
  return out;
}

NodeValues evaluate_node(const Node& node, OperandValues operands, const EvaluationMode& mode) {
  switch (node.row->lowering) {
    case Lowering::kIota: {
      NodeValues out(static_cast<size_t>(node.shape.elements()), mode);
      Ints strides(static_cast<size_t>(node.shape.rank()), 0);
      strides[static_cast<size_t>(node.get<int64_t>("axis"))] = 1;
      const Ints index = positions(node.shape.extents(), 0, strides);
      std::copy(index.begin(), index.end(), out.values.begin());
      return out;
    }
    case Lowering::kMap:
      return evaluate_map(node, operands, mode);
    case Lowering::kReduce:
      return evaluate_reduce(node, operands, mode);
    case Lowering::kContract:
      return evaluate_contract(node, operands, mode);
    case Lowering::kReshape:
    case Lowering::kIdentity:
      return *operands[0];
    case Lowering::kPermute:
      return permute_values(node, operands, mode);
    case Lowering::kBroadcast:
      return broadcast_values(node, operands, mode);
    case Lowering::kSlice:
      return slice_values(node, operands, mode);
    case Lowering::kPad:
      return pad_values(node, operands, mode);
    case Lowering::kConcat:
      return concat_values(node, operands, mode);
    case Lowering::kDynamicSlice:
      return dynamic_slice_values(node, operands, mode);
    case Lowering::kDynamicUpdateSlice:
      return dynamic_update_slice_values(node, operands, mode);
    case Lowering::kGather:
      return evaluate_gather(node, operands, mode);
    case Lowering::kScatterAdd:
      return evaluate_scatter_add(node, operands, mode);
    case Lowering::kAssign:
      return *operands[1];
    case Lowering::kInput:
    case Lowering::kParameter:
    case Lowering::kState:
    case Lowering::kConstant:
      break;
  }
  MG_CHECK(false, describe(node), " is a leaf and has no operands to evaluate");
  return {};
}

}  // namespace meganeura
