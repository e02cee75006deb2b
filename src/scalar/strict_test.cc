#include "scalar/strict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "meganeura/error.h"
#include "scalar/evaluate.h"
#include "scalar/strict_functions.h"
#include "scalar/strict_measure.h"

namespace meganeura::scalar {
namespace {

constexpr Arithmetic kExact = {.fused_fma = true, .exact_division = true, .exact_sqrt = true};

Body lowered(Op op, const Arithmetic& arithmetic) {
  const std::vector<Type> types(info(op).arity, Type::kF32);
  std::vector<Scalar> operands;
  for (uint32_t i = 0; i < types.size(); ++i) operands.push_back(argument(i, Type::kF32));
  const Scalar outputs[] = {make(op, operands)};
  return lower_strict(linearize(outputs, types), arithmetic);
}

float run(const Body& body, std::vector<float> arguments, bool fused_fma = true) {
  std::vector<Lane> lanes;
  for (float x : arguments) lanes.push_back(bits(x));
  Lane result = 0;
  evaluate_lanes(body, lanes, std::span(&result, 1), fused_fma);
  return from_bits(result);
}

// A fixed sequence of bit patterns.
class Patterns {
 public:
  uint32_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 32);
  }
  float number() { return from_bits(next()); }
  float uniform(double low, double high) {
    return static_cast<float>(low + (high - low) * (next() / 4294967296.0));
  }

 private:
  uint64_t state_ = 20;
};

class StrictUnary : public testing::TestWithParam<int> {
 protected:
  const UnaryCase& row() const { return kUnaryCases[GetParam()]; }
};

TEST_P(StrictUnary, StaysWithinItsBoundOnASampleOfAllPatterns) {
  Measured measured = measure(0, uint64_t{1} << 32, 4093, row().function, row().reference);
  // And densely from 1/2 to 4, where reductions and branches change.
  measured.merge(measure(0x3f000000, 0x40800000, 61, row().function, row().reference));
  measured.merge(measure(0xbf000000, 0xc0800000, 61, row().function, row().reference));
  EXPECT_EQ(measured.wrong, 0u) << "one of them at bits " << std::hex << measured.wrong_at;
  EXPECT_LE(measured.max_ulp, strict_max_ulp(row().op)) << std::hex << measured.worst;
  EXPECT_GT(measured.max_ulp, 0.5);
}

TEST_P(StrictUnary, ExpressionAndNativeFunctionAgreeInEveryBit) {
  const Body body = lowered(row().op, kExact);
  EXPECT_NO_THROW(verify(body));
  Patterns patterns;
  for (int i = 0; i < 4000; ++i) {
    const float x = i % 2 == 0 ? patterns.number() : patterns.uniform(-20, 20);
    const float expected = row().function(x);
    const float found = run(body, {x});
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(found)) << x;
    } else {
      EXPECT_EQ(bits(found), bits(expected)) << x;
    }
  }
}

