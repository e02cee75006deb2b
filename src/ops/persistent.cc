// New values of parameters and states.
#include "ops/rows.h"
#include "ops/rule.h"

namespace meganeura {
namespace ops {
namespace {

InferredType infer_assign(const Node& node) {
  const Tensor leaf = node.operands[0];
  const Tensor value = node.operands[1];
  const Lowering lowering = leaf.node().row->lowering;
  if (lowering != Lowering::kParameter && lowering != Lowering::kState) {
    refuse(node, "assigns to ", describe(leaf.node()), ". Only a parameter or a state can change.");
  }
  if (value.shape() != leaf.shape() || value.dtype() != leaf.dtype()) {
    refuse(node, "assigns ", value.dtype(), value.shape(), " to \"", leaf_name(leaf.node()),
           "\", which is ", leaf.dtype(), leaf.shape(), ". Shape and dtype must be equal.");
  }
  return {leaf.shape(), leaf.dtype()};
}

constexpr OpRow kRows[] = {{
    .name = "assign",
    .min_operands = 2,
    .max_operands = 2,
    .fields = {},
    .lowering = Lowering::kAssign,
    .infer = infer_assign,
    .doc = "The new value of a parameter or state; other reads of the leaf see the old one.",
}};

}  // namespace

std::span<const OpRow> persistent_rows() { return kRows; }

}  // namespace ops

Tensor assign(Operand leaf, Operand value) {
  return ops::make("assign", leaf.place, {leaf.tensor, value.tensor});
}

}  // namespace meganeura
