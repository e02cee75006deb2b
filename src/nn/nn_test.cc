#include "meganeura/nn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/initialize.h"
#include "meganeura/autodiff.h"
#include "meganeura/error.h"
#include "meganeura/gradcheck.h"
#include "meganeura/ops.h"
#include "ops/evaluate/evaluate.h"

namespace meganeura {
namespace {

using Numbers = std::vector<double>;

Numbers value_of(Tensor root, const LeafValues& leaves = {}) {
  return evaluate(std::span(&root, 1), leaves, scalar::Mode::kIdeal)[0].values;
}

void expect_near(const Numbers& actual, const Numbers& expected, double tolerance = 1e-12) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance);
}

TEST(Linear, MultipliesByTheTransposedWeight) {
  Graph g;
  const nn::Linear layer(g, "hidden", 2, 3);
  const Tensor y = layer(g.input("x", f32, {2, 1, 2}));
  EXPECT_EQ(y.shape(), (Shape{2, 1, 3}));
  const LeafValues leaves = {{"x", {{2, 1, 2}, f32, {1, 2, 3, 4}}},
                             {"hidden.weight", {{3, 2}, f32, {1, 0, 0, 1, 10, 100}}},
                             {"hidden.bias", {{3}, f32, {0.5, 0, -1}}}};
  expect_near(value_of(y, leaves), {1.5, 2, 209, 3.5, 4, 429});
}

TEST(Linear, DrawsWeightAndBiasWithinOneOverTheRootOfItsWidth) {
  Graph g;
  const nn::Linear layer(g, "hidden", 16, 200);
  for (Tensor parameter : {layer.weight, layer.bias}) {
    const Numbers values = value_of(parameter);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    EXPECT_GE(*low, -0.25);
    EXPECT_LE(*high, 0.25);
    EXPECT_LT(*low, -0.22);
    EXPECT_GT(*high, 0.22);
  }
}

TEST(Linear, CanGoWithoutABias) {
  Graph g;
  const nn::Linear layer(g, "head", 2, 2, false);
  EXPECT_FALSE(layer.bias);
  EXPECT_FALSE(g.find("head.bias"));
  const Tensor y = layer(g.input("x", f32, {1, 2}));
  const LeafValues leaves = {{"x", {{1, 2}, f32, {1, 2}}},
                             {"head.weight", {{2, 2}, f32, {3, 4, 5, 6}}}};
  expect_near(value_of(y, leaves), {11, 17});
}

TEST(Linear, SharesItsParametersBetweenUses) {
  Graph g;
  const nn::Linear layer(g, "l", 3, 3);
  const Tensor once = layer(g.input("x", f32, {2, 3}));
  const Tensor loss = mean(layer(once) * once);
  EXPECT_EQ(trainable_parameters(loss).size(), 2u);
  const Tensor wanted[] = {layer.weight, layer.bias};
  const GradcheckReport report = gradcheck(loss, wanted, {{"x", {1, 2, -1, 0.5, 0.25, -2}}});
  EXPECT_TRUE(report.passed()) << report.first;
}

TEST(Linear, TakesAWidthOfZero) {
  Graph g;
  const nn::Linear layer(g, "l", 0, 2);
  const Tensor y = layer(g.input("x", f32, {3, 0}));
  const LeafValues leaves = {{"x", {{3, 0}, f32, {}}}, {"l.bias", {{2}, f32, {1, 2}}}};
  expect_near(value_of(y, leaves), {1, 2, 1, 2, 1, 2});
}

TEST(Linear, NamesTheWrongShape) {
  Graph g;
  const nn::Linear layer(g, "l", 3, 2);
  try {
    layer(g.input("x", f32, {5, 4}));
    FAIL() << "the widths differ";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kShape);
    EXPECT_NE(std::string(error.what()).find("nn_test.cc"), std::string::npos) << error.what();
  }
  EXPECT_THROW(nn::Linear(g, "l", 3, 2), Error);  // the name is taken
}

