// What shape and gradient rules and builders share.
#pragma once

#include <string_view>
#include <vector>

#include "base/check.h"
#include "graph/node.h"
#include "meganeura/ops.h"

namespace meganeura::ops {

using Ints = std::vector<int64_t>;
using Gradients = std::vector<Tensor>;

// Throws Error(kShape): "The op add at model.cc:3 on f32[2], f32[3] " and the parts.
template <class... Parts>
[[noreturn]] void refuse(const Node& node, const Parts&... parts) {
  fail(ErrorKind::kShape, "The op ", describe(node), " on ", describe_operands(node), " ",
       parts...);
}

// Throws Error(kShape) for a builder: "The op add at model.cc:3 " and the parts.
template <class... Parts>
[[noreturn]] void refuse(std::string_view op, Place place, const Parts&... parts) {
  fail(ErrorKind::kShape, "The op ", op, " at ", to_string(place), " ", parts...);
}

// Appends a node of the row `op`; the operands and the place as build_node.
Tensor make(std::string_view op, Place place, std::vector<Tensor> operands,
            std::vector<AttributeValue> attributes = {});

// Checks that a builder's operand is a tensor. Error(kInvalidArgument) naming op and place.
void require(std::string_view op, const Operand& operand);

// The axis in [0, rank), or Error(kShape) naming op and place.
int axis_of(std::string_view op, const Operand& x, int64_t axis);

// The shape that all operands broadcast to, or Error(kShape) naming op and place.
Shape common_shape(std::string_view op, Place place, const std::vector<Tensor>& operands);

// A tensor of one repeated number.
Tensor filled(Tensor like, double value);
Tensor filled(Graph& graph, const Shape& shape, DType dtype, double value);

// A broadcast whose axis i becomes the output's axis axes[i].
Tensor broadcast_axes(Tensor x, const Shape& shape, Ints axes);

// f16 and bf16 as f32, everything else as it is.
Tensor widened(Tensor x);

// The place of a composite for all nodes it builds, after checking its first operand.
class Composite : public PlaceScope {
 public:
  Composite(std::string_view op, const Operand& x)
      : PlaceScope((require(op, x), x.tensor.graph()), x.place) {}
};

Ints extents(const Shape& shape);
// The axes of [0, rank) that are not in `axes`, ascending.
Ints other_axes(int rank, const Ints& axes);
// 0, 1, …, count - 1.
Ints counting(int64_t count);
int64_t product(const Ints& list);

}  // namespace meganeura::ops
