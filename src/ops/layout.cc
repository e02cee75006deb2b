// Iota and views: reshape, permute, broadcast, slice.
#include <algorithm>

#include "ops/rows.h"
#include "ops/rule.h"

namespace meganeura {
namespace ops {
namespace {

constexpr AttributeField kIotaFields[] = {{"shape", AttributeType::kInts},
                                          {"axis", AttributeType::kInt},
                                          {"dtype", AttributeType::kDType}};
constexpr AttributeField kReshapeFields[] = {{"shape", AttributeType::kInts}};
constexpr AttributeField kPermuteFields[] = {{"order", AttributeType::kInts}};
constexpr AttributeField kBroadcastFields[] = {{"shape", AttributeType::kInts},
                                               {"axes", AttributeType::kInts}};
constexpr AttributeField kSliceFields[] = {{"starts", AttributeType::kInts},
                                           {"ends", AttributeType::kInts},
                                           {"steps", AttributeType::kInts}};

std::string text(const Ints& list) { return cat("[", join(list), "]"); }

InferredType infer_iota(const Node& node) {
  const Shape shape(node.get<Ints>("shape"));
  const auto axis = node.get<int64_t>("axis");
  const auto dtype = node.get<DType>("dtype");
  if (axis < 0 || axis >= shape.rank()) {
    fail(ErrorKind::kShape, "The op ", describe(node), " counts along axis ", axis, " of ", shape,
         ". Give a shape of rank 1 or more and one of its axes.");
  }
  if (dtype != DType::kU32 && dtype != DType::kI32 && dtype != DType::kF32) {
    fail(ErrorKind::kShape, "The op ", describe(node), " cannot count in ", dtype,
         ". Use u32, i32 or f32, and cast the result.");
  }
  return {shape, dtype};
}

InferredType infer_reshape(const Node& node) {
  const Tensor x = node.operands[0];
  const Shape shape(node.get<Ints>("shape"));
  if (shape.elements() != x.shape().elements()) {
    refuse(node, "cannot become ", shape, ", which has ", shape.elements(), " elements instead of ",
           x.shape().elements(), ". Choose extents with the same product.");
  }
  return {shape, x.dtype()};
}

InferredType infer_permute(const Node& node) {
  const Tensor x = node.operands[0];
  const auto& order = node.get<Ints>("order");
  Ints sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != counting(x.rank())) {
    refuse(node, "got the order ", text(order), ". Name each of its ", x.rank(), " axes once.");
  }
  Ints shape;
  for (int64_t axis : order) shape.push_back(x.shape()[static_cast<int>(axis)]);
  return {Shape(shape), x.dtype()};
}

InferredType infer_broadcast(const Node& node) {
  const Tensor x = node.operands[0];
  const Shape shape(node.get<Ints>("shape"));
  const auto& axes = node.get<Ints>("axes");
  bool fits = axes.size() == static_cast<size_t>(x.rank());
  for (size_t i = 0; fits && i < axes.size(); ++i) {
    fits = axes[i] >= 0 && axes[i] < shape.rank() &&
           std::count(axes.begin(), axes.end(), axes[i]) == 1;
    if (!fits) break;
    const int64_t extent = x.shape()[static_cast<int>(i)];
    fits = extent == 1 || extent == shape[static_cast<int>(axes[i])];
  }
  if (!fits) {
    refuse(node, "does not broadcast to ", shape, " along axes ", text(axes),
           ". Map each axis to one of equal extent, or stretch an extent of 1.");
  }
  return {shape, x.dtype()};
}

InferredType infer_slice(const Node& node) {
  const Tensor x = node.operands[0];
  const auto& starts = node.get<Ints>("starts");
  const auto& ends = node.get<Ints>("ends");
  const auto& steps = node.get<Ints>("steps");
  const auto rank = static_cast<size_t>(x.rank());
  bool fits = starts.size() == rank && ends.size() == rank && steps.size() == rank;
  Ints shape;
  for (size_t i = 0; fits && i < rank; ++i) {
    fits = 0 <= starts[i] && starts[i] <= ends[i] && ends[i] <= x.shape()[static_cast<int>(i)] &&
           steps[i] >= 1;
    if (!fits) break;
    const int64_t span = ends[i] - starts[i];
    shape.push_back(span / steps[i] + (span % steps[i] != 0 ? 1 : 0));
  }
  if (!fits) {
    refuse(node, "cannot take ", text(starts), " to ", text(ends), " in steps of ", text(steps),
           ". Give one start, end and step of at least 1 per axis, inside the extents.");
  }
  return {Shape(shape), x.dtype()};
}

Gradients reshape_gradient(const GradientContext& c) {
  return {reshape(c.cotangent, extents(c.operands[0].shape()))};
}

Gradients permute_gradient(const GradientContext& c) {
  const auto& order = c.node.get<Ints>("order");
  Ints inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return {permute(c.cotangent, inverse)};
}

// Sums over the stretched axes and puts the kept ones back into the operand's order.
Gradients broadcast_gradient(const GradientContext& c) {
  const Shape& from = c.operands[0].shape();
  const Shape& to = c.cotangent.shape();
  const auto& axes = c.node.get<Ints>("axes");
  Ints kept;  // the operand's axes that were not stretched
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t extent = from[static_cast<int>(i)];
    if (extent == to[static_cast<int>(axes[i])]) kept.push_back(static_cast<int64_t>(i));
  }
  Ints targets;
  for (int64_t i : kept) targets.push_back(axes[static_cast<size_t>(i)]);
  Tensor gradient = c.cotangent;
  const Ints summed = other_axes(to.rank(), targets);
  if (!summed.empty()) gradient = sum(gradient, summed);
  Ints order;
  for (int64_t target : targets) {
    order.push_back(std::count_if(targets.begin(), targets.end(),
                                  [target](int64_t other) { return other < target; }));
  }
  return {reshape(permute(gradient, order), extents(from))};
}

// Spreads the cotangent to every `step`-th position of an axis, without what follows the last one.
Tensor dilate(Tensor x, int axis, int64_t step, int64_t span) {
  Ints shape = extents(x.shape());
  const auto at = static_cast<size_t>(axis);
  const int64_t count = shape[at];
  const Tensor wide = unsqueeze(x, axis + 1);
  Ints low(static_cast<size_t>(wide.rank()), 0);
  Ints high = low;
  high[at + 1] = step - 1;
  shape[at] = count * step;
  const Tensor spread = reshape(pad(wide, low, high), shape);
  Ints ends = extents(spread.shape());
  ends[at] = std::min(ends[at], span);
  return slice(spread, Ints(shape.size(), 0), ends);
}

Gradients slice_gradient(const GradientContext& c) {
  const Shape& shape = c.operands[0].shape();
  const auto& starts = c.node.get<Ints>("starts");
  const auto& ends = c.node.get<Ints>("ends");
  const auto& steps = c.node.get<Ints>("steps");
  Tensor gradient = c.cotangent;
  Ints high;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto at = static_cast<size_t>(axis);
    if (steps[at] > 1) gradient = dilate(gradient, axis, steps[at], ends[at] - starts[at]);
    high.push_back(shape[axis] - starts[at] - gradient.shape()[axis]);
  }
  return {pad(gradient, starts, high)};
}

