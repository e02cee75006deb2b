// Reports about softmax, losses, norms and NaN.
#include <cmath>
#include <limits>

#include "meganeura/autodiff.h"
#include "meganeura/ops.h"
#include "tests/report_cases.h"

namespace meganeura {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<ReportCase> loss_reports() {
  std::vector<ReportCase> cases;
  // L = Σ w·ce / Σ w with two classes of logits (0, 0): d = w/Σw · (½ − onehot).
  cases.push_back(
      {"DirectML739_UnreducedThenWeighted",
       "https://github.com/microsoft/DirectML/issues/739",
       [](Graph& g) -> std::vector<Output> {
         const Tensor x = g.input("x", f32, {3, 2});
         const Tensor w = g.input("w", f32, {3});
         const Tensor ce =
             cross_entropy(x, g.input("label", u32, {3}), {.reduction = Reduction::kNone});
         const Tensor loss = sum(w * ce) / sum(w);
         return {{"loss", loss}, {"dx", grad(loss, std::span(&x, 1))[0]}};
       },
       {{"x", Numbers(6, 0.0)}, {"w", {1, 2, 5}}, {"label", {0, 1, 0}}},
       {{"loss", {std::log(2.0)}}, {"dx", {-0.0625, 0.0625, 0.125, -0.125, -0.3125, 0.3125}}},
       {"x", "w"}});
  cases.push_back(
      {"Ggml929_LargeLogits",
       "https://github.com/ggml-org/ggml/pull/929",
       [](Graph& g) -> std::vector<Output> {
         const Tensor x = g.input("x", f32, {3, 3});
         const Tensor ce =
             cross_entropy(x, g.input("label", u32, {3}), {.reduction = Reduction::kNone});
         const Tensor loss = sum(ce);
         return {{"ce", ce}, {"loss", loss}, {"dx", grad(loss, std::span(&x, 1))[0]}};
       },
       {{"x", {1000, 0, -1000, 1000, 0, -1000, 1000, 0, -1000}}, {"label", {0, 1, 2}}},
       {{"ce", {0, 1000, 2000}}, {"loss", {3000}}, {"dx", {0, 0, 0, 1, -1, 0, 1, 0, -1}}},
       {}});
  cases.push_back({"Pytorch11551_IgnoredRowWithInfiniteLogits",
                   "https://github.com/pytorch/pytorch/issues/11551",
                   [](Graph& g) -> std::vector<Output> {
                     const Tensor x = g.input("x", f32, {2, 2});
                     const Tensor loss =
                         cross_entropy(x, g.input("label", i32, {2}), {.ignore_index = -100});
                     return {{"loss", loss}, {"dx", grad(loss, std::span(&x, 1))[0]}};
                   },
                   {{"x", {0, 0, -kInf, -kInf}}, {"label", {1, -100}}},
                   {{"loss", {std::log(2.0)}}, {"dx", {0.5, -0.5, 0, 0}}},
                   {}});
  cases.push_back({"Meganeura470c6ca_SmoothedAndWeighted",
                   "https://github.com/kvark/meganeura/commit/470c6ca",
                   [](Graph& g) -> std::vector<Output> {
                     const Tensor x = g.input("x", f32, {4, 3});
                     const Tensor weights = g.input("w", f32, {3});
                     return {{"loss", 7.0 * cross_entropy(x, g.input("label", i32, {4}),
                                                          {.ignore_index = 1,
                                                           .weights = weights,
                                                           .label_smoothing = 0.1})}};
                   },
                   {{"x", wave(12, 1.9)}, {"w", {0.5, 2, 1}}, {"label", {2, 1, 0, 2}}},
                   {},
                   {"x"}});
  return cases;
}

ReportCase normalized(std::string name, std::string link, Numbers values, Numbers expected) {
  ReportCase result;
  const auto n = static_cast<int64_t>(values.size());
  result.name = std::move(name);
  result.link = std::move(link);
  result.build = [n](Graph& g) -> std::vector<Output> {
    const Tensor x = g.input("x", f32, {1, n});
    const Tensor weight = g.parameter("weight", f32, {n}, Initializer::ones());
    const Tensor y = layer_norm(x, weight, g.parameter("bias", f32, {n}), 0.0);
    return {{"y", y}};
  };
  result.values = {{"x", std::move(values)}};
  result.expected = {{"y", std::move(expected)}};
  return result;
}

// 256 equal values have no variance; epsilon alone keeps the quotient finite.
ReportCase constant_row() {
  return {"Tvm19643_ConstantRow",
          "https://github.com/apache/tvm/pull/19643",
          [](Graph& g) -> std::vector<Output> {
            const Tensor x = g.input("x", f32, {2, 256});
            const Tensor weight = g.parameter("weight", f32, {256}, Initializer::ones());
            const Tensor y = layer_norm(x, weight, g.parameter("bias", f32, {256}));
            return {{"y", y}, {"rms", rms_norm(x - 1234.0, weight)}};
          },
          {{"x", Numbers(512, 1234.0)}},
          {{"y", Numbers(512, 0.0)}, {"rms", Numbers(512, 0.0)}},
          {}};
}

// Over batch and space per channel, in training mode, with mean 5 and deviation 0.1.
ReportCase batch_norm() {
  Numbers x = wave(2 * 3 * 16, 2.3);
  for (double& v : x) v = static_cast<double>(static_cast<float>(5.0 + 0.1 * v));
  return {"TtMetal45968_BatchNormOffMean",
          "https://github.com/tenstorrent/tt-metal/issues/45968",
          [](Graph& g) -> std::vector<Output> {
            const Tensor input = g.input("x", f32, {2, 3, 4, 4});
            const std::vector<int64_t> axes = {0, 2, 3};
            const Tensor centred = input - mean(input, axes, true);
            const Tensor y = centred * rsqrt(variance(input, axes, true) + 1e-5);
            return {{"mean", mean(y, axes)},
                    {"second_moment", mean(y * y, axes) * (1.0 + 1e-5 / variance(input, axes))},
                    {"loss", 2.0 * mean(y * g.input("c", f32, {2, 3, 4, 4}))}};
          },
          {{"x", x}, {"c", wave(96, 1.3)}},
          {{"mean", {0, 0, 0}}, {"second_moment", {1, 1, 1}}},
          {"x"}};
}

std::vector<ReportCase> norm_reports() {
  const double near = 1.0 / std::sqrt(5.0);
  const double far = 3.0 / std::sqrt(5.0);
  std::vector<ReportCase> cases;
  for (double base : {40000.0, 80000.0}) {
    cases.push_back(normalized("OnnxRuntime28463_LargeMean" + std::to_string(int64_t(base)),
                               "https://github.com/microsoft/onnxruntime/issues/28463",
                               {base, base + 1, base + 2, base + 3}, {-far, -near, near, far}));
  }
  cases.push_back(constant_row());
  cases.push_back(batch_norm());
  cases.push_back(
      {"JaxMps168_LayerNormBiasGradient",
       "https://github.com/tillahoffmann/jax-mps/pull/168",
       [](Graph& g) -> std::vector<Output> {
         const Tensor x = g.input("x", f32, {3, 2, 8});
         const Tensor weight = g.parameter("weight", f32, {8});
         const Tensor bias = g.parameter("bias", f32, {8});
         const Tensor c = g.input("c", f32, {3, 2, 8});
         const Tensor loss = sum(layer_norm(x, weight, bias) * c);
         return {{"loss", loss}, {"dbias", grad(loss, std::span(&bias, 1))[0]}};
       },
       {{"x", wave(48)}, {"weight", wave(8, 1.1)}, {"bias", wave(8)}, {"c", ramp(48, 0.125)}},
       {{"dbias", {15, 15.75, 16.5, 17.25, 18, 18.75, 19.5, 20.25}}},
       {"x", "weight", "bias"}});
  cases.push_back({"Tinygrad11782_GroupNorm",
                   "https://github.com/tinygrad/tinygrad/issues/11782",
                   [](Graph& g) -> std::vector<Output> {
                     const Tensor x = g.input("x", f32, {2, 6, 5, 5});
                     const Tensor groups = reshape(x, {2, 3, 50});
                     const Tensor centred = groups - mean(groups, {2}, true);
                     const Tensor y = centred * rsqrt(variance(groups, {2}, true) + 1e-5);
                     const Tensor shaped = reshape(y, {2, 6, 5, 5});
                     return {{"loss", 2.0 * mean(shaped * g.input("c", f32, {2, 6, 5, 5}))}};
                   },
                   {{"x", wave(300)}, {"c", wave(300, 1.7)}},
                   {},
                   {"x"}});
  return cases;
}

std::vector<ReportCase> nan_reports() {
  std::vector<ReportCase> cases;
  cases.push_back({"Burn5658_ReluKeepsNan",
                   "https://github.com/tracel-ai/burn/pull/5658",
                   [](Graph& g) -> std::vector<Output> {
                     const Tensor x = g.input("x", f32, {3});
                     return {{"y", relu(x)}};
                   },
                   {{"x", {kNan, -1, 2}}},
                   {{"y", {kNan, 0, 2}}},
                   {}});
  cases.push_back(
      {"OnnxRuntime11010_ClampKeepsNan",
       "https://github.com/microsoft/onnxruntime/issues/11010",
       [](Graph& g) -> std::vector<Output> {
         const Tensor x = g.input("x", f32, {4});
         const Tensor low = maximum(x, g.scalar(-1.0));
         return {{"low", low},
                 {"high", minimum(x, g.scalar(1.0))},
                 {"both", minimum(low, g.scalar(1.0))}};
       },
       {{"x", {kNan, -5, 0.5, 5}}},
       {{"low", {kNan, -1, 0.5, 5}}, {"high", {kNan, -5, 0.5, 1}}, {"both", {kNan, -1, 0.5, 1}}},
       {}});
  cases.push_back({"Mlx577_MaxKeepsNan",
                   "https://github.com/ml-explore/mlx/issues/577",
                   [](Graph& g) -> std::vector<Output> {
                     const Tensor x = g.input("x", f32, {2, 3});
                     return {{"max", max(x, {0})}, {"min", min(x, {0})}, {"arg", arg_max(x, {0})}};
                   },
                   {{"x", {1, 2, 3, kNan, 5, 6}}},
                   {{"max", {kNan, 5, 6}}, {"min", {kNan, 2, 3}}, {"arg", {1, 1, 1}}},
                   {}});
  cases.push_back(
      {"Mlx574_LogOfInfinity",
       "https://github.com/ml-explore/mlx/issues/574",
       [](Graph& g) -> std::vector<Output> {
         const Tensor x = g.input("x", f32, {3});
         return {{"y", log(x + 1.0)}, {"softplus", softplus(x)}};
       },
       {{"x", {kInf, 0, -1}}},
       {{"y", {kInf, 0, -kInf}}, {"softplus", {kInf, std::log(2.0), std::log1p(std::exp(-1.0))}}},
       {}});
  return cases;
}

}  // namespace

std::vector<ReportCase> loss_and_norm_reports() {
  std::vector<ReportCase> cases;
  for (auto part : {loss_reports, norm_reports, nan_reports}) {
    for (ReportCase& report : part()) cases.push_back(std::move(report));
  }
  return cases;
}

}  // namespace meganeura
