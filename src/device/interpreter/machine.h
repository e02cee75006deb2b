// The interpreter's state for one dispatch.
#pragma once

#include <string_view>
#include <vector>

#include "device/interpreter/access_tracker.h"
#include "device/interpreter/interpreter.h"

namespace meganeura::device {

// The invocations of a workgroup that execute an instruction.
struct Mask {
  std::vector<uint8_t> active;  // by invocation
  uint32_t count = 0;
};

class Machine {
 public:
  // The kernel must have passed kir::verify.
  Machine(const kir::Kernel& kernel, std::array<uint32_t, 3> grid,
          std::span<const std::span<std::byte>> slots, std::span<const uint32_t> params,
          const RunOptions& options);
  void run();

 private:
  struct SlotView {
    std::byte* data = nullptr;
    uint64_t elements = 0;
    AccessTracker* tracker = nullptr;  // null: nobody writes what this slot sees
    uint64_t tracked_at = 0;           // the tracker's word of element 0
  };
  struct SharedView {
    std::vector<uint32_t> data;
    AccessTracker tracker;
  };
  struct BuiltinUse {
    kir::Builtin builtin;
    uint32_t* values;
  };

  void bind_slots(std::span<const std::span<std::byte>> slots);
  void bind_overlapping(std::span<const std::span<std::byte>> slots,
                        std::span<const size_t> members);
  void allocate_values();
  void prepare(const kir::Block& block);
  void run_workgroup();

  void execute(const kir::Block& block, const Mask& mask);
  void execute(const kir::Instruction& instruction, const Mask& mask);
  void arith(const kir::Instruction& instruction);
  void vector(const kir::Instruction& instruction);
  void load(const kir::Instruction& instruction, const Mask& mask);
  void store(const kir::Instruction& instruction, const Mask& mask);
  void shared_load(const kir::Instruction& instruction, const Mask& mask);
  void shared_store(const kir::Instruction& instruction, const Mask& mask);
  void barrier(const kir::Instruction& instruction, const Mask& mask);
  void subgroup(const kir::Instruction& instruction, const Mask& mask);
  void subgroup_move(const kir::Instruction& instruction, const Mask& mask);
  void loop(const kir::Instruction& instruction, const Mask& mask);
  bool advance(const kir::Instruction& instruction, Mask& live, bool first);
  void branch(const kir::Instruction& instruction, const Mask& mask);
  void carry(std::span<const kir::Value> from, std::span<const kir::Value> to, const Mask& mask);
  void copy(const uint32_t* from, kir::Value to, const Mask& mask);

  uint32_t* values(kir::Value value) { return storage_.data() + offsets_[value.id]; }
  size_t words(kir::Value value) const { return size_t{invocations_} * kernel_.type(value).lanes; }
  uint32_t global_invocation(uint32_t invocation) const {
    return workgroup_ * invocations_ + invocation + 1;
  }
  // Throws unless [index, index + lanes) lies inside and index is a multiple of lanes.
  void check_index(const kir::Instruction& instruction, uint32_t invocation, uint32_t index,
                   uint32_t lanes, uint64_t elements, const std::string& name) const;
  void check_race(const kir::Instruction& instruction, uint32_t invocation, uint64_t index,
                  uint32_t other, const std::string& name, bool shared) const;
  [[noreturn]] void fault(const kir::Instruction& instruction, const std::string& message) const;
  [[noreturn]] void fault(const kir::Instruction& instruction, uint32_t invocation,
                          const std::string& message) const;

  const kir::Kernel& kernel_;
  std::array<uint32_t, 3> grid_;
  std::vector<uint32_t> params_;
  RunOptions options_;
  uint32_t subgroup_size_ = 1;
  uint32_t invocations_ = 1;
  std::vector<size_t> offsets_;    // into storage_, by value id
  std::vector<uint32_t> storage_;  // component-major: [component][invocation]
  std::vector<uint32_t> scratch_;
  std::vector<uint8_t> parameter_;  // by value id: parameter of a block
  std::vector<BuiltinUse> workgroup_ids_;
  std::vector<AccessTracker> trackers_;
  std::vector<SlotView> slots_;
  std::vector<SharedView> shared_;
  std::array<uint32_t, 3> position_{};
  uint32_t workgroup_ = 0;    // linear
  uint32_t epoch_ = 0;        // of shared memory
  uint32_t first_epoch_ = 1;  // of this workgroup
};

}  // namespace meganeura::device
