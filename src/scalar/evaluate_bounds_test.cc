#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "meganeura/error.h"
#include "scalar/evaluate.h"
#include "scalar/strict.h"

namespace meganeura::scalar {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Result {
  double value;
  double error;
};

Result bound(std::string_view text, std::vector<double> values, std::vector<double> errors) {
  const Body body = parse_body(text);
  std::vector<const double*> arguments;
  std::vector<const double*> argument_errors;
  for (double& value : values) arguments.push_back(&value);
  for (double& error : errors) argument_errors.push_back(&error);
  Result result{};
  double* const outputs[] = {&result.value};
  double* const output_errors[] = {&result.error};
  evaluate_f64_bounds(body, 1, arguments, argument_errors, outputs, output_errors);
  return result;
}

Result unary(std::string_view op, double value, double error) {
  return bound("(a0: f32) { %1 = " + std::string(op) + " a0; return %1 }", {value}, {error});
}

Result binary(std::string_view op, double a, double b, double ea = 0, double eb = 0) {
  return bound("(a0: f32, a1: f32) { %2 = " + std::string(op) + " a0 a1; return %2 }", {a, b},
               {ea, eb});
}

TEST(Bounds, ExactF32ResultsOfExactOperandsHaveNone) {
  EXPECT_EQ(binary("add", 1, 2).error, 0);
  EXPECT_EQ(binary("mul", 3, 0.5).error, 0);
  EXPECT_EQ(binary("sub", 1, 1).error, 0);
  EXPECT_EQ(unary("neg", 0.1, 0).error, 0);
}

TEST(Bounds, RoundingIsHalfAnUlp) {
  const Result sum = binary("add", 1, 0x1p-24);
  EXPECT_EQ(sum.error, 0x1p-24);
  const Result product = binary("mul", 3, 5, 1e-3, 1e-3);
  EXPECT_GE(product.error, 8e-3);
  EXPECT_LE(product.error, 8.01e-3);
}

TEST(Bounds, OverflowIsUncertain) {
  EXPECT_EQ(binary("mul", 1e30, 1e30).error, kInf);
  EXPECT_EQ(unary("exp", 89, 0).error, kInf);
  EXPECT_LT(unary("exp", 88, 0).error, 1e32);
}

TEST(Bounds, DenormalsMayBeFlushed) {
  EXPECT_GE(binary("mul", 0x1p-70, 0x1p-70).error, 0x1p-140);
  EXPECT_EQ(binary("mul", 0, 1).error, 0);
}

TEST(Bounds, DecisionsWithinTheErrorAreUncertain) {
  EXPECT_EQ(binary("lt", 1, 1.001, 1e-3, 1e-3).error, kInf);
  EXPECT_EQ(binary("lt", 1, 1.1, 1e-3, 1e-3).error, 0);
  EXPECT_EQ(binary("eq", 1, 1).error, 0);
  EXPECT_EQ(unary("floor", 2.0001, 1e-3).error, kInf);
  EXPECT_EQ(unary("floor", 2.5, 1e-3).error, 0);
  EXPECT_EQ(unary("ceil", 2.0001, 1e-3).error, kInf);
  EXPECT_EQ(unary("trunc", 1.9999, 1e-3).error, kInf);
  EXPECT_EQ(unary("round", 2.5, 1e-6).error, kInf);
  EXPECT_EQ(unary("round", 2.5, 0).error, 0);
  EXPECT_EQ(unary("convert i32", 2.9999, 1e-3).error, kInf);
  EXPECT_EQ(unary("convert bool", 0.0001, 1e-3).error, kInf);
  EXPECT_EQ(unary("bitcast u32", 1.0, 1e-9).error, kInf);
  EXPECT_EQ(unary("bitcast u32", 1.0, 0).error, 0);
  EXPECT_EQ(unary("bitcast u32", 0.1, 0).error, kInf);
  EXPECT_EQ(binary("rem", 6.0001, 3, 1e-3).error, kInf);
  EXPECT_LE(binary("rem", 7, 3, 1e-3).error, 1.1e-3);
}

TEST(Bounds, SelectIsFiniteWhereTheBranchesMeet) {
  const std::string_view relu =
      "(a0: f32) { %1 = constant f32 0; %2 = gt a0 %1; %3 = select %2 a0 %1; return %3 }";
  EXPECT_LE(bound(relu, {1e-4}, {1e-3}).error, 2.2e-3);
  EXPECT_GE(bound(relu, {1e-4}, {1e-3}).error, 1e-3);
  EXPECT_EQ(bound(relu, {-5}, {1e-3}).error, 0);
  const std::string_view jump =
      "(a0: f32) { %1 = constant f32 0; %2 = gt a0 %1; %3 = constant f32 1; "
      "%4 = select %2 %3 %1; return %4 }";
  EXPECT_EQ(bound(jump, {1e-4}, {1e-3}).error, kInf);
  EXPECT_EQ(bound(jump, {1e-2}, {1e-3}).error, 0);
}

TEST(Bounds, UncertainTruthNeedsNotMatter) {
  const std::string_view both =
      "(a0: f32, a1: bool) { %2 = constant f32 0; %3 = gt a0 %2; %4 = and %3 a1; return %4 }";
  EXPECT_EQ(bound(both, {0, 0}, {1e-3, 0}).error, 0);
  EXPECT_EQ(bound(both, {0, 1}, {1e-3, 0}).error, kInf);
}

TEST(Bounds, FunctionsFollowTheirConditionAndDomain) {
  EXPECT_NEAR(unary("exp", 3, 1e-3).error, std::exp(3.0) * 1e-3, 2e-5);
  EXPECT_NEAR(unary("log", 1, 1e-3).error, 1e-3, 2e-6);
  EXPECT_EQ(unary("log", 1e-4, 1e-3).error, kInf);
  EXPECT_EQ(unary("sqrt", 1e-4, 1e-3).error, kInf);
  EXPECT_EQ(unary("rsqrt", 1e-4, 1e-3).error, kInf);
  EXPECT_EQ(binary("div", 1, 1e-4, 0, 1e-3).error, kInf);
  EXPECT_NEAR(binary("div", 1, 2, 1e-3, 1e-3).error, 0.75e-3, 1e-5);
  EXPECT_EQ(binary("pow", -0.001, 0.5, 0.01, 0).error, kInf);
  EXPECT_NEAR(binary("pow", -3, 2, 1e-3, 0).error, 6e-3, 1e-4);
  EXPECT_NEAR(binary("pow", 2, 3, 0, 1e-3).error, 8e-3 * std::log(2.0), 1e-4);
  EXPECT_GE(binary("pow", 1e-4, 2, 1e-3, 0).error, 1.2e-6 - 1e-8);
  EXPECT_EQ(binary("pow", 1e-4, -1, 1e-3, 0).error, kInf);
}

TEST(Bounds, InfinitiesAndNanThatFollowFromOperandsAreCertain) {
  EXPECT_EQ(binary("add", -kInf, 1, 0, 0.1).error, 0);
  EXPECT_EQ(binary("mul", kInf, 1, 0, 0.1).error, 0);
  EXPECT_EQ(binary("mul", kInf, 0.01, 0, 0.1).error, kInf);
  EXPECT_EQ(unary("exp", -kInf, 0).value, 0);
  EXPECT_EQ(unary("exp", -kInf, 0).error, 0);
  EXPECT_EQ(binary("add", NAN, 1, 0, 0.1).error, 0);
  EXPECT_EQ(unary("log", -1e-9, 1e-3).error, kInf);
  EXPECT_EQ(binary("div", 1, 0).error, 0);
  EXPECT_EQ(binary("max", kInf, 1, 0, 0.1).error, 0);
  EXPECT_EQ(binary("div", 1, kInf, 0.1, 0).error, 0);
}

TEST(Bounds, StorageRoundingCountsWhatItMayFlip) {
  EXPECT_EQ(unary("round_bf16", 1.001, 1e-6).error, 0);
  EXPECT_EQ(unary("round_bf16", 1 + 0x1p-8, 1e-6).error, 0x1p-7);
  EXPECT_EQ(binary("pack_f16", 1, 1.0001, 0, 1e-6).error, 0);
  EXPECT_EQ(binary("pack_f16", 1, 1 + 0x1p-11, 0, 1e-6).error, kInf);
}

TEST(Bounds, RefusesMissingErrors) {
  const Body body = identity(Type::kF32);
  const double x = 0;
  double y = 0;
  const double* const arguments[] = {&x};
  double* const outputs[] = {&y};
  EXPECT_THROW(evaluate_f64_bounds(body, 1, arguments, {}, outputs, outputs), Error);
}

// The property that counts: whatever f32 computes from perturbed arguments stays within the bound.
TEST(Bounds, CoverStrictF32EvaluationOfPerturbedArguments) {
  const std::string_view bodies[] = {
      "(a0: f32, a1: f32) { %2 = exp a0; %3 = constant f32 1; %4 = add %2 %3; %5 = log %4; "
      "%6 = mul %5 a1; return %6 }",
      "(a0: f32, a1: f32) { %2 = mul a0 a0; %3 = fma a1 %2 a0; %4 = tanh %3; %5 = sub %4 a1; "
      "%6 = erf %5; return %6 }",
      "(a0: f32, a1: f32) { %2 = sin a0; %3 = cos a1; %4 = div %2 %3; %5 = abs %4; "
      "%6 = constant f32 0.01; %7 = add %5 %6; %8 = sqrt %7; %9 = rsqrt %7; %10 = add %8 %9; "
      "return %10 }",
      "(a0: f32, a1: f32) { %2 = abs a0; %3 = pow %2 a1; %4 = max %3 a0; %5 = min %4 a1; "
      "return %5 }",
      "(a0: f32, a1: f32) { %2 = lt a0 a1; %3 = neg a0; %4 = select %2 %3 a1; %5 = floor %4; "
      "%6 = sub %4 %5; %7 = round_f16 %6; return %7 }",
      "(a0: f32, a1: f32) { %2 = convert i32 a0; %3 = convert f32 %2; %4 = rem a1 a0; "
      "%5 = add %3 %4; %6 = round_bf16 %5; return %6 }",
  };
  uint64_t state = 7;
  const auto uniform = [&state](double low, double high) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * (static_cast<double>(state >> 33) / 2147483648.0);
  };
  for (std::string_view text : bodies) {
    const Body body = parse_body(text);
    const Body kernel = lower_strict(body, Arithmetic{});
    constexpr size_t kCount = 3000;
    std::vector<double> values[2];
    std::vector<double> errors[2];
    std::vector<Lane> lanes[2];
    for (size_t k = 0; k < kCount; ++k) {
      for (int a = 0; a < 2; ++a) {
        const double value = uniform(-4, 4);
        const double error = k % 3 == 0 ? 0 : std::ldexp(1.0, static_cast<int>(uniform(-24, -6)));
        const auto perturbed = static_cast<float>(value + error * uniform(-1, 1));
        // With no error the argument is an f32 number.
        values[a].push_back(error == 0 ? double{perturbed} : value);
        errors[a].push_back(error == 0 ? 0 : error + 1e-6);
        lanes[a].push_back(std::bit_cast<Lane>(perturbed));
      }
    }
    std::vector<double> output(kCount);
    std::vector<double> output_error(kCount);
    const double* const arguments[] = {values[0].data(), values[1].data()};
    const double* const argument_errors[] = {errors[0].data(), errors[1].data()};
    double* const outputs[] = {output.data()};
    double* const output_errors[] = {output_error.data()};
    evaluate_f64_bounds(body, kCount, arguments, argument_errors, outputs, output_errors);
    size_t uncertain = 0;
    size_t tight = 0;
    for (size_t k = 0; k < kCount; ++k) {
      const Lane inputs[] = {lanes[0][k], lanes[1][k]};
      Lane result = 0;
      evaluate_lanes(kernel, inputs, std::span(&result, 1));
      if (std::isinf(output_error[k])) {
        ++uncertain;
        continue;
      }
      const double found = std::bit_cast<float>(result);
      ASSERT_LE(std::fabs(found - output[k]), output_error[k])
          << text << " at " << values[0][k] << ", " << values[1][k];
      if (output_error[k] <= 1e-4 * (1 + std::fabs(output[k]))) ++tight;
    }
    EXPECT_LT(uncertain, kCount / 5) << text;
    EXPECT_GT(tight, kCount / 4) << text;
  }
}

}  // namespace
}  // namespace meganeura::scalar
