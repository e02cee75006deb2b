#include "kernel_ir/opcode.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace meganeura::kir {
namespace {

constexpr uint8_t kAny = OpcodeInfo::kAny;

constexpr std::array<OpcodeInfo, 17> kOpcodes = {{
    {Opcode::kArith, "arith", kAny, 0, 1, 0, true},
    {Opcode::kConstant, "constant", 0, 1, 1, 0, true},
    {Opcode::kBuiltin, "builtin", 0, 1, 1, 0, true},
    {Opcode::kParam, "param", 0, 1, 1, 0, true},
    {Opcode::kLoad, "load", 1, 1, 1, 0, false},
    {Opcode::kStore, "store", 2, 1, 0, 0, false},
    {Opcode::kSharedLoad, "shared_load", 1, 1, 1, 0, false},
    {Opcode::kSharedStore, "shared_store", 2, 1, 0, 0, false},
    {Opcode::kExtract, "extract", 1, 1, 1, 0, true},
    {Opcode::kCompose, "compose", kAny, 0, 1, 0, true},
    {Opcode::kBarrier, "barrier", 0, 0, 0, 0, false},
    {Opcode::kSubgroupBroadcast, "subgroup_broadcast", 1, 1, 1, 0, false},
    {Opcode::kSubgroupAdd, "subgroup_add", 1, 0, 1, 0, false},
    {Opcode::kSubgroupMin, "subgroup_min", 1, 0, 1, 0, false},
    {Opcode::kSubgroupMax, "subgroup_max", 1, 0, 1, 0, false},
    {Opcode::kSubgroupShuffleXor, "subgroup_shuffle_xor", 1, 1, 1, 0, false},
    {Opcode::kFor, "for", kAny, 0, kAny, 1, false},
}};
constexpr OpcodeInfo kIfInfo = {Opcode::kIf, "if", 1, 0, kAny, 2, false};

constexpr std::array<std::string_view, kBuiltinCount> kBuiltins = {
    "workgroup_x", "workgroup_y", "workgroup_z",  "local_index",
    "lane",        "subgroup",    "subgroup_size"};

}  // namespace

const OpcodeInfo& info(Opcode opcode) {
  if (opcode == Opcode::kIf) return kIfInfo;
  auto index = static_cast<size_t>(opcode);
  MG_CHECK(index < kOpcodes.size(), "The opcode ", index, " does not exist.");
  return kOpcodes[index];
}

std::optional<Opcode> opcode_from_name(std::string_view name) {
  if (name == kIfInfo.name) return Opcode::kIf;
  for (const OpcodeInfo& row : kOpcodes) {
    if (row.name == name) return row.opcode;
  }
  return std::nullopt;
}

std::string_view to_string(Builtin builtin) { return kBuiltins.at(static_cast<size_t>(builtin)); }

std::optional<Builtin> builtin_from_name(std::string_view name) {
  auto found = std::find(kBuiltins.begin(), kBuiltins.end(), name);
  if (found == kBuiltins.end()) return std::nullopt;
  return static_cast<Builtin>(found - kBuiltins.begin());
}

std::string to_string(ValueType type) {
  std::string out(scalar::to_string(type.element));
  if (type.lanes != 1) out += cat('x', static_cast<uint32_t>(type.lanes));
  return out;
}

}  // namespace meganeura::kir