TEST_P(StrictUnary, LowersToPrimitiveOpsWithoutFma) {
  if (row().op == Op::kRsqrt) return;
  for (const Node& node : lowered(row().op, Arithmetic{}).nodes) {
    EXPECT_TRUE(info(node.op).primitive) << info(node.op).name;
    EXPECT_NE(node.op, Op::kFma);
    EXPECT_NE(node.op, Op::kDiv);
    EXPECT_NE(node.op, Op::kSqrt);
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, StrictUnary,
                         testing::Range(0, static_cast<int>(std::size(kUnaryCases))),
                         [](const testing::TestParamInfo<int>& instance) {
                           return std::string(scalar::info(kUnaryCases[instance.param].op).name);
                         });

TEST(Strict, SpecialValuesAreExact) {
  EXPECT_EQ(strict_exp(0.0f), 1.0f);
  EXPECT_EQ(strict_exp(-0.0f), 1.0f);
  EXPECT_EQ(strict_exp(-kInfinity), 0.0f);
  EXPECT_EQ(strict_exp(kInfinity), kInfinity);
  EXPECT_EQ(strict_exp(89.0f), kInfinity);
  EXPECT_EQ(strict_exp(-104.0f), 0.0f);
  EXPECT_EQ(strict_log(1.0f), 0.0f);
  EXPECT_EQ(strict_log(0.0f), -kInfinity);
  EXPECT_EQ(strict_log(-0.0f), -kInfinity);
  EXPECT_EQ(strict_log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(strict_log(-1e-45f)));
  EXPECT_TRUE(std::isnan(strict_log(-kInfinity)));
  EXPECT_EQ(bits(strict_tanh(-0.0f)), 0x80000000u);
  EXPECT_EQ(strict_tanh(kInfinity), 1.0f);
  EXPECT_EQ(strict_tanh(-kInfinity), -1.0f);
  EXPECT_EQ(bits(strict_erf(-0.0f)), 0x80000000u);
  EXPECT_EQ(strict_erf(-kInfinity), -1.0f);
  EXPECT_EQ(bits(strict_sin(-0.0f)), 0x80000000u);
  EXPECT_EQ(strict_cos(0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(strict_sin(kInfinity)));
  EXPECT_TRUE(std::isnan(strict_cos(-kInfinity)));
  for (uint32_t pattern : {0x7fc00000u, 0x7f800001u, 0xffffffffu, 0xff800123u, 0x7fabcdefu}) {
    for (const UnaryCase& row : kUnaryCases) {
      EXPECT_TRUE(std::isnan(row.function(from_bits(pattern)))) << info(row.op).name << pattern;
    }
  }
}

TEST(Strict, OddFunctionsAreOddAndCosineIsEven) {
  Patterns patterns;
  for (int i = 0; i < 20000; ++i) {
    const float x = from_bits(patterns.next() & 0x7f7fffff);
    for (auto function : {strict_sin<float>, strict_tanh<float>, strict_erf<float>}) {
      EXPECT_EQ(bits(function(-x)), bits(function(x)) ^ 0x80000000u) << x;
    }
    EXPECT_EQ(bits(strict_cos(-x)), bits(strict_cos(x))) << x;
  }
}

TEST(Strict, BoundedFunctionsStayBounded) {
  Patterns patterns;
  for (int i = 0; i < 100000; ++i) {
    const float x = from_bits(patterns.next() & 0x7f7fffff);
    EXPECT_LE(strict_tanh(x), 1.0f);
    EXPECT_LE(strict_erf(x), 1.0f);
    EXPECT_LE(std::fabs(strict_sin(x)), 1.0f);
    EXPECT_LE(std::fabs(strict_cos(x)), 1.0f);
  }
}

TEST(StrictPow, FollowsCOnEverySpecialCase) {
  const float values[] = {0.0f,   -0.0f,   1.0f,        -1.0f,         0.5f,
                          -0.5f,  2.0f,    -2.0f,       3.0f,          -3.0f,
                          2.5f,   -2.5f,   kInfinity,   -kInfinity,    kNan,
                          1e-40f, -1e-40f, 16777215.0f, 16777216.0f,   -16777215.0f,
                          1e30f,  -1e30f,  1e-30f,      3.4028235e38f, 1.17549435e-38f};
  for (float x : values) {
    for (float y : values) {
      const double distance = ulp_distance(strict_pow(x, y), std::pow(double{x}, double{y}));
      EXPECT_GE(distance, 0) << x << " ^ " << y << " gave " << strict_pow(x, y);
      EXPECT_LE(distance, strict_max_ulp(Op::kPow)) << x << " ^ " << y;
    }
  }
}

TEST(StrictPow, StaysWithinItsBoundOnStructuredSamples) {
  Patterns patterns;
  double largest = 0;
  const auto check = [&](float x, float y) {
    const double distance = ulp_distance(strict_pow(x, y), std::pow(double{x}, double{y}));
    ASSERT_GE(distance, 0) << x << " ^ " << y;
    largest = std::max(largest, distance);
  };
  for (int i = 0; i < 150000; ++i) {
    const float any = from_bits(patterns.next() & 0x7fffffff);
    check(any, patterns.number());
    // Powers all over the range of f32, for any base, bases near 1, and bases within [1/2, 2).
    const float near_one = 1.0f + static_cast<float>(patterns.next() % 40001) * 0x1p-24f - 0.0012f;
    for (float x : {any, near_one, patterns.uniform(0.5, 2)}) {
      if (!std::isfinite(x) || x <= 0 || x == 1) continue;
      check(x, static_cast<float>(patterns.uniform(-150, 150) / std::log2(double{x})));
    }
    check(-patterns.uniform(0, 10),
          static_cast<float>(static_cast<int>(patterns.next() % 40) - 20));
    check(any, static_cast<float>(patterns.next() % 4) - 1.5f);
  }
  EXPECT_LE(largest, strict_max_ulp(Op::kPow));
}

TEST(StrictPow, ExpressionAndNativeFunctionAgreeInEveryBit) {
  const Body body = lowered(Op::kPow, kExact);
  Patterns patterns;
  for (int i = 0; i < 4000; ++i) {
    const float x = i % 2 == 0 ? patterns.number() : patterns.uniform(0, 3);
    const float y = i % 3 == 0 ? patterns.number() : patterns.uniform(-40, 40);
    const float expected = strict_pow(x, y);
    const float found = run(body, {x, y});
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(found)) << x << " " << y;
    } else {
      EXPECT_EQ(bits(found), bits(expected)) << x << " " << y;
    }
  }
}

