// Walks the op table: every row has cases, and every case agrees with values computed another way,
// with central differences, and with its own text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"
#include "graph/node.h"
#include "graph/values.h"
#include "meganeura/autodiff.h"
#include "meganeura/gradcheck.h"
#include "meganeura/ops.h"
#include "ops/evaluate/evaluate.h"
#include "ops/rows.h"
#include "tests/known_values.h"
#include "tests/op_cases.h"

namespace meganeura {
namespace {

std::vector<OpCase> cases_of(std::string_view row) {
  std::vector<OpCase> cases;
  for (OpCase& op_case : op_cases()) {
    if (op_case.row == row) cases.push_back(std::move(op_case));
  }
  return cases;
}

std::vector<std::string> row_names() {
  std::vector<std::string> names;
  for (const OpRow* row : op_rows()) names.emplace_back(row->name);
  return names;
}

bool close(double a, double b, double tolerance) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

void expect_close(const std::vector<double>& actual, const std::vector<double>& expected,
                  double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(close(actual[i], expected[i], tolerance))
        << "element " << i << " is " << actual[i] << ", expected " << expected[i];
  }
}

class OpRows : public testing::TestWithParam<std::string> {
 protected:
  // Runs `check(case, size)` for every case of the row at every size.
  template <class Check>
  void for_each_case(Check check) {
    for (const OpCase& op_case : cases_of(GetParam())) {
      for (int64_t size : kCaseSizes) {
        SCOPED_TRACE(cat(op_case.name, " at size ", size));
        check(op_case, size);
        if (HasFatalFailure()) return;
      }
    }
  }
};

TEST_P(OpRows, HaveCasesThatUseThem) {
  EXPECT_FALSE(cases_of(GetParam()).empty());
  for_each_case([&](const OpCase& op_case, int64_t size) {
    Graph graph;
    const Tensor output = op_case.build(graph, size);
    const auto order = topological_order(std::span(&output, 1));
    EXPECT_TRUE(std::any_of(order.begin(), order.end(),
                            [&](Tensor tensor) { return tensor.node().row->name == op_case.row; }));
  });
}

TEST_P(OpRows, VerifyAndKeepTheirText) {
  for_each_case([](const OpCase& op_case, int64_t size) {
    Graph graph;
    const Output output = {"out", op_case.build(graph, size)};
    verify_graph(std::span(&output.tensor, 1));
    const std::string text = print_graph(std::span(&output, 1));
    const GraphAndOutputs parsed = parse_graph(text);
    ASSERT_EQ(parsed.outputs.size(), 1u);
    EXPECT_EQ(print_graph(parsed.outputs), text);
    EXPECT_EQ(parsed.outputs[0].tensor.shape(), output.tensor.shape());
    EXPECT_EQ(parsed.outputs[0].tensor.dtype(), output.tensor.dtype());
    const LeafValues leaves = sample_inputs(op_case, graph, size);
    const auto before = evaluate(std::span(&output.tensor, 1), leaves, scalar::Mode::kTyped);
    const auto after =
        evaluate(std::span(&parsed.outputs[0].tensor, 1), leaves, scalar::Mode::kTyped);
    EXPECT_EQ(before[0].values, after[0].values);
  });
}

TEST_P(OpRows, MeetIndependentValues) {
  for_each_case([](const OpCase& op_case, int64_t size) {
    Graph graph;
    const Tensor output = op_case.build(graph, size);
    const LeafValues leaves = sample_inputs(op_case, graph, size);
    const std::vector<double> expected = op_case.expected(as_arrays(leaves), size);
    const auto ideal = evaluate(std::span(&output, 1), leaves, scalar::Mode::kIdeal);
    expect_close(ideal[0].values, expected, is_float(output.dtype()) ? 1e-13 : 0.0);
  });
}

TEST_P(OpRows, StayWithinTheirBoundsWhenRounded) {
  for_each_case([](const OpCase& op_case, int64_t size) {
    Graph graph;
    const Tensor output = op_case.build(graph, size);
    const LeafValues leaves = sample_inputs(op_case, graph, size);
    const auto typed = evaluate(std::span(&output, 1), leaves, scalar::Mode::kTyped);
    const auto bounds = evaluate_bounds(std::span(&output, 1), leaves);
    const BoundsReport report = compare_within_bounds(bounds[0], typed[0].values);
    EXPECT_TRUE(report.acceptable()) << report.first << " excluded " << report.excluded;
    EXPECT_EQ(report.elements, output.shape().elements());
  });
}

// The op stands mid-graph: the loss weighs its elements and scales their mean.
Tensor loss_over(Tensor output) {
  const std::vector<double> weights =
      sample("weights", output.shape(), f32, {Domain::Kind::kReal, 0.5, 1.5});
  const Tensor weight = output.graph().constant(f32, output.shape(), encode_values(f32, weights));
  const Tensor product = output * weight;
  return output.shape().elements() > 0 ? 3.0 * mean(product) : 3.0 * sum(product);
}

std::vector<Tensor> float_inputs(const OpCase& op_case, const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const auto& [name, domain] : op_case.domains) {
    const Tensor input = graph.find(name);
    if (is_float(input.dtype())) inputs.push_back(input);
  }
  return inputs;
}

