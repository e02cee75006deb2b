// Reports about matrix products: tile remainders, layouts, wide outputs, narrow storage.
#include <cmath>

#include "meganeura/autodiff.h"
#include "meganeura/ops.h"
#include "tests/report_cases.h"

namespace meganeura {
namespace {

// a [batch, m, k] · b [batch, k, n] in row-major f64, rounded to f32 steps nowhere.
Numbers product(const Numbers& a, const Numbers& b, int64_t batch, int64_t m, int64_t k,
                int64_t n) {
  Numbers out(static_cast<size_t>(batch * m * n), 0.0);
  for (int64_t row = 0; row < batch * m; ++row) {
    double* out_row = out.data() + row * n;
    for (int64_t i = 0; i < k; ++i) {
      const double scale = a[static_cast<size_t>(row * k + i)];
      const double* b_row = b.data() + ((row / m) * k + i) * n;
      for (int64_t j = 0; j < n; ++j) out_row[j] += scale * b_row[j];
    }
  }
  return out;
}

ReportCase plain_product(std::string name, std::string link, Shape a, Shape b) {
  ReportCase result;
  result.name = std::move(name);
  result.link = std::move(link);
  result.build = [a, b](Graph& g) -> std::vector<Output> {
    return {{"y", matmul(g.input("a", f32, a), g.input("b", f32, b))}};
  };
  result.values = {{"a", wave(a.elements(), 0.37)}, {"b", wave(b.elements(), 0.73)}};
  const int64_t m = a[a.rank() - 2];
  const int64_t k = a[a.rank() - 1];
  const int64_t n = b[b.rank() - 1];
  result.expected["y"] =
      product(result.values["a"], result.values["b"], a.elements() / (m * k), m, k, n);
  return result;
}

Numbers transposed(const Numbers& values, int64_t rows, int64_t columns) {
  Numbers out;
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) out.push_back(values[static_cast<size_t>(i * columns + j)]);
  }
  return out;
}

// One graph per layout and extents: both gradients are products of other layouts.
ReportCase layout_product(int64_t m, int64_t k, int64_t n, bool a_transposed, bool b_transposed) {
  ReportCase result;
  result.name = std::string("MeganeuraC678330_") + (a_transposed ? "T" : "N") +
                (b_transposed ? "T" : "N") + "_" + std::to_string(m) + "x" + std::to_string(k) +
                "x" + std::to_string(n);
  result.link = "https://github.com/kvark/meganeura/commit/c678330";
  result.build = [=](Graph& g) -> std::vector<Output> {
    const Tensor a = g.input("a", f32, a_transposed ? Shape{k, m} : Shape{m, k});
    const Tensor b = g.input("b", f32, b_transposed ? Shape{n, k} : Shape{k, n});
    const Tensor y = matmul(a_transposed ? transpose(a) : a, b_transposed ? transpose(b) : b);
    const Tensor cotangent = g.input("cotangent", f32, {m, n});
    const Tensor wanted[] = {a, b};
    const std::vector<Tensor> d = vjp(std::span(&y, 1), std::span(&cotangent, 1), wanted);
    return {{"y", y}, {"da", d[0]}, {"db", d[1]}};
  };
  const Numbers a = wave(m * k, 0.37);
  const Numbers b = wave(k * n, 0.73);
  const Numbers c = wave(m * n, 1.21);
  result.values = {{"a", a_transposed ? transposed(a, m, k) : a},
                   {"b", b_transposed ? transposed(b, k, n) : b},
                   {"cotangent", c}};
  const Numbers da = product(c, transposed(b, k, n), 1, m, n, k);
  const Numbers db = product(transposed(a, m, k), c, 1, k, m, n);
  result.expected = {{"y", product(a, b, 1, m, k, n)},
                     {"da", a_transposed ? transposed(da, m, k) : da},
                     {"db", b_transposed ? transposed(db, k, n) : db}};
  return result;
}

// The extents of the report pairwise, not all 729 triples of them.
std::vector<ReportCase> layout_products() {
  constexpr int64_t kExtents[] = {1, 15, 16, 17, 31, 32, 33, 63, 65};
  constexpr size_t kCount = std::size(kExtents);
  std::vector<ReportCase> cases;
  for (size_t i = 0; i < kCount; ++i) {
    for (size_t j = 0; j < kCount; ++j) {
      const int64_t m = kExtents[i];
      const int64_t k = kExtents[j];
      const int64_t n = kExtents[(i + 2 * j) % kCount];
      const size_t layout = (i + j) % 4;
      cases.push_back(layout_product(m, k, n, layout / 2 != 0, layout % 2 != 0));
    }
  }
  return cases;
}

