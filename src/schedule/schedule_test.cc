#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/format.h"
#include "meganeura/error.h"
#include "meganeura/ops.h"
#include "schedule/slot_use.h"

namespace meganeura::schedule {
namespace {

using kernels::ContractionSpec;
using kernels::PointwiseSpec;
using kernels::ReductionSpec;

Schedule schedule_of(std::vector<Output> outputs, ScheduleOptions options = {}) {
  const SegmentRoots segment{"run", std::move(outputs)};
  return make_schedule({&segment, 1}, options);
}

const std::vector<ScheduledKernel>& kernels_of(const Schedule& schedule) {
  return schedule.segments.at(0).kernels;
}

int temporaries(const Schedule& schedule) {
  return static_cast<int>(
      std::count_if(schedule.buffers.begin(), schedule.buffers.end(),
                    [](const Buffer& buffer) { return buffer.kind == BufferKind::kTemporary; }));
}

TEST(Schedule, GivesASingleOpOneKernel) {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 5});
  const Schedule schedule = schedule_of({{"y", exp(x)}});
  ASSERT_EQ(kernels_of(schedule).size(), 1u);
  EXPECT_EQ(temporaries(schedule), 0);
}

TEST(Schedule, ComputesElementwiseChainsInOneKernel) {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 5});
  const Tensor row = g.input("row", f32, {5});
  EXPECT_EQ(kernels_of(schedule_of({{"y", relu(tanh(x * 2.0 + row) - 1.0)}})).size(), 1u);
}

TEST(Schedule, KeepsOpsApartWhenFusionIsOff) {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 5});
  ScheduleOptions options;
  options.fuse = false;
  options.merge = false;
  EXPECT_EQ(kernels_of(schedule_of({{"y", exp(x) + 1.0}}, options)).size(), 2u);
}

TEST(Schedule, ReadsViewsInPlace) {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 5, 6});
  const Tensor view = slice(permute(x, {2, 0, 1}), {1, 0, 0}, {5, 4, 5}, {2, 1, 1});
  const Schedule schedule = schedule_of({{"y", exp(view)}});
  ASSERT_EQ(kernels_of(schedule).size(), 1u);
  const auto& spec = std::get<PointwiseSpec>(kernels_of(schedule)[0].spec);
  EXPECT_EQ(spec.inputs.at(0).access.offset, 1);
  EXPECT_EQ(spec.inputs.at(0).access.strides, (std::vector<int64_t>{2, 30, 6}));
}

TEST(Schedule, SplitsADimensionToReadThroughAReshape) {
  Graph g;
  const Tensor x = g.input("x", f32, {2, 3});
  const Tensor row = g.input("row", f32, {3});
  const Schedule schedule = schedule_of({{"y", flatten(x + row)}});
  ASSERT_EQ(kernels_of(schedule).size(), 1u);
  EXPECT_EQ(std::get<PointwiseSpec>(kernels_of(schedule)[0].spec).extents,
            (std::vector<int64_t>{2, 3}));
}

TEST(Schedule, AddsBiasAndActivationToAContraction) {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 5});
  const Tensor weight = g.parameter("weight", f32, {6, 5});
  const Tensor bias = g.parameter("bias", f32, {6});
  const Tensor y = tanh(linear(x, weight, bias));
  const Schedule fused = schedule_of({{"y", y}});
  ASSERT_EQ(kernels_of(fused).size(), 1u);
  EXPECT_EQ(std::get<ContractionSpec>(kernels_of(fused)[0].spec).extras.size(), 1u);
  ScheduleOptions options;
  options.contraction_epilogues = false;
  EXPECT_EQ(kernels_of(schedule_of({{"y", y}}, options)).size(), 2u);
}

TEST(Schedule, ComputesTheOperandOfAReductionInside) {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 5});
  const Schedule schedule = schedule_of({{"y", sqrt(sum(x * x, {1}))}});
  ASSERT_EQ(kernels_of(schedule).size(), 1u);
  EXPECT_EQ(std::get<ReductionSpec>(kernels_of(schedule)[0].spec).reduced,
            (std::vector<int64_t>{5}));
}

