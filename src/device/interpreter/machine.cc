#include "device/interpreter/machine.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/check.h"
#include "device/interpreter/arithmetic.h"
#include "kernel_ir/text.h"
#include "scalar/evaluate.h"

namespace meganeura::device {

using kir::Block;
using kir::Instruction;
using kir::Opcode;
using kir::Value;
using scalar::Op;
using scalar::Type;

namespace {

constexpr uint32_t kMaxSubgroup = 128;
// All accesses to slots within one dispatch are unordered.
constexpr uint32_t kDispatchEpoch = 1;

uint32_t load_word(const std::byte* at) {
  uint32_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

}  // namespace

Machine::Machine(const kir::Kernel& kernel, std::array<uint32_t, 3> grid,
                 std::span<const std::span<std::byte>> slots, std::span<const uint32_t> params,
                 const RunOptions& options)
    : kernel_(kernel), grid_(grid), params_(params.begin(), params.end()), options_(options) {
  subgroup_size_ = kernel.subgroup_size != 0 ? kernel.subgroup_size : options.subgroup_size;
  MG_CHECK(subgroup_size_ >= 1 && subgroup_size_ <= kMaxSubgroup &&
               (subgroup_size_ & (subgroup_size_ - 1)) == 0,
           "A subgroup size of ", subgroup_size_, " is no power of two up to ", kMaxSubgroup, ".");
  MG_CHECK(slots.size() == kernel.slots.size(), "Kernel \"", kernel.name, "\" has ",
           kernel.slots.size(), " slots but ", slots.size(), " are bound.");
  MG_CHECK(params.size() == kernel.params, "Kernel \"", kernel.name, "\" takes ", kernel.params,
           " arguments but ", params.size(), " are given.");
  for (uint32_t size : kernel.local_size) invocations_ *= size;
  uint64_t total = invocations_;
  for (uint32_t count : grid) {
    MG_CHECK(total * count < AccessTracker::kSeveral, "Kernel \"", kernel.name,
             "\" is dispatched with 2^32 invocations or more, too many to interpret.");
    total *= count;
  }
  allocate_values();
  bind_slots(slots);
  for (const kir::SharedArray& array : kernel.shared) {
    shared_.push_back({std::vector<uint32_t>(array.count), AccessTracker(array.count)});
  }
}

void Machine::allocate_values() {
  size_t total = 0;
  for (const kir::ValueType& type : kernel_.types) {
    offsets_.push_back(total);
    total += size_t{invocations_} * type.lanes;
  }
  storage_.resize(total);
  parameter_.resize(kernel_.types.size());
  prepare(kernel_.body);
}

// Values that never change are filled in once; execution passes over their instructions.
void Machine::prepare(const Block& block) {
  for (Value value : block.parameters) parameter_[value.id] = 1;
  for (const Instruction& instruction : block.body) {
    for (const Block& inner : instruction.blocks) prepare(inner);
    uint32_t immediate = instruction.immediates[0];
    if (instruction.opcode == Opcode::kConstant || instruction.opcode == Opcode::kParam) {
      Value result = instruction.results[0];
      std::fill_n(values(result), words(result),
                  instruction.opcode == Opcode::kParam ? params_[immediate] : immediate);
    } else if (instruction.opcode == Opcode::kBuiltin) {
      auto builtin = static_cast<kir::Builtin>(immediate);
      uint32_t* out = values(instruction.results[0]);
      for (uint32_t i = 0; i < invocations_; ++i) {
        switch (builtin) {
          case kir::Builtin::kLocalIndex:
            out[i] = i;
            break;
          case kir::Builtin::kLane:
            out[i] = i % subgroup_size_;
            break;
          case kir::Builtin::kSubgroup:
            out[i] = i / subgroup_size_;
            break;
          case kir::Builtin::kSubgroupSize:
            out[i] = subgroup_size_;
            break;
          default:
            break;
        }
      }
      if (builtin <= kir::Builtin::kWorkgroupZ) workgroup_ids_.push_back({builtin, out});
    }
  }
}

// Slots that see the same bytes share a tracker, so that races through aliases show too.
void Machine::bind_slots(std::span<const std::span<std::byte>> slots) {
  std::vector<size_t> order;
  for (size_t i = 0; i < slots.size(); ++i) {
    MG_CHECK(reinterpret_cast<uintptr_t>(slots[i].data()) % 4 == 0, "Slot \"",
             kernel_.slots[i].name, "\" of kernel \"", kernel_.name,
             "\" is bound to memory that is not 4-byte aligned.");
    slots_.push_back({slots[i].data(), slots[i].size() / 4, nullptr, 0});
    if (slots_.back().elements > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::less<>()(slots[a].data(), slots[b].data());
  });
  trackers_.reserve(slots.size());
  for (size_t first = 0; first < order.size();) {
    const std::byte* end = slots[order[first]].data() + slots[order[first]].size();
    size_t last = first + 1;
    while (last < order.size() && slots[order[last]].data() < end) {
      end = std::max<const std::byte*>(end, slots[order[last]].data() + slots[order[last]].size());
      ++last;
    }
    bind_overlapping(slots, std::span(order).subspan(first, last - first));
    first = last;
  }
}

void Machine::bind_overlapping(std::span<const std::span<std::byte>> slots,
                               std::span<const size_t> members) {
  const std::byte* begin = slots[members[0]].data();
  uint64_t words = 0;
  bool written = false;
  for (size_t slot : members) {
    uint64_t start = static_cast<uint64_t>(slots[slot].data() - begin) / 4;
    slots_[slot].tracked_at = start;
    words = std::max(words, start + slots_[slot].elements);
    written = written || kernel_.slots[slot].access != kir::SlotAccess::kRead;
  }
  if (!written) return;
  trackers_.emplace_back(words);
  for (size_t slot : members) slots_[slot].tracker = &trackers_.back();
}

void Machine::run() {
  for (position_[2] = 0; position_[2] < grid_[2]; ++position_[2]) {
    for (position_[1] = 0; position_[1] < grid_[1]; ++position_[1]) {
      for (position_[0] = 0; position_[0] < grid_[0]; ++position_[0]) {
        run_workgroup();
        ++workgroup_;
      }
    }
  }
}

void Machine::run_workgroup() {
  MG_CHECK(epoch_ < ~0u, "Kernel \"", kernel_.name, "\" has too many barriers to interpret.");
  first_epoch_ = ++epoch_;
  for (const BuiltinUse& use : workgroup_ids_) {
    std::fill_n(use.values, invocations_, position_[static_cast<size_t>(use.builtin)]);
  }
  Mask all{std::vector<uint8_t>(invocations_, 1), invocations_};
  execute(kernel_.body, all);
}

void Machine::execute(const Block& block, const Mask& mask) {
  for (const Instruction& instruction : block.body) execute(instruction, mask);
}

// Pure instructions run for all invocations: what inactive ones compute is never looked at.
void Machine::execute(const Instruction& instruction, const Mask& mask) {
  switch (instruction.opcode) {
    case Opcode::kArith:
      return arith(instruction);
    case Opcode::kConstant:
    case Opcode::kBuiltin:
    case Opcode::kParam:
      return;
    case Opcode::kLoad:
      return load(instruction, mask);
    case Opcode::kStore:
      return store(instruction, mask);
    case Opcode::kSharedLoad:
      return shared_load(instruction, mask);
    case Opcode::kSharedStore:
      return shared_store(instruction, mask);
    case Opcode::kExtract:
    case Opcode::kCompose:
      return vector(instruction);
    case Opcode::kBarrier:
      return barrier(instruction, mask);
    case Opcode::kSubgroupBroadcast:
    case Opcode::kSubgroupShuffleXor:
      return subgroup_move(instruction, mask);
    case Opcode::kSubgroupAdd:
    case Opcode::kSubgroupMin:
    case Opcode::kSubgroupMax:
      return subgroup(instruction, mask);
    case Opcode::kFor:
      return loop(instruction, mask);
    case Opcode::kIf:
      return branch(instruction, mask);
  }
}

void Machine::arith(const Instruction& instruction) {
  std::array<const uint32_t*, 3> operands{};
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    operands[i] = values(instruction.operands[i]);
  }
  Value result = instruction.results[0];
  evaluate_lanes(instruction.arith, kernel_.type(instruction.operands[0]).element,
                 kernel_.type(result).element, options_.fused_fma, values(result), operands[0],
                 operands[1], operands[2], words(result));
}

void Machine::vector(const Instruction& instruction) {
  uint32_t* out = values(instruction.results[0]);
  if (instruction.opcode == Opcode::kExtract) {
    const uint32_t* from = values(instruction.operands[0]);
    std::copy_n(from + size_t{instruction.immediates[0]} * invocations_, invocations_, out);
    return;
  }
  for (Value operand : instruction.operands) {
    out = std::copy_n(values(operand), invocations_, out);
  }
}

void Machine::load(const Instruction& instruction, const Mask& mask) {
  const SlotView& slot = slots_[instruction.immediates[0]];
  const std::string& name = kernel_.slots[instruction.immediates[0]].name;
  const uint32_t* index = values(instruction.operands[0]);
  Value result = instruction.results[0];
  uint32_t* out = values(result);
  uint32_t lanes = kernel_.type(result).lanes;
  for (uint32_t i = 0; i < invocations_; ++i) {
    if (mask.active[i] == 0) continue;
    check_index(instruction, i, index[i], lanes, slot.elements, name);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      uint64_t at = uint64_t{index[i]} + lane;
      if (slot.tracker != nullptr) {
        check_race(instruction, i, at,
                   slot.tracker->read(slot.tracked_at + at, global_invocation(i), kDispatchEpoch),
                   name, false);
      }
      out[size_t{lane} * invocations_ + i] = load_word(slot.data + 4 * at);
    }
  }
}