TEST(Embedding, TakesRows) {
  Graph g;
  const nn::Embedding layer(g, "tokens", 4, 2);
  const Tensor y = layer(g.input("ids", u32, {2, 2}));
  const LeafValues leaves = {{"ids", {{2, 2}, u32, {3, 0, 0, 2}}},
                             {"tokens.weight", {{4, 2}, f32, {0, 1, 10, 11, 20, 21, 30, 31}}}};
  expect_near(value_of(y, leaves), {30, 31, 0, 1, 0, 1, 20, 21});
}

TEST(LayerNorm, CentresAndScalesTheLastAxes) {
  Graph g;
  const nn::LayerNorm layer(g, "norm", {4}, 0.0);
  const Tensor y = layer(g.input("x", f32, {2, 4}));
  const LeafValues leaves = {{"x", {{2, 4}, f32, {1, 2, 3, 4, 0, 0, 6, 6}}}};
  const double near = 1 / std::sqrt(5.0), far = 3 / std::sqrt(5.0);
  expect_near(value_of(y, leaves), {-far, -near, near, far, -1, -1, 1, 1});
  const nn::LayerNorm plane(g, "plane", {2, 2});
  const Tensor loss = mean(plane(g.input("z", f32, {3, 2, 2})) * g.input("c", f32, {3, 2, 2}));
  const Tensor wanted[] = {plane.weight, plane.bias};
  const GradcheckReport report = gradcheck(loss, wanted,
                                           {{"z", {1, 2, 0, 4, -5, 2, 0, 1, 3, 1, 4, 1}},
                                            {"c", {1, 0.5, 2, 1, -1, 3, 1, 0, 2, 2, 1, 1}}});
  EXPECT_TRUE(report.passed()) << report.first;
}

TEST(RMSNorm, ScalesWithoutCentring) {
  Graph g;
  const nn::RMSNorm layer(g, "norm", {2}, 0.0);
  const Tensor y = layer(g.input("x", f32, {2, 2}));
  const LeafValues leaves = {{"x", {{2, 2}, f32, {3, 4, -2, 2}}},
                             {"norm.weight", {{2}, f32, {1, 10}}}};
  const double rms = std::sqrt(12.5);
  expect_near(value_of(y, leaves), {3 / rms, 40 / rms, -1, 10});
}

TEST(Dropout, KeepsEverythingInEvaluation) {
  Graph g;
  const Tensor x = g.input("x", f32, {4});
  const nn::Dropout layer(0.5, 1);
  EXPECT_EQ(layer(x, {}), x);
}

TEST(Dropout, ZeroesAboutItsShareAndScalesTheRest) {
  Graph g;
  const Tensor x = g.input("x", f32, {10000});
  const nn::Randomness randomness = {g.input("seed", u32, {}), g.input("step", u32, {})};
  const Tensor y = nn::Dropout(0.25, 1)(x, randomness);
  const Tensor other_stream = nn::Dropout(0.25, 2)(x, randomness);
  LeafValues leaves = {{"x", {{10000}, f32, Numbers(10000, 3.0)}},
                       {"seed", {{}, u32, {7}}},
                       {"step", {{}, u32, {0}}}};
  const Numbers first = value_of(y, leaves);
  const auto zeros = std::count(first.begin(), first.end(), 0.0);
  EXPECT_NEAR(static_cast<double>(zeros), 2500, 5 * std::sqrt(10000 * 0.25 * 0.75));
  for (double v : first) EXPECT_TRUE(v == 0.0 || std::abs(v - 4.0) < 1e-5) << v;
  EXPECT_NE(value_of(other_stream, leaves), first);
  leaves["step"].values = {1};
  EXPECT_NE(value_of(y, leaves), first);
  leaves["step"].values = {0};
  EXPECT_EQ(value_of(y, leaves), first);
}

TEST(Dropout, RefusesBadInput) {
  EXPECT_THROW(nn::Dropout(1.0, 0), Error);
  EXPECT_THROW(nn::Dropout(-0.1, 0), Error);
  EXPECT_THROW(nn::Dropout(std::nan(""), 0), Error);
  Graph g;
  const Tensor x = g.input("x", f32, {4});
  EXPECT_THROW(nn::Dropout(0.5, 0)(x, {g.input("seed", u32, {}), Tensor()}), Error);
}

}  // namespace
}  // namespace meganeura
