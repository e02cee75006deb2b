// The f64 reference: node by node over chunks, so that large tensors stay cheap and small in
// memory.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "scalar/evaluate.h"
#include "scalar/evaluate_f64.h"
#include "scalar/half.h"

namespace meganeura::scalar {
namespace {

// f32 rounding of a value whose bits are asked for.
float narrow(double value) { return static_cast<float>(value); }

template <class To>
double saturate(double value) {
  if (std::isnan(value)) return 0;
  return std::clamp(std::trunc(value), static_cast<double>(std::numeric_limits<To>::min()),
                    static_cast<double>(std::numeric_limits<To>::max()));
}

double smaller(double a, double b) { return std::isnan(a) || b >= a ? a : b; }
double larger(double a, double b) { return std::isnan(a) || b <= a ? a : b; }

// f32 operands: the result as a double; integer and bool results exactly.
double float_node(Op op, Type type, Mode mode, double a, double b, double c) {
  switch (op) {
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
      return a * b;
    case Op::kFma:
      return std::fma(a, b, c);
    case Op::kNeg:
      return -a;
    case Op::kAbs:
      return std::fabs(a);
    case Op::kDiv:
      return a / b;
    case Op::kRem:
      return std::fmod(a, b);
    case Op::kMin:
      return smaller(a, b);
    case Op::kMax:
      return larger(a, b);
    case Op::kFloor:
      return std::floor(a);
    case Op::kCeil:
      return std::ceil(a);
    case Op::kTrunc:
      return std::trunc(a);
    case Op::kRound:
      return std::nearbyint(a);
    case Op::kSqrt:
      return std::sqrt(a);
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
      if (type == Type::kBool) return a != 0;
      return type == Type::kI32 ? saturate<int32_t>(a) : saturate<uint32_t>(a);
    case Op::kBitcast: {
      const auto bits = std::bit_cast<uint32_t>(narrow(a));
      return type == Type::kI32 ? static_cast<double>(static_cast<int32_t>(bits)) : bits;
    }
    case Op::kIsNan:
      return std::isnan(a);
    case Op::kRoundF16:
      return mode == Mode::kTyped ? round_f16(narrow(a)) : a;
    case Op::kRoundBF16:
      return mode == Mode::kTyped ? round_bf16(narrow(a)) : a;
    case Op::kPackF16:
      return f16_from_f32(narrow(a)) | static_cast<uint32_t>(f16_from_f32(narrow(b))) << 16;
    case Op::kExp:
      return std::exp(a);
    case Op::kLog:
      return std::log(a);
    case Op::kSin:
      return std::sin(a);
    case Op::kCos:
      return std::cos(a);
    case Op::kTanh:
      return std::tanh(a);
    case Op::kErf:
      return std::erf(a);
    case Op::kPow:
      return std::pow(a, b);
    case Op::kRsqrt:
      return 1 / std::sqrt(a);
    default:
      break;
  }
  fail(ErrorKind::kInternal, "scalar op ", info(op).name, " has no f64 evaluation");
}

double integer_node(Op op, Type operand, Type type, double a, double b) {
  const std::array<Lane, 2> lanes = {lane_from_f64(operand, a), lane_from_f64(operand, b)};
  const Lane lane = evaluate_primitive(op, operand, type, std::span(lanes.data(), info(op).arity));
  return f64_from_lane(type, lane);
}

}  // namespace

double f64_from_lane(Type type, Lane lane) {
  switch (type) {
    case Type::kF32:
      return std::bit_cast<float>(lane);
    case Type::kI32:
      return static_cast<int32_t>(lane);
    case Type::kU32:
      return lane;
    case Type::kBool:
      break;
  }
  return lane != 0 ? 1 : 0;
}

Lane lane_from_f64(Type type, double value) {
  switch (type) {
    case Type::kF32:
      return std::bit_cast<Lane>(narrow(value));
    case Type::kI32:
      return static_cast<Lane>(static_cast<int32_t>(value));
    case Type::kU32:
      return static_cast<Lane>(value);
    case Type::kBool:
      break;
  }
  return value != 0 ? 1 : 0;
}

void evaluate_node_f64(const Node& node, Type operand, Mode mode, int64_t count,
                       std::span<const double* const> operands, double* result) {
  const double* a = operands[0];
  const double* b = operands.size() > 1 ? operands[1] : a;
  const double* c = operands.size() > 2 ? operands[2] : a;
  if (node.op == Op::kSelect) {
    for (int64_t i = 0; i < count; ++i) result[i] = a[i] != 0 ? b[i] : c[i];
  } else if (operand == Type::kF32) {
    for (int64_t i = 0; i < count; ++i) {
      result[i] = float_node(node.op, node.type, mode, a[i], b[i], c[i]);
    }
  } else if (node.op == Op::kConvert && node.type == Type::kF32) {
    std::copy_n(a, count, result);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      result[i] = integer_node(node.op, operand, node.type, a[i], b[i]);
    }
  }
}

void evaluate_f64(const Body& body, Mode mode, int64_t count,
                  std::span<const double* const> arguments, std::span<double* const> outputs) {
  MG_CHECK(arguments.size() == body.arguments.size() && outputs.size() == body.outputs.size(),
           "a scalar body of ", body.arguments.size(), " arguments and ", body.outputs.size(),
           " outputs was evaluated with ", arguments.size(), " and ", outputs.size());
  const size_t nodes = body.nodes.size();
  std::vector<double> storage(nodes * kChunk);
  std::vector<const double*> values(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    double* buffer = storage.data() + i * kChunk;
    values[i] = buffer;
    if (body.nodes[i].op == Op::kConstant) {
      std::fill_n(buffer, kChunk, f64_from_lane(body.nodes[i].type, body.nodes[i].payload));
    }
  }
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t length = std::min<int64_t>(kChunk, count - begin);
    for (size_t i = 0; i < nodes; ++i) {
      const Node& node = body.nodes[i];
      if (node.op == Op::kConstant) continue;
      if (node.op == Op::kArgument) {
        values[i] = arguments[node.payload] + begin;
        continue;
      }
      std::array<const double*, 3> operands{};
      const uint8_t arity = info(node.op).arity;
      for (uint8_t j = 0; j < arity; ++j) operands[j] = values[node.operands[j]];
      evaluate_node_f64(node, body.nodes[node.operands[0]].type, mode, length,
                        std::span(operands.data(), arity), storage.data() + i * kChunk);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::copy_n(values[body.outputs[i]], length, outputs[i] + begin);
    }
  }
}

}  // namespace meganeura::scalar
