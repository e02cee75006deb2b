#include "meganeura/optim.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "graph/node.h"
#include "graph/values.h"
#include "meganeura/autodiff.h"
#include "meganeura/error.h"
#include "meganeura/ops.h"
#include "ops/evaluate/evaluate.h"

namespace meganeura {
namespace {

using Numbers = std::vector<double>;
using scalar::Mode;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A program of assigns, run again and again on the reference.
class Loop {
 public:
  explicit Loop(Mode mode = Mode::kIdeal) : mode_(mode) {}

  Graph& graph() { return graph_; }
  void set(const std::string& name, Numbers values) {
    const Tensor leaf = graph_.find(name);
    leaves_[name] = {leaf.shape(), leaf.dtype(), std::move(values)};
  }
  const Numbers& get(const std::string& name) const { return leaves_.at(name).values; }

  void run(std::span<const Tensor> assigns) {
    const std::vector<ReferenceTensor> next = evaluate(assigns, leaves_, mode_);
    for (size_t i = 0; i < next.size(); ++i) {
      leaves_[leaf_name(assigns[i].node().operands[0].node())] = next[i];
    }
  }

 private:
  Mode mode_;
  Graph graph_;
  LeafValues leaves_;
};

// One parameter "w" whose gradient is the input "g".
struct OneParameter : Loop {
  std::vector<Tensor> assigns;

  OneParameter(const Optimizer& optimizer, Numbers start, Mode mode = Mode::kIdeal,
               std::span<const ParameterGroup> groups = {})
      : Loop(mode) {
    const Shape shape = {static_cast<int64_t>(start.size())};
    const Tensor w = graph().parameter("w", f32, shape);
    const Tensor g = graph().input("g", f32, shape);
    const Tensor rate = graph().input("lr", f32, {});
    const Tensor step = graph().input("step", u32, {});
    assigns = apply(graph(), optimizer, std::span(&w, 1), std::span(&g, 1), rate, step, groups);
    set("w", std::move(start));
  }

  const Numbers& step(Numbers gradient, double rate, double index) {
    set("g", std::move(gradient));
    set("lr", {rate});
    set("step", {index});
    run(assigns);
    return get("w");
  }
};

void expect_near(const Numbers& actual, const Numbers& expected, double relative) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], relative * std::max(1e-3, std::abs(expected[i])));
  }
}

// ---- SGD -------------------------------------------------------------------------------------

TEST(Sgd, PlainSubtractsTheScaledGradient) {
  OneParameter sgd(SGD{}, {1, -2});
  expect_near(sgd.step({0.5, 4}, 0.1, 0), {0.95, -2.4}, 1e-15);
  expect_near(sgd.step({1, 1}, 0.5, 1), {0.45, -2.9}, 1e-15);
}

TEST(Sgd, WeightDecayIsPartOfTheGradient) {
  OneParameter sgd(SGD{.weight_decay = 0.25}, {4});
  expect_near(sgd.step({1}, 0.5, 0), {4 - 0.5 * (1 + 0.25 * 4)}, 1e-15);
}

TEST(Sgd, MomentumStartsWithTheGradient) {
  OneParameter sgd(SGD{.momentum = 0.5}, {10});
  expect_near(sgd.step({4}, 1, 0), {6}, 1e-15);
  expect_near(sgd.step({2}, 1, 1), {6 - (0.5 * 4 + 2)}, 1e-15);
  expect_near(sgd.get("w.momentum_buffer"), {4}, 1e-15);
}

TEST(Sgd, DampeningSparesTheFirstStep) {
  OneParameter sgd(SGD{.momentum = 0.5, .dampening = 0.25}, {10});
  expect_near(sgd.step({4}, 1, 0), {6}, 1e-15);
  expect_near(sgd.step({2}, 1, 1), {6 - (0.5 * 4 + 0.75 * 2)}, 1e-15);
}

TEST(Sgd, NesterovLooksAhead) {
  OneParameter sgd(SGD{.momentum = 0.5, .nesterov = true}, {10});
  expect_near(sgd.step({4}, 1, 0), {10 - (4 + 0.5 * 4)}, 1e-15);
  expect_near(sgd.step({2}, 1, 1), {4 - (2 + 0.5 * 4)}, 1e-15);
}

