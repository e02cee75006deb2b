// Replays public bug reports on the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"
#include "graph/node.h"
#include "meganeura/autodiff.h"
#include "meganeura/error.h"
#include "meganeura/gradcheck.h"
#include "meganeura/ops.h"
#include "ops/evaluate/evaluate.h"
#include "tests/report_cases.h"

namespace meganeura {
namespace {

struct Built {
  Graph graph;
  std::vector<Output> outputs;
};

std::unique_ptr<Built> build(const ReportCase& report) {
  auto built = std::make_unique<Built>();
  built->outputs = report.build(built->graph);
  return built;
}

std::map<std::string, ReferenceTensor> run(const Built& built, const ReportCase& report,
                                           scalar::Mode mode) {
  LeafValues leaves;
  for (const auto& [name, values] : report.values) {
    const Tensor leaf = built.graph.find(name);
    leaves[name] = {leaf.shape(), leaf.dtype(), values};
  }
  std::vector<Tensor> roots;
  for (const Output& output : built.outputs) roots.push_back(output.tensor);
  const std::vector<ReferenceTensor> results = evaluate(roots, leaves, mode);
  std::map<std::string, ReferenceTensor> named;
  for (size_t i = 0; i < roots.size(); ++i) named[built.outputs[i].name] = results[i];
  return named;
}

void expect_values(const Numbers& actual, const Numbers& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const bool same =
        actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i]));
    ASSERT_TRUE(same || std::abs(actual[i] - expected[i]) <=
                            tolerance * std::max(1.0, std::abs(expected[i])))
        << "element " << i << " is " << actual[i] << ", expected " << expected[i];
  }
}

const ReportCase& named(const std::string& name) {
  static const std::vector<ReportCase> cases = report_cases();
  const auto found = std::find_if(cases.begin(), cases.end(),
                                  [&](const ReportCase& report) { return report.name == name; });
  MG_CHECK(found != cases.end(), "no report is named ", name);
  return *found;
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const ReportCase& report : report_cases()) result.push_back(report.name);
  return result;
}

class Reference : public testing::TestWithParam<std::string> {};

// f64 differs from the given values by rounding alone; typed f32 by a little more.
TEST_P(Reference, MeetTheirValues) {
  const ReportCase& report = named(GetParam());
  const auto built = build(report);
  for (auto [mode, tolerance] :
       {std::pair(scalar::Mode::kIdeal, 1e-9), std::pair(scalar::Mode::kTyped, 2e-3)}) {
    const auto results = run(*built, report, mode);
    for (const auto& [name, result] : results) {
      SCOPED_TRACE(cat(report.link, ", output ", name));
      const auto expected = report.expected.find(name);
      if (expected != report.expected.end()) {
        expect_values(result.values, expected->second, tolerance);
        continue;
      }
      EXPECT_TRUE(std::all_of(result.values.begin(), result.values.end(),
                              [](double v) { return std::isfinite(v); }));
    }
    for (const auto& [name, values] : report.expected) EXPECT_TRUE(results.contains(name)) << name;
  }
}

