#include "meganeura/autodiff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/node.h"
#include "meganeura/error.h"
#include "meganeura/ops.h"
#include "ops/evaluate/evaluate.h"

namespace meganeura {
namespace {

using Numbers = std::vector<double>;

std::vector<Numbers> values_of(std::span<const Tensor> roots, const LeafValues& leaves) {
  std::vector<Numbers> values;
  for (const ReferenceTensor& result : evaluate(roots, leaves, scalar::Mode::kIdeal)) {
    values.push_back(result.values);
  }
  return values;
}

Numbers gradient_of(Tensor loss, Tensor parameter, const LeafValues& leaves) {
  return values_of(grad(loss, std::span(&parameter, 1)), leaves)[0];
}

template <class F>
std::string message_of(ErrorKind kind, F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

ReferenceTensor vector_of(Numbers values) {
  return {{static_cast<int64_t>(values.size())}, f32, std::move(values)};
}

TEST(Grad, OfAProductIsTheOtherFactor) {
  Graph g;
  const Tensor x = g.input("x", f32, {2});
  const Tensor w = g.parameter("w", f32, {2});
  const LeafValues leaves = {{"x", vector_of({3, 5})}, {"w", vector_of({7, 11})}};
  EXPECT_EQ(gradient_of(sum(x * w), w, leaves), (Numbers{3, 5}));
  EXPECT_EQ(gradient_of(sum(x * w), x, leaves), (Numbers{7, 11}));
}

TEST(Grad, SumsOverAllUsesOfATensor) {
  Graph g;
  const Tensor x = g.parameter("x", f32, {2});
  const Tensor y = x * x;
  const Tensor loss = sum(y * y + x * y + x);
  // 4x³ + 3x² + 1.
  EXPECT_EQ(gradient_of(loss, x, {{"x", vector_of({2, -1})}}), (Numbers{45, 0}));
}

TEST(Grad, OfTheLossItselfIsOne) {
  Graph g;
  const Tensor x = g.input("x", f32, {});
  EXPECT_EQ(gradient_of(x, x, {{"x", {{}, f32, {4}}}}), (Numbers{1}));
}

TEST(Grad, OfAnIntermediateStopsNothingBehindIt) {
  Graph g;
  const Tensor x = g.parameter("x", f32, {2});
  const Tensor y = x * 3.0;
  const Tensor loss = sum(y * y);
  const Tensor wanted[] = {y, x};
  const auto values = values_of(grad(loss, wanted), {{"x", vector_of({1, 2})}});
  EXPECT_EQ(values[0], (Numbers{6, 12}));
  EXPECT_EQ(values[1], (Numbers{18, 36}));
}

TEST(Grad, OfAnUnusedParameterIsZeros) {
  Graph g;
  const Tensor x = g.parameter("x", f32, {2});
  const Tensor unused = g.parameter("unused", bf16, {3});
  const Tensor d = grad(sum(x), std::span(&unused, 1))[0];
  EXPECT_EQ(d.dtype(), bf16);
  EXPECT_EQ(values_of(std::span(&d, 1), {})[0], (Numbers{0, 0, 0}));
}

TEST(Grad, ThroughStopGradientAndStepsIsZeros) {
  Graph g;
  const Tensor x = g.parameter("x", f32, {2});
  const LeafValues leaves = {{"x", vector_of({1.25, -2.5})}};
  EXPECT_EQ(gradient_of(sum(stop_gradient(x) * x), x, leaves), (Numbers{1.25, -2.5}));
  EXPECT_EQ(gradient_of(sum(floor(x)), x, leaves), (Numbers{0, 0}));
  EXPECT_EQ(gradient_of(sum(cast(less(x, x * 2.0), f32)), x, leaves), (Numbers{0, 0}));
  EXPECT_EQ(gradient_of(sum(cast(cast(x, i32), f32)), x, leaves), (Numbers{0, 0}));
}

TEST(Grad, PassesCasts) {
  Graph g;
  const Tensor x = g.parameter("x", f16, {2});
  const Tensor wide = cast(x, f32);
  const Tensor d = grad(sum(wide * wide), std::span(&x, 1))[0];
  EXPECT_EQ(d.dtype(), f16);
  EXPECT_EQ(values_of(std::span(&d, 1), {{"x", {{2}, f16, {1.5, -2}}}})[0], (Numbers{3, -4}));
}

TEST(Grad, OfAGradientIsTheSecondDerivative) {
  Graph g;
  const Tensor x = g.parameter("x", f32, {3});
  const LeafValues leaves = {{"x", vector_of({0.5, -1, 2})}};
  const Tensor first = grad(sum(x * x * x), std::span(&x, 1))[0];
  EXPECT_EQ(gradient_of(sum(first), x, leaves), (Numbers{3, -6, 12}));
  const Tensor slope = grad(sum(tanh(x)), std::span(&x, 1))[0];
  const Numbers second = gradient_of(sum(slope), x, leaves);
  for (size_t i = 0; i < 3; ++i) {
    const double t = std::tanh(leaves.at("x").values[i]);
    EXPECT_NEAR(second[i], -2 * t * (1 - t * t), 1e-14);
  }
}

TEST(Grad, ComputesNothingForTensorsNobodyAskedFor) {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 3});
  const Tensor frozen = g.parameter("frozen", f32, {3, 5}, {}, false);
  const Tensor w = g.parameter("w", f32, {5, 2});
  const Tensor loss = sum(matmul(matmul(x, frozen), w));
  const Tensor d = grad(loss, std::span(&w, 1))[0];
  for (Tensor tensor : topological_order(std::span(&d, 1))) {
    EXPECT_NE(tensor, w) << "the weight's own value is needed by the gradient of its input alone";
    EXPECT_TRUE(tensor == frozen || tensor.shape() != (Shape{3, 5}));
  }
}

TEST(Grad, PrintsTheSameWhateverElseTheGraphHolds) {
  const auto text = [](bool disturbed) {
    Graph g;
    const Tensor x = g.input("x", f32, {4, 3});
    if (disturbed) exp(x * 2.0);
    const Tensor w = g.parameter("w", f32, {3, 2});
    const Tensor b = g.parameter("b", f32, {2});
    if (disturbed) tanh(w);
    const Tensor y = relu(matmul(x, w) + b);
    const Tensor wanted[] = {w, b};
    const auto d = grad(mean(y * y), wanted);
    const Output outputs[] = {{"dw", d[0]}, {"db", d[1]}};
    return print_graph(outputs);
  };
  EXPECT_EQ(text(false), text(true));
}

TEST(Grad, RefusesWhatHasNoGradient) {
  Graph g;
  const Tensor x = g.parameter("x", f32, {2});
  const Tensor frozen = g.parameter("frozen", f32, {2}, {}, false);
  const Tensor count = g.input("count", i32, {2});
  const Tensor loss = sum(x * frozen);
  const auto ask = [&](Tensor l, Tensor p) { grad(l, std::span(&p, 1)); };
  const auto invalid = ErrorKind::kInvalidArgument;
  EXPECT_NE(message_of(invalid, [&] { ask(loss, frozen); }).find("\"frozen\""), std::string::npos);
  EXPECT_NE(message_of(invalid, [&] { ask(loss, count); }).find("\"count\""), std::string::npos);
  EXPECT_NE(message_of(invalid, [&] { ask(x, x); }).find("f32[2]"), std::string::npos);
  EXPECT_NE(message_of(invalid, [&] { ask(loss, Tensor()); }).find("empty"), std::string::npos);
  EXPECT_NE(message_of(invalid, [&] { ask(Tensor(), x); }).find("empty"), std::string::npos);
  EXPECT_NE(message_of(invalid, [&] { ask(sum(count), x); }).find("i32"), std::string::npos);
  Graph other;
  const Tensor stranger = other.parameter("x", f32, {2});
  EXPECT_NE(message_of(invalid, [&] { ask(loss, stranger); }).find("another graph"),
            std::string::npos);
}

TEST(Grad, AnOpWithoutAGradientIsAnErrorOnlyOnThePathAskedFor) {
  Graph g;
  const Tensor x = g.parameter("x", f32, {2});
  const Tensor w = g.parameter("w", f32, {2});
  const Tensor odd = bitcast(bitcast(x, i32), f32);
  const Tensor loss = sum(odd * w);
  EXPECT_NO_THROW(grad(loss, std::span(&w, 1)));
  const std::string message =
      message_of(ErrorKind::kUnsupported, [&] { grad(loss, std::span(&x, 1)); });
  EXPECT_NE(message.find("bitcast at autodiff_test.cc"), std::string::npos) << message;
  EXPECT_NE(message.find("\"x\""), std::string::npos) << message;
  // Through an integer, too: a cast back to float must not hide it.
  const Tensor hidden = sum(cast(bitcast(x, i32), f32) * w);
  EXPECT_THROW(grad(hidden, std::span(&x, 1)), Error);
}

TEST(Grad, OfTheBranchNotTakenIsZeroEvenWhereItIsUndefined) {
  Graph g;
  const Tensor x = g.parameter("x", f32, {4});
  const LeafValues leaves = {{"x", vector_of({-1, 0, 4, 1000})}};
  const Tensor positive = greater(x, g.scalar(0.0));
  const Tensor root = select(positive, sqrt(x) * 3.0, x);
  EXPECT_EQ(gradient_of(sum(root), x, leaves)[0], 1.0);
  EXPECT_EQ(gradient_of(sum(root), x, leaves)[1], 1.0);
  EXPECT_EQ(gradient_of(sum(root), x, leaves)[2], 0.75);
  const Tensor wide = broadcast_to(exp(x * x) / x, {2, 4});
  const Tensor small = less(abs(x), g.scalar(0.5));
  const Tensor never = select(small, broadcast_to(x, {2, 4}), wide * 0.0 + x);
  EXPECT_EQ(gradient_of(sum(select(positive, x, 1.0 / (x - x))), x, leaves)[3], 1.0);
  EXPECT_EQ(gradient_of(sum(never), x, leaves)[1], 2.0);
  // What a branch that was taken makes undefined stays undefined.
  EXPECT_TRUE(std::isnan(gradient_of(sum(select(positive, x, sqrt(x))), x, leaves)[0]));
}

TEST(Grad, GuardsOfBranchesKeepSecondDerivatives) {
  Graph g;
  const Tensor x = g.parameter("x", f32, {2});
  const Tensor y = select(greater(x, g.scalar(0.0)), x * x - 1.0, x);
  const Tensor first = grad(sum(y * y), std::span(&x, 1))[0];
  // (x² − 1)² has the second derivative 12x² − 4, at x = 1 with a cotangent of zero.
  EXPECT_EQ(gradient_of(sum(first), x, {{"x", vector_of({1, -3})}}), (Numbers{8, 2}));
}

TEST(Vjp, WeighsOutputsByTheirCotangents) {
  Graph g;
  const Tensor x = g.parameter("x", f32, {2});
  const Tensor outputs[] = {x * x, x * 3.0, x * x};
  const Tensor cotangents[] = {g.input("c", f32, {2}), g.scalar(1.0) + x * 0.0,
                               g.input("d", f32, {2})};
  const auto values =
      values_of(vjp(outputs, cotangents, std::span(&x, 1)),
                {{"x", vector_of({2, 5})}, {"c", vector_of({1, 10})}, {"d", vector_of({0, 100})}});
  EXPECT_EQ(values[0], (Numbers{7, 1103}));
}

TEST(Vjp, RefusesCotangentsThatDoNotFit) {
  Graph g;
  const Tensor x = g.parameter("x", f32, {2});
  const Tensor wrong = g.input("c", f32, {3});
  message_of(ErrorKind::kShape,
             [&] { vjp(std::span(&x, 1), std::span(&wrong, 1), std::span(&x, 1)); });
  message_of(ErrorKind::kInvalidArgument, [&] { vjp(std::span(&x, 1), {}, std::span(&x, 1)); });
  message_of(ErrorKind::kInvalidArgument, [&] { vjp({}, {}, std::span(&x, 1)); });
}

TEST(TrainableParameters, AreThoseTheLossDependsOn) {
  Graph g;
  const Tensor a = g.parameter("a", f32, {2});
  g.parameter("unused", f32, {2});
  const Tensor frozen = g.parameter("frozen", f32, {2}, {}, false);
  const Tensor b = g.parameter("b", f32, {2});
  const Tensor loss = sum(a * frozen + b * g.state("s", f32, {2}));
  EXPECT_EQ(trainable_parameters(loss), (std::vector<Tensor>{a, b}));
}

// ---- Recompute regions -----------------------------------------------------------------------

struct Checkpointed {
  Graph g;
  Tensor w, loss;