// ---- Adam ------------------------------------------------------------------------------------

// torch.optim.Adam and AdamW, in f64.
struct HostAdam {
  double beta1, beta2, epsilon, decay;
  bool decoupled;
  double m = 0, v = 0;
  int t = 0;

  double step(double w, double g, double rate) {
    ++t;
    if (decoupled) w *= 1 - rate * decay;
    if (!decoupled) g += decay * w;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double size = rate / (1 - std::pow(beta1, t));
    return w - size * m / (std::sqrt(v) / std::sqrt(1 - std::pow(beta2, t)) + epsilon);
  }
};

void expect_adam(const Optimizer& optimizer, HostAdam host, Mode mode, double relative) {
  OneParameter adam(optimizer, {0.75}, mode);
  double w = 0.75;
  for (int step = 0; step < 20; ++step) {
    const double gradient = as_stored(f32, std::sin(1.3 * step) + 0.2);
    const double rate = as_stored(f32, 1e-2 / (1 + step));
    w = host.step(w, gradient, rate);
    expect_near(adam.step({gradient}, rate, step), {w}, relative);
  }
  expect_near(adam.get("w.exp_avg"), {host.m}, relative);
  expect_near(adam.get("w.exp_avg_sq"), {host.v}, relative);
}

TEST(Adam, FollowsTheHostLoop) {
  const Adam adam = {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1};
  const HostAdam host = {0.8, 0.95, 1e-6, 0.1, false};
  expect_adam(adam, host, Mode::kIdeal, 1e-6);
  expect_adam(adam, host, Mode::kTyped, 1e-5);
}

TEST(AdamW, FollowsTheHostLoop) {
  const AdamW adam = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.3};
  const HostAdam host = {0.9, 0.999, 1e-8, 0.3, true};
  expect_adam(adam, host, Mode::kIdeal, 1e-6);
  expect_adam(adam, host, Mode::kTyped, 1e-5);
}

TEST(Adam, WithoutMomentumScalesBySignAlone) {
  OneParameter adam(Adam{.beta1 = 0.0, .beta2 = 0.0, .epsilon = 0.0}, {1, 1});
  expect_near(adam.step({3, -0.01}, 0.25, 0), {0.75, 1.25}, 1e-12);
}

// Hand-computed: |Δp| = lr·g / (g + eps) with g = eps.
TEST(Cases, Transformers35504_AdamAddsEpsilonAfterTheCorrection) {
  for (Mode mode : {Mode::kIdeal, Mode::kTyped}) {
    OneParameter adam(Adam{}, {1}, mode);
    EXPECT_NEAR(1.0 - adam.step({1e-8}, 1e-3, 0)[0], 5.000e-4, 1e-7);
    OneParameter decoupled(AdamW{.weight_decay = 0.0}, {1}, mode);
    EXPECT_NEAR(1.0 - decoupled.step({1e-8}, 1e-3, 0)[0], 5.000e-4, 1e-7);
  }
}

TEST(Cases, BiasCorrectionStaysExactForLargeSteps) {
  Graph graph;
  const Tensor step = graph.input("step", u32, {});
  for (double beta : {0.5, 0.9, 0.99, 0.999, 0.9999, 0.999999}) {
    const Tensor correction = bias_correction(step, beta);
    for (double t : {1.0, 2.0, 10.0, 1e3, 1e4, 1e5, 1e6, 16777216.0}) {
      const LeafValues leaves = {{"step", {{}, u32, {t - 1}}}};
      const double exact = -std::expm1(t * std::log(beta));
      const double typed = evaluate(std::span(&correction, 1), leaves, Mode::kTyped)[0].values[0];
      EXPECT_NEAR(typed / exact, 1.0, 5e-7) << "beta " << beta << ", t " << t;
      const BoundedTensor bounded = evaluate_bounds(std::span(&correction, 1), leaves)[0];
      EXPECT_LT(bounded.errors[0] / exact, 1e-6) << "beta " << beta << ", t " << t;
    }
  }
  const Tensor none = bias_correction(step, 0.0);
  EXPECT_EQ(evaluate(std::span(&none, 1), {{"step", {{}, u32, {5}}}}, Mode::kTyped)[0].values[0],
            1.0);
}

// ---- apply -----------------------------------------------------------------------------------