void Machine::store(const Instruction& instruction, const Mask& mask) {
  const SlotView& slot = slots_[instruction.immediates[0]];
  const std::string& name = kernel_.slots[instruction.immediates[0]].name;
  const uint32_t* index = values(instruction.operands[0]);
  const uint32_t* from = values(instruction.operands[1]);
  uint32_t lanes = kernel_.type(instruction.operands[1]).lanes;
  for (uint32_t i = 0; i < invocations_; ++i) {
    if (mask.active[i] == 0) continue;
    check_index(instruction, i, index[i], lanes, slot.elements, name);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      uint64_t at = uint64_t{index[i]} + lane;
      check_race(instruction, i, at,
                 slot.tracker->write(slot.tracked_at + at, global_invocation(i), kDispatchEpoch),
                 name, false);
      std::memcpy(slot.data + 4 * at, from + size_t{lane} * invocations_ + i, 4);
    }
  }
}

void Machine::shared_load(const Instruction& instruction, const Mask& mask) {
  SharedView& array = shared_[instruction.immediates[0]];
  const std::string& name = kernel_.shared[instruction.immediates[0]].name;
  const uint32_t* index = values(instruction.operands[0]);
  Value result = instruction.results[0];
  uint32_t* out = values(result);
  uint32_t lanes = kernel_.type(result).lanes;
  for (uint32_t i = 0; i < invocations_; ++i) {
    if (mask.active[i] == 0) continue;
    check_index(instruction, i, index[i], lanes, array.data.size(), name);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      uint32_t at = index[i] + lane;
      if (!array.tracker.written_since(at, first_epoch_)) {
        fault(instruction, i,
              cat("Element ", at, " of shared array \"", name,
                  "\" is read before this workgroup wrote it."));
      }
      check_race(instruction, i, at, array.tracker.read(at, i + 1, epoch_), name, true);
      out[size_t{lane} * invocations_ + i] = array.data[at];
    }
  }
}

