// Every op case on every device, against the f64 reference within propagated bounds.
#include <gtest/gtest.h>

#include "base/format.h"
#include "graph/node.h"
#include "tests/op_cases.h"
#include "tests/random_graph.h"
#include "tests/run_graph.h"

namespace meganeura {
namespace {

const std::vector<Device>& devices() {
  static const std::vector<Device> all = test_devices();
  return all;
}

void expect_within_bounds(const Device& device, std::span<const Output> outputs,
                          const LeafValues& leaves, const CompileOptions& options) {
  std::vector<Tensor> roots;
  for (const Output& output : outputs) {
    const Node& node = output.tensor.node();
    roots.push_back(node.row->lowering == Lowering::kAssign ? node.operands[1] : output.tensor);
  }
  const std::vector<BoundedTensor> expected = evaluate_bounds(roots, leaves);
  const auto actual = run_graph(device, outputs, leaves, options);
  for (size_t i = 0; i < expected.size(); ++i) {
    const BoundsReport report = compare_within_bounds(expected[i], actual[i]);
    EXPECT_EQ(report.outside, 0) << device.name() << ", output " << outputs[i].name << ": "
                                 << report.first;
  }
}

class DeviceOps : public testing::TestWithParam<OpCase> {};

TEST_P(DeviceOps, MatchesTheReference) {
  const OpCase& op_case = GetParam();
  for (const Device& device : devices()) {
    for (int64_t size : kCaseSizes) {
      SCOPED_TRACE(cat(op_case.name, " size ", size, " on ", device.name()));
      Graph graph;
      const Output output{"output", op_case.build(graph, size)};
      const LeafValues leaves = sample_inputs(op_case, graph, size);
      expect_within_bounds(device, std::span(&output, 1), leaves, {});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DeviceOps, testing::ValuesIn(op_cases()),
                         [](const testing::TestParamInfo<OpCase>& info) {
                           std::string name = info.param.name;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return cat(info.index, "_", name);
                         });

TEST(DeviceFuzz, RandomGraphsMatchTheReference) {
  for (const Device& device : devices()) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
      SCOPED_TRACE(cat("seed ", seed, " on ", device.name()));
      const RandomGraph random = random_graph(seed, 4 + static_cast<int>(seed % 12));
      expect_within_bounds(device, random.outputs, random.leaves, {});
    }
  }
}

// The same graph without fusion, merging and memory reuse gives results within the same bounds.
TEST(DeviceFuzz, OptionalPassesDoNotChangeResults) {
  const Device& device = devices().front();
  for (uint64_t seed = 100; seed < 130; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const RandomGraph random = random_graph(seed, 10);
    expect_within_bounds(device, random.outputs, random.leaves, {});
    expect_within_bounds(device, random.outputs, random.leaves,
                         {.disable = {"fuse", "merge", "reuse-memory"}});
  }
}

TEST(DeviceFuzz, SameGraphSameBits) {
  for (const Device& device : devices()) {
    const RandomGraph random = random_graph(7, 14);
    EXPECT_EQ(run_graph(device, random.outputs, random.leaves),
              run_graph(device, random.outputs, random.leaves));
  }
}

}  // namespace
}  // namespace meganeura
