// Values and gradients whose exact form matters, against the f64 reference.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "meganeura/autodiff.h"
#include "meganeura/ops.h"
#include "ops/evaluate/evaluate.h"
#include "ops/philox.h"

namespace meganeura {
namespace {

using Values = std::vector<double>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// A graph whose parameters are given by value.
struct Fixture {
  Graph g;
  LeafValues leaves;

  Tensor parameter(const char* name, Shape shape, Values values) {
    leaves[name] = {shape, f32, std::move(values)};
    return g.parameter(name, f32, std::move(shape));
  }
  Tensor input(const char* name, DType dtype, Shape shape, Values values) {
    leaves[name] = {shape, dtype, std::move(values)};
    return g.input(name, dtype, std::move(shape));
  }
  Values value(Tensor tensor) const {
    return evaluate(std::span(&tensor, 1), leaves, scalar::Mode::kIdeal)[0].values;
  }
  Values gradient(Tensor loss, Tensor of) const { return value(grad(loss, std::span(&of, 1))[0]); }
};

void expect_near(const Values& actual, const Values& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12) << i;
}

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  std::array<scalar::Scalar, 4> c;
  std::array<scalar::Scalar, 2> k;
  for (uint32_t i = 0; i < 4; ++i) c[i] = scalar::argument(i, scalar::Type::kU32);
  for (uint32_t i = 0; i < 2; ++i) k[i] = scalar::argument(4 + i, scalar::Type::kU32);
  const std::vector<scalar::Type> types(6, scalar::Type::kU32);
  const scalar::Body body = scalar::linearize(ops::philox4x32(c, k), types);
  const std::array<uint32_t, 6> arguments = {counter[0], counter[1], counter[2],
                                             counter[3], key[0],     key[1]};
  std::array<uint32_t, 4> words{};
  scalar::evaluate_lanes(body, arguments, words);
  return words;
}

TEST(Random, PhiloxMatchesThePublishedVectors) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, BitsAreThoseOfTheCounter) {
  Fixture f;
  const Tensor seed = f.input("seed", u32, {}, {4294967295.0});
  const Tensor step = f.input("step", u32, {}, {3});
  const Values bits = f.value(random_bits(seed, step, {2, 3}, 9));
  for (uint32_t element = 0; element < 6; ++element) {
    EXPECT_EQ(bits[element], philox({element, 3, 0, 0}, {~0u, 9})[0]);
  }
  const Values uniform = f.value(random_uniform(seed, step, {2, 3}, 9));
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(uniform[i], std::floor(bits[i] / 256.0) * 0x1p-24);
  }
}

TEST(Random, NormalNumbersHaveTheirMoments) {
  Fixture f;
  const Tensor seed = f.input("seed", u32, {}, {1});
  const Tensor step = f.input("step", u32, {}, {2});
  const Values draws = f.value(random_normal(seed, step, {4000}, 0));
  double sum = 0.0;
  double squares = 0.0;
  for (double x : draws) {
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 4000, 0.0, 0.06);
  EXPECT_NEAR(squares / 4000, 1.0, 0.1);
}

TEST(Random, DropoutKeepsTheMean) {
  Fixture f;
  const Tensor seed = f.input("seed", u32, {}, {1});
  const Tensor step = f.input("step", u32, {}, {2});
  const Tensor x = f.parameter("x", {4000}, Values(4000, 1.0));
  const Values kept = f.value(dropout(x, 0.25, seed, step, 3));
  int zeros = 0;
  for (double value : kept) {
    if (value == 0.0)
      ++zeros;
    else
      EXPECT_NEAR(value, 1.0 / 0.75, 1e-7);
  }
  EXPECT_NEAR(zeros, 1000, 100);
  EXPECT_EQ(f.value(dropout(x, 1.0, seed, step, 3)), Values(4000, 0.0));
}