TEST(Apply, KeepsTheTypeOfNarrowParameters) {
  Loop loop(Mode::kTyped);
  Graph& graph = loop.graph();
  const Tensor w = graph.parameter("w", bf16, {2});
  const Tensor g = graph.input("g", bf16, {2});
  const Tensor rate = graph.scalar(0.5);
  const Tensor step = graph.scalar(0, u32);
  const auto assigns =
      apply(graph, SGD{.momentum = 0.9}, std::span(&w, 1), std::span(&g, 1), rate, step);
  loop.set("w", {1, 2});
  loop.set("g", {0.5, 0.01});
  loop.run(assigns);
  EXPECT_EQ(loop.get("w"), (Numbers{0.75, as_stored(bf16, 2 - 0.5 * as_stored(bf16, 0.01))}));
  EXPECT_EQ(graph.find("w.momentum_buffer").dtype(), f32);
}

TEST(Apply, ListsParametersFirstThenMomentsUnderTheirNames) {
  Graph graph;
  const Tensor parameters[] = {graph.parameter("hidden.weight", f32, {2, 3}),
                               graph.parameter("hidden.bias", f32, {2})};
  const Tensor gradients[] = {graph.input("a", f32, {2, 3}), graph.input("b", f32, {2})};
  const auto assigns = apply(graph, AdamW{}, parameters, gradients, graph.scalar(1e-3),
                             graph.input("step", u32, {}));
  std::vector<std::string> names;
  for (Tensor assign : assigns) names.push_back(leaf_name(assign.node().operands[0].node()));
  EXPECT_EQ(names, (std::vector<std::string>{"hidden.weight", "hidden.bias",
                                             "hidden.weight.exp_avg", "hidden.weight.exp_avg_sq",
                                             "hidden.bias.exp_avg", "hidden.bias.exp_avg_sq"}));
  EXPECT_EQ(graph.find("hidden.weight.exp_avg").shape(), (Shape{2, 3}));
  verify_graph(assigns);
}

TEST(Apply, ParameterGroupsChangeDecayAndRate) {
  const ParameterGroup groups[] = {
      no_decay_on_vectors(),
      {[](std::string_view name, const Shape&) { return name == "w"; }, 100.0, 0.0}};
  OneParameter vector(AdamW{.weight_decay = 0.5}, {2}, Mode::kIdeal, groups);
  EXPECT_EQ(vector.step({0}, 0.1, 0), (Numbers{2}));
  const ParameterGroup fast[] = {
      {[](std::string_view name, const Shape&) { return name == "w"; }, 10.0, std::nullopt}};
  OneParameter sgd(SGD{.weight_decay = 0.5}, {2}, Mode::kIdeal, fast);
  expect_near(sgd.step({1}, 0.1, 0), {2 - 1.0 * (1 + 0.5 * 2)}, 1e-15);
  EXPECT_FALSE(no_decay_on_vectors().matches("w", {2, 3}));
}

TEST(Apply, TrainsALineToItsLeastSquares) {
  Loop loop(Mode::kTyped);
  Graph& graph = loop.graph();
  const Tensor x = graph.input("x", f32, {8, 1});
  const Tensor w = graph.parameter("w", f32, {1, 1});
  const Tensor b = graph.parameter("b", f32, {1});
  const Tensor loss = mse_loss(linear(x, w, b), graph.input("y", f32, {8, 1}));
  const Tensor parameters[] = {w, b};
  const auto assigns = apply(graph, Adam{}, parameters, grad(loss, parameters),
                             graph.input("lr", f32, {}), graph.input("step", u32, {}));
  Numbers xs, ys;
  for (int i = 0; i < 8; ++i) {
    xs.push_back(0.25 * i - 1);
    ys.push_back(3 * xs.back() - 0.5);
  }
  loop.set("x", xs);
  loop.set("y", ys);
  loop.set("w", {0});
  loop.set("b", {0});
  const Schedule schedule = cosine_schedule(0.2, 10, 300);
  for (uint64_t step = 0; step < 300; ++step) {
    loop.set("lr", {schedule(step)});
    loop.set("step", {static_cast<double>(step)});
    loop.run(assigns);
  }
  EXPECT_NEAR(loop.get("w")[0], 3.0, 1e-3);
  EXPECT_NEAR(loop.get("b")[0], -0.5, 1e-3);
}

