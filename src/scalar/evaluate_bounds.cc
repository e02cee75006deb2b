// Running error analysis: beside each value a bound on how far an f32 kernel can be from it.
//
// f32 rounding contributes half an ulp (composite ops what strict.h proves for them) and, near
// zero, 2^-126, because devices may flush denormals. A bound is infinite where the kernel may take
// another branch, overflow, or leave the domain of a function.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "scalar/evaluate.h"
#include "scalar/evaluate_f64.h"
#include "scalar/half.h"
#include "scalar/strict.h"

namespace meganeura::scalar {
namespace {

constexpr double kUncertain = std::numeric_limits<double>::infinity();
constexpr double kSmallestNormal = 0x1p-126;
constexpr double kLargest = std::numeric_limits<float>::max();

struct Bounded {
  double value = 0;
  double error = 0;
  double magnitude() const { return std::fabs(value); }
};

// What flushing denormals can add.
double flush_error(const Bounded& x) {
  const bool zero = x.value == 0 && x.error == 0;
  return !zero && x.magnitude() - x.error < kSmallestNormal ? kSmallestNormal : 0;
}

// `x` before its rounding to f32 of at most `ulps`; half an ulp is the exact rounding.
double with_rounding(const Bounded& x, double ulps) {
  if (!std::isfinite(x.value)) return x.error;
  double rounding = ulps * 0x1p-23 * (x.magnitude() + x.error);
  if (ulps == 0.5 && x.error == 0 && x.magnitude() <= kLargest) {
    rounding = std::fabs(static_cast<double>(static_cast<float>(x.value)) - x.value);
  }
  const double error = x.error + rounding + flush_error(x);
  return x.magnitude() + error <= kLargest ? error : kUncertain;
}

// The largest deviation of a monotone function within the operand's error.
template <class Function>
double spread(const Bounded& x, const Function& function) {
  if (x.error == 0) return 0;
  const double value = function(x.value);
  const double low = function(x.value - x.error);
  const double high = function(x.value + x.error);
  if (low == value && high == value) return 0;
  const double deviation = std::max(std::fabs(low - value), std::fabs(high - value));
  return std::isnan(low) || std::isnan(high) || std::isnan(deviation) ? kUncertain : deviation;
}

// Step functions are certain or not.
template <class Function>
double step(const Bounded& x, const Function& function) {
  return spread(x, function) == 0 ? 0 : kUncertain;
}

double product_error(const Bounded& a, const Bounded& b) {
  return a.magnitude() * b.error + b.magnitude() * a.error + a.error * b.error;
}

double quotient_error(const Bounded& a, const Bounded& b, double quotient) {
  if (a.error == 0 && b.error == 0) return 0;
  if (b.magnitude() <= b.error) return kUncertain;
  return (a.error + std::fabs(quotient) * b.error) / (b.magnitude() - b.error);
}

// fmod: the integer quotient has to be certain.
double remainder_error(const Bounded& a, const Bounded& b) {
  if (a.error == 0 && b.error == 0) return 0;
  const Bounded quotient = {a.value / b.value, quotient_error(a, b, a.value / b.value)};
  if (std::isinf(b.value)) return a.error;
  if (step(quotient, [](double x) { return std::trunc(x); }) != 0) return kUncertain;
  return a.error + std::fabs(std::trunc(quotient.value)) * b.error;
}

double power_error(const Bounded& x, const Bounded& y) {
  if (x.error == 0 && y.error == 0) return 0;
  const bool fixed_integer = y.error == 0 && y.value == std::trunc(y.value);
  const bool around_zero = x.magnitude() <= x.error;
  if (!fixed_integer && (x.value < 0 || around_zero)) return kUncertain;
  if (fixed_integer && y.value < 0 && around_zero) return kUncertain;
  const double value = std::pow(x.value, y.value);
  double deviation = fixed_integer && around_zero ? std::fabs(value) : 0;
  for (double base : {x.value - x.error, x.value + x.error}) {
    for (double exponent : {y.value - y.error, y.value + y.error}) {
      deviation = std::max(deviation, std::fabs(std::pow(base, exponent) - value));
    }
  }
  return std::isnan(deviation) ? kUncertain : deviation;
}

bool overlap(const Bounded& a, const Bounded& b) {
  const double slack = a.error + b.error;
  return slack > 0 && std::fabs(a.value - b.value) <= slack;
}

// Results that are infinite or not a number are certain when they follow from operands that are.
double special_error(Op op, double value, std::span<const Bounded> operands) {
  bool exact = true;
  bool nan_operand = false;
  bool signs_certain = true;
  for (const Bounded& x : operands) {
    exact = exact && x.error == 0;
    nan_operand = nan_operand || std::isnan(x.value);
    signs_certain = signs_certain && (x.error == 0 || x.magnitude() > x.error);
  }
  if (exact) return 0;
  if (std::isnan(value)) return nan_operand ? 0 : kUncertain;
  const bool infinite_operand = std::any_of(operands.begin(), operands.end(),
                                            [](const Bounded& x) { return std::isinf(x.value); });
  const bool sum = op == Op::kAdd || op == Op::kSub || op == Op::kMin || op == Op::kMax;
  const bool product = op == Op::kMul || op == Op::kDiv || op == Op::kFma;
  return infinite_operand && (sum || (product && signs_certain)) ? 0 : kUncertain;
}

// Ops on f32 with a finite f32 result.
double float_error(Op op, double value, std::span<const Bounded> x) {
  const auto rounded = [&](double error) { return with_rounding({value, error}, 0.5); };
  const auto composite = [&](double error) {
    return with_rounding({value, error}, strict_max_ulp(op));
  };
  switch (op) {
    case Op::kAdd:
    case Op::kSub:
      return rounded(x[0].error + x[1].error);
    case Op::kMul:
      return rounded(product_error(x[0], x[1]));
    case Op::kFma: {
      const Bounded product = {x[0].value * x[1].value, product_error(x[0], x[1])};
      return with_rounding({value, with_rounding(product, 0.5) + x[2].error}, 0.5);
    }
    case Op::kNeg:
    case Op::kAbs:
      return x[0].error;
    case Op::kDiv:
      return composite(quotient_error(x[0], x[1], value));
    case Op::kRem:
      return rounded(remainder_error(x[0], x[1]));
    case Op::kMin:
    case Op::kMax:
      if (overlap(x[0], x[1])) return std::max(x[0].error, x[1].error);
      return value == x[0].value ? x[0].error : x[1].error;
    case Op::kFloor:
      return step(x[0], [](double v) { return std::floor(v); });
    case Op::kCeil:
      return step(x[0], [](double v) { return std::ceil(v); });
    case Op::kTrunc:
      return step(x[0], [](double v) { return std::trunc(v); });
    case Op::kRound:
      return step(x[0], [](double v) { return std::nearbyint(v); });
    case Op::kSqrt:
      return composite(spread(x[0], [](double v) { return std::sqrt(v); }));
    case Op::kRsqrt:
      if (x[0].error >= x[0].magnitude()) return kUncertain;
      return composite(spread(x[0], [](double v) { return 1 / std::sqrt(v); }));
    case Op::kRoundF16:
      return spread(x[0], [](double v) { return double{round_f16(static_cast<float>(v))}; });
    case Op::kRoundBF16:
      return spread(x[0], [](double v) { return double{round_bf16(static_cast<float>(v))}; });
    case Op::kExp:
      return composite(spread(x[0], [](double v) { return std::exp(v); }));
    case Op::kLog:
      return composite(spread(x[0], [](double v) { return std::log(v); }));
    case Op::kSin:
    case Op::kCos:
      return composite(std::min(x[0].error, 2.0));
    case Op::kTanh:
      return composite(spread(x[0], [](double v) { return std::tanh(v); }));
    case Op::kErf:
      return composite(spread(x[0], [](double v) { return std::erf(v); }));
    case Op::kPow:
      return composite(power_error(x[0], x[1]));
    default:
      break;
  }
  fail(ErrorKind::kInternal, "scalar op ", info(op).name, " has no error bound");
}

// f32 operands, integer or bool result: certain or not.
double decision_error(Op op, Type type, std::span<const Bounded> x) {
  const auto half = [](double v) { return double{round_f16(static_cast<float>(v))}; };
  switch (op) {
    case Op::kIsNan:
      return 0;
    case Op::kConvert:
      if (type == Type::kBool)
        return x[0].error > 0 && x[0].magnitude() <= x[0].error ? kUncertain : 0;
      return step(x[0], [](double v) { return std::trunc(v); });
    case Op::kBitcast: {
      const bool exact = static_cast<double>(static_cast<float>(x[0].value)) == x[0].value;
      return exact && x[0].error == 0 ? 0 : kUncertain;
    }
    case Op::kPackF16:
      return std::max(step(x[0], half), step(x[1], half));
    default:
      break;
  }
  return overlap(x[0], x[1]) ? kUncertain : 0;
}

// Where the condition may flip, either branch is within a finite bound only if they nearly meet.
double select_error(double value, std::span<const Bounded> x) {
  if (x[0].error == 0) return x[0].value != 0 ? x[1].error : x[2].error;
  const double slack = x[1].error + x[2].error;
  if (!(std::fabs(x[1].value - x[2].value) <= 2 * slack)) return kUncertain;
  return std::max(std::fabs(value - x[1].value) + x[1].error,
                  std::fabs(value - x[2].value) + x[2].error);
}

double bool_error(Op op, std::span<const Bounded> x) {
  for (const Bounded& operand : x) {
    const bool decides = operand.error == 0 && (op == Op::kAnd  ? operand.value == 0
                                                : op == Op::kOr ? operand.value != 0
                                                                : false);
    if (decides) return 0;
  }
  for (const Bounded& operand : x) {
    if (operand.error != 0) return kUncertain;
  }
  return 0;
}

double node_error(const Node& node, Type operand, double value, std::span<const Bounded> x) {
  if (node.op == Op::kSelect) return select_error(value, x);
  if (operand == Type::kBool) return bool_error(node.op, x);
  for (const Bounded& bounded : x) {
    if (bounded.error == kUncertain) return kUncertain;
    if (operand != Type::kF32 && bounded.error != 0) return kUncertain;
  }
  if (operand != Type::kF32) {
    const bool widened = node.op == Op::kConvert && node.type == Type::kF32;
    return widened ? with_rounding({value, 0}, 0.5) : 0;
  }
  if (node.type != Type::kF32) return decision_error(node.op, node.type, x);
  return std::isfinite(value) ? float_error(node.op, value, x) : special_error(node.op, value, x);
}

// Buffers of one chunk: where each node's values and errors are.
class BoundsEvaluator {
 public:
  explicit BoundsEvaluator(const Body& body)
      : body_(body), storage_(2 * body.nodes.size() * kChunk), values_(body.nodes.size()) {
    for (size_t i = 0; i < body.nodes.size(); ++i) {
      values_[i] = storage_.data() + 2 * i * kChunk;
      const Node& node = body.nodes[i];
      if (node.op != Op::kConstant) continue;
      const double value = f64_from_lane(node.type, node.payload);
      std::fill_n(values_[i], kChunk, value);
      const double error = node.type == Type::kF32 ? flush_error({value, 0}) : 0;
      std::fill_n(errors(i), kChunk, error);
    }
  }