TEST_P(Reference, MeetCentralDifferences) {
  const ReportCase& report = named(GetParam());
  if (report.varied.empty()) return;
  const auto built = build(report);
  const auto loss = std::find_if(built->outputs.begin(), built->outputs.end(),
                                 [](const Output& output) { return output.name == "loss"; });
  ASSERT_NE(loss, built->outputs.end());
  std::vector<Tensor> varied;
  for (const std::string& name : report.varied) varied.push_back(built->graph.find(name));
  const GradcheckReport check = gradcheck(loss->tensor, varied, report.values);
  EXPECT_TRUE(check.passed()) << check.first;
  EXPECT_GT(check.largest, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Cases, Reference, testing::ValuesIn(names()),
                         [](const testing::TestParamInfo<std::string>& test) {
                           return test.param;
                         });

TEST(Cases, HaveUniqueNames) {
  std::set<std::string> seen;
  for (const std::string& name : names()) EXPECT_TRUE(seen.insert(name).second) << name;
}

TEST(Cases, Burn5162_LowRankFactorsDoNotDependOnWhatElseIsTracked) {
  const ReportCase& alone = named("Burn5162_LowRankFactors_Alone");
  const ReportCase& all = named("Burn5162_LowRankFactors_All");
  const auto a = run(*build(alone), alone, scalar::Mode::kIdeal);
  const auto b = run(*build(all), all, scalar::Mode::kIdeal);
  for (const auto& [name, value] : a) EXPECT_EQ(value.values, b.at(name).values) << name;
}

// Nothing in the gradients has the shape of the frozen weight but the weight itself.
TEST(Cases, SceneWorks893_FrozenWeightGetsNoGradient) {
  const auto built = build(named("SceneWorks893_FrozenWeightBetweenFactors"));
  EXPECT_EQ(built->outputs.size(), 3u);
  std::vector<Tensor> roots;
  for (const Output& output : built->outputs) roots.push_back(output.tensor);
  for (Tensor tensor : topological_order(roots)) {
    if (tensor == built->graph.find("frozen")) continue;
    EXPECT_NE(tensor.shape(), (Shape{16, 16})) << describe(tensor.node());
  }
}

TEST(Cases, Meganeura470c6ca_GradientsScaleWithTheLoss) {
  for (const std::string form : {"Mean", "Sum", "CrossEntropy", "Bce"}) {
    const std::string name = "Meganeura470c6ca_UpstreamGradient_" + form;
    const ReportCase& one = named(name + "_1");
    const ReportCase& seven = named(name + "_7");
    const auto small = run(*build(one), one, scalar::Mode::kIdeal).at("dw").values;
    const auto large = run(*build(seven), seven, scalar::Mode::kIdeal).at("dw").values;
    for (size_t i = 0; i < small.size(); ++i) {
      EXPECT_NEAR(large[i], 7.0 * small[i], 1e-14) << form;
      EXPECT_NE(small[i], 0.0) << form;
    }
  }
}

TEST(Cases, Meganeura470c6ca_LogSoftmaxIsNotSoftmax) {
  const ReportCase& softmax_case = named("Meganeura470c6ca_BackwardOverTheLastAxis_Softmax");
  const ReportCase& log_case = named("Meganeura470c6ca_BackwardOverTheLastAxis_LogSoftmax");
  const auto y = run(*build(softmax_case), softmax_case, scalar::Mode::kIdeal).at("y").values;
  const auto log_y = run(*build(log_case), log_case, scalar::Mode::kIdeal).at("y").values;
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(std::log(y[i]), log_y[i], 1e-13);
}

TEST(Cases, Candle3568_AnOpWithoutAGradientIsAnError) {
  Graph g;
  const Tensor x = g.parameter("x", f32, {3});
  const Tensor bits = bitcast(bitcast(x * 2.0, u32), f32);
  const Tensor loss = sum(bits * x);
  try {
    grad(loss, std::span(&x, 1));
    FAIL() << "the gradient of bitcast went missing without a word";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("bitcast"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("\"x\""), std::string::npos) << error.what();
  }
}

TEST(Cases, Pytorch12670_LabelsBeyondTheClassesAreRefused) {
  Graph g;
  const Tensor loss = cross_entropy(g.input("x", f32, {1, 3}), g.input("label", u32, {1}));
  LeafValues leaves = {{"x", {{1, 3}, f32, {1, 2, 3}}}, {"label", {{1}, u32, {2}}}};
  EXPECT_NO_THROW(evaluate(std::span(&loss, 1), leaves, scalar::Mode::kIdeal));
  leaves["label"].values = {3};
  EXPECT_THROW(evaluate(std::span(&loss, 1), leaves, scalar::Mode::kIdeal), Error);
}

// A negative label passes the limit, which is an upper one, but must not look like a loss.
TEST(Cases, Pytorch12670_NegativeLabelsGiveNaN) {
  Graph g;
  const Tensor loss = cross_entropy(g.input("x", f32, {1, 3}), g.input("label", i32, {1}));
  const LeafValues leaves = {{"x", {{1, 3}, f32, {1, 2, 3}}}, {"label", {{1}, i32, {-4}}}};
  const auto result = evaluate(std::span(&loss, 1), leaves, scalar::Mode::kIdeal);
  EXPECT_TRUE(std::isnan(result[0].values[0])) << result[0].values[0];
}

}  // namespace
}  // namespace meganeura