TEST(Schedule, StoresWhatSeveralKernelsNeed) {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 5});
  const Tensor shared = exp(x);
  const Schedule schedule = schedule_of({{"a", sum(shared, {0})}, {"b", sum(shared, {1})}});
  EXPECT_EQ(kernels_of(schedule).size(), 3u);
  EXPECT_EQ(temporaries(schedule), 1);
}

TEST(Schedule, UpdatesAStateInPlace) {
  Graph g;
  const Tensor count = g.state("count", f32, {3});
  const Schedule schedule = schedule_of({{"next", assign(count, count + 1.0)}});
  ASSERT_EQ(kernels_of(schedule).size(), 1u);
  const ScheduledKernel& kernel = kernels_of(schedule)[0];
  ASSERT_EQ(kernel.buffers.size(), 1u);
  EXPECT_TRUE(slot_use(kernel.spec).reads[0]);
  EXPECT_TRUE(slot_use(kernel.spec).writes[0]);
}

TEST(Schedule, RunsReadersOfTheOldValueFirst) {
  Graph g;
  const Tensor state = g.state("state", f32, {3, 3});
  const Tensor next = assign(state, state * 0.5);
  const Schedule schedule = schedule_of({{"next", next}, {"total", sum(state, {0})}});
  ASSERT_EQ(kernels_of(schedule).size(), 2u);
  EXPECT_TRUE(std::holds_alternative<ReductionSpec>(kernels_of(schedule)[0].spec));
}

TEST(Schedule, CopiesWhenAnUpdateReadsOtherPlacesThanItWrites) {
  Graph g;
  const Tensor state = g.state("state", f32, {3, 3});
  const Schedule schedule = schedule_of({{"next", assign(state, transpose(state) + 1.0)}});
  EXPECT_EQ(kernels_of(schedule).size(), 2u);
  EXPECT_EQ(temporaries(schedule), 1);
}

TEST(Schedule, CopiesOneOfTwoStatesThatTradeValues) {
  Graph g;
  const Tensor a = g.state("a", f32, {3});
  const Tensor b = g.state("b", f32, {3});
  const Schedule schedule =
      schedule_of({{"a_next", assign(a, b + 1.0)}, {"b_next", assign(b, a * 2.0)}});
  EXPECT_EQ(temporaries(schedule), 1);
}

TEST(Schedule, MergesUpdatesThatShareTheirInputs) {
  Graph g;
  const Tensor weight = g.parameter("weight", f32, {40});
  const Tensor moment = g.state("moment", f32, {40});
  const Tensor gradient = g.input("gradient", f32, {40});
  const Tensor next = moment * 0.9 + gradient * 0.1;
  const Schedule schedule = schedule_of(
      {{"moment_next", assign(moment, next)}, {"weight_next", assign(weight, weight - next)}});
  ASSERT_EQ(kernels_of(schedule).size(), 1u);
  EXPECT_EQ(std::get<PointwiseSpec>(kernels_of(schedule)[0].spec).outputs.size(), 2u);
}

TEST(Schedule, KeepsKernelsWithinTheirSlots) {
  Graph g;
  Tensor total = g.input("x0", f32, {7});
  for (int i = 1; i < 30; ++i) total = total + exp(g.input(cat("x", i), f32, {7}));
  ScheduleOptions options;
  options.max_slots = 6;
  const Schedule schedule = schedule_of({{"y", total}}, options);
  EXPECT_GT(kernels_of(schedule).size(), 5u);
  for (const ScheduledKernel& kernel : kernels_of(schedule)) EXPECT_LE(kernel.buffers.size(), 6u);
}

TEST(Schedule, HasNothingToRunForEmptyTensors) {
  Graph g;
  const Tensor x = g.input("x", f32, {0, 5});
  EXPECT_TRUE(kernels_of(schedule_of({{"y", exp(x)}})).empty());
}

TEST(Schedule, DependsOnStructureAlone) {
  const auto text = [](bool silu_first) {
    Graph g;
    const Tensor x = g.input("x", f32, {4, 4});
    const Tensor early = silu_first ? silu(x) : relu(x);
    const Tensor late = silu_first ? relu(x) : silu(x);
    const Tensor product = silu_first ? matmul(late, early) : matmul(early, late);
    return to_string(schedule_of({{"y", product}}));
  };
  EXPECT_EQ(text(true), text(false));
}

}  // namespace
}  // namespace meganeura::schedule