  // Two blocks of tanh(exp(x·w)), each in a region of its own when asked for.
  explicit Checkpointed(bool recompute) {
    Tensor x = g.input("x", f32, {3});
    w = g.parameter("w", f32, {3});
    for (int block = 0; block < 2; ++block) {
      std::optional<Graph::RecomputeRegion> region;
      if (recompute) region.emplace(g);
      x = tanh(exp(x * w)) * w;
    }
    loss = sum(x * x);
  }
};

std::vector<Tensor> reachable(Tensor root, std::string_view op) {
  std::vector<Tensor> found;
  for (Tensor tensor : topological_order(std::span(&root, 1))) {
    if (tensor.node().row->name == op) found.push_back(tensor);
  }
  return found;
}

TEST(Recompute, GivesTheSameGradients) {
  Checkpointed plain(false), saved(true);
  const LeafValues leaves = {{"x", vector_of({0.3, -0.2, 0.5})}, {"w", vector_of({1, -0.5, 0.25})}};
  const Numbers expected = gradient_of(plain.loss, plain.w, leaves);
  EXPECT_EQ(gradient_of(saved.loss, saved.w, leaves), expected);
  EXPECT_NE(expected[0], 0.0);
}

TEST(Recompute, TheBackwardPassUsesCopiesOfTheInsideAndKeepsTheBoundary) {
  Checkpointed saved(true);
  const std::vector<Tensor> forward = topological_order(std::span(&saved.loss, 1));
  const Tensor d = grad(saved.loss, std::span(&saved.w, 1))[0];
  EXPECT_EQ(reachable(saved.loss, "exp").size(), 2u);
  std::vector<uint32_t> regions;
  for (Tensor tensor : reachable(saved.loss, "exp")) regions.push_back(tensor.node().recompute);
  // Both blocks' exponentials are computed again for the backward pass, under fresh ids; the first
  // block's result feeds the second one, so its own forward nodes stay reachable.
  std::vector<Tensor> copies;
  for (Tensor tensor : reachable(d, "exp")) {
    const bool original = std::find(forward.begin(), forward.end(), tensor) != forward.end();
    if (original) continue;
    copies.push_back(tensor);
    EXPECT_NE(tensor.node().recompute, 0u);
    EXPECT_EQ(std::count(regions.begin(), regions.end(), tensor.node().recompute), 0);
  }
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_NE(copies[0].node().recompute, copies[1].node().recompute);
}

TEST(Recompute, GradientNodesThemselvesAreNotRecomputed) {
  Checkpointed saved(true);
  const Tensor d = grad(saved.loss, std::span(&saved.w, 1))[0];
  EXPECT_EQ(d.node().recompute, 0u);
}

TEST(Recompute, NestsInSecondDerivatives) {
  Checkpointed plain(false), saved(true);
  const LeafValues leaves = {{"x", vector_of({0.3, -0.2, 0.5})}, {"w", vector_of({1, -0.5, 0.25})}};
  const auto second = [&](Checkpointed& c) {
    const Tensor first = grad(c.loss, std::span(&c.w, 1))[0];
    return gradient_of(sum(first * first), c.w, leaves);
  };
  const Numbers expected = second(plain);
  const Numbers actual = second(saved);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-12 * std::abs(expected[i]));
  }
}

}  // namespace
}  // namespace meganeura
