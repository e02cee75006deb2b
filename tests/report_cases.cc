#include "tests/report_cases.h"

#include <cmath>

#include "meganeura/autodiff.h"
#include "meganeura/ops.h"

namespace meganeura {
namespace {

std::vector<Tensor> gradients(Tensor loss, std::vector<Tensor> parameters) {
  return grad(loss, parameters);
}

// Gradients of ½·mean((x·w)²)·c by the reduction named.
ReportCase scaled_loss(const std::string& form, double c) {
  ReportCase result;
  result.name = "Meganeura470c6ca_UpstreamGradient_" + form + "_" + (c == 1.0 ? "1" : "7");
  result.link = "https://github.com/kvark/meganeura/commit/470c6ca";
  result.build = [form, c](Graph& g) -> std::vector<Output> {
    const Tensor x = g.input("x", f32, {3, 4});
    const Tensor w = g.parameter("w", f32, {4, 2});
    const Tensor y = matmul(x, w);
    Tensor loss;
    if (form == "Mean") loss = 0.5 * mean(y * y) * c;
    if (form == "Sum") loss = 0.5 * sum(y * y) * c;
    if (form == "CrossEntropy") loss = cross_entropy(y, g.input("label", u32, {3})) * c;
    if (form == "Bce") loss = bce_with_logits(y, sigmoid(-y)) * c;
    return {{"loss", loss}, {"dw", gradients(loss, {w})[0]}};
  };
  result.values = {{"x", wave(12)}, {"w", wave(8, 1.1)}};
  if (form == "CrossEntropy") result.values["label"] = {1, 0, 1};
  result.varied = {"w", "x"};
  return result;
}

ReportCase softmax_over_rows(const std::string& form) {
  ReportCase result;
  result.name = "Meganeura470c6ca_BackwardOverTheLastAxis_" + form;
  result.link = "https://github.com/kvark/meganeura/commit/470c6ca";
  result.build = [form](Graph& g) -> std::vector<Output> {
    const Tensor x = g.input("x", f32, {3, 5});
    const Tensor y = form == "Softmax" ? softmax(x) : log_softmax(x);
    const Tensor loss = 2.0 * mean(y * g.input("cotangent", f32, {3, 5}));
    return {{"loss", loss}, {"y", y}, {"row_sums", sum(form == "Softmax" ? y : exp(y), {1})}};
  };
  result.values = {{"x", wave(15, 2.0)}, {"cotangent", wave(15, 1.3)}};
  result.expected = {{"row_sums", {1, 1, 1}}};
  result.varied = {"x"};
  return result;
}

ReportCase broadcast_sum(const std::string& name, const std::string& link, Shape a, Shape b,
                         bool product, Numbers expected_db) {
  ReportCase result;
  result.name = name;
  result.link = link;
  result.values = {{"a", wave(a.elements())}, {"b", wave(b.elements(), 1.9)}};
  result.build = [a, b, product](Graph& g) -> std::vector<Output> {
    const Tensor x = g.input("a", f32, a);
    const Tensor y = g.input("b", f32, b);
    const Tensor loss = sum(product ? x * y : x + y);
    return {{"loss", loss}, {"db", gradients(loss, {y})[0]}};
  };
  result.expected = {{"db", std::move(expected_db)}};
  result.varied = {"a", "b"};
  return result;
}

Numbers sums_of_groups(const Numbers& values, size_t group) {
  Numbers sums(values.size() / group, 0.0);
  for (size_t i = 0; i < values.size(); ++i) sums[i / group] += values[i];
  return sums;
}

std::vector<ReportCase> broadcast_reports() {
  std::vector<ReportCase> cases;
  cases.push_back(broadcast_sum("Nd4j2424_BroadcastBackwardSumsRows",
                                "https://github.com/deeplearning4j/nd4j/issues/2424", {3, 4},
                                {1, 4}, false, {3, 3, 3, 3}));
  cases.push_back(broadcast_sum("TtMetal40008_BroadcastProductBackward",
                                "https://github.com/tenstorrent/tt-metal/issues/40008",
                                {2, 1, 4, 64}, {2, 1, 4, 1}, true, sums_of_groups(wave(512), 64)));
  cases.push_back(
      {"Burn181_BothSidesStretched",
       "https://github.com/tracel-ai/burn/issues/181",
       [](Graph& g) -> std::vector<Output> {
         const Tensor b = g.input("b", f32, {1, 3});
         const Tensor error = g.input("y", f32, {2, 1}) + b - g.input("label", f32, {2, 1});
         const Tensor loss = sum(error * error);
         return {{"loss", loss}, {"db", gradients(loss, {b})[0]}};
       },
       {{"y", {1, 2}}, {"b", {0.5, -1, 2}}, {"label", {3, 1}}},
       // 2 · Σ over rows of (y − label + b).
       {{"db", {0, -6, 6}}},
       {"y", "b", "label"}});
  cases.push_back({"Meganeura3b62628_BiasGradientIsAColumnSum",
                   "https://github.com/kvark/meganeura/commit/3b62628",
                   [](Graph& g) -> std::vector<Output> {
                     const Tensor b = g.parameter("b", f32, {3});
                     const Tensor y = g.input("x", f32, {5, 3}) + b;
                     const Tensor loss = sum(y * g.input("c", f32, {5, 3}));
                     return {{"loss", loss}, {"db", gradients(loss, {b})[0]}};
                   },
                   {{"x", wave(15)}, {"b", {1, 2, 3}}, {"c", ramp(15)}},
                   {{"db", {30, 35, 40}}},
                   {"b", "x"}});
  return cases;
}

std::vector<ReportCase> layout_reports() {
  std::vector<ReportCase> cases;
  const std::pair<const char*, Tensor (*)(Operand)> activations[] = {
      {"Tanh", tanh}, {"Sigmoid", sigmoid}, {"Silu", silu}, {"Softplus", softplus}, {"Relu", relu}};
  for (const auto& [name, activation] : activations) {
    cases.push_back({std::string("Pytorch175188_PermutedInputTo") + name,
                     "https://github.com/pytorch/pytorch/issues/175188",
                     [activation = activation](Graph& g) -> std::vector<Output> {
                       const Tensor base = g.input("base", f32, {1, 7, 4, 3});
                       const Tensor y = activation(permute(base, {0, 3, 1, 2}));
                       return {{"loss", 2.0 * mean(y * g.input("c", f32, {1, 3, 7, 4}))}};
                     },
                     {{"base", wave(84, 0.9, 0.2)}, {"c", wave(84, 1.7)}},
                     {},
                     {"base"}});
  }
  for (bool through_reshape : {false, true}) {
    cases.push_back(
        {std::string("Pytorch30303_ExpandThenProduct_") + (through_reshape ? "Reshape" : "Plain"),
         "https://github.com/pytorch/pytorch/issues/30303",
         [through_reshape](Graph& g) -> std::vector<Output> {
           const Tensor x = g.input("x", f32, {1, 2});
           Tensor wide = broadcast_to(x, {2, 2});
           if (through_reshape) wide = reshape(reshape(wide, {4}), {2, 2});
           const Tensor w = g.input("w", f32, {2, 2});
           const Tensor loss = sum(matmul(wide, w));
           const auto d = gradients(loss, {x, w});
           return {{"loss", loss}, {"dx", d[0]}, {"dw", d[1]}};
         },
         {{"x", {2, 3}}, {"w", {1, 2, 5, 7}}},
         {{"dx", {6, 24}}, {"dw", {4, 4, 6, 6}}},
         {"x", "w"}});
  }
  return cases;
}

// Two blocks of x + W₂·relu(W₁·x) with low-rank factors beside frozen weights.
std::vector<Output> low_rank_blocks(Graph& g, bool track_everything) {
  Tensor x = g.input("x", f32, {2, 3, 8});
  std::vector<Tensor> factors;
  std::vector<Tensor> frozen;
  for (int block = 0; block < 2; ++block) {
    const std::string prefix = "block" + std::to_string(block);
    const Initializer draw = Initializer::normal(0, 0.4);
    const Tensor weight = g.parameter(prefix + ".weight", f32, {8, 8}, draw, track_everything);
    const Tensor a = g.parameter(prefix + ".a", f32, {8, 2}, draw);
    const Tensor b = g.parameter(prefix + ".b", f32, {2, 8}, draw);
    const Tensor hidden = layer_norm(x, g.scalar(1.0) + broadcast_to(g.scalar(0.0), {8}),
                                     broadcast_to(g.scalar(0.0), {8}));
    x = x + silu(matmul(hidden, weight) + matmul(matmul(hidden, a), b));
    factors.insert(factors.end(), {a, b});
    frozen.push_back(weight);
  }
  const Tensor loss = mean(x * x);
  std::vector<Tensor> wanted = factors;
  if (track_everything) wanted.insert(wanted.end(), frozen.begin(), frozen.end());
  const std::vector<Tensor> all = grad(loss, wanted);
  std::vector<Output> outputs = {{"loss", loss}};
  for (size_t i = 0; i < factors.size(); ++i) outputs.push_back({"d" + std::to_string(i), all[i]});
  return outputs;
}

std::vector<ReportCase> rule_reports() {
  std::vector<ReportCase> cases;
  cases.push_back({"Pytorch1813_MeanOverTheOnlyAxis",
                   "https://github.com/pytorch/pytorch/issues/1813",
                   [](Graph& g) -> std::vector<Output> {
                     const Tensor x = g.input("x", f32, {5});
                     const Tensor loss = mean(x * x, {0});
                     return {{"loss", loss}, {"dx", gradients(loss, {x})[0]}};
                   },
                   {{"x", {1, 1, 1, 1, 1}}},
                   {{"loss", {1}}, {"dx", {0.4, 0.4, 0.4, 0.4, 0.4}}},
                   {"x"}});
  cases.push_back({"Pytorch187297_UndefinedBranchNotTaken",
                   "https://github.com/pytorch/pytorch/issues/187297",
                   [](Graph& g) -> std::vector<Output> {
                     const Tensor x = g.input("x", f32, {2});
                     const Tensor y = select(greater(x, g.scalar(0.0)), sqrt(x), x);
                     const Tensor loss = sum(y);
                     return {{"loss", loss}, {"dx", gradients(loss, {x})[0]}};
                   },
                   {{"x", {-1, -4}}},
                   {{"loss", {-5}}, {"dx", {1, 1}}},
                   {}});
  cases.push_back({"TtMetal6232_EmbeddingWithRepeatedIds",
                   "https://github.com/tenstorrent/tt-metal/issues/6232",
                   [](Graph& g) -> std::vector<Output> {
                     const Tensor table = g.parameter("table", f32, {4, 4});
                     const Tensor rows = embedding(table, g.input("ids", u32, {4}));
                     const Tensor loss = sum(rows);
                     return {{"loss", loss}, {"dtable", gradients(loss, {table})[0]}};
                   },
                   {{"ids", {0, 0, 2, 0}}, {"table", ramp(16)}},
                   {{"dtable", {3, 3, 3, 3, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0}}},
                   {"table"}});
  cases.push_back(
      {"Meganeura209a1b6_ConcatenatedParametersKeepGradients",
       "https://github.com/kvark/meganeura/commit/209a1b6",
       [](Graph& g) -> std::vector<Output> {
         const Tensor x = g.input("x", f32, {3, 4});
         const Tensor parts[] = {g.parameter("gate", f32, {4, 5}), g.parameter("up", f32, {4, 5})};
         const Tensor both = matmul(x, concat(parts, 1));
         const Tensor y = silu(slice(both, {0, 0}, {3, 5})) * slice(both, {0, 5}, {3, 10});
         return {{"loss", 3.0 * mean(y * y)}};
       },
       {{"x", wave(12)}, {"gate", wave(20, 1.1)}, {"up", wave(20, 1.7)}},
       {},
       {"gate", "up", "x"}});
  cases.push_back({"MeganeuraGradcheck_LossScaledAndSummed",
                   "https://github.com/kvark/meganeura/blob/main/tests/gradcheck.rs",
                   [](Graph& g) -> std::vector<Output> {
                     const Tensor x = g.input("x", f32, {4, 3});
                     const Tensor w = g.parameter("w", f32, {3, 5});
                     const Tensor logits = matmul(x, w);
                     const Tensor first = cross_entropy(logits, g.input("label", u32, {4}));
                     const Tensor loss = first * 2.0 + mean(logits * logits);
                     return {{"loss", loss}, {"dw", gradients(loss, {w})[0]}};
                   },
                   {{"x", wave(12)}, {"w", wave(15, 1.1)}, {"label", {4, 0, 2, 2}}},
                   {},
                   {"w", "x"}});
  for (bool everything : {false, true}) {
    cases.push_back({std::string("Burn5162_LowRankFactors_") + (everything ? "All" : "Alone"),
                     "https://github.com/tracel-ai/burn/issues/5162",
                     [everything](Graph& g) { return low_rank_blocks(g, everything); },
                     {{"x", wave(48)}},
                     {},
                     {"block0.a", "block0.b", "block1.a", "block1.b"}});
  }
  return cases;
}

}  // namespace

Numbers wave(int64_t count, double frequency, double phase) {
  Numbers values;
  for (int64_t i = 0; i < count; ++i) {
    const double exact = std::sin(frequency * static_cast<double>(i) + phase);
    values.push_back(static_cast<double>(static_cast<float>(exact)));
  }
  return values;
}

Numbers ramp(int64_t count, double scale) {
  Numbers values;
  for (int64_t i = 0; i < count; ++i) values.push_back(scale * static_cast<double>(i));
  return values;
}

std::vector<ReportCase> gradient_reports() {
  std::vector<ReportCase> cases;
  for (const char* form : {"Mean", "Sum", "CrossEntropy", "Bce"}) {
    for (double c : {1.0, 7.0}) cases.push_back(scaled_loss(form, c));
  }
  for (const char* form : {"Softmax", "LogSoftmax"}) cases.push_back(softmax_over_rows(form));
  for (auto part : {broadcast_reports, layout_reports, rule_reports}) {
    for (ReportCase& report : part()) cases.push_back(std::move(report));
  }
  return cases;
}

std::vector<ReportCase> report_cases() {
  std::vector<ReportCase> cases;
  for (auto part : {gradient_reports, product_reports, loss_and_norm_reports}) {
    for (ReportCase& report : part()) cases.push_back(std::move(report));
  }
  return cases;
}

}  // namespace meganeura
