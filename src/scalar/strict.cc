#include "scalar/strict.h"

#include <bit>

#include "base/check.h"
#include "scalar/strict_dag.h"

namespace meganeura::scalar {
namespace {

DagF plain_divide(const DagF& a, const DagF& b) { return DagF(a.scalar / b.scalar); }
DagF plain_root(const DagF& x) { return DagF(make(Op::kSqrt, {x.scalar})); }

DagF divide(const DagF& a, const DagF& b, const Arithmetic& arithmetic) {
  if (arithmetic.exact_division) return plain_divide(a, b);
  return strict_divide(a, b, arithmetic.fused_fma, plain_divide);
}

DagF root(const DagF& x, const Arithmetic& arithmetic) {
  if (arithmetic.exact_sqrt) return plain_root(x);
  return strict_root(x, arithmetic.fused_fma, plain_root, plain_divide);
}

// x^y; for small whole exponents that are constants without the logarithm, as near and as special.
DagF power(const DagF& x, const DagF& y, const Arithmetic& arithmetic) {
  const Scalar::Expression& exponent = y.scalar.expression();
  const bool constant = exponent.op == Op::kConstant;
  const float value = constant ? std::bit_cast<float>(exponent.payload) : kNan;
  if (value == 1.0f) return x;
  if (value == 2.0f) return x * x;
  if (value == 3.0f) return (x * x) * x;
  if (value == -1.0f) return divide(DagF(1.0f), x, arithmetic);
  return strict_pow(x, y);
}

// One row per composite op. The bounds round up what the walk over all 2^32 arguments measures
// (exp 0.991, log 0.871, sin 1.551, cos 1.564, tanh 1.837, erf 1.305, rsqrt 1.491); pow showed at
// most 1.751 in 2.4e9 samples aimed at its worst regions. `build` takes as many operands as the op.
struct Composite {
  Op op;
  double max_ulp;
  DagF (*build)(std::span<const DagF> operands, const Arithmetic& arithmetic);
};

template <DagF (*kFunction)(DagF)>
DagF unary(std::span<const DagF> operands, const Arithmetic&) {
  return kFunction(operands[0]);
}

constexpr Composite kComposites[] = {
    {Op::kExp, 1.0, unary<strict_exp<DagF>>},
    {Op::kLog, 0.9, unary<strict_log<DagF>>},
    {Op::kSin, 1.6, unary<strict_sin<DagF>>},
    {Op::kCos, 1.6, unary<strict_cos<DagF>>},
    {Op::kTanh, 1.9, unary<strict_tanh<DagF>>},
    {Op::kErf, 1.4, unary<strict_erf<DagF>>},
    {Op::kPow, 2.5,
     [](std::span<const DagF> x, const Arithmetic& arithmetic) {
       return power(x[0], x[1], arithmetic);
     }},
    {Op::kRsqrt, 1.5,
     [](std::span<const DagF> x, const Arithmetic& arithmetic) {
       return divide(DagF(1.0f), root(x[0], arithmetic), arithmetic);
     }},
    {Op::kDiv, 2.5,
     [](std::span<const DagF> x, const Arithmetic& arithmetic) {
       return divide(x[0], x[1], arithmetic);
     }},
    {Op::kSqrt, 2.5,
     [](std::span<const DagF> x, const Arithmetic& arithmetic) { return root(x[0], arithmetic); }},
};

const Composite* find(Op op) {
  for (const Composite& row : kComposites) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

}  // namespace

Body lower_strict(const Body& body, const Arithmetic& arithmetic) {
  std::vector<Scalar> values;
  values.reserve(body.nodes.size());
  for (const Node& node : body.nodes) {
    if (node.op == Op::kArgument) {
      values.push_back(argument(node.payload, node.type));
      continue;
    }
    if (node.op == Op::kConstant) {
      values.push_back(constant_bits(node.type, node.payload));
      continue;
    }
    std::vector<Scalar> operands;
    for (uint8_t i = 0; i < info(node.op).arity; ++i) operands.push_back(values[node.operands[i]]);
    const Composite* row = node.type == Type::kF32 ? find(node.op) : nullptr;
    if (row == nullptr) {
      values.push_back(make(node.op, std::move(operands), node.type));
      continue;
    }
    std::vector<DagF> numbers;
    for (const Scalar& operand : operands) numbers.emplace_back(operand);
    values.push_back(row->build(numbers, arithmetic).scalar);
  }
  std::vector<Scalar> outputs;
  for (uint32_t output : body.outputs) outputs.push_back(values[output]);
  return linearize(outputs, body.arguments);
}

double strict_max_ulp(Op op) {
  const Composite* row = find(op);
  MG_CHECK(row != nullptr, "scalar op ", info(op).name, " has no bound in ulp");
  return row->max_ulp;
}

}  // namespace meganeura::scalar
