// Elementwise ops: rows and builders.
#include <cmath>

#include "ops/pointwise_gradients.h"
#include "ops/rows.h"
#include "ops/rule.h"

namespace meganeura {
namespace ops {
namespace {

using scalar::Op;
using scalar::Scalar;
using scalar::Type;
using Arguments = std::span<const Scalar>;

constexpr unsigned kFloats = 1u;
constexpr unsigned kIntegers = 2u;
constexpr unsigned kBools = 4u;
constexpr unsigned kNumbers = kFloats | kIntegers;
constexpr unsigned kAll = kNumbers | kBools;

constexpr std::string_view kClassNames[] = {
    "",      "floats",           "integers",           "numbers",
    "bools", "floats and bools", "integers and bools", "numbers and bools"};

unsigned class_of(DType dtype) {
  if (is_float(dtype)) return kFloats;
  return is_integer(dtype) ? kIntegers : kBools;
}

void check_computable(const Node& node) {
  for (Tensor operand : node.operands) {
    if (info(operand.dtype()).computable) continue;
    fail(ErrorKind::kUnsupported, "The op ", describe(node), " on ", describe_operands(node),
         " cannot compute with ", operand.dtype(), ". Store the tensor as f32, i32 or u32.");
  }
}

void check_same(const Node& node, size_t first = 0) {
  const Tensor lead = node.operands[first];
  for (Tensor operand : node.operands) {
    if (operand.shape() != lead.shape()) {
      refuse(node, "needs operands of one shape. Broadcast them first.");
    }
  }
  for (size_t i = first; i < node.operands.size(); ++i) {
    if (node.operands[i].dtype() == lead.dtype()) continue;
    refuse(node, "mixes ", lead.dtype(), " and ", node.operands[i].dtype(),
           ". Convert one of them with cast.");
  }
}

template <unsigned kClasses>
void check_map(const Node& node) {
  check_computable(node);
  check_same(node);
  if ((class_of(node.operands[0].dtype()) & kClasses) == 0) {
    refuse(node, "takes ", kClassNames[kClasses], ", not ", node.operands[0].dtype(),
           ". Convert with cast.");
  }
}

template <unsigned kClasses>
InferredType infer_map(const Node& node) {
  check_map<kClasses>(node);
  return {node.operands[0].shape(), node.operands[0].dtype()};
}

template <unsigned kClasses>
InferredType infer_compare(const Node& node) {
  check_map<kClasses>(node);
  return {node.operands[0].shape(), DType::kBool};
}

InferredType infer_select(const Node& node) {
  check_computable(node);
  if (node.operands[0].dtype() != DType::kBool) {
    refuse(node, "needs a bool condition, not ", node.operands[0].dtype(),
           ". Make one with a comparison.");
  }
  check_same(node, 1);
  return {node.operands[1].shape(), node.operands[1].dtype()};
}

InferredType infer_cast(const Node& node) {
  check_computable(node);
  const auto dtype = node.get<DType>("dtype");
  if (!info(dtype).computable) {
    fail(ErrorKind::kUnsupported, "The op ", describe(node), " on ", describe_operands(node),
         " cannot convert to ", dtype, ". Choose a dtype that kernels compute with, such as f32.");
  }
  return {node.operands[0].shape(), dtype};
}

bool is_word(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kI32 || dtype == DType::kU32;
}

InferredType infer_bitcast(const Node& node) {
  const auto dtype = node.get<DType>("dtype");
  if (!is_word(dtype) || !is_word(node.operands[0].dtype())) {
    refuse(node, "cannot reinterpret bits as ", dtype, ". It works between f32, i32 and u32.");
  }
  return {node.operands[0].shape(), dtype};
}

InferredType infer_identity(const Node& node) {
  return {node.operands[0].shape(), node.operands[0].dtype()};
}

template <Op kOp>
Scalar apply(Arguments a, const Node&) {
  return scalar::make(kOp, std::vector<Scalar>(a.begin(), a.end()));
}

// Saturates a 32-bit integer to a narrower dtype.
Scalar saturate(const Scalar& value, DType dtype) {
  const int bits = static_cast<int>(info(dtype).bits);
  if (bits >= 32) return value;
  const bool negative = is_signed(dtype);
  const double high = std::ldexp(1.0, negative ? bits - 1 : bits) - 1;
  const double low = negative ? -high - 1 : 0.0;
  const Scalar capped = scalar::make(Op::kMin, {value, scalar::constant_like(value, high)});
  return scalar::make(Op::kMax, {capped, scalar::constant_like(value, low)});
}

Scalar cast_body(Arguments a, const Node& node) {
  const auto dtype = node.get<DType>("dtype");
  const Type type = scalar::compute_type(dtype);
  const Scalar& x = a[0];
  if (type == x.type()) return x;
  if (type == Type::kBool) return scalar::not_equal(x, scalar::constant_like(x, 0.0));
  const Scalar converted = scalar::convert(x, type);
  return x.type() == Type::kF32 ? saturate(converted, dtype) : converted;
}

Scalar bitcast_body(Arguments a, const Node& node) {
  return scalar::bitcast(a[0], scalar::compute_type(node.get<DType>("dtype")));
}

constexpr AttributeField kDTypeFields[] = {{"dtype", AttributeType::kDType}};

using Infer = InferredType (*)(const Node&);
using Body = Scalar (*)(Arguments, const Node&);
using Gradient = Gradients (*)(const GradientContext&);

// A row whose gradient is zero, piecewise constant as it is.
constexpr OpRow map(std::string_view name, int operands, Infer infer, Body body, std::nullptr_t,
                    std::string_view doc, std::span<const AttributeField> fields = {}) {
  return {.name = name,
          .min_operands = operands,
          .max_operands = operands,
          .fields = fields,
          .lowering = Lowering::kMap,
          .infer = infer,
          .body = body,
          .differentiability = Differentiability::kZero,
          .gradient = nullptr,
          .doc = doc};
}

// A row with a gradient rule.
constexpr OpRow map(std::string_view name, int operands, Infer infer, Body body, Gradient gradient,
                    std::string_view doc, std::span<const AttributeField> fields = {}) {
  OpRow row = map(name, operands, infer, body, nullptr, doc, fields);
  row.differentiability = Differentiability::kRule;
  row.gradient = gradient;
  return row;
}

constexpr OpRow bitcast_row() {
  OpRow row = map("bitcast", 1, infer_bitcast, bitcast_body, nullptr,
                  "The same bits as another of f32, i32 and u32.", kDTypeFields);
  row.differentiability = Differentiability::kMissing;
  return row;
}

constexpr OpRow stop_gradient_row() {
  OpRow row = map("stop_gradient", 1, infer_identity, nullptr, nullptr,
                  "The operand, as if it did not depend on anything.");
  row.lowering = Lowering::kIdentity;
  return row;
}

// clang-format off
constexpr OpRow kRows[] = {
    map("add", 2, infer_map<kNumbers>, apply<Op::kAdd>, add_gradient, "a + b; integers wrap."),
    map("sub", 2, infer_map<kNumbers>, apply<Op::kSub>, sub_gradient, "a - b; integers wrap."),
    map("mul", 2, infer_map<kNumbers>, apply<Op::kMul>, mul_gradient, "a * b; integers wrap."),
    map("div", 2, infer_map<kNumbers>, apply<Op::kDiv>, div_gradient, "a / b; integers truncate, and x / 0 = 0."),
    map("rem", 2, infer_map<kNumbers>, apply<Op::kRem>, rem_gradient, "The remainder of a / b with the sign of a; integers: x % 0 = 0."),
    map("pow", 2, infer_map<kFloats>, apply<Op::kPow>, pow_gradient, "a to the power of b."),
    map("minimum", 2, infer_map<kNumbers>, apply<Op::kMin>, minimum_gradient, "The smaller one; NaN propagates; ties give the gradient to a."),
    map("maximum", 2, infer_map<kNumbers>, apply<Op::kMax>, maximum_gradient, "The larger one; NaN propagates; ties give the gradient to a."),
    map("neg", 1, infer_map<kNumbers>, apply<Op::kNeg>, neg_gradient, "-x."),
    map("abs", 1, infer_map<kNumbers>, apply<Op::kAbs>, abs_gradient, "The magnitude; its gradient at 0 is 0."),
    map("exp", 1, infer_map<kFloats>, apply<Op::kExp>, exp_gradient, "e to the power of x."),
    map("log", 1, infer_map<kFloats>, apply<Op::kLog>, log_gradient, "The natural logarithm."),
    map("sqrt", 1, infer_map<kFloats>, apply<Op::kSqrt>, sqrt_gradient, "The square root."),
    map("rsqrt", 1, infer_map<kFloats>, apply<Op::kRsqrt>, rsqrt_gradient, "1 / sqrt(x)."),
    map("sin", 1, infer_map<kFloats>, apply<Op::kSin>, sin_gradient, "The sine of radians."),
    map("cos", 1, infer_map<kFloats>, apply<Op::kCos>, cos_gradient, "The cosine of radians."),
    map("tanh", 1, infer_map<kFloats>, apply<Op::kTanh>, tanh_gradient, "The hyperbolic tangent."),
    map("erf", 1, infer_map<kFloats>, apply<Op::kErf>, erf_gradient, "The error function."),
    map("floor", 1, infer_map<kFloats>, apply<Op::kFloor>, nullptr, "The largest integer that is not above x."),
    map("ceil", 1, infer_map<kFloats>, apply<Op::kCeil>, nullptr, "The smallest integer that is not below x."),
    map("round", 1, infer_map<kFloats>, apply<Op::kRound>, nullptr, "The nearest integer, half to even."),
    map("bit_and", 2, infer_map<kIntegers | kBools>, apply<Op::kAnd>, nullptr, "Bitwise and."),
    map("bit_or", 2, infer_map<kIntegers | kBools>, apply<Op::kOr>, nullptr, "Bitwise or."),
    map("bit_xor", 2, infer_map<kIntegers | kBools>, apply<Op::kXor>, nullptr, "Bitwise exclusive or."),
    map("bit_not", 1, infer_map<kIntegers | kBools>, apply<Op::kNot>, nullptr, "Bitwise complement."),
    map("shift_left", 2, infer_map<kIntegers>, apply<Op::kShl>, nullptr, "a shifted left by b mod 32 bits."),
    map("shift_right", 2, infer_map<kIntegers>, apply<Op::kShr>, nullptr, "a shifted right by b mod 32 bits, with the sign."),
    map("equal", 2, infer_compare<kAll>, apply<Op::kEq>, nullptr, "a == b as bool."),
    map("not_equal", 2, infer_compare<kAll>, apply<Op::kNe>, nullptr, "a != b as bool; true for NaN."),
    map("less", 2, infer_compare<kNumbers>, apply<Op::kLt>, nullptr, "a < b as bool."),
    map("less_equal", 2, infer_compare<kNumbers>, apply<Op::kLe>, nullptr, "a <= b as bool."),
    map("greater", 2, infer_compare<kNumbers>, apply<Op::kGt>, nullptr, "a > b as bool."),
    map("greater_equal", 2, infer_compare<kNumbers>, apply<Op::kGe>, nullptr, "a >= b as bool."),
    map("select", 3, infer_select, apply<Op::kSelect>, select_gradient, "a where the condition holds, else b; the gradient of the branch not taken is 0."),
    map("cast", 1, infer_cast, cast_body, cast_gradient, "The value in another dtype; float to integer truncates and saturates, NaN to 0.", kDTypeFields),
    bitcast_row(),
    stop_gradient_row(),
};
// clang-format on

Tensor binary(std::string_view op, const Operand& a, const Operand& b) {
  require(op, a);
  require(op, b);
  const PlaceScope scope(a.tensor.graph(), a.place);
  if (a.tensor.shape() == b.tensor.shape()) return make(op, a.place, {a.tensor, b.tensor});
  const Shape shape = common_shape(op, a.place, {a.tensor, b.tensor});
  return make(op, a.place, {broadcast_to(a, shape), broadcast_to(b, shape)});
}

// A number beside a tensor, at the tensor's place.
Operand number(const Operand& like, double value) {
  require("constant", like);
  const Place place = like.place;
  return {like.tensor.graph().scalar(value, like.tensor.dtype(), place), place.file, place.line};
}

}  // namespace

std::span<const OpRow> pointwise_rows() { return kRows; }

}  // namespace ops

using ops::binary;
using ops::make;
using ops::number;
using ops::require;

Tensor add(Operand a, Operand b) { return binary("add", a, b); }
Tensor sub(Operand a, Operand b) { return binary("sub", a, b); }
Tensor mul(Operand a, Operand b) { return binary("mul", a, b); }
Tensor div(Operand a, Operand b) { return binary("div", a, b); }
Tensor rem(Operand a, Operand b) { return binary("rem", a, b); }
Tensor pow(Operand a, Operand b) { return binary("pow", a, b); }
Tensor minimum(Operand a, Operand b) { return binary("minimum", a, b); }
Tensor maximum(Operand a, Operand b) { return binary("maximum", a, b); }
Tensor bit_and(Operand a, Operand b) { return binary("bit_and", a, b); }
Tensor bit_or(Operand a, Operand b) { return binary("bit_or", a, b); }
Tensor bit_xor(Operand a, Operand b) { return binary("bit_xor", a, b); }
Tensor shift_left(Operand a, Operand b) { return binary("shift_left", a, b); }
Tensor shift_right(Operand a, Operand b) { return binary("shift_right", a, b); }
Tensor equal(Operand a, Operand b) { return binary("equal", a, b); }
Tensor not_equal(Operand a, Operand b) { return binary("not_equal", a, b); }
Tensor less(Operand a, Operand b) { return binary("less", a, b); }
Tensor less_equal(Operand a, Operand b) { return binary("less_equal", a, b); }
Tensor greater(Operand a, Operand b) { return binary("greater", a, b); }
Tensor greater_equal(Operand a, Operand b) { return binary("greater_equal", a, b); }

Tensor neg(Operand x) { return make("neg", x.place, {x.tensor}); }
Tensor abs(Operand x) { return make("abs", x.place, {x.tensor}); }
Tensor exp(Operand x) { return make("exp", x.place, {x.tensor}); }
Tensor log(Operand x) { return make("log", x.place, {x.tensor}); }
Tensor sqrt(Operand x) { return make("sqrt", x.place, {x.tensor}); }
Tensor rsqrt(Operand x) { return make("rsqrt", x.place, {x.tensor}); }
Tensor sin(Operand x) { return make("sin", x.place, {x.tensor}); }
Tensor cos(Operand x) { return make("cos", x.place, {x.tensor}); }
Tensor tanh(Operand x) { return make("tanh", x.place, {x.tensor}); }
Tensor erf(Operand x) { return make("erf", x.place, {x.tensor}); }
Tensor floor(Operand x) { return make("floor", x.place, {x.tensor}); }
Tensor ceil(Operand x) { return make("ceil", x.place, {x.tensor}); }
Tensor round(Operand x) { return make("round", x.place, {x.tensor}); }
Tensor bit_not(Operand x) { return make("bit_not", x.place, {x.tensor}); }
Tensor stop_gradient(Operand x) { return make("stop_gradient", x.place, {x.tensor}); }

Tensor select(Operand condition, Operand a, Operand b) {
  for (const Operand* operand : {&condition, &a, &b}) require("select", *operand);
  const PlaceScope scope(condition.tensor.graph(), condition.place);
  const Shape shape =
      ops::common_shape("select", condition.place, {condition.tensor, a.tensor, b.tensor});
  return make("select", condition.place,
              {broadcast_to(condition, shape), broadcast_to(a, shape), broadcast_to(b, shape)});
}

Tensor cast(Operand x, DType dtype) {
  require("cast", x);
  return x.tensor.dtype() == dtype ? x.tensor : make("cast", x.place, {x.tensor}, {dtype});
}

Tensor bitcast(Operand x, DType dtype) {
  require("bitcast", x);
  return x.tensor.dtype() == dtype ? x.tensor : make("bitcast", x.place, {x.tensor}, {dtype});
}

Tensor operator+(Operand a, double b) { return add(a, number(a, b)); }
Tensor operator-(Operand a, double b) { return sub(a, number(a, b)); }
Tensor operator*(Operand a, double b) { return mul(a, number(a, b)); }
Tensor operator/(Operand a, double b) { return div(a, number(a, b)); }
Tensor operator+(double a, Operand b) { return add(number(b, a), b); }
Tensor operator-(double a, Operand b) { return sub(number(b, a), b); }
Tensor operator*(double a, Operand b) { return mul(number(b, a), b); }
Tensor operator/(double a, Operand b) { return div(number(b, a), b); }

}  // namespace meganeura