TEST(Apply, RefusesBadInput) {
  Graph graph;
  const Tensor w = graph.parameter("w", f32, {2});
  const Tensor frozen = graph.parameter("frozen", f32, {2}, {}, false);
  const Tensor g = graph.input("g", f32, {2});
  const Tensor wide = graph.input("wide", f32, {3});
  const Tensor rate = graph.scalar(0.1);
  const Tensor step = graph.scalar(0, u32);
  const auto run = [&](const Optimizer& optimizer, Tensor p, Tensor d, Tensor r, Tensor s) {
    apply(graph, optimizer, std::span(&p, 1), std::span(&d, 1), r, s);
  };
  EXPECT_THROW(run(SGD{}, w, wide, rate, step), Error);
  EXPECT_THROW(run(SGD{}, frozen, g, rate, step), Error);
  EXPECT_THROW(run(SGD{}, g, g, rate, step), Error);
  EXPECT_THROW(run(SGD{}, w, Tensor(), rate, step), Error);
  EXPECT_THROW(run(SGD{}, w, g, wide, step), Error);
  EXPECT_THROW(run(SGD{}, w, g, rate, rate), Error);
  EXPECT_THROW(run(SGD{.momentum = -1}, w, g, rate, step), Error);
  EXPECT_THROW(run(SGD{.nesterov = true}, w, g, rate, step), Error);
  EXPECT_THROW(run(SGD{.momentum = 0.9, .dampening = 0.1, .nesterov = true}, w, g, rate, step),
               Error);
  EXPECT_THROW(run(Adam{.beta1 = 1.0}, w, g, rate, step), Error);
  EXPECT_THROW(run(AdamW{.beta2 = -0.1}, w, g, rate, step), Error);
  EXPECT_THROW(run(AdamW{.epsilon = kNan}, w, g, rate, step), Error);
  const Tensor twice[] = {w, w};
  const Tensor gradients[] = {g, g};
  EXPECT_THROW(apply(graph, SGD{}, twice, gradients, rate, step), Error);
  EXPECT_THROW(apply(graph, SGD{}, twice, std::span(&g, 1), rate, step), Error);
  EXPECT_FALSE(graph.find("w.momentum_buffer"));
}

TEST(BaseLearningRate, IsThatOfTheChosenOptimizer) {
  EXPECT_EQ(base_learning_rate(SGD{.lr = 0.5}), 0.5);
  EXPECT_EQ(base_learning_rate(Adam{}), 1e-3);
  EXPECT_EQ(base_learning_rate(AdamW{.lr = 0.25}), 0.25);
}

// ---- Clipping and accumulation ---------------------------------------------------------------

std::vector<Numbers> clipped(Numbers a, Numbers b, double max_norm, double* norm) {
  Graph graph;
  const Tensor gradients[] = {graph.input("a", f32, {2}), graph.input("b", f32, {1, 1})};
  const ClippedGradients result = clip_global_norm(gradients, max_norm);
  const Tensor roots[] = {result.gradients[0], result.gradients[1], result.norm};
  const auto values =
      evaluate(roots, {{"a", {{2}, f32, a}}, {"b", {{1, 1}, f32, b}}}, Mode::kIdeal);
  *norm = values[2].values[0];
  return {values[0].values, values[1].values};
}

TEST(ClipGlobalNorm, ScalesAllTensorsByOneFactor) {
  double norm = 0;
  const auto scaled = clipped({2, 3}, {6}, 3.5, &norm);
  EXPECT_DOUBLE_EQ(norm, 7.0);
  const double factor = 3.5 / (7.0 + 1e-6);
  expect_near(scaled[0], {2 * factor, 3 * factor}, 1e-12);
  expect_near(scaled[1], {6 * factor}, 1e-12);
}

TEST(ClipGlobalNorm, LeavesSmallGradientsAlone) {
  double norm = 0;
  const auto same = clipped({2, 3}, {6}, 8, &norm);
  EXPECT_EQ(same[0], (Numbers{2, 3}));
  EXPECT_EQ(clipped({0, 0}, {0}, 1, &norm)[0], (Numbers{0, 0}));
  EXPECT_EQ(norm, 0.0);
}

