// The batched product, and what is built from it alone.
#include <algorithm>

#include "ops/rows.h"
#include "ops/rule.h"

namespace meganeura {
namespace ops {
namespace {

constexpr AttributeField kContractFields[] = {{"a_batch", AttributeType::kInts},
                                              {"b_batch", AttributeType::kInts},
                                              {"a_contract", AttributeType::kInts},
                                              {"b_contract", AttributeType::kInts}};

// The roles of one operand's axes.
struct Roles {
  Ints batch, contract, free;
};

Roles roles_of(const Node& node, int operand) {
  Roles roles{node.get<Ints>(operand == 0 ? "a_batch" : "b_batch"),
              node.get<Ints>(operand == 0 ? "a_contract" : "b_contract"),
              {}};
  Ints bound = roles.batch;
  bound.insert(bound.end(), roles.contract.begin(), roles.contract.end());
  roles.free = other_axes(node.operands[static_cast<size_t>(operand)].rank(), bound);
  return roles;
}

void check_axes(const Node& node, int operand, const Roles& roles) {
  const int rank = node.operands[static_cast<size_t>(operand)].rank();
  Ints bound = roles.batch;
  bound.insert(bound.end(), roles.contract.begin(), roles.contract.end());
  std::sort(bound.begin(), bound.end());
  const bool distinct = std::adjacent_find(bound.begin(), bound.end()) == bound.end();
  if (distinct && (bound.empty() || (bound.front() >= 0 && bound.back() < rank))) return;
  refuse(node, "got batch axes [", join(roles.batch), "] and contracted axes [",
         join(roles.contract), "] for operand ", operand,
         ". Name each of its axes at most once, counted from 0.");
}

void check_pairs(const Node& node, std::string_view role, const Ints& a, const Ints& b) {
  if (a.size() != b.size()) {
    refuse(node, "pairs ", a.size(), " ", role, " axes with ", b.size(),
           ". Name as many axes of both operands.");
  }
  for (size_t i = 0; i < a.size(); ++i) {
    const int64_t a_extent = node.operands[0].shape()[static_cast<int>(a[i])];
    const int64_t b_extent = node.operands[1].shape()[static_cast<int>(b[i])];
    if (a_extent == b_extent) continue;
    refuse(node, "pairs the ", role, " axes ", a[i], " and ", b[i], " of extents ", a_extent,
           " and ", b_extent, ". Their extents must be equal; transpose or reshape an operand.");
  }
}

InferredType infer_contract(const Node& node) {
  const DType dtype = node.operands[0].dtype();
  if (node.operands[1].dtype() != dtype) {
    refuse(node, "mixes ", dtype, " and ", node.operands[1].dtype(),
           ". Convert one of them with cast.");
  }
  if (!is_float(dtype) || !info(dtype).computable) {
    refuse(node, "multiplies f32, f16 or bf16, not ", dtype, ". Convert with cast.");
  }
  const Roles a = roles_of(node, 0);
  const Roles b = roles_of(node, 1);
  check_axes(node, 0, a);
  check_axes(node, 1, b);
  check_pairs(node, "batch", a.batch, b.batch);
  check_pairs(node, "contracted", a.contract, b.contract);
  Ints shape;
  for (int64_t axis : a.batch) shape.push_back(node.operands[0].shape()[static_cast<int>(axis)]);
  for (int64_t axis : a.free) shape.push_back(node.operands[0].shape()[static_cast<int>(axis)]);
  for (int64_t axis : b.free) shape.push_back(node.operands[1].shape()[static_cast<int>(axis)]);
  return {Shape(shape), dtype};
}

Ints joined(std::initializer_list<Ints> lists) {
  Ints all;
  for (const Ints& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// `self`'s contracted axes in the order in which `other`'s, ascending, leave a product.
Ints contracted_in_order(const Roles& self, const Roles& other) {
  Ints pairs = counting(static_cast<int64_t>(other.contract.size()));
  std::sort(pairs.begin(), pairs.end(), [&](int64_t i, int64_t j) {
    return other.contract[static_cast<size_t>(i)] < other.contract[static_cast<size_t>(j)];
  });
  Ints axes;
  for (int64_t pair : pairs) axes.push_back(self.contract[static_cast<size_t>(pair)]);
  return axes;
}

// The gradient of operand `side`: the product of cotangent and other operand over the latter's free
// axes, in the order of factors that leaves the axes as they stand in the operand, if one does.
Tensor operand_gradient(const GradientContext& c, int side) {
  const Roles self = roles_of(c.node, side);
  const Roles other = roles_of(c.node, 1 - side);
  const Tensor factor = c.operands[static_cast<size_t>(1 - side)];
  const auto batches = static_cast<int64_t>(self.batch.size());
  const auto self_free = static_cast<int64_t>(self.free.size());
  Ints summed = counting(static_cast<int64_t>(other.free.size()));
  for (int64_t& axis : summed) axis += batches + (side == 0 ? self_free : 0);
  const Ints batch = counting(batches);

  const Ints contracted = contracted_in_order(self, other);
  Ints labels = joined({self.batch, contracted, self.free});
  const bool factor_first = std::is_sorted(labels.begin(), labels.end());
  if (!factor_first) labels = joined({self.batch, self.free, contracted});
  const Tensor product =
      factor_first ? contract(factor, c.cotangent, other.batch, batch, other.free, summed)
                   : contract(c.cotangent, factor, batch, other.batch, summed, other.free);
  Ints order(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    order[static_cast<size_t>(labels[i])] = static_cast<int64_t>(i);
  }
  return permute(product, order);
}

Gradients contract_gradient(const GradientContext& c) {
  Gradients gradients(2);
  for (int side = 0; side < 2; ++side) {
    const auto at = static_cast<size_t>(side);
    if (c.needed[at]) gradients[at] = operand_gradient(c, side);
  }
  return gradients;
}

constexpr OpRow kRows[] = {{
    .name = "contract",
    .min_operands = 2,
    .max_operands = 2,
    .fields = kContractFields,
    .lowering = Lowering::kContract,
    .infer = infer_contract,
    .differentiability = Differentiability::kRule,
    .gradient = contract_gradient,
    .doc = "The sum over pairs of contracted axes; the result has the batch axes, then the free "
           "axes of a, then those of b.",
}};

Ints leading_extents(const Shape& shape) {
  Ints list = extents(shape);
  list.resize(list.size() - 2);
  return list;
}

// Matrices with the given leading axes.
Tensor with_leading(Tensor x, const Shape& leading) {
  Ints shape = extents(leading);
  shape.push_back(x.shape()[x.rank() - 2]);
  shape.push_back(x.shape()[x.rank() - 1]);
  return broadcast_to(x, Shape(shape));
}

Tensor matrix_product(Tensor a, Tensor b, Place place) {
  const int64_t a_rank = a.rank();
  const int64_t b_rank = b.rank();
  if (b_rank == 2) return contract(a, b, {}, {}, {a_rank - 1}, {0});
  Shape leading;
  try {
    leading =
        broadcast_shapes(Shape(leading_extents(a.shape())), Shape(leading_extents(b.shape())));
  } catch (const Error&) {
    refuse("matmul", place, "cannot broadcast the leading axes of ", a.dtype(), a.shape(), " and ",
           b.dtype(), b.shape(), ". They must be equal or 1.");
  }
  const Ints batch = counting(leading.rank());
  const int64_t rank = leading.rank() + 2;
  return contract(with_leading(a, leading), with_leading(b, leading), batch, batch, {rank - 1},
                  {rank - 2});
}

}  // namespace

std::span<const OpRow> contract_rows() { return kRows; }

}  // namespace ops

Tensor contract(Operand a, Operand b, std::vector<int64_t> a_batch, std::vector<int64_t> b_batch,
                std::vector<int64_t> a_contract, std::vector<int64_t> b_contract) {
  for (int64_t& axis : a_batch) axis = ops::axis_of("contract", a, axis);
  for (int64_t& axis : b_batch) axis = ops::axis_of("contract", b, axis);
  for (int64_t& axis : a_contract) axis = ops::axis_of("contract", a, axis);
  for (int64_t& axis : b_contract) axis = ops::axis_of("contract", b, axis);
  return ops::make(
      "contract", a.place, {a.tensor, b.tensor},
      {std::move(a_batch), std::move(b_batch), std::move(a_contract), std::move(b_contract)});
}

Tensor matmul(Operand a, Operand b) {
  const ops::Composite scope("matmul", a);
  ops::require("matmul", b);
  const bool a_vector = a.tensor.rank() == 1;
  const bool b_vector = b.tensor.rank() == 1;
  if (a.tensor.rank() == 0 || b.tensor.rank() == 0) {
    ops::refuse("matmul", a.place, "multiplies ", a.tensor.dtype(), a.tensor.shape(), " and ",
                b.tensor.dtype(), b.tensor.shape(), ". Use * for a scalar.");
  }
  const Tensor rows = a_vector ? unsqueeze(a, 0) : a.tensor;
  const Tensor columns = b_vector ? unsqueeze(b, 1) : b.tensor;
  const int64_t depth = rows.shape()[rows.rank() - 1];
  if (depth != columns.shape()[columns.rank() - 2]) {
    ops::refuse("matmul", a.place, "multiplies ", a.tensor.dtype(), a.tensor.shape(), " and ",
                b.tensor.dtype(), b.tensor.shape(), ": the last axis of the first has extent ",
                depth, ", the axis of the second that meets it ",
                columns.shape()[columns.rank() - 2], ". Transpose one of them.");
  }
  Tensor result = ops::matrix_product(rows, columns, a.place);
  if (b_vector) result = squeeze(result, -1);
  return a_vector ? squeeze(result, b_vector ? -1 : -2) : result;
}

Tensor linear(Operand x, Operand weight, Tensor bias) {
  const ops::Composite scope("linear", x);
  ops::require("linear", weight);
  const Shape& shape = x.tensor.shape();
  const Shape& matrix = weight.tensor.shape();
  if (shape.rank() == 0 || matrix.rank() != 2 || shape[shape.rank() - 1] != matrix[1]) {
    ops::refuse("linear", x.place, "multiplies ", x.tensor.dtype(), shape, " by the weight ",
                weight.tensor.dtype(), matrix,
                ". The weight is [out, in], and the operand's last axis has extent in.");
  }
  if (bias && bias.shape() != Shape{matrix[0]}) {
    ops::refuse("linear", x.place, "adds the bias ", bias.dtype(), bias.shape(), " to ", matrix[0],
                " outputs. Give a bias of shape [", matrix[0], "].");
  }
  const Tensor product = contract(x, weight, {}, {}, {-1}, {1});
  return bias ? add(product, bias) : product;
}

}  // namespace meganeura