void Machine::shared_store(const Instruction& instruction, const Mask& mask) {
  SharedView& array = shared_[instruction.immediates[0]];
  const std::string& name = kernel_.shared[instruction.immediates[0]].name;
  const uint32_t* index = values(instruction.operands[0]);
  const uint32_t* from = values(instruction.operands[1]);
  uint32_t lanes = kernel_.type(instruction.operands[1]).lanes;
  for (uint32_t i = 0; i < invocations_; ++i) {
    if (mask.active[i] == 0) continue;
    check_index(instruction, i, index[i], lanes, array.data.size(), name);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      uint32_t at = index[i] + lane;
      check_race(instruction, i, at, array.tracker.write(at, i + 1, epoch_), name, true);
      array.data[at] = from[size_t{lane} * invocations_ + i];
    }
  }
}

void Machine::barrier(const Instruction& instruction, const Mask& mask) {
  if (mask.count != invocations_) {
    fault(instruction, cat("Only ", mask.count, " of the ", invocations_,
                           " invocations of workgroup (", join(position_), ") reach the barrier."));
  }
  MG_CHECK(epoch_ < ~0u, "Kernel \"", kernel_.name, "\" has too many barriers to interpret.");
  ++epoch_;
}

// Values from another lane of the subgroup.
void Machine::subgroup_move(const Instruction& instruction, const Mask& mask) {
  bool broadcast = instruction.opcode == Opcode::kSubgroupBroadcast;
  uint32_t immediate = instruction.immediates[0];
  Value result = instruction.results[0];
  const uint32_t* from = values(instruction.operands[0]);
  uint32_t* out = values(result);
  uint32_t lanes = kernel_.type(result).lanes;
  for (uint32_t i = 0; i < invocations_; ++i) {
    if (mask.active[i] == 0) continue;
    uint32_t lane = i % subgroup_size_;
    uint32_t source_lane = broadcast ? immediate : lane ^ immediate;
    uint32_t source = i - lane + source_lane;
    if (source_lane >= subgroup_size_ || source >= invocations_ || mask.active[source] == 0) {
      fault(instruction, i,
            cat("Lane ", source_lane, " of the subgroup of ", subgroup_size_,
                " does not exist or does not execute this."));
    }
    for (uint32_t c = 0; c < lanes; ++c) {
      out[size_t{c} * invocations_ + i] = from[size_t{c} * invocations_ + source];
    }
  }
}