  void load(size_t index, const double* values, const double* errors_of, int64_t length) {
    std::copy_n(values, length, values_[index]);
    for (int64_t k = 0; k < length; ++k) {
      const double flushed =
          body_.nodes[index].type == Type::kF32 ? flush_error({values[k], errors_of[k]}) : 0;
      errors(index)[k] = errors_of[k] + flushed;
    }
  }

  void compute(size_t index, int64_t length) {
    const Node& node = body_.nodes[index];
    const uint8_t arity = info(node.op).arity;
    const Type operand = body_.nodes[node.operands[0]].type;
    std::array<const double*, 3> inputs{};
    for (uint8_t j = 0; j < arity; ++j) inputs[j] = values_[node.operands[j]];
    evaluate_node_f64(node, operand, Mode::kTyped, length, std::span(inputs.data(), arity),
                      values_[index]);
    for (int64_t k = 0; k < length; ++k) {
      std::array<Bounded, 3> bounded;
      for (uint8_t j = 0; j < arity; ++j) bounded[j] = {inputs[j][k], errors(node.operands[j])[k]};
      errors(index)[k] =
          node_error(node, operand, values_[index][k], std::span(bounded.data(), arity));
    }
  }

  const double* values(size_t index) const { return values_[index]; }
  double* errors(size_t index) { return values_[index] + kChunk; }

