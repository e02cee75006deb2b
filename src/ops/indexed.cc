// Gather and scatter.
#include <algorithm>

#include "ops/indices.h"
#include "ops/rows.h"
#include "ops/rule.h"

namespace meganeura {
namespace ops {
namespace {

constexpr AttributeField kAxisFields[] = {{"axis", AttributeType::kInt}};

void check_indices(const Node& node, Tensor indices) {
  if (indices.dtype() == DType::kI32 || indices.dtype() == DType::kU32) return;
  refuse(node, "is indexed by ", indices.dtype(), ". Convert the indices to u32 or i32 with cast.");
}

// shape[:axis] + indices + shape[axis + 1:].
Ints gathered_extents(const Shape& shape, const Shape& indices, int64_t axis) {
  Ints result = extents(shape);
  const auto at = result.begin() + axis;
  const auto next = result.erase(at);
  result.insert(next, indices.begin(), indices.end());
  return result;
}

InferredType infer_gather(const Node& node) {
  const Tensor x = node.operands[0];
  const Tensor indices = node.operands[1];
  const auto axis = node.get<int64_t>("axis");
  check_indices(node, indices);
  if (axis < 0 || axis >= x.rank()) {
    refuse(node, "has no axis ", axis, ". Use one of its ", x.rank(), " axes.");
  }
  if (x.shape()[static_cast<int>(axis)] == 0 && indices.shape().elements() != 0) {
    refuse(node, "cannot pick elements of its empty axis ", axis,
           ". Gather from an axis that has elements.");
  }
  return {Shape(gathered_extents(x.shape(), indices.shape(), axis)), x.dtype()};
}

InferredType infer_scatter_add(const Node& node) {
  const Tensor x = node.operands[0];
  const Tensor updates = node.operands[2];
  check_indices(node, node.operands[1]);
  if (x.rank() == 0) refuse(node, "has no axis 0 to add along. Give it a rank of 1 or more.");
  const Shape expected(gathered_extents(x.shape(), node.operands[1].shape(), 0));
  if (updates.shape() != expected || updates.dtype() != x.dtype()) {
    refuse(node, "needs updates of type ", x.dtype(), expected,
           ": one row of the first operand per index.");
  }
  if (x.dtype() == DType::kBool || !info(x.dtype()).computable) {
    refuse(node, "cannot add ", x.dtype(), " values. Convert with cast.");
  }
  return {x.shape(), x.dtype()};
}

// The indices as gather uses them.
Tensor clamped(Tensor indices, int64_t extent) {
  const Tensor low = filled(indices, 0.0);
  const Tensor high = filled(indices, static_cast<double>(std::max<int64_t>(extent - 1, 0)));
  const Tensor below = minimum(indices, high);
  return is_signed(indices.dtype()) ? maximum(below, low) : below;
}

// The order that moves `count` axes at `from` to the front.
Ints to_front(int rank, int64_t from, int64_t count) {
  Ints order = counting(rank);
  std::rotate(order.begin(), order.begin() + from, order.begin() + from + count);
  return order;
}

Ints inverse(const Ints& order) {
  Ints result(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    result[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return result;
}

Gradients gather_gradient(const GradientContext& c) {
  if (!c.needed[0]) return Gradients(2);
  const Shape& shape = c.operands[0].shape();
  const auto axis = c.node.get<int64_t>("axis");
  const Tensor indices = clamped(c.operands[1], shape[static_cast<int>(axis)]);
  const Ints order = to_front(shape.rank(), axis, 1);
  const Tensor updates = permute(c.cotangent, to_front(c.cotangent.rank(), axis, indices.rank()));
  Ints moved;
  for (int64_t from : order) moved.push_back(shape[static_cast<int>(from)]);
  const Tensor zeros = filled(c.cotangent.graph(), Shape(moved), c.cotangent.dtype(), 0.0);
  return {permute(scatter_add(zeros, indices, updates), inverse(order)), Tensor()};
}

// Updates that were dropped have no gradient.
Tensor updates_gradient(const GradientContext& c) {
  const Tensor indices = c.operands[1];
  const int64_t extent = c.cotangent.shape()[0];
  if (extent == 0) return filled(c.operands[2], 0.0);
  const Tensor taken = gather(c.cotangent, indices, 0);
  const Tensor kept =
      broadcast_axes(in_range(indices, extent), taken.shape(), counting(indices.rank()));
  return select(kept, taken, filled(taken, 0.0));
}

Gradients scatter_add_gradient(const GradientContext& c) {
  Gradients gradients(3);
  if (c.needed[0]) gradients[0] = c.cotangent;
  if (c.needed[2]) gradients[2] = updates_gradient(c);
  return gradients;
}

constexpr OpRow kRows[] = {
    {.name = "gather",
     .min_operands = 2,
     .max_operands = 2,
     .fields = kAxisFields,
     .lowering = Lowering::kGather,
     .infer = infer_gather,
     .differentiability = Differentiability::kRule,
     .gradient = gather_gradient,
     .doc = "x at the indices along an axis; indices are clamped into the axis."},
    {.name = "scatter_add",
     .min_operands = 3,
     .max_operands = 3,
     .fields = {},
     .lowering = Lowering::kScatterAdd,
     .infer = infer_scatter_add,
     .differentiability = Differentiability::kRule,
     .gradient = scatter_add_gradient,
     .doc = "x with updates added to its rows in index order; indices outside are dropped."},
};

}  // namespace

std::span<const OpRow> indexed_rows() { return kRows; }

Tensor in_range(Tensor indices, int64_t extent) {
  const Tensor below = less(indices, filled(indices, static_cast<double>(extent)));
  if (!is_signed(indices.dtype())) return below;
  return bit_and(below, greater_equal(indices, filled(indices, 0.0)));
}

bool limit_indices(Tensor indices, int64_t limit) {
  const auto is_view = [](Lowering lowering) {
    return lowering == Lowering::kReshape || lowering == Lowering::kPermute ||
           lowering == Lowering::kBroadcast;
  };
  while (is_view(indices.node().row->lowering)) indices = indices.node().operands[0];
  const Node& node = indices.node();
  if (node.row->lowering != Lowering::kInput || !is_integer(node.dtype) || limit < 1) return false;
  indices.graph().limit_input(indices, limit);
  return true;
}

}  // namespace ops

Tensor gather(Operand x, Operand indices, int64_t axis) {
  const int64_t at = ops::axis_of("gather", x, axis);
  return ops::make("gather", x.place, {x.tensor, indices.tensor}, {at});
}

Tensor scatter_add(Operand x, Operand indices, Operand updates) {
  return ops::make("scatter_add", x.place, {x.tensor, indices.tensor, updates.tensor});
}

Tensor embedding(Operand table, Operand indices) {
  const ops::Composite scope("embedding", table);
  ops::require("embedding", indices);
  if (table.tensor.rank() != 2) {
    ops::refuse("embedding", table.place, "looks up rows of ", table.tensor.dtype(),
                table.tensor.shape(), ". Its table is [V, D].");
  }
  const Tensor rows = gather(table, indices, 0);
  ops::limit_indices(indices.tensor, table.tensor.shape()[0]);
  return rows;
}

}  // namespace meganeura