// Reductions over the active lanes of each subgroup, in lane order.
void Machine::subgroup(const Instruction& instruction, const Mask& mask) {
  Value result = instruction.results[0];
  Type type = kernel_.type(result).element;
  Op op = instruction.opcode == Opcode::kSubgroupAdd   ? Op::kAdd
          : instruction.opcode == Opcode::kSubgroupMin ? Op::kMin
                                                       : Op::kMax;
  for (uint32_t c = 0; c < kernel_.type(result).lanes; ++c) {
    const uint32_t* from = values(instruction.operands[0]) + size_t{c} * invocations_;
    uint32_t* out = values(result) + size_t{c} * invocations_;
    for (uint32_t first = 0; first < invocations_; first += subgroup_size_) {
      uint32_t last = std::min(first + subgroup_size_, invocations_);
      std::optional<uint32_t> total;
      for (uint32_t i = first; i < last; ++i) {
        if (mask.active[i] == 0) continue;
        std::array<uint32_t, 2> operands = {total.value_or(0), from[i]};
        total = total ? scalar::evaluate_primitive(op, type, type, operands) : from[i];
      }
      std::fill(out + first, out + last, total.value_or(0));
    }
  }
}

void Machine::loop(const Instruction& instruction, const Mask& mask) {
  const Block& body = instruction.blocks[0];
  auto carried = std::span(body.parameters).subspan(1);
  carry(std::span(instruction.operands).subspan(3), carried, mask);
  copy(values(instruction.operands[0]), body.parameters[0], mask);
  Mask live = mask;
  for (bool first = true; advance(instruction, live, first); first = false) {
    execute(body, live);
    carry(body.yields, carried, live);
  }
  carry(carried, instruction.results, mask);
}

// Moves the induction values on and drops the invocations that are done from `live`.
bool Machine::advance(const Instruction& instruction, Mask& live, bool first) {
  uint32_t* induction = values(instruction.blocks[0].parameters[0]);
  const uint32_t* end = values(instruction.operands[1]);
  const uint32_t* step = values(instruction.operands[2]);
  for (uint32_t i = 0; i < invocations_; ++i) {
    if (live.active[i] == 0) continue;
    if (step[i] == 0) fault(instruction, i, "The step is 0, so the loop would never end.");
    bool wraps = !first && induction[i] > ~0u - step[i];
    if (wraps) fault(instruction, i, "The induction value leaves 32 bits.");
    if (!first) induction[i] += step[i];
    if (induction[i] < end[i]) continue;
    live.active[i] = 0;
    --live.count;
  }
  return live.count > 0;
}

