#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "device/interpreter/interpreter.h"
#include "runtime/test_support.h"

namespace meganeura {
namespace {

// The same on every kind of device.
class SessionTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto [entry, fresh] = devices().try_emplace(GetParam());
    if (fresh) entry->second.device = test_device(GetParam(), entry->second.why);
    implementation_ = entry->second.device;
    if (!implementation_) GTEST_SKIP() << "No usable Vulkan device: " << entry->second.why;
    device_.emplace(implementation_);
  }
  static void TearDownTestSuite() { devices().clear(); }

  struct Opened {
    std::shared_ptr<device::Device> device;
    std::string why;
  };
  static std::map<std::string, Opened>& devices() {
    static std::map<std::string, Opened> map;
    return map;
  }

  std::shared_ptr<device::Device> implementation_;
  std::optional<Device> device_;
};

INSTANTIATE_TEST_SUITE_P(, SessionTest, testing::Values("interpreter", "addresses", "descriptors"),
                         [](const auto& param) { return param.param; });

std::vector<float> ramp(size_t count, float start, float step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = start + step * static_cast<float>(i);
  return values;
}

constexpr std::array<uint32_t, kTestLabels> kLabels = {0, 9, 3, 3, 1};
const TensorView kLabelView(kLabels.data(), u32, Shape{kTestLabels});

void set_all(Session& session, const std::vector<float>& x, const std::vector<float>& rate) {
  session.set("x", view(x));
  session.set("rate", view(rate));
  session.set("label", kLabelView);
}

TEST_P(SessionTest, RunsSegmentsInOrderOverPersistentTensors) {
  constexpr size_t kElements = 1000;
  const TestProgram test(*implementation_, kElements);
  ParameterStore store(*device_, 1);
  Session session(*device_, test.program, store);
  const std::vector<float> x = ramp(kElements, 0.5f, 0.001f);
  const std::vector<float> rate = ramp(kElements, -0.25f, 0.002f);
  std::vector<float> w = floats(store.read("w"));
  set_all(session, x, rate);
  for (int step = 0; step < 5; ++step) {
    const RunHandle run = session.run();
    const std::vector<float> y = floats(run.output("y"));
    for (size_t i = 0; i < kElements; ++i) {
      const float c = test_constant(static_cast<int64_t>(i));
      ASSERT_EQ(y[i], w[i] * x[i] + c) << "step " << step << ", element " << i;
      w[i] = (w[i] * x[i] + rate[i]) + c;
    }
    EXPECT_EQ(run.scalar("total"), static_cast<float>(step + 1));
    EXPECT_EQ(floats(store.read("w")), w) << "step " << step;
  }
  EXPECT_EQ(store.read("count").as<float>()[0], 5.0f);
}

TEST_P(SessionTest, ValuesStaySetInEverySlotOfTheRing) {
  const TestProgram test(*implementation_);
  ParameterStore store(*device_);
  Session session(*device_, test.program, store, 3);
  store.write("w", view(std::vector<float>(7, 1.0f)));
  const std::vector<std::string> forward = {"forward"};
  std::vector<RunHandle> runs;
  std::vector<float> x = ramp(7, 1, 1);
  set_all(session, x, std::vector<float>(7, 0.0f));
  std::vector<std::vector<float>> expected;
  for (int step = 0; step < 11; ++step) {
    if (step % 4 == 3) {
      x = ramp(7, static_cast<float>(step), 0.5f);
      session.set("x", view(x));
    }
    runs.push_back(session.run(forward));
    expected.emplace_back();
    for (int64_t i = 0; i < 7; ++i) {
      expected.back().push_back(x[static_cast<size_t>(i)] + test_constant(i));
    }
  }
  for (size_t step = 0; step < runs.size(); ++step) {
    EXPECT_EQ(floats(runs[step].output("y")), expected[step]) << "run " << step;
    const HostTensor echo = runs[step].output("echo");
    EXPECT_EQ(std::memcmp(echo.bytes.data(), kLabels.data(), sizeof(kLabels)), 0);
  }
}