TEST_P(OpRows, HaveTheGradientOfCentralDifferences) {
  const bool flat = find_op(GetParam())->differentiability == Differentiability::kZero;
  for_each_case([&](const OpCase& op_case, int64_t size) {
    if (!op_case.differentiable) return;
    Graph graph;
    const Tensor output = op_case.build(graph, size);
    const Tensor loss = loss_over(output);
    const std::vector<Tensor> inputs = float_inputs(op_case, graph);
    const LeafValues leaves = sample_inputs(op_case, graph, size);
    std::map<std::string, std::vector<double>> values;
    bool empty = output.shape().elements() == 0;
    for (const auto& [name, leaf] : leaves) {
      values[name] = leaf.values;
      empty = empty || leaf.values.empty();
    }
    const GradcheckReport report = gradcheck(loss, inputs, values, {.per_element = 20});
    EXPECT_EQ(report.failed, 0) << report.first;
    if (empty) return;
    EXPECT_GT(report.checked, 0);
    EXPECT_EQ(report.largest == 0.0, flat) << "largest derivative " << report.largest;
  });
}

TEST_P(OpRows, MeetKnownValues) {
  for (const KnownValue& known : kKnownValues) {
    if (known.row != GetParam()) continue;
    const std::vector<OpCase> cases = cases_of(known.row);
    const auto scalar_case = std::find_if(cases.begin(), cases.end(), [&](const OpCase& c) {
      return c.name == cat(known.row, "/scalar");
    });
    ASSERT_NE(scalar_case, cases.end());
    Graph graph;
    const Tensor output = scalar_case->build(graph, 1);
    LeafValues leaves;
    constexpr const char* kNames[] = {"a", "b"};
    for (int i = 0; i < known.count; ++i) {
      leaves[kNames[i]] = {{}, f32, {known.operands[static_cast<size_t>(i)]}};
    }
    const double value = evaluate(std::span(&output, 1), leaves, scalar::Mode::kIdeal)[0].values[0];
    EXPECT_TRUE(close(value, known.value, 1e-15))
        << known.row << "(" << known.operands[0] << ", " << known.operands[1] << ") is " << value
        << ", expected " << known.value;
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpRows, testing::ValuesIn(row_names()),
                         [](const testing::TestParamInfo<std::string>& test) {
                           return test.param;
                         });

TEST(OpCases, NameExistingRowsOnce) {
  std::set<std::string> names;
  for (const OpCase& op_case : op_cases()) {
    EXPECT_NE(find_op(op_case.row), nullptr) << op_case.name;
    EXPECT_TRUE(names.insert(op_case.name).second) << op_case.name << " stands twice";
  }
}

TEST(OpCases, SamplesLieInTheirDomains) {
  const Shape shape = {7, 11};
  for (double v : sample("x", shape, f32, {Domain::Kind::kNonzero, 0.5, 2})) {
    EXPECT_GE(std::abs(v), 0.5);
    EXPECT_LE(std::abs(v), 2.0);
  }
  std::vector<double> distinct = sample("x", shape, f32, {Domain::Kind::kDistinct, 0.05, 0});
  std::sort(distinct.begin(), distinct.end());
  for (size_t i = 1; i < distinct.size(); ++i) EXPECT_GT(distinct[i] - distinct[i - 1], 0.049);
  std::set<double> whole;
  for (double v : sample("x", shape, i32, {Domain::Kind::kInteger, -2, 2})) whole.insert(v);
  EXPECT_EQ(whole, (std::set<double>{-2, -1, 0, 1, 2}));
}

}  // namespace
}  // namespace meganeura
