#include "meganeura/gradcheck.h"

#include <gtest/gtest.h>

#include "meganeura/error.h"
#include "meganeura/ops.h"

namespace meganeura {
namespace {

TEST(Gradcheck, AcceptsARightGradient) {
  Graph g;
  const Tensor x = g.input("x", f32, {2, 3});
  const Tensor w = g.parameter("w", f32, {3, 4}, Initializer::normal(0, 1));
  const Tensor loss = 3.0 * mean(tanh(matmul(x, w)));
  const Tensor wanted[] = {w, x};
  const GradcheckReport report = gradcheck(loss, wanted, {{"x", {1, -0.5, 2, 0.25, 0.75, -1}}});
  EXPECT_TRUE(report.passed()) << report.first;
  EXPECT_EQ(report.checked, 12 + 3 + 6 + 3);
  EXPECT_GT(report.largest, 0.01);
  EXPECT_LT(report.worst, 1.0);
}

// The value of x³ with the gradient of x.
Tensor wrong(Tensor x) { return x + stop_gradient(x * x * x - x); }

TEST(Gradcheck, FindsAWrongGradient) {
  Graph g;
  const Tensor x = g.input("x", f32, {3});
  const GradcheckReport report = gradcheck(sum(wrong(x)), std::span(&x, 1), {{"x", {0.5, 2, -1}}});
  EXPECT_FALSE(report.passed());
  EXPECT_GT(report.worst, 1000.0);
  EXPECT_NE(report.first.find("element 0 of \"x\""), std::string::npos) << report.first;
}

TEST(Gradcheck, FindsAFactorOfOneInAThousandInLargeTensors) {
  Graph g;
  const Tensor x = g.parameter("x", f32, {40, 5}, Initializer::normal(0, 1));
  const Tensor y = x * x;
  const Tensor loss = mean(y + 0.001 * (y - stop_gradient(y)));
  const GradcheckReport report = gradcheck(loss, std::span(&x, 1), {});
  EXPECT_EQ(report.checked, 3);
  EXPECT_EQ(report.failed, 3);
}

TEST(Gradcheck, ReportsZeroDerivativesAsSuch) {
  Graph g;
  const Tensor x = g.input("x", f32, {2});
  const GradcheckReport report = gradcheck(sum(floor(x)), std::span(&x, 1), {{"x", {0.5, 1.5}}});
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.largest, 0.0);
}

TEST(Gradcheck, ComparingNothingDoesNotPass) {
  Graph g;
  const Tensor x = g.input("x", f32, {0});
  EXPECT_FALSE(gradcheck(sum(x), std::span(&x, 1), {{"x", {}}}).passed());
}

TEST(Gradcheck, RefusesBadInput) {
  Graph g;
  const Tensor x = g.input("x", f32, {2});
  const Tensor y = x * 2.0;
  EXPECT_THROW(gradcheck(sum(y), std::span(&x, 1), {}), Error);
  EXPECT_THROW(gradcheck(sum(y), std::span(&x, 1), {{"z", {1, 2}}}), Error);
  EXPECT_THROW(gradcheck(sum(y), std::span(&x, 1), {{"x", {1, 2, 3}}}), Error);
  EXPECT_THROW(gradcheck(sum(y), std::span(&y, 1), {{"x", {1, 2}}}), Error);
}

}  // namespace
}  // namespace meganeura