TEST(StrictPow, SmallWholeConstantExponentsAreProducts) {
  const Type types[] = {Type::kF32};
  for (float y : {1.0f, 2.0f, 3.0f, -1.0f}) {
    const Scalar outputs[] = {make(Op::kPow, {argument(0, Type::kF32), constant_f32(y)})};
    const Body body = lower_strict(linearize(outputs, types), kExact);
    EXPECT_LE(body.nodes.size(), 3u) << y;
    for (float x : {0.0f, -0.0f, 1.1f, -1.1f, 1e13f, -1e13f, 1e-13f, kInfinity, -kInfinity, kNan}) {
      const double distance = ulp_distance(run(body, {x}), std::pow(double{x}, double{y}));
      EXPECT_GE(distance, 0) << x << " ^ " << y;
      EXPECT_LE(distance, 2) << x << " ^ " << y;
    }
  }
}

// Division and square root as a device may do them: some ulp off.
struct Sloppy {
  uint32_t offset;
  float operator()(float a, float b) const { return spoil(a / b); }
  float operator()(float x) const { return spoil(std::sqrt(x)); }
  float spoil(float x) const {
    const uint32_t magnitude = bits(x) & 0x7fffffff;
    const bool ordinary = magnitude > 0x00800010 && magnitude < 0x7f7ffff0;
    return ordinary ? from_bits(bits(x) + offset) : x;
  }
};

TEST(StrictDivide, CorrectsBuiltInsThatAreUlpsOff) {
  Patterns patterns;
  for (uint32_t offset : {0u, 1u, 2u, 3u, 0u - 1u, 0u - 2u, 0u - 3u}) {
    const Sloppy sloppy{offset};
    for (int i = 0; i < 20000; ++i) {
      const float a =
          std::ldexp(patterns.uniform(-2, 2), static_cast<int>(patterns.next() % 60) - 30);
      const float b =
          std::ldexp(patterns.uniform(1, 2), static_cast<int>(patterns.next() % 60) - 30);
      const double exact = double{a} / b;
      for (bool fused : {false, true}) {
        EXPECT_LE(ulp_distance(strict_divide(a, b, fused, sloppy), exact), 0.50001)
            << a << " / " << b << " with offset " << static_cast<int>(offset);
      }
    }
  }
}

TEST(StrictDivide, KeepsEverySpecialValueAndExtreme) {
  const float values[] = {0.0f,           -0.0f,    1.0f,     -3.0f,  kInfinity, -kInfinity,
                          kNan,           1e-45f,   1e-38f,   2e-38f, 1e38f,     3.4028235e38f,
                          -3.4028235e38f, 1e-30f,   1e30f,    7e-23f, 1e-25f,    0x1p126f,
                          0x1p-75f,       0x1p100f, 0x1p-100f};
  for (const Arithmetic& arithmetic : {Arithmetic{}, Arithmetic{.fused_fma = true}, kExact}) {
    const Body divide = lowered(Op::kDiv, arithmetic);
    const Body root = lowered(Op::kSqrt, arithmetic);
    EXPECT_NO_THROW(verify(divide));
    for (float a : values) {
      const float expected_root = std::sqrt(a);
      const float found_root = run(root, {a}, arithmetic.fused_fma);
      EXPECT_TRUE(found_root == expected_root ||
                  (std::isnan(found_root) && std::isnan(expected_root)))
          << "sqrt " << a << " gave " << found_root;
      for (float b : values) {
        const float expected = a / b;
        const float found = run(divide, {a, b}, arithmetic.fused_fma);
        EXPECT_TRUE(found == expected || (std::isnan(found) && std::isnan(expected)))
            << a << " / " << b << " gave " << found;
      }
    }
  }
}

