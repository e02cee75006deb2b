// Reductions.
#include <algorithm>

#include "ops/rows.h"
#include "ops/rule.h"

namespace meganeura {
namespace ops {
namespace {

constexpr AttributeField kAxesFields[] = {{"axes", AttributeType::kInts}};

InferredType infer_reduce(const Node& node) {
  const Tensor x = node.operands[0];
  const auto& axes = node.get<Ints>("axes");
  const bool ordered =
      std::adjacent_find(axes.begin(), axes.end(), std::greater_equal<>()) == axes.end();
  if (axes.empty() || !ordered || axes.front() < 0 || axes.back() >= x.rank()) {
    refuse(node, "cannot reduce the axes [", join(axes), "]. Name some of its ", x.rank(),
           " axes once each, in ascending order.");
  }
  if (!info(x.dtype()).computable || x.dtype() == DType::kBool) {
    refuse(node, "cannot reduce ", x.dtype(), " values. Convert with cast, for instance to u32.");
  }
  Ints shape;
  for (int64_t axis : other_axes(x.rank(), axes)) {
    shape.push_back(x.shape()[static_cast<int>(axis)]);
  }
  return {Shape(shape), x.dtype()};
}

InferredType infer_extreme(const Node& node) {
  InferredType type = infer_reduce(node);
  for (int64_t axis : node.get<Ints>("axes")) {
    if (node.operands[0].shape()[static_cast<int>(axis)] != 0) continue;
    refuse(node, "has no extreme along its empty axis ", axis, ". Reduce axes that have elements.");
  }
  return type;
}

InferredType infer_arg_max(const Node& node) { return {infer_extreme(node).shape, DType::kU32}; }

// A reduced value beside every element it came from.
Tensor spread(const GradientContext& c, Tensor reduced) {
  const Shape& shape = c.operands[0].shape();
  return broadcast_axes(reduced, shape, other_axes(shape.rank(), c.node.get<Ints>("axes")));
}

Gradients sum_gradient(const GradientContext& c) { return {spread(c, c.cotangent)}; }

// The row-major position of every element within the axes.
Tensor position_in(Graph& graph, const Shape& shape, const Ints& axes) {
  Ints inner;
  for (int64_t axis : axes) inner.push_back(shape[static_cast<int>(axis)]);
  const Tensor index = iota(graph, {product(inner)}, 0);
  return broadcast_axes(reshape(index, inner), shape, axes);
}

// The cotangent goes to the element that arg max names for `x`.
Gradients first_extreme_gradient(const GradientContext& c, Tensor x) {
  const auto& axes = c.node.get<Ints>("axes");
  const Tensor winner = spread(c, arg_max(x, axes));
  const Tensor position = position_in(x.graph(), x.shape(), axes);
  const Tensor cotangent = spread(c, c.cotangent);
  return {select(equal(position, winner), cotangent, filled(cotangent, 0.0))};
}

Gradients max_gradient(const GradientContext& c) {
  return first_extreme_gradient(c, c.operands[0]);
}

Gradients min_gradient(const GradientContext& c) {
  return first_extreme_gradient(c, neg(c.operands[0]));
}

constexpr OpRow reduction(std::string_view name, InferredType (*infer)(const Node&),
                          ReduceKind kind, Gradients (*gradient)(const GradientContext&),
                          std::string_view doc) {
  return {.name = name,
          .min_operands = 1,
          .max_operands = 1,
          .fields = kAxesFields,
          .lowering = Lowering::kReduce,
          .infer = infer,
          .reduce = kind,
          .differentiability =
              kind == ReduceKind::kArgMax ? Differentiability::kZero : Differentiability::kRule,
          .gradient = gradient,
          .doc = doc};
}

constexpr OpRow kRows[] = {
    reduction("sum", infer_reduce, ReduceKind::kSum, sum_gradient,
              "The sum over the axes; an empty sum is 0."),
    reduction("max", infer_extreme, ReduceKind::kMax, max_gradient,
              "The maximum over the axes; NaN propagates; the first one gets the gradient."),
    reduction("min", infer_extreme, ReduceKind::kMin, min_gradient,
              "The minimum over the axes; NaN propagates; the first one gets the gradient."),
    reduction("arg_max", infer_arg_max, ReduceKind::kArgMax, nullptr,
              "The u32 row-major position of the first maximum; NaN exceeds every number."),
};

// Distinct axes in ascending order; all of them for none.
Ints reduced_axes(std::string_view op, const Operand& x, const Ints& axes) {
  require(op, x);
  if (axes.empty()) return counting(x.tensor.rank());
  Ints result;
  for (int64_t axis : axes) result.push_back(axis_of(op, x, axis));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    refuse(op, x.place, "names an axis twice: [", join(axes), "]. Name every axis once.");
  }
  return result;
}

Tensor keep_axes(Tensor reduced, const Shape& shape, const Ints& axes, Place place) {
  Ints kept = extents(shape);
  for (int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  return reshape({reduced, place.file, place.line}, kept);
}

Tensor reduce(std::string_view op, const Operand& x, const Ints& axes, bool keep) {
  const Ints list = reduced_axes(op, x, axes);
  if (list.empty()) return x.tensor;
  const Tensor reduced = make(op, x.place, {x.tensor}, {list});
  return keep ? keep_axes(reduced, x.tensor.shape(), list, x.place) : reduced;
}

// x as floats wide enough for sums, after checking that it holds floats.
Tensor summable(std::string_view op, const Operand& x) {
  if (!is_float(x.tensor.dtype())) {
    refuse(op, x.place, "takes floats, not ", x.tensor.dtype(), ". Convert with cast.");
  }
  return widened(x.tensor);
}

Tensor mean_of(Tensor x, const Ints& axes, bool keep) {
  int64_t count = 1;
  for (int64_t axis : axes) count *= x.shape()[static_cast<int>(axis)];
  if (axes.empty()) return x;
  return sum(x, axes, keep) / static_cast<double>(count);
}

}  // namespace

std::span<const OpRow> reduce_rows() { return kRows; }

}  // namespace ops

Tensor sum(Operand x, std::vector<int64_t> axes, bool keep) {
  return ops::reduce("sum", x, axes, keep);
}

Tensor max(Operand x, std::vector<int64_t> axes, bool keep) {
  return ops::reduce("max", x, axes, keep);
}

Tensor min(Operand x, std::vector<int64_t> axes, bool keep) {
  return ops::reduce("min", x, axes, keep);
}

Tensor arg_max(Operand x, std::vector<int64_t> axes, bool keep) {
  ops::require("arg_max", x);
  if (x.tensor.rank() == 0 && axes.empty()) return x.tensor.graph().scalar(0.0, u32, x.place);
  return ops::reduce("arg_max", x, axes, keep);
}

Tensor mean(Operand x, std::vector<int64_t> axes, bool keep) {
  const ops::Composite scope("mean", x);
  const Tensor wide = ops::summable("mean", x);
  return cast(ops::mean_of(wide, ops::reduced_axes("mean", x, axes), keep), x.tensor.dtype());
}

Tensor variance(Operand x, std::vector<int64_t> axes, bool keep) {
  const ops::Composite scope("variance", x);
  const Tensor wide = ops::summable("variance", x);
  const ops::Ints list = ops::reduced_axes("variance", x, axes);
  const Tensor centred = wide - ops::mean_of(wide, list, true);
  return cast(ops::mean_of(centred * centred, list, keep), x.tensor.dtype());
}

}  // namespace meganeura
