// What the run time asks of a device. Vulkan, the interpreter and (later) Metal implement it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel_ir/capabilities.h"
#include "program/program.h"

namespace meganeura::device {

enum class MemoryKind : uint8_t {
  kDevice,    // not mapped
  kUpload,    // mapped, host writes
  kReadback,  // mapped, host-cached
};

// One allocation; freed when destroyed (after the device finished with it).
class Memory {
 public:
  virtual ~Memory() = default;
  virtual uint64_t bytes() const = 0;
  virtual std::byte* mapped() = 0;  // nullptr for kDevice on devices that need staging
};

class Pipeline {
 public:
  virtual ~Pipeline() = default;
};

struct Span {
  Memory* memory = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct BoundSpan {
  Span span;
  bool read = false;
  bool write = false;
};

// A step of a recording, in order.
struct Command {
  enum class Kind : uint8_t { kDispatch, kCopy, kFill, kBarrier };
  Kind kind = Kind::kBarrier;
  // kDispatch
  Pipeline* pipeline = nullptr;
  std::array<uint32_t, 3> grid{};
  std::vector<BoundSpan> bindings;
  std::vector<uint32_t> params;
  std::string label;
  // kCopy: source → destination of equal bytes. kFill: destination with `pattern` words.
  Span source;
  Span destination;
  uint32_t pattern = 0;
};

// Throws Error(kInternal) naming both commands if two commands without a barrier between them
// touch overlapping bytes of one memory and at least one of them writes.
void check_commands(std::span<const Command> commands);

// A command buffer, recorded once and submitted any number of times.
class Recording {
 public:
  virtual ~Recording() = default;
};

struct DeviceInfo {
  std::string name;
  std::string driver;
  std::string api;   // "Vulkan 1.3.230", "interpreter"
  std::string uuid;  // device and driver, for cache keys
  uint64_t memory_bytes = 0;
  bool software = false;
  std::vector<std::pair<std::string, std::string>> details;  // limits and features, for listings
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual const Capabilities& capabilities() const = 0;
  virtual CodeKind code() const = 0;  // what modules must hold

  // Error(kOutOfMemory) naming the size.
  virtual std::unique_ptr<Memory> allocate(uint64_t bytes, MemoryKind kind) = 0;
  // In the order of the modules; created in parallel.
  virtual std::vector<std::unique_ptr<Pipeline>> create_pipelines(
      std::span<const Module> modules) = 0;
  virtual std::unique_ptr<Recording> record(std::span<const Command> commands) = 0;
  // Runs the recordings in order after everything submitted before; returns a ticket. A full
  // memory barrier stands between recordings.
  virtual uint64_t submit(std::span<Recording* const> recordings) = 0;
  // Blocks until the ticket is done; Error(kDeviceLost) is sticky.
  virtual void wait(uint64_t ticket) = 0;
  virtual bool done(uint64_t ticket) = 0;
};

}  // namespace meganeura::device