TEST_P(SessionTest, HandlesOutliveTheSessionAndItsMoves) {
  const TestProgram test(*implementation_);
  ParameterStore store(*device_);
  std::optional<RunHandle> run;
  {
    Session first(*device_, test.program, store);
    set_all(first, ramp(7, 0, 1), ramp(7, 0, 0));
    run = first.run();
    Session second = std::move(first);
    second.wait();
    EXPECT_TRUE(run->done());
    second.run();
  }
  EXPECT_TRUE(run->done());
  run->wait();
  EXPECT_EQ(run->scalar("total"), 1.0f);
  EXPECT_EQ(run->output("y").shape, Shape{7});
}

TEST_P(SessionTest, RunsEmptyTensors) {
  const TestProgram test(*implementation_, 0);
  ParameterStore store(*device_);
  Session session(*device_, test.program, store);
  session.set("label", kLabelView);  // the empty inputs need no value
  const RunHandle run = session.run();
  EXPECT_TRUE(run.output("y").bytes.empty());
  EXPECT_EQ(run.output("y").shape, Shape{0});
  EXPECT_EQ(run.scalar("total"), 1.0f);
  session.set("x", {nullptr, f32, Shape{0}});
  EXPECT_TRUE(store.read("w").bytes.empty());
  store.write("w", {nullptr, f32, Shape{0}});
  EXPECT_EQ(session.run().scalar("total"), 2.0f);
}

TEST_P(SessionTest, ProgramsShareAStore) {
  const TestProgram small(*implementation_);
  ParameterStore store(*device_, 3);
  Session training(*device_, small.program, store, 1);
  Session evaluation(*device_, small.program, store, 2);
  set_all(training, ramp(7, 1, 1), ramp(7, 0, 0));
  set_all(evaluation, ramp(7, 1, 1), ramp(7, 0, 0));
  EXPECT_EQ(training.run().scalar("total"), 1.0f);
  EXPECT_EQ(evaluation.run().scalar("total"), 2.0f);
  EXPECT_EQ(training.run().scalar("total"), 3.0f);
  EXPECT_EQ(store.names(), (std::vector<std::string>{"w", "count"}));
  EXPECT_EQ(store.bytes(), 512u);
}

TEST_P(SessionTest, TwoSessionsGiveTheSameBits) {
  const TestProgram test(*implementation_, 333);
  std::vector<std::byte> first;
  for (int repeat = 0; repeat < 2; ++repeat) {
    ParameterStore store(*device_, 99);
    Session session(*device_, test.program, store, repeat + 1);
    set_all(session, ramp(333, 0.1f, 0.003f), ramp(333, 0.7f, -0.001f));
    for (int step = 0; step < 4; ++step) session.run();
    const std::vector<std::byte> bytes = store.read("w").bytes;
    if (repeat == 0) first = bytes;
    EXPECT_EQ(bytes, first);
  }
}

// Over the interpreter alone: what follows does not depend on the device.
class SessionCheckTest : public testing::Test {
 protected:
  SessionCheckTest()
      : watched_(std::make_shared<WatchedDevice>(device::open_interpreter())),
        device_(watched_),
        test_(*watched_),
        store_(device_) {}

  Session make(int in_flight = 3) { return Session(device_, test_.program, store_, in_flight); }

  std::shared_ptr<WatchedDevice> watched_;
  Device device_;
  TestProgram test_;
  ParameterStore store_;
  std::vector<float> x_ = ramp(7, 1, 1);
};

TEST_F(SessionCheckTest, SubmitsOnceARunAndCopiesInputsOnlyWhenTheyChanged) {
  Session session = make();
  set_all(session, x_, x_);
  const int recordings = watched_->recordings;
  watched_->submitted.clear();
  session.run();  // inputs, two segments, outputs
  session.run();  // nothing new
  session.set("x", view(x_));
  session.run();
  session.run();
  EXPECT_EQ(watched_->submitted, (std::vector<size_t>{4, 3, 4, 3}));
  EXPECT_EQ(watched_->recordings, recordings) << "Runs replay what was recorded once.";
}

TEST_F(SessionCheckTest, NamesInputsThatWereNeverSet) {
  Session session = make();
  session.set("x", view(x_));
  const Error all = error_of([&] { session.run(); });
  EXPECT_EQ(all.kind(), ErrorKind::kInvalidArgument);
  EXPECT_TRUE(mentions(all, "rate, label")) << all.what();
  const std::vector<std::string> update = {"update"};
  const Error one = error_of([&] { session.run(update); });
  EXPECT_TRUE(mentions(one, "never set: rate.")) << one.what();
  session.set("rate", view(x_));
  session.run(update);
}