TEST(StrictDivide, LeavesIntegersAndExactDevicesAlone) {
  const Scalar a = argument(0, Type::kI32);
  const Scalar outputs[] = {a / argument(1, Type::kI32)};
  const Type types[] = {Type::kI32, Type::kI32};
  const Body body = linearize(outputs, types);
  EXPECT_EQ(lower_strict(body, Arithmetic{}), body);
  EXPECT_EQ(to_string(lowered(Op::kDiv, kExact)),
            "(a0: f32, a1: f32) { %2 = div a0 a1; return %2 }");
  EXPECT_EQ(to_string(lowered(Op::kSqrt, kExact)), "(a0: f32) { %1 = sqrt a0; return %1 }");
}

TEST(StrictRoot, CorrectsBuiltInsThatAreUlpsOff) {
  Patterns patterns;
  for (uint32_t offset : {0u, 1u, 3u, 0u - 1u, 0u - 3u}) {
    const Sloppy sloppy{offset};
    for (int i = 0; i < 20000; ++i) {
      const float x = from_bits(0x00800000 + patterns.next() % 0x7e000000);
      for (bool fused : {false, true}) {
        EXPECT_LE(ulp_distance(strict_root(x, fused, sloppy, sloppy), std::sqrt(double{x})),
                  0.50001)
            << x << " with offset " << static_cast<int>(offset);
      }
    }
  }
}

TEST(StrictRsqrt, FollowsCOnSpecialValues) {
  for (const Arithmetic& arithmetic : {Arithmetic{}, kExact}) {
    const Body body = lowered(Op::kRsqrt, arithmetic);
    EXPECT_EQ(run(body, {0.0f}, false), kInfinity);
    EXPECT_EQ(run(body, {-0.0f}, false), -kInfinity);
    EXPECT_EQ(run(body, {kInfinity}, false), 0.0f);
    EXPECT_TRUE(std::isnan(run(body, {-1.0f}, false)));
    EXPECT_TRUE(std::isnan(run(body, {kNan}, false)));
    EXPECT_EQ(run(body, {4.0f}, false), 0.5f);
  }
}

TEST(LowerStrict, LeavesPrimitiveBodiesAlone) {
  const Body body = parse_body(
      "(a0: f32, a1: bool) { %2 = constant f32 2; %3 = mul a0 %2; %4 = select a1 %3 a0; "
      "%5 = convert i32 %4; return %4, %5, a1 }");
  EXPECT_EQ(lower_strict(body, Arithmetic{}), body);
}

TEST(LowerStrict, SharesWhatFunctionsHaveInCommon) {
  const Scalar x = argument(0, Type::kF32);
  const Scalar both[] = {make(Op::kSin, {x}), make(Op::kCos, {x})};
  const Type types[] = {Type::kF32};
  const size_t sine = lowered(Op::kSin, kExact).nodes.size();
  EXPECT_LT(lower_strict(linearize(both, types), kExact).nodes.size(), sine + 20);
}

TEST(LowerStrict, KeepsFunctionsCompact) {
  const std::pair<Op, size_t> limits[] = {{Op::kExp, 45},  {Op::kLog, 75},  {Op::kTanh, 95},
                                          {Op::kErf, 100}, {Op::kSin, 160}, {Op::kCos, 160},
                                          {Op::kPow, 210}};
  for (const auto& [op, limit] : limits) {
    EXPECT_LE(lowered(op, kExact).nodes.size(), limit) << info(op).name;
  }
}

TEST(StrictBounds, ExistForCompositeOpsOnly) {
  EXPECT_EQ(strict_max_ulp(Op::kExp), 1.0);
  EXPECT_THROW(strict_max_ulp(Op::kAdd), Error);
}

}  // namespace
}  // namespace meganeura::scalar