void Machine::branch(const Instruction& instruction, const Mask& mask) {
  const uint32_t* condition = values(instruction.operands[0]);
  for (uint32_t arm = 0; arm < 2; ++arm) {
    Mask taken{std::vector<uint8_t>(invocations_), 0};
    for (uint32_t i = 0; i < invocations_; ++i) {
      taken.active[i] = mask.active[i] != 0 && (condition[i] != 0) == (arm == 0);
      taken.count += taken.active[i];
    }
    if (taken.count == 0) continue;
    execute(instruction.blocks[arm], taken);
    carry(instruction.blocks[arm].yields, instruction.results, taken);
  }
}

// All of `to` take their values at once: a yield may be the parameter of another position.
void Machine::carry(std::span<const Value> from, std::span<const Value> to, const Mask& mask) {
  bool crosses = false;
  for (size_t i = 0; i < from.size(); ++i) {
    crosses =
        crosses || (parameter_[from[i].id] != 0 && parameter_[to[i].id] != 0 && from[i] != to[i]);
  }
  if (!crosses) {
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] != to[i]) copy(values(from[i]), to[i], mask);
    }
    return;
  }
  scratch_.clear();
  for (Value value : from) {
    scratch_.insert(scratch_.end(), values(value), values(value) + words(value));
  }
  const uint32_t* at = scratch_.data();
  for (Value value : to) {
    copy(at, value, mask);
    at += words(value);
  }
}

void Machine::copy(const uint32_t* from, Value to, const Mask& mask) {
  uint32_t* out = values(to);
  if (mask.count == invocations_) {
    std::copy_n(from, words(to), out);
    return;
  }
  for (uint32_t lane = 0; lane < kernel_.type(to).lanes; ++lane) {
    for (uint32_t i = 0; i < invocations_; ++i) {
      if (mask.active[i] != 0) out[i] = from[i];
    }
    out += invocations_;
    from += invocations_;
  }
}

void Machine::check_index(const Instruction& instruction, uint32_t invocation, uint32_t index,
                          uint32_t lanes, uint64_t elements, const std::string& name) const {
  if (uint64_t{index} + lanes > elements) [[unlikely]] {
    fault(instruction, invocation,
          cat("Index ", index, lanes > 1 ? cat(" with ", lanes, " lanes") : "", " is outside \"",
              name, "\" of ", elements, " elements."));
  }
  if ((index & (lanes - 1)) != 0) [[unlikely]] {
    fault(instruction, invocation,
          cat("Index ", index, " into \"", name, "\" is no multiple of the ", lanes, " lanes."));
  }
}

void Machine::check_race(const Instruction& instruction, uint32_t invocation, uint64_t index,
                         uint32_t other, const std::string& name, bool shared) const {
  if (other == AccessTracker::kNobody) [[likely]]
    return;
  std::string who = "several invocations";
  if (other != AccessTracker::kSeveral) {
    who = shared ? cat("invocation ", other - 1)
                 : cat("invocation ", (other - 1) % invocations_, " of workgroup number ",
                       (other - 1) / invocations_);
  }
  fault(instruction, invocation,
        cat("Data race on element ", index, " of \"", name, "\" with ", who,
            ": no barrier orders the two accesses, and one of them writes."));
}

void Machine::fault(const Instruction& instruction, const std::string& message) const {
  fail(ErrorKind::kInternal, "Kernel \"", kernel_.name, "\", \"",
       kir::describe(kernel_, instruction), "\": ", message);
}

void Machine::fault(const Instruction& instruction, uint32_t invocation,
                    const std::string& message) const {
  fault(instruction,
        cat(message, " (Invocation ", invocation, " of workgroup (", join(position_), ").)"));
}

void run_kernel(const kir::Kernel& kernel, std::array<uint32_t, 3> grid,
                std::span<const std::span<std::byte>> slots, std::span<const uint32_t> params,
                const RunOptions& options) {
  kir::verify(kernel);
  Machine(kernel, grid, slots, params, options).run();
}

}  // namespace meganeura::device
