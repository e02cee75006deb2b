// The inside of Session and RunHandle.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "meganeura/error.h"
#include "meganeura/session.h"
#include "program/program.h"
#include "runtime/parameter_store.h"

namespace meganeura {

// An output of the program and where a run's read-back slot holds it.
struct OutputSlot {
  const ProgramTensor* tensor = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::vector<size_t> writers;  // segments that compute it; none for empty tensors
};

// What a session and the handles of its runs share.
struct OutputTable {
  std::shared_ptr<const Program> program;
  std::vector<OutputSlot> slots;
  std::map<std::string, size_t, std::less<>> index;
};

struct RunHandle::Implementation {
  Session::Implementation* session = nullptr;  // null once the results moved to `bytes`
  std::shared_ptr<const OutputTable> outputs;
  size_t ring = 0;
  uint64_t ticket = 0;
  std::vector<bool> ran;         // by segment
  std::vector<std::byte> bytes;  // of the read-back slot, after the session let go
  std::optional<Error> failure;  // why there are no results

  void wait() const;
  const OutputSlot& find(std::string_view name) const;
  std::span<const std::byte> result(const OutputSlot& slot) const;
};

struct Session::Implementation {
  Implementation(Device device, const Program& program,
                 std::shared_ptr<ParameterStore::Implementation> store, int in_flight);
  ~Implementation();

  void set(std::string_view name, const TensorView& value);
  std::shared_ptr<RunHandle::Implementation> run(std::span<const std::string> segments);
  void wait();
  uint64_t device_bytes() const;
  const Program& program() const { return *program_; }
  device::Device& device() { return device_.implementation(); }
  const std::byte* readback(size_t ring) const { return ring_[ring].readback->mapped(); }

 private:
  struct InputSlot {
    const ProgramTensor* tensor = nullptr;
    uint64_t bytes = 0;
    uint64_t version = 0;       // counts set(); 0: never
    std::vector<bool> readers;  // by segment
  };
  // Memory and commands that one run in flight owns.
  struct RingSlot {
    std::unique_ptr<device::Memory> upload;
    std::unique_ptr<device::Memory> readback;
    std::unique_ptr<device::Recording> copy_in;   // null without inputs
    std::unique_ptr<device::Recording> copy_out;  // null without outputs
    std::vector<uint64_t> versions;               // of the inputs in `upload`
    uint64_t ticket = 0;
    std::weak_ptr<RunHandle::Implementation> run;
  };

  void allocate_arenas();
  void list_inputs();
  void list_outputs();
  bool touches(size_t segment, const Region& region, bool Binding::*access) const;
  device::Span resolve(const Region& region) const;
  void record_segments();
  std::vector<device::Command> segment_commands(const Segment& segment) const;
  void make_ring(int in_flight);
  std::vector<bool> choose(std::span<const std::string> names, std::vector<size_t>& order) const;
  void check_inputs_set(const std::vector<bool>& ran) const;
  void retire(RingSlot& slot);
  bool stage_inputs(RingSlot& slot);

  Device device_;
  std::shared_ptr<const Program> program_;
  std::shared_ptr<ParameterStore::Implementation> store_;
  std::vector<std::unique_ptr<device::Memory>> arenas_;  // by Region::Space, none for kTensor
  std::vector<std::unique_ptr<device::Pipeline>> pipelines_;
  std::vector<std::unique_ptr<device::Recording>> segments_;
  std::vector<InputSlot> inputs_;
  std::map<std::string, size_t, std::less<>> input_index_;
  std::vector<std::byte> input_values_;       // laid out as the input arena
  std::vector<uint64_t> submitted_versions_;  // of the inputs in the device's arena
  std::shared_ptr<OutputTable> outputs_;
  uint64_t readback_bytes_ = 0;
  std::vector<RingSlot> ring_;
  size_t next_ = 0;
};

}  // namespace meganeura
