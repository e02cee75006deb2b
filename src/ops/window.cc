// Windows of tensors: pad, concat and slices at offsets from the device.
#include <algorithm>

#include "graph/values.h"
#include "ops/rows.h"
#include "ops/rule.h"

namespace meganeura {
namespace ops {
namespace {

constexpr AttributeField kPadFields[] = {{"low", AttributeType::kInts},
                                         {"high", AttributeType::kInts},
                                         {"value", AttributeType::kFloat}};
constexpr AttributeField kConcatFields[] = {{"axis", AttributeType::kInt}};
constexpr AttributeField kSizesFields[] = {{"sizes", AttributeType::kInts}};

InferredType infer_pad(const Node& node) {
  const Tensor x = node.operands[0];
  const auto& low = node.get<Ints>("low");
  const auto& high = node.get<Ints>("high");
  const auto rank = static_cast<size_t>(x.rank());
  const auto negative = [](int64_t count) { return count < 0; };
  if (low.size() != rank || high.size() != rank || std::ranges::any_of(low, negative) ||
      std::ranges::any_of(high, negative)) {
    refuse(node, "cannot add [", join(low), "] elements before and [", join(high),
           "] after its axes. Give one count of 0 or more per axis; slice removes elements.");
  }
  const double value = node.get<double>("value");
  if (!is_float(x.dtype()) && as_stored(x.dtype(), value) != value) {
    refuse(node, "fills with ", value, ", which is no value of ", x.dtype(),
           ". Use one that the dtype can hold.");
  }
  Ints shape = extents(x.shape());
  for (size_t i = 0; i < rank; ++i) shape[i] += low[i] + high[i];
  return {Shape(shape), x.dtype()};
}

InferredType infer_concat(const Node& node) {
  const Tensor first = node.operands[0];
  const auto axis = node.get<int64_t>("axis");
  if (axis < 0 || axis >= first.rank()) {
    refuse(node, "has no axis ", axis, " to join along. Use one of its ", first.rank(), " axes.");
  }
  Ints shape = extents(first.shape());
  shape[static_cast<size_t>(axis)] = 0;
  for (Tensor part : node.operands) {
    Ints aligned = extents(part.shape());
    if (part.rank() == first.rank()) aligned[static_cast<size_t>(axis)] = 0;
    Ints expected = shape;
    expected[static_cast<size_t>(axis)] = 0;
    if (aligned != expected || part.dtype() != first.dtype()) {
      refuse(node, "joins along axis ", axis,
             " parts that differ elsewhere. All other extents and the dtype must be equal.");
    }
    shape[static_cast<size_t>(axis)] += part.shape()[static_cast<int>(axis)];
  }
  return {Shape(shape), first.dtype()};
}

void check_starts(const Node& node, Tensor starts) {
  const int rank = node.operands[0].rank();
  const bool index = starts.dtype() == DType::kI32 || starts.dtype() == DType::kU32;
  if (index && starts.shape() == Shape{rank}) return;
  refuse(node, "needs starts that are i32[", rank, "] or u32[", rank, "], one per axis.");
}

void check_window(const Node& node, const Shape& window) {
  const Shape& shape = node.operands[0].shape();
  bool fits = window.rank() == shape.rank();
  for (int axis = 0; fits && axis < shape.rank(); ++axis) fits = window[axis] <= shape[axis];
  if (!fits) {
    refuse(node, "has a window of ", window, " in ", shape,
           ". The window has the same rank and fits inside.");
  }
}

InferredType infer_dynamic_slice(const Node& node) {
  const Shape window(node.get<Ints>("sizes"));
  check_starts(node, node.operands[1]);
  check_window(node, window);
  return {window, node.operands[0].dtype()};
}

InferredType infer_dynamic_update_slice(const Node& node) {
  const Tensor x = node.operands[0];
  check_starts(node, node.operands[2]);
  check_window(node, node.operands[1].shape());
  if (node.operands[1].dtype() != x.dtype()) {
    refuse(node, "writes ", node.operands[1].dtype(), " into ", x.dtype(),
           ". Convert the update with cast.");
  }
  return {x.shape(), x.dtype()};
}

Gradients pad_gradient(const GradientContext& c) {
  const auto& low = c.node.get<Ints>("low");
  Ints ends = extents(c.operands[0].shape());
  for (size_t i = 0; i < ends.size(); ++i) ends[i] += low[i];
  return {slice(c.cotangent, low, ends)};
}

Gradients concat_gradient(const GradientContext& c) {
  const auto axis = static_cast<size_t>(c.node.get<int64_t>("axis"));
  const Shape& shape = c.cotangent.shape();
  Ints starts(static_cast<size_t>(shape.rank()), 0);
  Ints ends = extents(shape);
  Gradients gradients;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    ends[axis] = starts[axis] + c.operands[i].shape()[static_cast<int>(axis)];
    gradients.push_back(c.needed[i] ? slice(c.cotangent, starts, ends) : Tensor());
    starts[axis] = ends[axis];
  }
  return gradients;
}

Gradients dynamic_slice_gradient(const GradientContext& c) {
  if (!c.needed[0]) return Gradients(2);
  const Tensor zeros = filled(c.operands[0], 0.0);
  return {dynamic_update_slice(zeros, c.cotangent, c.operands[1]), Tensor()};
}

Gradients dynamic_update_slice_gradient(const GradientContext& c) {
  const Tensor update = c.operands[1];
  const Tensor starts = c.operands[2];
  Gradients gradients(3);
  if (c.needed[0]) gradients[0] = dynamic_update_slice(c.cotangent, filled(update, 0.0), starts);
  if (c.needed[1]) gradients[1] = dynamic_slice(c.cotangent, starts, extents(update.shape()));
  return gradients;
}

constexpr OpRow window(std::string_view name, int min_operands, int max_operands,
                       std::span<const AttributeField> fields, Lowering lowering,
                       InferredType (*infer)(const Node&),
                       Gradients (*gradient)(const GradientContext&), std::string_view doc) {
  return {.name = name,
          .min_operands = min_operands,
          .max_operands = max_operands,
          .fields = fields,
          .lowering = lowering,
          .infer = infer,
          .differentiability = Differentiability::kRule,
          .gradient = gradient,
          .doc = doc};
}

constexpr OpRow kRows[] = {
    window("pad", 1, 1, kPadFields, Lowering::kPad, infer_pad, pad_gradient,
           "low[i] and high[i] elements of a value before and after each axis."),
    window("concat", 1, -1, kConcatFields, Lowering::kConcat, infer_concat, concat_gradient,
           "The operands one after the other along an axis."),
    window("dynamic_slice", 2, 2, kSizesFields, Lowering::kDynamicSlice, infer_dynamic_slice,
           dynamic_slice_gradient,
           "A window of x at starts that are read on the device and clamped so that it fits."),
    window("dynamic_update_slice", 3, 3, {}, Lowering::kDynamicUpdateSlice,
           infer_dynamic_update_slice, dynamic_update_slice_gradient,
           "x with a window replaced; starts are clamped so that it fits."),
};

}  // namespace

std::span<const OpRow> window_rows() { return kRows; }

}  // namespace ops

using ops::Ints;
using ops::make;
using ops::require;

Tensor pad(Operand x, std::vector<int64_t> low, std::vector<int64_t> high, double value) {
  require("pad", x);
  const Ints none(static_cast<size_t>(x.tensor.rank()), 0);
  if (low == none && high == none) return x.tensor;
  return make("pad", x.place, {x.tensor}, {std::move(low), std::move(high), value});
}

Tensor concat(std::span<const Tensor> parts, int64_t axis, Place place) {
  if (parts.empty()) ops::refuse("concat", place, "got no tensors. Pass at least one.");
  const int at = ops::axis_of("concat", {parts[0], place.file, place.line}, axis);
  if (parts.size() == 1) return parts[0];
  return make("concat", place, {parts.begin(), parts.end()}, {static_cast<int64_t>(at)});
}

Tensor dynamic_slice(Operand x, Operand starts, std::vector<int64_t> extents) {
  return make("dynamic_slice", x.place, {x.tensor, starts.tensor}, {std::move(extents)});
}

Tensor dynamic_update_slice(Operand x, Operand update, Operand starts) {
  return make("dynamic_update_slice", x.place, {x.tensor, update.tensor, starts.tensor});
}

}  // namespace meganeura