 private:
  const Body& body_;
  std::vector<double> storage_;
  std::vector<double*> values_;
};

}  // namespace

void evaluate_f64_bounds(const Body& body, int64_t count, std::span<const double* const> arguments,
                         std::span<const double* const> argument_errors,
                         std::span<double* const> outputs, std::span<double* const> output_errors) {
  MG_CHECK(arguments.size() == body.arguments.size() &&
               argument_errors.size() == arguments.size() &&
               outputs.size() == body.outputs.size() && output_errors.size() == outputs.size(),
           "bounds of a scalar body need values and errors for each of its ", body.arguments.size(),
           " arguments and ", body.outputs.size(), " outputs");
  BoundsEvaluator evaluator(body);
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t length = std::min<int64_t>(kChunk, count - begin);
    for (size_t i = 0; i < body.nodes.size(); ++i) {
      const Node& node = body.nodes[i];
      if (node.op == Op::kArgument) {
        evaluator.load(i, arguments[node.payload] + begin, argument_errors[node.payload] + begin,
                       length);
      } else if (node.op != Op::kConstant) {
        evaluator.compute(i, length);
      }
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::copy_n(evaluator.values(body.outputs[i]), length, outputs[i] + begin);
      std::copy_n(evaluator.errors(body.outputs[i]), length, output_errors[i] + begin);
    }
  }
}

}  // namespace meganeura::scalar