// Two linear layers with a head as wide as a vocabulary; the loss is Σ (y − t).
ReportCase wide_head() {
  constexpr int64_t kTokens = 4, kWidth = 6, kVocabulary = 50257;
  ReportCase result;
  result.name = "Pytorch153957_WideHead";
  result.link = "https://github.com/pytorch/pytorch/issues/153957";
  result.build = [](Graph& g) -> std::vector<Output> {
    const Tensor x = g.input("x", f32, {2, kTokens / 2, kWidth});
    const Tensor first = g.parameter("first", f32, {kWidth, kWidth});
    const Tensor head = g.parameter("head", f32, {kVocabulary, kWidth});
    const Tensor y = linear(linear(x, first), head);
    const Tensor loss = sum(y - g.input("target", f32, {}));
    const Tensor wanted[] = {head, first};
    const std::vector<Tensor> d = grad(loss, wanted);
    return {{"loss", loss}, {"dhead", d[0]}, {"dfirst", d[1]}};
  };
  const Numbers x = wave(kTokens * kWidth);
  const Numbers first = wave(kWidth * kWidth, 1.1);
  result.values = {
      {"x", x}, {"first", first}, {"head", wave(kVocabulary * kWidth, 0.9)}, {"target", {0.5}}};
  // Every row of the head's gradient is the sum over tokens of the hidden values.
  const Numbers hidden = product(x, transposed(first, kWidth, kWidth), 1, kTokens, kWidth, kWidth);
  Numbers& dhead = result.expected["dhead"];
  for (int64_t row = 0; row < kVocabulary; ++row) {
    for (int64_t i = 0; i < kWidth; ++i) {
      double total = 0;
      for (int64_t token = 0; token < kTokens; ++token) {
        total += hidden[static_cast<size_t>(token * kWidth + i)];
      }
      dhead.push_back(total);
    }
  }
  result.varied = {"first", "x"};
  return result;
}

// A sum beyond the range of f16 over f16 operands, wanted in f32.
ReportCase narrow_weights() {
  constexpr int64_t kDepth = 2048;
  ReportCase result;
  result.name = "LlamaCpp13607_NarrowWeightsSumInF32";
  result.link = "https://github.com/ggml-org/llama.cpp/pull/13607";
  result.build = [](Graph& g) -> std::vector<Output> {
    const Tensor x = g.input("x", f32, {1, kDepth});
    const Tensor w = g.parameter("w", f16, {kDepth, 2}, {}, false);
    return {{"y", matmul(x, cast(w, f32))}};
  };
  result.values = {{"x", Numbers(kDepth, -33.5)}, {"w", Numbers(2 * kDepth, 1.0)}};
  result.expected = {{"y", {-68608.0, -68608.0}}};
  return result;
}

// Gradients of the weights only: the frozen one gets none, so nothing of its size is added.
ReportCase frozen_weight() {
  ReportCase result;
  result.name = "SceneWorks893_FrozenWeightBetweenFactors";
  result.link = "https://github.com/SceneWorks/SceneWorks/pull/893";
  result.build = [](Graph& g) -> std::vector<Output> {
    const Tensor x = g.input("x", f32, {3, 16});
    const Tensor frozen = g.parameter("frozen", f32, {16, 16}, Initializer::normal(0, 0.3), false);
    const Tensor a = g.parameter("a", f32, {16, 2}, Initializer::normal(0, 0.3));
    const Tensor b = g.parameter("b", f32, {2, 16}, Initializer::normal(0, 0.3));
    const Tensor y = matmul(matmul(matmul(x, frozen), a), b);
    const Tensor loss = 2.0 * mean(y * y);
    const std::vector<Tensor> d = grad(loss, trainable_parameters(loss));
    std::vector<Output> outputs = {{"loss", loss}};
    for (size_t i = 0; i < d.size(); ++i) outputs.push_back({"d" + std::to_string(i), d[i]});
    return outputs;
  };
  result.values = {{"x", wave(48)}};
  result.varied = {"a", "b"};
  return result;
}

}  // namespace

std::vector<ReportCase> product_reports() {
  std::vector<ReportCase> cases = layout_products();
  cases.push_back(plain_product("Burn4907_BatchedHeads",
                                "https://github.com/tracel-ai/burn/issues/4907", {1, 8, 128, 512},
                                {1, 8, 512, 32}));
  for (int64_t m : {35, 64, 128, 256, 500, 535}) {
    cases.push_back(plain_product("Burn4966_Rows" + std::to_string(m),
                                  "https://github.com/tracel-ai/burn/issues/4966", {m, 256},
                                  {256, 256}));
  }
  cases.push_back(wide_head());
  cases.push_back(narrow_weights());
  cases.push_back(frozen_weight());
  return cases;
}

}  // namespace meganeura