TEST(Gradients, ExtremesGoToTheFirst) {
  Fixture f;
  const Tensor x = f.parameter("x", {2, 3}, {1, 5, 5, -2, -2, 7});
  EXPECT_EQ(f.gradient(sum(max(x, {1})), x), (Values{0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(f.gradient(sum(min(x, {1})), x), (Values{1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(f.gradient(max(x), x), (Values{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(f.gradient(min(x), x), (Values{0, 0, 0, 1, 0, 0}));
  const Tensor y = f.parameter("y", {3}, {1, kNan, kNan});
  EXPECT_EQ(f.gradient(max(y), y), (Values{0, 1, 0}));
  EXPECT_TRUE(std::isnan(f.value(max(y))[0]));
}

TEST(Gradients, TiesOfMinimumAndMaximumGoToTheFirstOperand) {
  Fixture f;
  const Tensor a = f.parameter("a", {3}, {1, 2, 3});
  const Tensor b = f.parameter("b", {3}, {2, 2, 2});
  EXPECT_EQ(f.gradient(sum(maximum(a, b)), a), (Values{0, 1, 1}));
  EXPECT_EQ(f.gradient(sum(maximum(a, b)), b), (Values{1, 0, 0}));
  EXPECT_EQ(f.gradient(sum(minimum(a, b)), a), (Values{1, 1, 0}));
  EXPECT_EQ(f.gradient(sum(minimum(a, b)), b), (Values{0, 0, 1}));
}

TEST(Gradients, KinksHaveTheirStatedSides) {
  Fixture f;
  const Tensor x = f.parameter("x", {3}, {-1, 0, 2});
  EXPECT_EQ(f.gradient(sum(relu(x)), x), (Values{0, 0, 1}));
  EXPECT_EQ(f.gradient(sum(abs(x)), x), (Values{-1, 0, 1}));
  expect_near(f.gradient(sum(leaky_relu(x, 0.5)), x), {0.5, 0.5, 1});
  EXPECT_DOUBLE_EQ(f.gradient(sum(sigmoid(x)), x)[1], 0.25);
  EXPECT_DOUBLE_EQ(f.gradient(sum(softplus(x)), x)[1], 0.5);
  const Tensor nan = f.parameter("nan", {1}, {kNan});
  EXPECT_TRUE(std::isnan(f.value(relu(nan))[0]));
  EXPECT_TRUE(std::isnan(f.value(maximum(nan, nan * 0.0))[0]));
}

TEST(Gradients, BranchesNotTakenGiveZero) {
  Fixture f;
  const Tensor x = f.parameter("x", {2}, {-1, 4});
  const Tensor safe = select(greater(x, f.g.scalar(0.0)), sqrt(x), x);
  EXPECT_TRUE(std::isnan(f.value(sqrt(x))[0]));
  const Tensor y = f.parameter("y", {2}, {kInf, 1});
  const Tensor picked = select(less(y, f.g.scalar(2.0)), y, f.g.scalar(0.0));
  EXPECT_EQ(f.gradient(sum(picked), y), (Values{0, 1}));
  EXPECT_DOUBLE_EQ(f.gradient(sum(safe), x)[1], 0.25);
}

TEST(Gradients, PowersAreSafeAtZero) {
  Fixture f;
  const Tensor a = f.parameter("a", {4}, {0, 0, 2, -3});
  const Tensor b = f.parameter("b", {4}, {0, 2, 3, 2});
  expect_near(f.gradient(sum(pow(a, b)), a), {0, 0, 12, -6});
  const Values by_b = f.gradient(sum(pow(a, b)), b);
  EXPECT_EQ(by_b[0], 0.0);
  EXPECT_EQ(by_b[1], 0.0);
  EXPECT_NEAR(by_b[2], 8.0 * std::log(2.0), 1e-12);
}

TEST(Gradients, StridedSlicesSpread) {
  Fixture f;
  const Tensor x = f.parameter("x", {7}, Values(7, 1.0));
  const Tensor w = f.input("w", f32, {2}, {10, 20});
  EXPECT_EQ(f.gradient(sum(slice(x, {1}, {5}, {3}) * w), x), (Values{0, 10, 0, 0, 20, 0, 0}));
  EXPECT_EQ(f.gradient(sum(slice(x, {5}, {7}) * w), x), (Values{0, 0, 0, 0, 0, 10, 20}));
}

TEST(Gradients, ContractionsKeepTheAxesOfTheirOperands) {
  Fixture f;
  const Tensor a = f.parameter("a", {2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Tensor b = f.parameter("b", {3, 2, 2}, {1, -1, 2, 0, 3, 1, 1, 1, 0, 2, 5, -2});
  // out[j, i, n] = Σ_k a[i, j, k]·b[j, k, n], differentiated against its definition.
  const Tensor out = contract(a, b, {1}, {0}, {2}, {1});
  ASSERT_EQ(out.shape(), (Shape{3, 2, 2}));
  Values weight(12);
  for (size_t i = 0; i < 12; ++i) weight[i] = 1.0 + static_cast<double>(i * i % 7);
  const Tensor loss = sum(out * f.input("w", f32, {3, 2, 2}, weight));
  Values da(12, 0.0), db(12, 0.0);
  const Values av = f.leaves["a"].values, bv = f.leaves["b"].values;
  for (size_t j = 0; j < 3; ++j) {
    for (size_t i = 0; i < 2; ++i) {
      for (size_t n = 0; n < 2; ++n) {
        for (size_t k = 0; k < 2; ++k) {
          const double w = weight[(j * 2 + i) * 2 + n];
          da[(i * 3 + j) * 2 + k] += w * bv[(j * 2 + k) * 2 + n];
          db[(j * 2 + k) * 2 + n] += w * av[(i * 3 + j) * 2 + k];
        }
      }
    }
  }
  EXPECT_EQ(f.gradient(loss, a), da);
  EXPECT_EQ(f.gradient(loss, b), db);
}

TEST(Gradients, GatherAddsUpAndScatterDropsOutside) {
  Fixture f;
  const Tensor x = f.parameter("x", {2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor index = f.input("index", i32, {4}, {2, 0, 2, 9});
  EXPECT_EQ(f.value(gather(x, index, 1)), (Values{3, 1, 3, 3, 6, 4, 6, 6}));
  EXPECT_EQ(f.gradient(sum(gather(x, index, 1)), x), (Values{1, 0, 3, 1, 0, 3}));
  const Tensor u = f.parameter("u", {4}, {1, 2, 3, 4});
  const Tensor base = f.parameter("base", {3}, {0, 0, 10});
  const Tensor scattered = scatter_add(base, index, u);
  EXPECT_EQ(f.value(scattered), (Values{2, 0, 14}));
  EXPECT_EQ(f.gradient(sum(scattered), u), (Values{1, 1, 1, 0}));
}

TEST(Casts, SaturateAndTruncate) {
  Fixture f;
  const Tensor x = f.parameter("x", {5}, {300.7, -1.9, -1e20, kNan, 3.99});
  EXPECT_EQ(f.value(cast(x, u8)), (Values{255, 0, 0, 0, 3}));
  EXPECT_EQ(f.value(cast(x, i8)), (Values{127, -1, -128, 0, 3}));
  EXPECT_EQ(f.value(cast(x, i32)), (Values{300, -1, -2147483648.0, 0, 3}));
  EXPECT_EQ(f.value(cast(cast(x, i32), u8)), (Values{44, 255, 0, 0, 3}));
  EXPECT_EQ(f.value(cast(f.parameter("y", {3}, {0, -0.0, 0.5}), boolean)), (Values{0, 0, 1}));
}

TEST(CrossEntropy, MatchesItsDefinition) {
  Fixture f;
  const Tensor x = f.parameter("x", {3, 3}, {1, 2, 3, 0, 0, 0, 1000, -1000, 0});
  const Tensor t = f.input("t", u32, {3}, {2, 1, 0});
  const double first = std::log(1 + std::exp(-1.0) + std::exp(-2.0));
  const auto loss = [&](Reduction reduction) {
    return f.value(cross_entropy(x, t, {.reduction = reduction}));
  };
  expect_near(loss(Reduction::kNone), {first, std::log(3.0), 0.0});
  expect_near(loss(Reduction::kSum), {first + std::log(3.0)});
  expect_near(loss(Reduction::kMean), {(first + std::log(3.0)) / 3});
  const Values g = f.gradient(cross_entropy(x, t, {.reduction = Reduction::kSum}), x);
  expect_near({g[3], g[4], g[5], g[6], g[7], g[8]}, {1 / 3., -2 / 3., 1 / 3., 0, 0, 0});
}

TEST(CrossEntropy, IgnoredRowsContributeNothing) {
  Fixture f;
  const Tensor x = f.parameter("x", {3, 2}, {0, 0, kNan, -kInf, 1, 1});
  const Tensor t = f.input("t", i32, {3}, {1, -100, 0});
  const Tensor loss = cross_entropy(x, t, {.ignore_index = -100});
  expect_near(f.value(loss), {std::log(2.0)});
  expect_near(f.gradient(loss, x), {0.25, -0.25, 0, 0, -0.25, 0.25});
}

TEST(CrossEntropy, WeightsAndSmoothingAsPyTorch) {
  Fixture f;
  const Tensor x = f.parameter("x", {2, 2}, {0, 0, 0, std::log(3.0)});
  const Tensor t = f.input("t", u32, {2}, {0, 1});
  const Tensor w = f.input("w", f32, {2}, {1, 3});
  const double a = std::log(2.0), low = std::log(4.0), high = std::log(4.0 / 3.0);
  expect_near(f.value(cross_entropy(x, t, {.weights = w})), {(a + 3 * high) / 4});
  expect_near(f.value(cross_entropy(x, t, {.label_smoothing = 0.5})),
              {(a + 0.5 * high + 0.25 * (low + high)) / 2});
  expect_near(f.value(cross_entropy(x, t, {.weights = w, .label_smoothing = 0.5})),
              {(0.5 * a + 0.25 * 4 * a + 0.5 * 3 * high + 0.25 * (low + 3 * high)) / 4});
  const Tensor soft = f.input("soft", f32, {2, 2}, {1, 0, 0.25, 0.75});
  expect_near(f.value(cross_entropy(x, soft)), {(a + 0.25 * low + 0.75 * high) / 2});
}

TEST(CrossEntropy, UncheckedLabelsOutsideGiveNan) {
  Fixture f;
  const Tensor x = f.parameter("x", {3, 2}, Values(6, 0.0));
  const Tensor t = f.input("t", i32, {3}, {-1, 0, 1});
  const Values losses = f.value(cross_entropy(x, t, {.reduction = Reduction::kNone}));
  EXPECT_TRUE(std::isnan(losses[0]));
  EXPECT_DOUBLE_EQ(losses[1], std::log(2.0));
  const Tensor computed = f.input("c", u32, {3}, {0, 1, 1}) + f.g.scalar(1, u32);
  EXPECT_TRUE(std::isnan(f.value(cross_entropy(x, computed, {.reduction = Reduction::kNone}))[1]));
}

TEST(Losses, ElementwiseOnesMatchTheirFormulas) {
  Fixture f;
  const Tensor x = f.parameter("x", {3}, {0, 100, -100});
  const Tensor t = f.input("t", f32, {3}, {0.25, 1, 0});
  const Tensor bce = bce_with_logits(x, t, Reduction::kNone);
  expect_near(f.value(bce), {std::log(2.0), 0, 0});
  expect_near(f.gradient(sum(bce), x), {0.25, 0, 0});
  expect_near(f.value(mse_loss(x, t)), {(0.0625 + 99 * 99 + 100 * 100) / 3});
  expect_near(f.value(l1_loss(x, t, Reduction::kSum)), {0.25 + 99 + 100});
}

TEST(Normalisation, StaysStable) {
  Fixture f;
  const Tensor x = f.parameter("x", {2, 2}, {1000, 1001, 3, 3});
  const Values p = f.value(softmax(slice(x, {0, 0}, {1, 2})));
  expect_near(p, {1 / (1 + std::exp(1.0)), 1 / (1 + std::exp(-1.0))});
  const Tensor w = f.parameter("w", {2}, {2, 2});
  const Tensor b = f.parameter("b", {2}, {1, 1});
  const double scale = 0.5 / std::sqrt(0.25 + double{1e-5f});
  expect_near(f.value(layer_norm(slice(x, {0, 0}, {1, 2}), w, b)), {1 - 2 * scale, 1 + 2 * scale});
  const Tensor y = f.parameter("y", {1, 2}, {3, 4});
  const double rms = std::sqrt(12.5 + double{1e-5f});
  expect_near(f.value(rms_norm(y, w)), {6 / rms, 8 / rms});
  expect_near(f.value(variance(y)), {0.25});
}

}  // namespace
}  // namespace meganeura
