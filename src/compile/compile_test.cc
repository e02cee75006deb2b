#include "meganeura/compile.h"

#include <gtest/gtest.h>

#include "meganeura/autodiff.h"
#include "meganeura/error.h"
#include "meganeura/ops.h"
#include "meganeura/session.h"
#include "program/program.h"

namespace meganeura {
namespace {

std::string message_of(std::span<const SegmentOutputs> segments,
                       const CompileOptions& options = {}) {
  try {
    compile(segments, Device::open({.select = "interpreter"}), options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Compile, RefusesToCompileNothing) {
  EXPECT_TRUE(contains(message_of({}), "nothing to compile"));
}

TEST(Compile, RefusesAnUnknownPassByName) {
  Graph g;
  const SegmentOutputs segment{"run", {{"y", exp(g.input("x", f32, {3}))}}};
  EXPECT_TRUE(contains(message_of({&segment, 1}, {.disable = {"fusee"}}), "fuse, merge"));
}

TEST(Compile, RefusesTwoTensorsOfOneName) {
  Graph g;
  const SegmentOutputs segment{"run", {{"x", exp(g.input("x", f32, {3}))}}};
  EXPECT_TRUE(contains(message_of({&segment, 1}), "\"x\" stands for two tensors"));
}

TEST(Compile, RefusesTwoAssignsOfOneLeaf) {
  Graph g;
  const Tensor state = g.state("state", f32, {3});
  const SegmentOutputs segment{
      "run", {{"a", assign(state, state + 1.0)}, {"b", assign(state, state + 2.0)}}};
  EXPECT_TRUE(contains(message_of({&segment, 1}), "\"state\""));
}

TEST(Compile, IsDeterministicToTheByte) {
  const auto bytes = [] {
    Graph g;
    const Tensor x = g.input("x", f32, {5, 7});
    const Tensor w = g.parameter("w", f32, {3, 7}, Initializer::uniform(-1, 1));
    const Tensor loss = mean(tanh(linear(x, w)));
    const std::vector<Tensor> parameters = {w};
    const Tensor next = assign(w, w - grad(loss, parameters)[0] * 0.1);
    const SegmentOutputs segment{"step", {{"loss", loss}, {"w_next", next}}};
    return serialize(*compile({&segment, 1}, Device::open({.select = "interpreter"})));
  };
  EXPECT_EQ(bytes(), bytes());
}

TEST(Compile, ReportsWhatItMade) {
  Graph g;
  const Tensor x = g.input("x", f32, {64, 64});
  const Tensor shared = exp(x);
  const SegmentOutputs segment{"run", {{"a", sum(shared, {0})}, {"b", sum(shared, {1})}}};
  CompileReport report;
  compile({&segment, 1}, Device::open({.select = "interpreter"}), {.keep_text = true}, &report);
  EXPECT_EQ(report.kernels, 3u);
  EXPECT_EQ(report.levels, 2u);
  EXPECT_GE(report.scratch_bytes, report.live_peak_bytes);
  EXPECT_EQ(report.live_peak_bytes, 64u * 64u * 4u);
  EXPECT_EQ(report.stages.size(), 5u);
}

// a and b trade values, which no order of in-place updates can do.
TEST(Compile, TradesTheValuesOfTwoStates) {
  Graph g;
  const Tensor a = g.state("a", f32, {3}, Initializer::constant(1.0));
  const Tensor b = g.state("b", f32, {3}, Initializer::constant(5.0));
  const SegmentOutputs segment{"run", {{"a_next", assign(a, b)}, {"b_next", assign(b, a)}}};
  const Device device = Device::open({.select = "interpreter"});
  const auto program = compile({&segment, 1}, device);
  ParameterStore store(device);
  Session session(device, *program, store);
  session.run().wait();
  EXPECT_EQ(store.read("a").as<float>()[2], 5.0f);
  EXPECT_EQ(store.read("b").as<float>()[0], 1.0f);
}

TEST(Compile, CarriesStatesFromSegmentToSegment) {
  Graph g;
  const Tensor sum_state = g.state("sum", f32, {});
  const Tensor x = g.input("x", f32, {});
  const SegmentOutputs segments[] = {{"add", {{"sum_next", assign(sum_state, sum_state + x)}}},
                                     {"show", {{"doubled", sum_state * 2.0}}}};
  const Device device = Device::open({.select = "interpreter"});
  const auto program = compile(segments, device);
  ParameterStore store(device);
  Session session(device, *program, store);
  session.set("x", 3.0f);
  const std::vector<std::string> twice = {"add", "add", "show"};
  EXPECT_EQ(session.run(twice).scalar("doubled"), 12.0f);
}

}  // namespace
}  // namespace meganeura