TEST(ClipGlobalNorm, TreatsNormsThatAreNotFiniteAsPyTorchDoes) {
  double norm = 0;
  const auto infinite = clipped({kInf, 3}, {6}, 1, &norm);
  EXPECT_EQ(norm, kInf);
  EXPECT_TRUE(std::isnan(infinite[0][0]));
  EXPECT_EQ(infinite[0][1], 0.0);
  EXPECT_EQ(infinite[1][0], 0.0);
  const auto undefined = clipped({kNan, 3}, {6}, 1, &norm);
  EXPECT_TRUE(std::isnan(norm));
  EXPECT_TRUE(std::isnan(undefined[0][1]));
  EXPECT_TRUE(std::isnan(undefined[1][0]));
}

TEST(ClipGlobalNorm, RefusesBadInput) {
  Graph graph;
  const Tensor g = graph.input("g", f32, {2});
  EXPECT_THROW(clip_global_norm(std::span(&g, 1), 0.0), Error);
  EXPECT_THROW(clip_global_norm(std::span(&g, 1), kNan), Error);
  EXPECT_THROW(clip_global_norm({}, 1.0), Error);
}

TEST(Accumulation, AveragesOverItsRunsAndStartsAgain) {
  Loop loop;
  Graph& graph = loop.graph();
  const Tensor w = graph.parameter("w", f32, {2});
  const Tensor g = graph.input("g", f32, {2});
  const auto accumulation = accumulate_gradients(graph, std::span(&w, 1), std::span(&g, 1), 2);
  std::vector<Tensor> update = apply(graph, SGD{}, std::span(&w, 1), accumulation.gradients,
                                     graph.scalar(1.0), graph.scalar(0, u32));
  update.insert(update.end(), accumulation.reset.begin(), accumulation.reset.end());
  loop.set("w", {10, 20});
  for (double round : {1.0, 2.0}) {
    for (double half : {1.0, 3.0}) {
      loop.set("g", {round * half, -half});
      loop.run(accumulation.accumulate);
    }
    loop.run(update);
    EXPECT_EQ(loop.get("w.accumulator"), (Numbers{0, 0}));
  }
  EXPECT_EQ(loop.get("w"), (Numbers{10 - 2 - 4, 20 + 2 + 2}));
}

TEST(Accumulation, KeepsTheTypeOfNarrowGradients) {
  Graph graph;
  const Tensor w = graph.parameter("w", f16, {2});
  const Tensor g = graph.input("g", f16, {2});
  const auto accumulation = accumulate_gradients(graph, std::span(&w, 1), std::span(&g, 1), 3);
  EXPECT_EQ(graph.find("w.accumulator").dtype(), f32);
  EXPECT_EQ(accumulation.gradients[0].dtype(), f16);
  EXPECT_THROW(accumulate_gradients(graph, std::span(&w, 1), std::span(&g, 1), 0), Error);
}

// ---- Schedules -------------------------------------------------------------------------------

TEST(Schedules, ConstantAndSteps) {
  EXPECT_EQ(constant_schedule(0.5)(1000000), 0.5);
  const Schedule steps = step_schedule(1.0, 10, 0.5);
  EXPECT_EQ(steps(0), 1.0);
  EXPECT_EQ(steps(9), 1.0);
  EXPECT_EQ(steps(10), 0.5);
  EXPECT_EQ(steps(35), 0.125);
  EXPECT_THROW(step_schedule(1.0, 0, 0.5), Error);
}

TEST(Schedules, CosineWarmsUpAndComesDown) {
  const Schedule cosine = cosine_schedule(2.0, 4, 12, 0.5);
  EXPECT_EQ(cosine(0), 0.0);
  EXPECT_EQ(cosine(1), 0.5);
  EXPECT_EQ(cosine(4), 2.0);
  EXPECT_NEAR(cosine(6), 0.5 + 1.5 * 0.5 * (1 + std::numbers::sqrt2 / 2), 1e-15);
  EXPECT_NEAR(cosine(8), 1.25, 1e-15);
  EXPECT_EQ(cosine(12), 0.5);
  EXPECT_EQ(cosine(500), 0.5);
  EXPECT_EQ(cosine_schedule(1.0, 0, 0)(0), 0.0);
  EXPECT_THROW(cosine_schedule(1.0, 5, 4), Error);
}

}  // namespace
}  // namespace meganeura
