#include "emit/spirv/raise_integer.h"

namespace meganeura::spirv {

using kir::Instruction;
using kir::Opcode;
using kir::Value;
using kir::ValueType;
using scalar::Op;
using scalar::Type;

namespace {

constexpr uint32_t kMinI32 = 0x80000000u;

bool is_integer(Type type) { return type == Type::kI32 || type == Type::kU32; }

// Division by this constant is defined for every dividend.
bool harmless_divisor(std::optional<uint32_t> bits, Type type) {
  return bits && *bits != 0 && (type == Type::kU32 || *bits != ~0u);
}

struct Division {
  Value quotient;      // of the safe divisor
  Value safe_divisor;  // 1 where the division is undefined
  Value by_zero;       // empty where the divisor is a harmless constant
};

// i32 min / -1 overflows: with the divisor 1 it gives min, as wrapping says, and remainder 0.
Division divide(Rewriter& out, Value a, Value b, Type type) {
  if (harmless_divisor(out.constant_bits(b), type)) {
    return {out.arith(Op::kDiv, type, {a, b}), b, {}};
  }
  const uint8_t lanes = out.type(a).lanes;
  const Value zero = out.constant(type, 0, lanes);
  const Value one = out.constant(type, 1, lanes);
  const Value by_zero = out.arith(Op::kEq, Type::kBool, {b, zero});
  Value undefined = by_zero;
  if (type == Type::kI32) {
    const Value is_min = out.arith(Op::kEq, Type::kBool, {a, out.constant(type, kMinI32, lanes)});
    const Value is_minus_one = out.arith(Op::kEq, Type::kBool, {b, out.constant(type, ~0u, lanes)});
    const Value overflows = out.arith(Op::kAnd, Type::kBool, {is_min, is_minus_one});
    undefined = out.arith(Op::kOr, Type::kBool, {by_zero, overflows});
  }
  const Value safe = out.arith(Op::kSelect, type, {undefined, one, b});
  return {out.arith(Op::kDiv, type, {a, safe}), safe, by_zero};
}

}  // namespace

RuleResult raise_integer_division(Rewriter& out, const Instruction& in, ValueType type) {
  if (in.opcode != Opcode::kArith || !is_integer(type.element)) return std::nullopt;
  if (in.arith != Op::kDiv && in.arith != Op::kRem) return std::nullopt;
  const Value a = in.operands[0];
  const Value b = in.operands[1];
  if (in.arith == Op::kDiv) {
    const Division division = divide(out, a, b, type.element);
    if (!division.by_zero) return division.quotient;
    const Value zero = out.constant(type.element, 0, type.lanes);
    return out.arith(Op::kSelect, type.element, {division.by_zero, zero, division.quotient});
  }
  if (type.element == Type::kU32) {
    if (harmless_divisor(out.constant_bits(b), type.element)) return std::nullopt;
    const Value zero = out.constant(type.element, 0, type.lanes);
    const Value one = out.constant(type.element, 1, type.lanes);
    const Value by_zero = out.arith(Op::kEq, Type::kBool, {b, zero});
    const Value safe = out.arith(Op::kSelect, type.element, {by_zero, one, b});
    return out.arith(Op::kRem, type.element, {a, safe});
  }
  // OpSRem of a negative operand is undefined in Vulkan; a - (a / b) * b is not.
  const Division division = divide(out, a, b, type.element);
  const Value product =
      out.arith(Op::kMul, type.element, {division.quotient, division.safe_divisor});
  return out.arith(Op::kSub, type.element, {a, product});
}

RuleResult raise_shift_count(Rewriter& out, const Instruction& in, ValueType type) {
  if (in.opcode != Opcode::kArith || (in.arith != Op::kShl && in.arith != Op::kShr)) {
    return std::nullopt;
  }
  const Value count = in.operands[1];
  const std::optional<uint32_t> bits = out.constant_bits(count);
  if (bits && *bits < 32) return std::nullopt;
  const Type count_type = out.type(count).element;
  const Value mask = out.constant(count_type, 31, type.lanes);
  const Value masked = out.arith(Op::kAnd, count_type, {count, mask});
  return out.arith(in.arith, type.element, {in.operands[0], masked});
}

RuleResult raise_trivial(Rewriter& out, const Instruction& in, ValueType type) {
  if (in.opcode != Opcode::kArith) return std::nullopt;
  const Value a = in.operands[0];
  const Type from = out.type(a).element;
  const Type to = type.element;
  if (in.arith == Op::kAbs && from == Type::kU32) return a;
  if (in.arith == Op::kBitcast && from == to) return a;
  if (in.arith != Op::kConvert) return std::nullopt;
  if (from == to) return a;
  if (from == Type::kBool) {
    const uint32_t one = to == Type::kF32 ? 0x3f800000u : 1u;
    const Value yes = out.constant(to, one, type.lanes);
    const Value no = out.constant(to, 0, type.lanes);
    return out.arith(Op::kSelect, to, {a, yes, no});
  }
  if (to == Type::kBool) {
    return out.arith(Op::kNe, to, {a, out.constant(from, 0, type.lanes)});
  }
  if (is_integer(from) && is_integer(to)) return out.arith(Op::kBitcast, to, {a});
  return std::nullopt;
}

namespace {

RuleResult split_load(Rewriter& out, const Instruction& in, ValueType type) {
  if (type.lanes == 1) return std::nullopt;
  std::vector<Value> lanes;
  for (uint32_t lane = 0; lane < type.lanes; ++lane) {
    Value index = in.operands[0];
    if (lane != 0) {
      index = out.arith(Op::kAdd, out.type(index).element,
                        {index, out.constant(out.type(index).element, lane, 1)});
    }
    lanes.push_back(
        out.emit({.opcode = in.opcode, .immediates = in.immediates, .operands = {index}},
                 {type.element, 1}));
  }
  return out.compose(lanes);
}

RuleResult split_store(Rewriter& out, const Instruction& in) {
  const Value value = in.operands[1];
  const uint8_t lanes = out.type(value).lanes;
  if (lanes == 1) return std::nullopt;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    Value index = in.operands[0];
    if (lane != 0) {
      index = out.arith(Op::kAdd, out.type(index).element,
                        {index, out.constant(out.type(index).element, lane, 1)});
    }
    const Value element = out.extract(value, lane);
    out.emit_without_result(
        {.opcode = in.opcode, .immediates = in.immediates, .operands = {index, element}});
  }
  return Value{};
}

}  // namespace

RuleResult raise_shared_vector(Rewriter& out, const Instruction& in, ValueType type) {
  if (in.opcode == Opcode::kSharedLoad) return split_load(out, in, type);
  if (in.opcode == Opcode::kSharedStore) return split_store(out, in);
  return std::nullopt;
}

RuleResult raise_slot_vector(Rewriter& out, const Instruction& in, ValueType type) {
  if (in.opcode == Opcode::kLoad) return split_load(out, in, type);
  if (in.opcode == Opcode::kStore) return split_store(out, in);
  return std::nullopt;
}

}  // namespace meganeura::spirv
