// What every opcode and arithmetic op of kernel IR takes and gives, as tables, and which values
// are equal for all invocations.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kernel_ir/kernel.h"

namespace meganeura::kir {

struct OpcodeInfo {
  static constexpr uint8_t kAny = 255;
  Opcode opcode;
  std::string_view name;  // "shared_load"
  uint8_t operands;       // kAny: depends on the instruction
  uint8_t immediates;
  uint8_t results;
  uint8_t blocks;
  bool pure;  // same operands, same result; no memory, no other invocations
};
const OpcodeInfo& info(Opcode opcode);
std::optional<Opcode> opcode_from_name(std::string_view name);

inline constexpr uint32_t kBuiltinCount = 7;
std::string_view to_string(Builtin builtin);
std::optional<Builtin> builtin_from_name(std::string_view name);

// "f32", "u32x4".
std::string to_string(ValueType type);

// How widely a value is the same at one moment of execution.
enum class Uniformity : uint8_t { kInvocation, kSubgroup, kWorkgroup };

// By value id, for a kernel whose structure is sound (verify checks it first). Ids, parameters,
// constants and arithmetic on them are uniform, as are loads at uniform indices of read-only slots.
std::vector<Uniformity> analyze_uniformity(const Kernel& kernel);

}  // namespace meganeura::kir
