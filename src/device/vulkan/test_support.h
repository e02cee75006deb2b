// What the tests of this layer share.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/vulkan/arithmetic_check_words.h"
#include "device/vulkan/vulkan_device.h"
#include "meganeura/error.h"

namespace meganeura::device::vulkan {

// The best device opened with the options, or nullptr with the reason in `why`.
inline std::shared_ptr<VulkanDevice> open_for_test(const OpenOptions& options, std::string& why) {
  try {
    // Descriptors ask for less, so that a device without addresses skips only what needs them.
    static const size_t index = best(list({.descriptors = true}));
    return open(index, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported) throw;
    why = error.what();
    return nullptr;
  }
}

// Slot 0 holds triples (a, b, c); slot 1 receives fma(a, b, c), a / b and sqrt(a).
inline Module triples_module() {
  Module module;
  module.name = "triples";
  module.words.assign(std::begin(kArithmeticCheckWords), std::end(kArithmeticCheckWords));
  module.binding = BindingMode::kDescriptor;
  module.slots = 2;
  module.local_size = {64, 1, 1};
  return module;
}

inline Span whole(Memory& memory) { return {&memory, 0, memory.bytes()}; }

inline Command copy(const Span& source, const Span& destination) {
  Command command;
  command.kind = Command::Kind::kCopy;
  command.label = "copy";
  command.source = source;
  command.destination = destination;
  return command;
}

inline Command fill(const Span& destination, uint32_t pattern) {
  Command command;
  command.kind = Command::Kind::kFill;
  command.label = "fill";
  command.destination = destination;
  command.pattern = pattern;
  return command;
}

inline Command dispatch(Pipeline& pipeline, uint32_t groups, std::vector<BoundSpan> bindings,
                        std::vector<uint32_t> params = {}) {
  Command command;
  command.kind = Command::Kind::kDispatch;
  command.label = "test dispatch";
  command.pipeline = &pipeline;
  command.grid = {groups, 1, 1};
  command.bindings = std::move(bindings);
  command.params = std::move(params);
  return command;
}

inline void run(Device& device, const std::vector<Command>& commands) {
  const std::unique_ptr<Recording> recording = device.record(commands);
  Recording* recordings[] = {recording.get()};
  device.wait(device.submit(recordings));
}

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

}  // namespace meganeura::device::vulkan
