// For tests: a kernel for every primitive op at every type, and values that try them.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernel_ir/builder.h"
#include "meganeura/error.h"
#include "scalar/scalar.h"

namespace meganeura::spirv {

struct OpCase {
  scalar::Op op;
  std::vector<scalar::Type> operands;
  scalar::Type result;
};

inline std::string to_string(const OpCase& c) {
  return std::string(scalar::info(c.op).name) + " of " +
         std::string(scalar::to_string(c.operands.back())) + " to " +
         std::string(scalar::to_string(c.result));
}

inline std::optional<scalar::Type> type_if_legal(scalar::Op op,
                                                 std::span<const scalar::Type> operands,
                                                 scalar::Type wanted) {
  try {
    return scalar::result_type(op, operands, wanted);
  } catch (const Error&) {
    return std::nullopt;
  }
}

inline std::vector<OpCase> all_op_cases() {
  using scalar::Op;
  using scalar::Type;
  constexpr Type kTypes[] = {Type::kBool, Type::kI32, Type::kU32, Type::kF32};
  std::vector<OpCase> cases;
  for (uint8_t number = 0; number <= static_cast<uint8_t>(Op::kRsqrt); ++number) {
    const auto op = static_cast<Op>(number);
    const scalar::OpInfo& row = scalar::info(op);
    if (!row.primitive || row.arity == 0) continue;
    const bool chooses_type = op == Op::kConvert || op == Op::kBitcast;
    for (const Type type : kTypes) {
      std::vector<Type> operands(row.arity, type);
      if (op == Op::kSelect) operands[0] = Type::kBool;
      for (const Type to : kTypes) {
        if (!chooses_type && to != type) continue;
        if (const auto result = type_if_legal(op, operands, to)) {
          cases.push_back({op, operands, *result});
        }
      }
    }
  }
  return cases;
}

// Every invocation takes `lanes` elements of u32 slots (bool: not 0), applies the op and stores the
// bits of the result (bool: 0 or 1) in the last slot. Workgroups of 8.
inline kir::Kernel op_kernel(const OpCase& c, uint8_t lanes) {
  using kir::Value;
  using scalar::Op;
  using scalar::Type;
  kir::Builder b("op", {8, 1, 1});
  const Value group = b.builtin(kir::Builtin::kWorkgroupX);
  const Value local = b.builtin(kir::Builtin::kLocalIndex);
  const Value first = b.mul(group, b.u32(8));
  const Value invocation = b.add(first, local);
  const Value index = b.mul(invocation, b.u32(lanes));
  std::vector<Value> operands;
  for (size_t k = 0; k < c.operands.size(); ++k) {
    const uint32_t slot = b.slot("x" + std::to_string(k), Type::kU32, kir::SlotAccess::kRead);
    Value value = b.load(slot, index, lanes);
    if (c.operands[k] == Type::kBool) {
      const Value zero = b.constant(Type::kU32, 0, lanes);
      value = b.arith(Op::kNe, std::array{value, zero}, Type::kBool);
    } else if (c.operands[k] != Type::kU32) {
      value = b.arith(Op::kBitcast, std::array{value}, c.operands[k]);
    }
    operands.push_back(value);
  }
  Value result = b.arith(c.op, operands, c.result);
  if (c.result == Type::kBool) {
    const Value one = b.constant(Type::kU32, 1, lanes);
    const Value zero = b.constant(Type::kU32, 0, lanes);
    result = b.arith(Op::kSelect, std::array{result, one, zero}, Type::kU32);
  } else if (c.result != Type::kU32) {
    result = b.arith(Op::kBitcast, std::array{result}, Type::kU32);
  }
  const uint32_t y = b.slot("y", Type::kU32, kir::SlotAccess::kWrite);
  b.store(y, index, result);
  return b.finish();
}

// Bits where an op of that operand type has something to get wrong.
inline std::vector<uint32_t> special_values(scalar::Type type) {
  if (type == scalar::Type::kBool) return {0, 1};
  if (type != scalar::Type::kF32) {
    return {0,          1,          2,          3,          7,          8,          10,
            31,         32,         33,         0x7c00,     0xfc00,     0x7c01,     0x0001,
            0x03ff,     0x0400,     0x8001,     0xffff,     0x10000,    0x3c00bc00, 0x7ffffffe,
            0x7fffffff, 0x80000000, 0x80000001, 0xfffffff9, 0xfffffffe, 0xffffffff, 0x12345678};
  }
  std::vector<uint32_t> bits = {0x7f800001, 0x7fc00000, 0x7fffffff, 0xff800001,  // NaN
                                0x00000001, 0x00400000, 0x007fffff, 0x00800000,
                                0x00800001, 0x7f7fffff};
  for (const float value : {0.0f,           0.5f,
                            1.0f,           1.5f,
                            2.0f,           2.5f,
                            3.0f,           3.5f,
                            0.75f,          0.1f,
                            0x1.fffffep-1f, 0x1.fffffep-2f,
                            7.0f,           100.25f,
                            8388607.5f,     8388608.0f,
                            16777216.0f,    0x1p31f,
                            0x1.fffffep30f, 0x1.000002p31f,
                            0x1p32f,        0x1.fffffep31f,
                            0x1.000002p32f, 1e30f,
                            65504.0f,       65519.996f,
                            65520.0f,       65536.0f,
                            0x1p-14f,       0x1.ffcp-15f,
                            0x1.ffep-15f,   0x1p-24f,
                            0x1p-25f,       0x1.000002p-25f,
                            0x1.8p-24f,     0x1p-26f,
                            0x1.004p0f,     0x1.006p0f,
                            0x1.00ap0f,     0x1.01p0f,
                            0x1.03p0f,      INFINITY}) {
    bits.push_back(std::bit_cast<uint32_t>(value));
    bits.push_back(std::bit_cast<uint32_t>(-value));
  }
  return bits;
}

// Operand values by operand: all combinations of the special ones (of the first values of each
// where there are three operands), then `random` more; a multiple of 32 elements.
inline std::vector<std::vector<uint32_t>> op_inputs(const OpCase& c, size_t random) {
  std::vector<std::vector<uint32_t>> inputs(c.operands.size());
  std::vector<std::vector<uint32_t>> pools;
  size_t combinations = 1;
  for (const scalar::Type type : c.operands) {
    pools.push_back(special_values(type));
    if (c.operands.size() == 3 && pools.back().size() > 24) pools.back().resize(24);
    combinations *= pools.back().size();
  }
  for (size_t i = 0; i < combinations; ++i) {
    size_t rest = i;
    for (size_t k = 0; k < pools.size(); ++k) {
      inputs[k].push_back(pools[k][rest % pools[k].size()]);
      rest /= pools[k].size();
    }
  }
  std::mt19937 generator(static_cast<uint32_t>(c.op));
  while (inputs[0].size() < combinations + random || inputs[0].size() % 32 != 0) {
    for (size_t k = 0; k < pools.size(); ++k) {
      const uint32_t bits = generator();
      inputs[k].push_back(c.operands[k] == scalar::Type::kBool ? bits & 1 : bits);
    }
  }
  return inputs;
}

// Whether a device may give `found` where the reference gives `expected`: any NaN for a computed
// NaN, either zero from min and max.
inline bool same_result(const OpCase& c, uint32_t expected, uint32_t found) {
  using scalar::Op;
  if (expected == found) return true;
  if (c.result != scalar::Type::kF32) return false;
  const auto is_nan = [](uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; };
  if (c.op != Op::kBitcast && c.op != Op::kSelect && is_nan(expected)) return is_nan(found);
  const bool either_zero = c.op == Op::kMin || c.op == Op::kMax;
  return either_zero && ((expected | found) & 0x7fffffff) == 0;
}

}  // namespace meganeura::spirv
