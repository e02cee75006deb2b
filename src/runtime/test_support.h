// A hand-made program and the devices that tests run it on.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "meganeura/error.h"
#include "meganeura/session.h"
#include "program/program.h"

namespace meganeura {

// Segment "forward": y = w·x + c, total = bias + count and echo = label. Segment "update":
// w = (w·x + rate) + c and count = bias + count. The inputs are x, rate (f32, a vector each) and
// label (u32, limit 10); w and count persist; c and bias are constants.
struct TestProgram {
  explicit TestProgram(const device::Device& device, int64_t elements = 7);
  Program program;
};

// c of the program for element i.
inline float test_constant(int64_t i) { return 0.25f * static_cast<float>(i) - 1.0f; }
inline constexpr float kTestBias = 1.0f;
inline constexpr int64_t kTestLabels = 5;

// Opens the interpreter or Vulkan's best device, binding as the kind says; nullptr with the reason
// when the machine has none.
// Kinds: "interpreter", "addresses", "descriptors".
std::shared_ptr<device::Device> test_device(const std::string& kind, std::string& why);

// Forwards to another device, counts, and fails on request.
class WatchedDevice final : public device::Device {
 public:
  explicit WatchedDevice(std::shared_ptr<device::Device> inner) : inner_(std::move(inner)) {}
  const device::DeviceInfo& info() const override { return inner_->info(); }
  const Capabilities& capabilities() const override { return inner_->capabilities(); }
  CodeKind code() const override { return inner_->code(); }
  std::unique_ptr<device::Memory> allocate(uint64_t bytes, device::MemoryKind kind) override {
    ++allocations;
    return inner_->allocate(bytes, kind);
  }
  std::vector<std::unique_ptr<device::Pipeline>> create_pipelines(
      std::span<const Module> modules) override {
    return inner_->create_pipelines(modules);
  }
  std::unique_ptr<device::Recording> record(std::span<const device::Command> commands) override {
    ++recordings;
    return inner_->record(commands);
  }
  uint64_t submit(std::span<device::Recording* const> batch) override {
    fail_if(lost_on_submit);
    submitted.push_back(batch.size());
    return inner_->submit(batch);
  }
  void wait(uint64_t ticket) override {
    fail_if(lost_on_wait);
    inner_->wait(ticket);
  }
  bool done(uint64_t ticket) override {
    fail_if(lost_on_wait);
    return inner_->done(ticket);
  }

  bool lost_on_submit = false;
  bool lost_on_wait = false;
  int allocations = 0;
  int recordings = 0;
  std::vector<size_t> submitted;  // recordings of each submission

 private:
  static void fail_if(bool lost) {
    if (lost) throw Error(ErrorKind::kDeviceLost, "The test lost the device.");
  }
  std::shared_ptr<device::Device> inner_;
};

// The Error that the action throws; a test failure when it throws none.
inline Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "Nothing was thrown.";
  return {ErrorKind::kInternal, ""};
}

inline bool mentions(const Error& error, const std::string& text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

inline TensorView view(const std::vector<float>& values) {
  return {values.data(), f32, Shape{static_cast<int64_t>(values.size())}};
}

inline std::vector<float> floats(const HostTensor& tensor) {
  return {tensor.as<float>().begin(), tensor.as<float>().end()};
}

}  // namespace meganeura
