// Typed structured kernel IR: what archetypes build, the interpreter runs and emitters print.
//
// A kernel is a workgroup program over slots. Values are SSA; control is structured; slots hold
// 32-bit words (narrower storage is packed and unpacked by arithmetic), so no device feature beyond
// the floor is needed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scalar/scalar.h"

namespace meganeura::kir {

using scalar::Type;

struct ValueType {
  Type element = Type::kU32;
  uint8_t lanes = 1;  // 1, 2 or 4
  bool operator==(const ValueType&) const = default;
};

// An SSA value; 0 is none.
struct Value {
  uint32_t id = 0;
  explicit operator bool() const { return id != 0; }
  bool operator==(const Value&) const = default;
};

enum class Opcode : uint8_t {
  kArith,       // `arith` on operands of equal lanes (kSelect: condition has as many lanes)
  kConstant,    // immediates[0] = bits, splat over lanes
  kBuiltin,     // immediates[0] = Builtin; u32
  kParam,       // immediates[0] = index of a run-time u32 argument
  kLoad,        // slot immediates[0]; (index in elements) ; lanes > 1: index is a multiple of lanes
  kStore,       // slot immediates[0]; (index, value)
  kSharedLoad,  // shared array immediates[0]; (index); lanes as kLoad
  kSharedStore,        // shared array immediates[0]; (index, value)
  kExtract,            // lane immediates[0] of a vector
  kCompose,            // vector from scalars
  kBarrier,            // workgroup execution and shared-memory barrier; in uniform control flow
  kSubgroupBroadcast,  // (value) from constant lane immediates[0]
  kSubgroupAdd,
  kSubgroupMin,
  kSubgroupMax,         // (value) over the whole subgroup; see note below
  kSubgroupShuffleXor,  // (value) from lane ^ immediates[0]
  kFor,  // (begin, end, step, initial…) u32 range; block 0: (induction, carried…) → carried…
  kIf,   // (condition) → block 0 or block 1; results = yields
};
// f32 subgroup sums have no order that the language fixes. Strict kernels build reductions from
// kSubgroupShuffleXor in a fixed tree; kSubgroupAdd is for integers.

enum class Builtin : uint8_t {
  kWorkgroupX,
  kWorkgroupY,
  kWorkgroupZ,
  kLocalIndex,  // flat index in the workgroup, x fastest
  kLane,        // index in the subgroup
  kSubgroup,    // index of the subgroup in the workgroup
  kSubgroupSize,
};

struct Block;

struct Instruction {
  Opcode opcode = Opcode::kConstant;
  scalar::Op arith = scalar::Op::kAdd;
  std::array<uint32_t, 2> immediates{};
  std::vector<Value> operands;
  std::vector<Value> results;  // none, one, or the carried values of kFor / kIf
  std::vector<Block> blocks;
};

struct Block {
  std::vector<Value> parameters;
  std::vector<Instruction> body;
  std::vector<Value> yields;
};

enum class SlotAccess : uint8_t { kRead, kWrite, kReadWrite };

struct Slot {
  std::string name;
  Type element = Type::kF32;  // f32, i32 or u32
  SlotAccess access = SlotAccess::kRead;
};

struct SharedArray {
  std::string name;
  Type element = Type::kF32;
  uint32_t count = 0;
};

struct Kernel {
  std::string name;
  std::array<uint32_t, 3> local_size = {1, 1, 1};
  uint32_t subgroup_size = 0;  // required size; 0: any
  std::vector<Slot> slots;
  std::vector<SharedArray> shared;
  uint32_t params = 0;  // run-time u32 arguments
  Block body;
  std::vector<ValueType> types;  // by value id; [0] unused

  ValueType type(Value value) const { return types.at(value.id); }
};

// Throws Error(kInternal) naming kernel, instruction and rule: definitions before uses, types,
// slot access, barriers in uniform control flow, immediates in range, composite ops absent.
void verify(const Kernel& kernel);

// Canonical text (values renumbered in order of definition) and its inverse.
std::string to_string(const Kernel& kernel);
// Throws Error(kInvalidArgument) naming line and what was expected.
Kernel parse_kernel(std::string_view text);

// Static counts for cost models and reports.
struct Census {
  uint64_t instructions = 0;
  uint64_t shared_bytes = 0;
  bool uses_barrier = false;
  bool uses_subgroup_arithmetic = false;
  bool uses_subgroup_shuffle = false;
  bool uses_subgroup_ballot = false;  // broadcast
};
Census census(const Kernel& kernel);

}  // namespace meganeura::kir