constexpr OpRow view(std::string_view name, std::span<const AttributeField> fields,
                     Lowering lowering, InferredType (*infer)(const Node&),
                     Gradients (*gradient)(const GradientContext&), std::string_view doc) {
  return {.name = name,
          .min_operands = 1,
          .max_operands = 1,
          .fields = fields,
          .lowering = lowering,
          .infer = infer,
          .differentiability = Differentiability::kRule,
          .gradient = gradient,
          .doc = doc};
}

constexpr OpRow kRows[] = {
    {.name = "iota",
     .min_operands = 0,
     .max_operands = 0,
     .fields = kIotaFields,
     .lowering = Lowering::kIota,
     .infer = infer_iota,
     .differentiability = Differentiability::kZero,
     .doc = "0, 1, ... along an axis, the same along the others."},
    view("reshape", kReshapeFields, Lowering::kReshape, infer_reshape, reshape_gradient,
         "The same elements in row-major order under other extents."),
    view("permute", kPermuteFields, Lowering::kPermute, infer_permute, permute_gradient,
         "Axis i of the result is axis order[i] of the operand."),
    view("broadcast", kBroadcastFields, Lowering::kBroadcast, infer_broadcast, broadcast_gradient,
         "Axis i of the operand becomes axis axes[i]; extents of 1 and new axes are repeated."),
    view("slice", kSliceFields, Lowering::kSlice, infer_slice, slice_gradient,
         "Every steps[i]-th element of [starts[i], ends[i]) of each axis."),
};

// The extents with the -1 replaced by what the number of elements asks for.
Ints complete_extents(const Operand& x, Ints list) {
  const auto open = std::find(list.begin(), list.end(), -1);
  if (open == list.end()) return list;
  const std::string asked = text(list);
  *open = 1;
  const bool sound = std::none_of(list.begin(), list.end(), [](int64_t e) { return e < 1; });
  const int64_t rest = sound ? Shape(list).elements() : 0;
  const int64_t elements = x.tensor.shape().elements();
  if (rest == 0 || elements % rest != 0) {
    refuse("reshape", x.place, "cannot infer the -1 of ", asked, " for ", x.tensor.dtype(),
           x.tensor.shape(), ". Write at most one -1, beside positive extents that divide ",
           elements, ".");
  }
  *open = elements / rest;
  return list;
}

