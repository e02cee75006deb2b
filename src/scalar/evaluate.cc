#include "scalar/evaluate.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "scalar/half.h"

namespace meganeura::scalar {
namespace {

float as_f32(Lane lane) { return std::bit_cast<float>(lane); }
Lane lane_of(float value) { return std::bit_cast<Lane>(value); }

// Values of `To` are clamped into, NaN gives 0.
template <class To>
Lane saturate(float value) {
  constexpr To kLow = std::numeric_limits<To>::min();
  constexpr To kHigh = std::numeric_limits<To>::max();
  if (std::isnan(value)) return 0;
  if (value <= static_cast<float>(kLow)) return static_cast<Lane>(kLow);
  if (value >= static_cast<float>(kHigh)) return static_cast<Lane>(kHigh);
  return static_cast<Lane>(static_cast<To>(value));
}

Lane convert_lane(Type from, Type to, Lane x) {
  const bool to_float = to == Type::kF32;
  switch (from) {
    case Type::kF32:
      if (to == Type::kBool) return as_f32(x) != 0 ? 1 : 0;
      if (to == Type::kI32) return saturate<int32_t>(as_f32(x));
      return to == Type::kU32 ? saturate<uint32_t>(as_f32(x)) : x;
    case Type::kI32:
      if (to_float) return lane_of(static_cast<float>(static_cast<int32_t>(x)));
      break;
    case Type::kU32:
    case Type::kBool:
      if (to_float) return lane_of(static_cast<float>(x));
      break;
  }
  return to == Type::kBool ? static_cast<Lane>(x != 0) : x;
}

float smaller(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<float>::quiet_NaN();
  return b < a ? b : a;
}

float larger(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<float>::quiet_NaN();
  return b > a ? b : a;
}

Lane evaluate_f32(Op op, Type result, float a, float b, float c, bool fused_fma) {
  switch (op) {
    case Op::kAdd:
      return lane_of(a + b);
    case Op::kSub:
      return lane_of(a - b);
    case Op::kMul:
      return lane_of(a * b);
    case Op::kFma:
      return lane_of(fused_fma ? std::fma(a, b, c) : a * b + c);
    case Op::kNeg:
      return lane_of(a) ^ 0x80000000;
    case Op::kAbs:
      return lane_of(a) & 0x7fffffff;
    case Op::kDiv:
      return lane_of(a / b);
    case Op::kRem:
      return lane_of(std::fmod(a, b));
    case Op::kMin:
      return lane_of(smaller(a, b));
    case Op::kMax:
      return lane_of(larger(a, b));
    case Op::kFloor:
      return lane_of(std::floor(a));
    case Op::kCeil:
      return lane_of(std::ceil(a));
    case Op::kTrunc:
      return lane_of(std::trunc(a));
    case Op::kRound:
      return lane_of(std::nearbyint(a));
    case Op::kSqrt:
      return lane_of(std::sqrt(a));
    case Op::kEq:
      return a == b;
    case Op::kNe:
      return a != b;
    case Op::kLt:
      return a < b;
    case Op::kLe:
      return a <= b;
    case Op::kGt:
      return a > b;
    case Op::kGe:
      return a >= b;
    case Op::kConvert:
      return convert_lane(Type::kF32, result, lane_of(a));
    case Op::kBitcast:
      return lane_of(a);
    case Op::kIsNan:
      return (lane_of(a) & 0x7fffffff) > 0x7f800000;
    case Op::kRoundF16:
      return lane_of(round_f16(a));
    case Op::kRoundBF16:
      return lane_of(round_bf16(a));
    case Op::kPackF16:
      return f16_from_f32(a) | static_cast<Lane>(f16_from_f32(b)) << 16;
    default:
      break;
  }
  fail(ErrorKind::kInternal, "scalar op ", info(op).name, " has no f32 evaluation");
}

// What signedness does not change, on i32, u32 and, for the logical ones, bool.
Lane evaluate_bits(Op op, Type operand, Type result, Lane a, Lane b) {
  switch (op) {
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
      return a * b;
    case Op::kMulHigh:
      return static_cast<Lane>((uint64_t{a} * b) >> 32);
    case Op::kNeg:
      return 0 - a;
    case Op::kAnd:
      return a & b;
    case Op::kOr:
      return a | b;
    case Op::kXor:
      return a ^ b;
    case Op::kNot:
      return operand == Type::kBool ? a ^ 1 : ~a;
    case Op::kShl:
      return a << (b & 31);
    case Op::kEq:
      return a == b;
    case Op::kNe:
      return a != b;
    case Op::kConvert:
      return convert_lane(operand, result, a);
    case Op::kBitcast:
      return a;
    case Op::kUnpackF16:
      return lane_of(f32_from_f16(static_cast<uint16_t>(a & 0xffff)));
    default:
      break;
  }
  fail(ErrorKind::kInternal, "scalar op ", info(op).name, " has no integer evaluation");
}

template <class Int>
Lane evaluate_ordered(Op op, Type operand, Type result, Int a, Int b) {
  // The one quotient that overflows wraps.
  const bool wraps = std::numeric_limits<Int>::is_signed && a == std::numeric_limits<Int>::min() &&
                     b == static_cast<Int>(-1);
  switch (op) {
    case Op::kAbs:
      return a < 0 ? 0 - static_cast<Lane>(a) : static_cast<Lane>(a);
    case Op::kDiv:
      return static_cast<Lane>(b == 0 ? 0 : wraps ? a : a / b);
    case Op::kRem:
      return static_cast<Lane>(b == 0 || wraps ? 0 : a % b);
    case Op::kMin:
      return static_cast<Lane>(b < a ? b : a);
    case Op::kMax:
      return static_cast<Lane>(b > a ? b : a);
    case Op::kShr:
      return static_cast<Lane>(a >> (static_cast<Lane>(b) & 31));
    case Op::kLt:
      return a < b;
    case Op::kLe:
      return a <= b;
    case Op::kGt:
      return a > b;
    case Op::kGe:
      return a >= b;
    default:
      break;
  }
  return evaluate_bits(op, operand, result, static_cast<Lane>(a), static_cast<Lane>(b));
}

}  // namespace

Lane evaluate_primitive(Op op, Type operand_type, Type result_type, std::span<const Lane> operands,
                        bool fused_fma) {
  MG_CHECK(info(op).primitive && operands.size() == info(op).arity && !operands.empty(),
           "scalar op ", info(op).name, " cannot be evaluated on ", operands.size(), " lanes");
  if (op == Op::kSelect) return operands[0] != 0 ? operands[1] : operands[2];
  const Lane a = operands[0];
  const Lane b = operands.size() > 1 ? operands[1] : 0;
  const Lane c = operands.size() > 2 ? operands[2] : 0;
  switch (operand_type) {
    case Type::kF32:
      return evaluate_f32(op, result_type, as_f32(a), as_f32(b), as_f32(c), fused_fma);
    case Type::kI32:
      return evaluate_ordered(op, operand_type, result_type, static_cast<int32_t>(a),
                              static_cast<int32_t>(b));
    case Type::kU32:
      return evaluate_ordered(op, operand_type, result_type, a, b);
    case Type::kBool:
      break;
  }
  return evaluate_bits(op, operand_type, result_type, a, b);
}

void evaluate_lanes(const Body& body, std::span<const Lane> arguments, std::span<Lane> outputs,
                    bool fused_fma) {
  MG_CHECK(arguments.size() == body.arguments.size() && outputs.size() == body.outputs.size(),
           "a scalar body of ", body.arguments.size(), " arguments and ", body.outputs.size(),
           " outputs was evaluated with ", arguments.size(), " and ", outputs.size());
  std::vector<Lane> values(body.nodes.size());
  for (size_t i = 0; i < body.nodes.size(); ++i) {
    const Node& node = body.nodes[i];
    if (node.op == Op::kArgument) {
      values[i] = arguments[node.payload];
    } else if (node.op == Op::kConstant) {
      values[i] = node.payload;
    } else {
      const uint8_t arity = info(node.op).arity;
      std::array<Lane, 3> operands{};
      for (uint8_t j = 0; j < arity; ++j) operands[j] = values[node.operands[j]];
      values[i] = evaluate_primitive(node.op, body.nodes[node.operands[0]].type, node.type,
                                     std::span(operands.data(), arity), fused_fma);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = values[body.outputs[i]];
}

}  // namespace meganeura::scalar