TEST_F(SessionCheckTest, RefusesWrongNamesTypesAndShapes) {
  Session session = make();
  const Error name = error_of([&] { session.set("images", 1.0f); });
  EXPECT_EQ(name.kind(), ErrorKind::kInvalidArgument);
  EXPECT_TRUE(mentions(name, "\"images\"; it has x, rate, label")) << name.what();
  const Error shape = error_of([&] { session.set("x", 1.0f); });
  EXPECT_EQ(shape.kind(), ErrorKind::kShape);
  EXPECT_TRUE(mentions(shape, "The input \"x\" is f32 [7], and the value is f32 []"))
      << shape.what();
  EXPECT_EQ(error_of([&] { session.set("label", view(x_)); }).kind(), ErrorKind::kShape);
  EXPECT_EQ(error_of([&] {
              session.set("x", {x_.data(), f32, Shape{7}, {1, 1}});
            }).kind(),
            ErrorKind::kShape);
  EXPECT_EQ(error_of([&] {
              session.set("x", {nullptr, f32, Shape{7}});
            }).kind(),
            ErrorKind::kInvalidArgument);
  const std::vector<std::string> segments = {"forward", "backward"};
  const Error segment = error_of([&] { session.run(segments); });
  EXPECT_EQ(segment.kind(), ErrorKind::kInvalidArgument);
  EXPECT_TRUE(mentions(segment, "\"backward\"; it has forward, update")) << segment.what();
}

