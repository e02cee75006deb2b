#include "ops/evaluate/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/initialize.h"
#include "graph/values.h"
#include "meganeura/error.h"
#include "meganeura/ops.h"

namespace meganeura {
namespace {

using Numbers = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Numbers value_of(Tensor root, const LeafValues& leaves, scalar::Mode mode) {
  return evaluate(std::span(&root, 1), leaves, mode)[0].values;
}

BoundedTensor bounds_of(Tensor root, const LeafValues& leaves) {
  return evaluate_bounds(std::span(&root, 1), leaves)[0];
}

std::string message_of(Tensor root, const LeafValues& leaves, ErrorKind kind) {
  try {
    value_of(root, leaves, scalar::Mode::kIdeal);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Evaluate, IdealModeRoundsNothing) {
  Graph g;
  const Tensor x = g.input("x", f32, {1});
  const Tensor y = cast(cast(x, f16), f32) / 3.0;
  EXPECT_EQ(value_of(y, {{"x", {{1}, f32, {0.1}}}}, scalar::Mode::kIdeal), (Numbers{0.1 / 3.0}));
}

TEST(Evaluate, TypedModeRoundsEveryStoredValue) {
  Graph g;
  const Tensor x = g.input("x", f32, {1});
  const LeafValues leaves = {{"x", {{1}, f32, {0.1}}}};
  const double x32 = as_stored(f32, 0.1);
  EXPECT_EQ(value_of(x / 3.0, leaves, scalar::Mode::kTyped), (Numbers{as_stored(f32, x32 / 3.0)}));
  const double x16 = as_stored(f16, x32);
  EXPECT_EQ(value_of(cast(x, f16), leaves, scalar::Mode::kTyped), (Numbers{x16}));
  EXPECT_EQ(value_of(cast(x, bf16), leaves, scalar::Mode::kTyped), (Numbers{as_stored(bf16, x32)}));
}

TEST(Evaluate, NarrowIntegersWrapInTheirOwnWidthInBothModes) {
  Graph g;
  const Tensor a = g.input("a", i8, {3});
  const Tensor b = g.input("b", u8, {3});
  const LeafValues leaves = {{"a", {{3}, i8, {127, -128, 5}}}, {"b", {{3}, u8, {255, 0, 200}}}};
  for (scalar::Mode mode : {scalar::Mode::kIdeal, scalar::Mode::kTyped}) {
    EXPECT_EQ(value_of(a + a, leaves, mode), (Numbers{-2, 0, 10}));
    EXPECT_EQ(value_of(b + b, leaves, mode), (Numbers{254, 0, 144}));
    EXPECT_EQ(value_of(sum(b), leaves, mode), (Numbers{455 - 256}));
  }
}

TEST(Evaluate, WholeSumsWrapIn32Bits) {
  Graph g;
  const Tensor a = g.input("a", i32, {3});
  EXPECT_EQ(
      value_of(sum(a), {{"a", {{3}, i32, {2147483647, 2147483647, 3}}}}, scalar::Mode::kIdeal),
      (Numbers{1}));
}

TEST(Evaluate, UnsetParametersAndStatesTakeTheirInitializer) {
  Graph g;
  const Initializer normal = Initializer::normal(0, 1);
  const Tensor w = g.parameter("w", f32, {2, 3}, normal);
  const Tensor s = g.state("s", f32, {2, 3}, Initializer::constant(2));
  Numbers expected = initial_value("w", {2, 3}, f32, normal, 0);
  for (double& v : expected) v += 2;
  EXPECT_EQ(value_of(w + s, {}, scalar::Mode::kIdeal), expected);
  EXPECT_EQ(value_of(w + s, {{"w", {{2, 3}, f32, Numbers(6, 1.0)}}}, scalar::Mode::kIdeal),
            Numbers(6, 3.0));
}

TEST(Evaluate, AnAssignIsItsNewValueAndOtherReadsSeeTheOldOne) {
  Graph g;
  const Tensor s = g.state("s", f32, {2});
  const Tensor roots[] = {assign(s, s + 1.0), s * 10.0};
  const auto results = evaluate(roots, {{"s", {{2}, f32, {1, 2}}}}, scalar::Mode::kIdeal);
  EXPECT_EQ(results[0].values, (Numbers{2, 3}));
  EXPECT_EQ(results[1].values, (Numbers{10, 20}));
}

TEST(Evaluate, ARepeatedRootIsGivenTwice) {
  Graph g;
  const Tensor x = g.input("x", f32, {1});
  const Tensor y = x * 2.0;
  const Tensor roots[] = {y, x, y};
  const auto results = evaluate(roots, {{"x", {{1}, f32, {3}}}}, scalar::Mode::kIdeal);
  EXPECT_EQ(results[0].values, (Numbers{6}));
  EXPECT_EQ(results[1].values, (Numbers{3}));
  EXPECT_EQ(results[2].values, (Numbers{6}));
  EXPECT_TRUE(evaluate({}, {}, scalar::Mode::kIdeal).empty());
}

TEST(Evaluate, SaysWhichLeafIsWrong) {
  Graph g;
  const Tensor x = g.input("x", f32, {2});
  EXPECT_NE(message_of(x + 1.0, {}, ErrorKind::kInvalidArgument).find("\"x\""), std::string::npos);
  EXPECT_NE(message_of(x, {{"x", {{3}, f32, {1, 2, 3}}}}, ErrorKind::kShape).find("f32[3]"),
            std::string::npos);
  EXPECT_NE(message_of(x, {{"x", {{2}, i32, {1, 2}}}}, ErrorKind::kShape).find("i32"),
            std::string::npos);
  EXPECT_NE(message_of(x, {{"x", {{2}, f32, {1}}}}, ErrorKind::kShape).find("1 elements"),
            std::string::npos);
  const LeafValues misspelt = {{"x", {{2}, f32, {1, 2}}}, {"y", {{2}, f32, {1, 2}}}};
  EXPECT_NE(message_of(x, misspelt, ErrorKind::kInvalidArgument).find("\"y\""), std::string::npos);
}

TEST(Evaluate, RefusesIntegersBeyondAnInputsLimit) {
  Graph g;
  const Tensor label = g.input("label", u32, {2}, 10);
  EXPECT_EQ(value_of(label, {{"label", {{2}, u32, {0, 9}}}}, scalar::Mode::kIdeal),
            (Numbers{0, 9}));
  const std::string message =
      message_of(label, {{"label", {{2}, u32, {3, 10}}}}, ErrorKind::kInvalidArgument);
  EXPECT_NE(message.find("10"), std::string::npos);
}

TEST(Evaluate, DtypesWithoutArithmeticAreRefusedInArithmeticAlone) {
  Graph g;
  const Tensor x = g.input("x", i64, {2, 1});
  const LeafValues leaves = {{"x", {{2, 1}, i64, {1, 2}}}};
  EXPECT_EQ(value_of(reshape(x, {2}), leaves, scalar::Mode::kIdeal), (Numbers{1, 2}));
}

TEST(Bounds, ASumInAnyOrderStaysInside) {
  Graph g;
  const Tensor x = g.input("x", f32, {1000});
  const Numbers values = initial_value("x", {1000}, f32, Initializer::normal(0, 100), 3);
  const BoundedTensor bounded = bounds_of(sum(x), {{"x", {{1000}, f32, values}}});
  float forwards = 0, backwards = 0;
  for (double v : values) forwards += static_cast<float>(v);
  for (size_t i = values.size(); i-- > 0;) backwards += static_cast<float>(values[i]);
  EXPECT_NE(forwards, backwards);
  double magnitude = 0;
  for (double v : values) magnitude += std::abs(v);
  for (float total : {forwards, backwards}) {
    const BoundsReport report = compare_within_bounds(bounded, Numbers{total});
    EXPECT_TRUE(report.acceptable()) << report.first;
  }
  EXPECT_NEAR(bounded.errors[0], 1002 * 0x1p-24 * magnitude, 1e-9 * magnitude);
}

TEST(Bounds, ContractionsPropagateTheErrorsOfBothOperands) {
  Graph g;
  const Tensor a = g.input("a", f32, {2, 3});
  const LeafValues leaves = {{"a", {{2, 3}, f32, {1, 2, 3, -4, 5, 6}}}};
  const Tensor exact = matmul(a, transpose(a));
  const BoundedTensor plain = bounds_of(exact, leaves);
  EXPECT_NEAR(plain.errors[0], 5 * 0x1p-24 * 14, 1e-12);
  const Tensor b = exp(a);
  const BoundedTensor inner = bounds_of(b, leaves);
  const BoundedTensor outer = bounds_of(matmul(b, transpose(b)), leaves);
  double propagated = 0;
  for (size_t k = 0; k < 3; ++k) {
    propagated += 2 * inner.reference.values[k] * inner.errors[k];
  }
  EXPECT_GT(outer.errors[0], propagated);
  EXPECT_LT(outer.errors[0], 3 * propagated + 6 * 0x1p-24 * outer.reference.values[0]);
}

TEST(Bounds, NarrowStorageAddsHalfAUnitInTheLastPlace) {
  Graph g;
  const Tensor x = g.input("x", f32, {1});
  const LeafValues leaves = {{"x", {{1}, f32, {1.0 / 3.0}}}};
  for (DType dtype : {f16, bf16}) {
    const BoundedTensor bounded = bounds_of(cast(cast(x, dtype), f32), leaves);
    const double stored = as_stored(dtype, as_stored(f32, 1.0 / 3.0));
    EXPECT_TRUE(compare_within_bounds(bounded, Numbers{stored}).acceptable());
    EXPECT_LT(bounded.errors[0], dtype == f16 ? 0x1p-11 : 0x1p-8);
  }
}

TEST(Bounds, LeavesAreExactAsStored) {
  Graph g;
  const Tensor x = g.input("x", f32, {1});
  const BoundedTensor bounded = bounds_of(x, {{"x", {{1}, f32, {0.1}}}});
  EXPECT_EQ(bounded.reference.values[0], as_stored(f32, 0.1));
  EXPECT_EQ(bounded.errors[0], 0.0);
}

TEST(Bounds, AnArgMaxThatCouldFlipIsExcluded) {
  Graph g;
  const Tensor x = g.input("x", f32, {2, 2});
  const LeafValues leaves = {{"x", {{2, 2}, f32, {1, 1, 1, 2}}}};
  const BoundedTensor exact = bounds_of(arg_max(x, {1}), leaves);
  EXPECT_EQ(exact.errors, (Numbers{0, 0}));
  const BoundedTensor rounded = bounds_of(arg_max(exp(x), {1}), leaves);
  EXPECT_EQ(rounded.errors, (Numbers{kInf, 0}));
}

TEST(Bounds, UncertainIndicesMakeUncertainValues) {
  Graph g;
  const Tensor x = g.input("x", f32, {2, 2});
  const Tensor table = g.input("table", f32, {4});
  const LeafValues leaves = {{"x", {{2, 2}, f32, {1, 1, 1, 2}}},
                             {"table", {{4}, f32, {1, 2, 3, 4}}}};
  const BoundedTensor taken = bounds_of(gather(table, arg_max(exp(x), {1})), leaves);
  EXPECT_EQ(taken.errors, (Numbers{kInf, 0}));
  EXPECT_EQ(compare_within_bounds(taken, Numbers{2, 2}).excluded, 1);
}

TEST(Bounds, ValuesThatMayOverflowAreExcludedAndCertainInfinitiesAreNot) {
  Graph g;
  const Tensor x = g.input("x", f32, {3});
  const LeafValues leaves = {{"x", {{3}, f32, {1e30, kInf, kNan}}}};
  EXPECT_EQ(bounds_of(x * x, leaves).errors[0], kInf);
  const BoundedTensor total = bounds_of(sum(reshape(x, {3, 1}), {1}), leaves);
  EXPECT_TRUE(compare_within_bounds(total, Numbers{as_stored(f32, 1e30), kInf, kNan}).acceptable());
  EXPECT_EQ(compare_within_bounds(total, Numbers{as_stored(f32, 1e30), -kInf, 1}).outside, 2);
}

TEST(Bounds, TheReportNamesTheFirstElementOutside) {
  const BoundedTensor expected = {{{3}, f32, {1, 2, 3}}, {0.5, 0.5, 0}};
  const BoundsReport report = compare_within_bounds(expected, Numbers{1.25, 4, 3.5});
  EXPECT_EQ(report.elements, 3);
  EXPECT_EQ(report.outside, 2);
  EXPECT_FALSE(report.acceptable());
  EXPECT_EQ(report.worst, kInf);
  EXPECT_NE(report.first.find("Element 1"), std::string::npos) << report.first;
  EXPECT_EQ(compare_within_bounds(expected, Numbers{1.25, 2, 3}).worst, 0.5);
  EXPECT_THROW(compare_within_bounds(expected, Numbers{1}), Error);
}

TEST(Bounds, MoreThanOneExcludedInAHundredIsNotAcceptable) {
  BoundedTensor expected = {{{100}, f32, Numbers(100, 1.0)}, Numbers(100, 0.0)};
  expected.errors[3] = kInf;
  EXPECT_TRUE(compare_within_bounds(expected, Numbers(100, 1.0)).acceptable());
  expected.errors[4] = kInf;
  EXPECT_FALSE(compare_within_bounds(expected, Numbers(100, 1.0)).acceptable());
}

}  // namespace
}  // namespace meganeura