int64_t clip(int64_t position, int64_t extent) {
  return std::clamp<int64_t>(position < 0 ? position + extent : position, 0, extent);
}

}  // namespace

std::span<const OpRow> layout_rows() { return kRows; }

}  // namespace ops

using ops::axis_of;
using ops::Ints;
using ops::make;
using ops::require;

Tensor iota(Graph& graph, const Shape& shape, int64_t axis, DType dtype, Place place) {
  return build_node(graph, *find_op("iota"), {},
                    {ops::extents(shape), axis < 0 ? axis + shape.rank() : axis, dtype}, place);
}

Tensor reshape(Operand x, std::vector<int64_t> extents) {
  require("reshape", x);
  Ints shape = ops::complete_extents(x, std::move(extents));
  if (ops::extents(x.tensor.shape()) == shape) return x.tensor;
  return make("reshape", x.place, {x.tensor}, {std::move(shape)});
}

Tensor flatten(Operand x, int64_t first_axis) {
  require("flatten", x);
  if (x.tensor.rank() == 0 && (first_axis == 0 || first_axis == -1)) return reshape(x, {1});
  const auto first = static_cast<size_t>(axis_of("flatten", x, first_axis));
  Ints shape = ops::extents(x.tensor.shape());
  const Ints rest(shape.begin() + static_cast<ptrdiff_t>(first), shape.end());
  shape.resize(first);
  shape.push_back(ops::product(rest));
  return reshape(x, std::move(shape));
}

Tensor permute(Operand x, std::vector<int64_t> order) {
  for (int64_t& axis : order) axis = axis_of("permute", x, axis);
  require("permute", x);
  if (order == ops::counting(x.tensor.rank())) return x.tensor;
  return make("permute", x.place, {x.tensor}, {std::move(order)});
}

Tensor transpose(Operand x, int64_t a, int64_t b) {
  const auto first = static_cast<size_t>(axis_of("transpose", x, a));
  const auto second = static_cast<size_t>(axis_of("transpose", x, b));
  Ints order = ops::counting(x.tensor.rank());
  std::swap(order[first], order[second]);
  return permute(x, std::move(order));
}

Tensor broadcast_to(Operand x, const Shape& shape) {
  require("broadcast", x);
  if (x.tensor.shape() == shape) return x.tensor;
  const int64_t added = shape.rank() - x.tensor.rank();
  Ints axes = ops::counting(x.tensor.rank());
  for (int64_t& axis : axes) axis += added;
  return make("broadcast", x.place, {x.tensor}, {ops::extents(shape), std::move(axes)});
}

Tensor unsqueeze(Operand x, int64_t axis) {
  require("unsqueeze", x);
  const int64_t rank = x.tensor.rank();
  if (axis < -rank - 1 || axis > rank) {
    ops::refuse("unsqueeze", x.place, "cannot insert axis ", axis, " into ", x.tensor.dtype(),
                x.tensor.shape(), ". Use an axis from ", -rank - 1, " to ", rank, ".");
  }
  Ints shape = ops::extents(x.tensor.shape());
  shape.insert(shape.begin() + (axis < 0 ? axis + rank + 1 : axis), 1);
  return reshape(x, std::move(shape));
}

Tensor squeeze(Operand x, int64_t axis) {
  const int at = axis_of("squeeze", x, axis);
  if (x.tensor.shape()[at] != 1) {
    ops::refuse("squeeze", x.place, "cannot remove axis ", axis, " of ", x.tensor.dtype(),
                x.tensor.shape(), ". Only an axis of extent 1 can be removed.");
  }
  Ints shape = ops::extents(x.tensor.shape());
  shape.erase(shape.begin() + at);
  return reshape(x, std::move(shape));
}

Tensor slice(Operand x, std::vector<int64_t> starts, std::vector<int64_t> ends,
             std::vector<int64_t> steps) {
  require("slice", x);
  const Shape& shape = x.tensor.shape();
  const auto rank = static_cast<size_t>(shape.rank());
  if (steps.empty()) steps.assign(rank, 1);
  if (starts.size() == rank && ends.size() == rank) {
    for (size_t i = 0; i < rank; ++i) {
      const int64_t extent = shape[static_cast<int>(i)];
      starts[i] = ops::clip(starts[i], extent);
      ends[i] = std::max(starts[i], ops::clip(ends[i], extent));
    }
  }
  const bool whole =
      starts == Ints(rank, 0) && ends == ops::extents(shape) && steps == Ints(rank, 1);
  if (whole) return x.tensor;
  return make("slice", x.place, {x.tensor}, {std::move(starts), std::move(ends), std::move(steps)});
}

}  // namespace meganeura
