#include "ops/rule.h"

#include <algorithm>
#include <numeric>

#include "ops/rows.h"

namespace meganeura::ops {

Tensor make(std::string_view op, Place place, std::vector<Tensor> operands,
            std::vector<AttributeValue> attributes) {
  const OpRow* row = find_op(op);
  MG_CHECK(row != nullptr, "there is no row ", op);
  MG_CHECK(!operands.empty(), "make() takes the graph from the operands of ", op);
  for (const Tensor& operand : operands) require(op, Operand(operand, place.file, place.line));
  Graph& graph = operands[0].graph();
  return build_node(graph, *row, std::move(operands), std::move(attributes), place);
}

void require(std::string_view op, const Operand& operand) {
  if (operand.tensor) return;
  fail(ErrorKind::kInvalidArgument, "An operand of the op ", op, " at ", to_string(operand.place),
       " is an empty tensor. Pass a tensor that a graph or an op returned.");
}

int axis_of(std::string_view op, const Operand& x, int64_t axis) {
  require(op, x);
  const int rank = x.tensor.rank();
  if (axis < -rank || axis >= rank) {
    refuse(op, x.place, "has no axis ", axis, ": its operand is ", x.tensor.dtype(),
           x.tensor.shape(), ". Use an axis from ", -rank, " to ", rank - 1, ".");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Shape common_shape(std::string_view op, Place place, const std::vector<Tensor>& operands) {
  Shape shape;
  for (Tensor operand : operands) {
    try {
      shape = broadcast_shapes(shape, operand.shape());
    } catch (const Error&) {
      std::vector<std::string> parts;
      for (Tensor each : operands) parts.push_back(cat(each.dtype(), each.shape()));
      refuse(op, place, "cannot broadcast ", join(parts, " and "),
             ". Extents, counted from the last axis, must be equal or 1.");
    }
  }
  return shape;
}

Tensor filled(Tensor like, double value) {
  return filled(like.graph(), like.shape(), like.dtype(), value);
}

Tensor filled(Graph& graph, const Shape& shape, DType dtype, double value) {
  return broadcast_to(graph.scalar(value, dtype), shape);
}

Tensor broadcast_axes(Tensor x, const Shape& shape, Ints axes) {
  return make("broadcast", Place::here(), {x}, {extents(shape), std::move(axes)});
}

Tensor widened(Tensor x) {
  return is_float(x.dtype()) && info(x.dtype()).bits < 32 ? cast(x, f32) : x;
}

Ints extents(const Shape& shape) { return {shape.begin(), shape.end()}; }

Ints other_axes(int rank, const Ints& axes) {
  Ints rest;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) rest.push_back(axis);
  }
  return rest;
}

Ints counting(int64_t count) {
  Ints list(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

int64_t product(const Ints& list) {
  return std::accumulate(list.begin(), list.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace meganeura::ops