TEST_F(SessionCheckTest, NamesThePositionOfAValueBeyondTheLimitAndKeepsTheOldValue) {
  Session session = make();
  set_all(session, x_, x_);
  const std::array<uint32_t, kTestLabels> bad = {1, 2, 3, 10, 4};
  const Error error = error_of([&] {
    session.set("label", {bad.data(), u32, Shape{kTestLabels}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_TRUE(mentions(error, "\"label\" holds 10 at [3]")) << error.what();
  EXPECT_TRUE(mentions(error, "from 0 to 9")) << error.what();
  const HostTensor echo = session.run().output("echo");
  EXPECT_EQ(std::memcmp(echo.bytes.data(), kLabels.data(), sizeof(kLabels)), 0);
}

TEST_F(SessionCheckTest, CopiesStridedViews) {
  Session session = make();
  store_.write("w", view(std::vector<float>(7, 1.0f)));
  const std::vector<float> wide = ramp(14, 0, 1);
  session.set("label", kLabelView);
  const std::vector<std::string> forward = {"forward"};
  const auto run = [&](TensorView value) {
    session.set("x", value);
    return floats(session.run(forward).output("y"));
  };
  const std::vector<float> every_second = run({wide.data(), f32, Shape{7}, {2}});
  const std::vector<float> backwards = run({wide.data() + 6, f32, Shape{7}, {-1}});
  const std::vector<float> repeated = run({wide.data() + 3, f32, Shape{7}, {0}});
  for (int64_t i = 0; i < 7; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(every_second[at], static_cast<float>(2 * i) + test_constant(i));
    EXPECT_EQ(backwards[at], static_cast<float>(6 - i) + test_constant(i));
    EXPECT_EQ(repeated[at], 3.0f + test_constant(i));
  }
}

TEST_F(SessionCheckTest, RefusesOutputsThatTheRunDidNotCompute) {
  Session session = make();
  set_all(session, x_, x_);
  const std::vector<std::string> update = {"update"};
  const RunHandle run = session.run(update);
  const Error error = error_of([&] { run.output("y"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_TRUE(mentions(error, "run the segment forward with it")) << error.what();
  const Error unknown = error_of([&] { run.output("loss"); });
  EXPECT_TRUE(mentions(unknown, "it has y, total, echo")) << unknown.what();
  EXPECT_EQ(error_of([&] { session.run().scalar("y"); }).kind(), ErrorKind::kShape);
  EXPECT_EQ(error_of([&] { session.run().scalar("echo"); }).kind(), ErrorKind::kShape);
}

TEST_F(SessionCheckTest, ADeviceLostWhileWaitingReachesEveryHandle) {
  std::optional<RunHandle> kept;
  {
    Session session = make(1);
    set_all(session, x_, x_);
    kept = session.run();
    watched_->lost_on_wait = true;
    EXPECT_EQ(error_of([&] { kept->output("y"); }).kind(), ErrorKind::kDeviceLost);
    EXPECT_EQ(error_of([&] { kept->done(); }).kind(), ErrorKind::kDeviceLost);
    EXPECT_EQ(error_of([&] { session.run(); }).kind(), ErrorKind::kDeviceLost);
    EXPECT_EQ(error_of([&] { session.wait(); }).kind(), ErrorKind::kDeviceLost);
  }
  EXPECT_EQ(error_of([&] { kept->wait(); }).kind(), ErrorKind::kDeviceLost);
  EXPECT_EQ(error_of([&] { kept->done(); }).kind(), ErrorKind::kDeviceLost);
  EXPECT_EQ(error_of([&] { kept->output("y"); }).kind(), ErrorKind::kDeviceLost);
}

TEST_F(SessionCheckTest, ARunThatWasNotSubmittedLosesNoInput) {
  Session session = make();
  set_all(session, x_, x_);
  store_.write("w", view(std::vector<float>(7, 1.0f)));
  watched_->lost_on_submit = true;
  EXPECT_EQ(error_of([&] { session.run(); }).kind(), ErrorKind::kDeviceLost);
  watched_->lost_on_submit = false;
  EXPECT_EQ(floats(session.run().output("y"))[2], x_[2] + test_constant(2));
}

TEST_F(SessionCheckTest, RefusesBadArguments) {
  EXPECT_EQ(error_of([&] { make(0); }).kind(), ErrorKind::kInvalidArgument);
  const Device other(device::open_interpreter());
  EXPECT_EQ(error_of([&] { Session(other, test_.program, store_); }).kind(),
            ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([] { Device(nullptr); }).kind(), ErrorKind::kInvalidArgument);
}

TEST_F(SessionCheckTest, ReportsItsMemory) {
  const Session session = make();
  // x, rate, label; y, total, echo; c, bias, zeros, zero; product, next count: 256 bytes each.
  EXPECT_EQ(session.device_bytes(), 12 * 256u);
  EXPECT_EQ(session.program().segments.size(), 2u);
}

TEST_F(SessionCheckTest, NamesTheArenaThatIsTooLarge) {
  device::InterpreterOptions options;
  options.capabilities = device::interpreter_capabilities();
  options.capabilities->max_allocation_bytes = 512;
  const Device small(device::open_interpreter(options));
  ParameterStore store(small);
  const TestProgram test(small.implementation());
  const Error error = error_of([&] { Session(small, test.program, store); });
  EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
  EXPECT_TRUE(mentions(error, "The program's inputs take 768 bytes")) << error.what();
}

TEST_F(SessionCheckTest, RefusesProgramsForOtherDevices) {
  const auto refusal = [&](const std::function<void(Program&)>& change) {
    Program program = test_.program;
    change(program);
    const Error error = error_of([&] { Session(device_, program, store_); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << error.what();
    return error;
  };
  const Error subgroup = refusal([](Program& p) { p.capabilities.subgroup_size = 64; });
  EXPECT_TRUE(mentions(subgroup, "subgroups of 64")) << subgroup.what();
  refusal([](Program& p) { p.capabilities.shared_bytes = 1u << 31; });
  device::InterpreterOptions options;
  options.capabilities = device::interpreter_capabilities();
  options.capabilities->fused_fma = false;
  options.capabilities->subgroup_shuffle = false;
  const Device plain(device::open_interpreter(options));
  ParameterStore store(plain);
  const Error error = error_of([&] { Session(plain, test_.program, store); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_TRUE(mentions(error, "subgroup shuffles, fma that rounds once")) << error.what();
}

TEST_F(SessionCheckTest, RefusesAProgramOfAnotherTarget) {
  std::string why;
  const auto vulkan = test_device("addresses", why);
  if (!vulkan) GTEST_SKIP() << "No usable Vulkan device: " << why;
  const Device device(vulkan);
  ParameterStore store(device);
  const Error error = error_of([&] { Session(device, test_.program, store); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_TRUE(mentions(error, "compiled for interpreter")) << error.what();
}

}  // namespace
}  // namespace meganeura
