#include "emit/spirv/raise_float.h"

namespace meganeura::spirv {

using kir::Instruction;
using kir::Opcode;
using kir::Value;
using kir::ValueType;
using scalar::Op;
using scalar::Type;

namespace {

constexpr uint32_t kSignBit = 0x80000000u;
constexpr uint32_t kMagnitude = 0x7fffffffu;
constexpr uint32_t kInfinity = 0x7f800000u;
constexpr uint32_t kQuietNan = 0x7fc00000u;
constexpr uint32_t kMantissa = 0x007fffffu;
constexpr uint32_t kHiddenBit = 0x00800000u;

bool is_arith(const Instruction& in, Op op) {
  return in.opcode == Opcode::kArith && in.arith == op;
}

// u32 and f32 arithmetic with constants that have the lanes of the operand.
class Bits {
 public:
  Bits(Rewriter& out, uint8_t lanes) : out_(out), lanes_(lanes) {}

  Value u32(uint32_t bits) { return out_.constant(Type::kU32, bits, lanes_); }
  Value f32(uint32_t bits) { return out_.constant(Type::kF32, bits, lanes_); }
  Value of(Value f32_value) { return out_.arith(Op::kBitcast, Type::kU32, {f32_value}); }
  Value to_f32(Value u32_value) { return out_.arith(Op::kBitcast, Type::kF32, {u32_value}); }
  Value apply(Op op, Value a, Value b) { return out_.arith(op, Type::kU32, {a, b}); }
  Value apply(Op op, Value a, uint32_t b) { return apply(op, a, u32(b)); }
  Value compare(Op op, Value a, Value b) { return out_.arith(op, Type::kBool, {a, b}); }
  Value compare(Op op, Value a, uint32_t b) { return compare(op, a, u32(b)); }
  Value logical(Op op, Value a, Value b) { return out_.arith(op, Type::kBool, {a, b}); }
  Value select(Value condition, Value a, Value b) {
    return out_.arith(Op::kSelect, out_.type(a).element, {condition, a, b});
  }
  Value is_nan(Value f32_value) { return out_.arith(Op::kIsNan, Type::kBool, {f32_value}); }

 private:
  Rewriter& out_;
  uint8_t lanes_;
};

// `bits` shifted right by `shift`, rounded half to even. shift ≥ 1 where the result is used.
Value round_shift(Bits& at, Value bits, Value shift) {
  const Value shifted = at.apply(Op::kShr, bits, shift);
  const Value odd = at.apply(Op::kAnd, shifted, 1);
  const Value before = at.apply(Op::kSub, shift, 1);
  const Value half = at.apply(Op::kShl, at.u32(1), before);
  const Value below_half = at.apply(Op::kSub, half, 1);
  const Value biased = at.apply(Op::kAdd, bits, below_half);
  const Value rounded = at.apply(Op::kAdd, biased, odd);
  return at.apply(Op::kShr, rounded, shift);
}

// The f16 nearest to an f32, in the low half.
Value pack_half(Bits& at, Value value) {
  constexpr uint32_t kFirstOverflow = 0x47800000u;  // 2^16
  constexpr uint32_t kFirstNormal = 0x38800000u;    // 2^-14
  constexpr uint32_t kRebias = 112u << 23;
  const Value bits = at.of(value);
  const Value magnitude = at.apply(Op::kAnd, bits, kMagnitude);
  const Value rebiased = at.apply(Op::kSub, magnitude, kRebias);
  const Value normal = round_shift(at, rebiased, at.u32(13));
  // Subnormal: the significand in units of 2^-24; a shift of 25 leaves nothing.
  const Value exponent = at.apply(Op::kShr, magnitude, 23);
  const Value fraction = at.apply(Op::kAnd, magnitude, kMantissa);
  const Value significand = at.apply(Op::kOr, fraction, kHiddenBit);
  const Value distance = at.apply(Op::kSub, at.u32(126), exponent);
  const Value shift = at.apply(Op::kMin, distance, 25);
  const Value subnormal = round_shift(at, significand, shift);

  const Value is_normal = at.compare(Op::kGe, magnitude, kFirstNormal);
  const Value finite = at.select(is_normal, normal, subnormal);
  const Value overflows = at.compare(Op::kGe, magnitude, kFirstOverflow);
  const Value no_nan = at.select(overflows, at.u32(0x7c00), finite);
  const Value is_nan = at.compare(Op::kGt, magnitude, kInfinity);
  const Value payload = at.apply(Op::kAnd, at.apply(Op::kShr, magnitude, 13), 0x1ff);
  const Value nan = at.apply(Op::kOr, payload, 0x7e00);
  const Value half = at.select(is_nan, nan, no_nan);
  const Value high = at.apply(Op::kShr, bits, 16);
  const Value sign = at.apply(Op::kAnd, high, 0x8000);
  return at.apply(Op::kOr, half, sign);
}

// The f32 equal to the f16 in the low half.
Value unpack_half(Rewriter& out, Bits& at, Value word) {
  constexpr uint32_t kScale = 0x33800000u;  // 2^-24
  const Value magnitude = at.apply(Op::kAnd, word, 0x7fff);
  const Value shifted = at.apply(Op::kShl, magnitude, 13);
  const Value normal = at.apply(Op::kAdd, shifted, 112u << 23);
  const Value infinite = at.apply(Op::kAdd, shifted, 224u << 23);
  const Value count = out.arith(Op::kConvert, Type::kF32, {magnitude});
  const Value scaled = out.arith(Op::kMul, Type::kF32, {count, at.f32(kScale)});
  const Value subnormal = at.of(scaled);
  const Value is_subnormal = at.compare(Op::kLt, magnitude, 0x400);
  const Value finite = at.select(is_subnormal, subnormal, normal);
  const Value is_infinite = at.compare(Op::kGe, magnitude, 0x7c00);
  const Value bits = at.select(is_infinite, infinite, finite);
  const Value high = at.apply(Op::kShl, word, 16);
  const Value sign = at.apply(Op::kAnd, high, kSignBit);
  return at.to_f32(at.apply(Op::kOr, bits, sign));
}

Value round_bfloat(Bits& at, Value value) {
  const Value bits = at.of(value);
  const Value high = at.apply(Op::kShr, bits, 16);
  const Value odd = at.apply(Op::kAnd, high, 1);
  const Value biased = at.apply(Op::kAdd, bits, 0x7fff);
  const Value rounded = at.apply(Op::kAdd, biased, odd);
  const Value quiet = at.apply(Op::kOr, bits, kQuietNan);
  const Value magnitude = at.apply(Op::kAnd, bits, kMagnitude);
  const Value is_nan = at.compare(Op::kGt, magnitude, kInfinity);
  const Value chosen = at.select(is_nan, quiet, rounded);
  return at.to_f32(at.apply(Op::kAnd, chosen, 0xffff0000u));
}

// |x| as significand · 2^exponent with an integer significand below 2^24 and exponent ≥ 1 (biased).
struct Decoded {
  Value significand;
  Value exponent;
};

Decoded decode(Bits& at, Value magnitude) {
  const Value raw = at.apply(Op::kShr, magnitude, 23);
  const Value fraction = at.apply(Op::kAnd, magnitude, kMantissa);
  const Value is_normal = at.compare(Op::kNe, raw, 0u);
  const Value zero = at.u32(0);
  const Value hidden = at.select(is_normal, at.u32(kHiddenBit), zero);
  const Value significand = at.apply(Op::kOr, fraction, hidden);
  return {significand, at.apply(Op::kMax, raw, 1)};
}

// The f32 significand · 2^exponent as bits; exact.
Value encode(Rewriter& out, Bits& at, Value significand, Value exponent) {
  const Value as_float = at.of(out.arith(Op::kConvert, Type::kF32, {significand}));
  const Value leading = at.apply(Op::kShr, as_float, 23);  // 127 + index of the leading bit
  const Value to_hidden = at.apply(Op::kSub, at.u32(127 + 23), leading);
  const Value to_lowest = at.apply(Op::kSub, exponent, 1);
  const Value shift = at.apply(Op::kMin, to_hidden, to_lowest);
  const Value shifted = at.apply(Op::kShl, significand, shift);
  const Value rest = at.apply(Op::kSub, to_lowest, shift);
  const Value bits = at.apply(Op::kAdd, at.apply(Op::kShl, rest, 23), shifted);
  const Value is_zero = at.compare(Op::kEq, significand, 0u);
  return at.select(is_zero, at.u32(0), bits);
}

// C fmod by long division in base 256: exact, where OpFRem may be off by a multiple of the divisor.
Value exact_remainder(Rewriter& out, Value x, Value y) {
  Bits at(out, 1);
  const Value x_bits = at.of(x);
  const Value x_magnitude = at.apply(Op::kAnd, x_bits, kMagnitude);
  const Value y_bits = at.of(y);
  const Value y_magnitude = at.apply(Op::kAnd, y_bits, kMagnitude);
  const Decoded dividend = decode(at, x_magnitude);
  const Decoded divisor = decode(at, y_magnitude);

  const Value larger = at.apply(Op::kMax, dividend.exponent, divisor.exponent);
  const Value distance = at.apply(Op::kSub, larger, divisor.exponent);
  const Value modulus = at.apply(Op::kMax, divisor.significand, 1);
  const Value first = at.apply(Op::kRem, dividend.significand, modulus);
  const Value steps = at.apply(Op::kShr, at.apply(Op::kAdd, distance, 7), 3);
  const Value remainder = out.loop(steps, first, [&](Value step, Value carried) {
    const Value done = at.apply(Op::kShl, step, 3);
    const Value left = at.apply(Op::kSub, distance, done);
    const Value shift = at.apply(Op::kMin, left, 8);
    const Value shifted = at.apply(Op::kShl, carried, shift);
    return at.apply(Op::kRem, shifted, modulus);
  });
  const Value reduced = encode(out, at, remainder, divisor.exponent);

  const Value is_smaller = at.compare(Op::kLt, x_magnitude, y_magnitude);
  const Value finite = at.select(is_smaller, x_magnitude, reduced);
  const Value x_undefined = at.compare(Op::kGe, x_magnitude, kInfinity);
  const Value y_zero = at.compare(Op::kEq, y_magnitude, 0u);
  const Value y_nan = at.compare(Op::kGt, y_magnitude, kInfinity);
  const Value y_undefined = at.logical(Op::kOr, y_zero, y_nan);
  const Value undefined = at.logical(Op::kOr, x_undefined, y_undefined);
  const Value sign = at.apply(Op::kAnd, x_bits, kSignBit);
  const Value bits = at.apply(Op::kOr, finite, sign);
  return at.to_f32(at.select(undefined, at.u32(kQuietNan), bits));
}

bool is_nan_constant(std::optional<uint32_t> bits) {
  return bits && (*bits & kMagnitude) > kInfinity;
}

}  // namespace

RuleResult raise_float_remainder(Rewriter& out, const Instruction& in, ValueType type) {
  if (!is_arith(in, Op::kRem) || type.element != Type::kF32) return std::nullopt;
  if (type.lanes == 1) return exact_remainder(out, in.operands[0], in.operands[1]);
  std::vector<Value> lanes;
  for (uint32_t lane = 0; lane < type.lanes; ++lane) {
    const Value x = out.extract(in.operands[0], lane);
    const Value y = out.extract(in.operands[1], lane);
    lanes.push_back(exact_remainder(out, x, y));
  }
  return out.compose(lanes);
}

// PackHalf2x16 may round either way and flush subnormals, hence arithmetic on the bits.
RuleResult raise_half(Rewriter& out, const Instruction& in, ValueType type) {
  if (in.opcode != Opcode::kArith) return std::nullopt;
  Bits at(out, type.lanes);
  switch (in.arith) {
    case Op::kRoundF16:
      return unpack_half(out, at, pack_half(at, in.operands[0]));
    case Op::kRoundBF16:
      return round_bfloat(at, in.operands[0]);
    case Op::kUnpackF16:
      return unpack_half(out, at, in.operands[0]);
    case Op::kPackF16: {
      const Value low = pack_half(at, in.operands[0]);
      const Value high = pack_half(at, in.operands[1]);
      return at.apply(Op::kOr, low, at.apply(Op::kShl, high, 16));
    }
    default:
      return std::nullopt;
  }
}

// GLSL.std.450 FMin and FMax may drop a NaN; a comparison that fails for NaN, with an explicit
// test of each operand that can be NaN, does not.
RuleResult raise_float_min_max(Rewriter& out, const Instruction& in, ValueType type) {
  const bool is_min = is_arith(in, Op::kMin);
  if ((!is_min && !is_arith(in, Op::kMax)) || type.element != Type::kF32) return std::nullopt;
  Value a = in.operands[0];
  Value b = in.operands[1];
  if (out.constant_bits(a)) std::swap(a, b);
  Bits at(out, type.lanes);
  const Value before = at.compare(is_min ? Op::kLt : Op::kGt, a, b);
  const Value a_chosen = at.logical(Op::kOr, before, at.is_nan(a));
  const std::optional<uint32_t> constant = out.constant_bits(b);
  if (constant && !is_nan_constant(constant)) return at.select(a_chosen, a, b);
  const Value chosen = at.select(a_chosen, a, b);
  return at.select(at.is_nan(b), b, chosen);
}

// The built-in reduction leaves NaN undefined: reduce the numbers and the question apart.
RuleResult raise_subgroup_min_max(Rewriter& out, const Instruction& in, ValueType type) {
  const bool is_min = in.opcode == Opcode::kSubgroupMin;
  if ((!is_min && in.opcode != Opcode::kSubgroupMax) || type.element != Type::kF32) {
    return std::nullopt;
  }
  Bits at(out, type.lanes);
  const Value is_nan = at.is_nan(in.operands[0]);
  const Value neutral = at.f32(is_min ? kInfinity : kInfinity | kSignBit);
  const Value number = at.select(is_nan, neutral, in.operands[0]);
  const Value zero = at.u32(0);
  const Value flag = at.select(is_nan, at.u32(1), zero);
  const Value reduced = out.emit({.opcode = in.opcode, .operands = {number}}, type);
  const Value any =
      out.emit({.opcode = Opcode::kSubgroupMax, .operands = {flag}}, {Type::kU32, type.lanes});
  const Value found = at.compare(Op::kNe, any, 0u);
  return at.select(found, at.f32(kQuietNan), reduced);
}

// OpConvertFToS and OpConvertFToU are undefined out of range: convert 0 there and choose after.
RuleResult raise_float_to_integer(Rewriter& out, const Instruction& in, ValueType type) {
  if (!is_arith(in, Op::kConvert)) return std::nullopt;
  const Value x = in.operands[0];
  if (out.type(x).element != Type::kF32) return std::nullopt;
  if (type.element != Type::kI32 && type.element != Type::kU32) return std::nullopt;
  const bool is_signed = type.element == Type::kI32;
  constexpr uint32_t kOne = 0x3f800000u;
  constexpr uint32_t kTwo31 = 0x4f000000u;
  constexpr uint32_t kTwo32 = 0x4f800000u;
  Bits at(out, type.lanes);
  const Value upper = at.f32(is_signed ? kTwo31 : kTwo32);
  const Value lower = at.f32(is_signed ? kTwo31 | kSignBit : kOne);
  const Value below = at.compare(Op::kLt, x, upper);
  const Value above = at.compare(Op::kGe, x, lower);
  const Value is_nan = at.is_nan(x);
  const Value in_range = at.logical(Op::kAnd, below, above);
  const Value safe = at.select(in_range, x, at.f32(0));
  const Value converted = out.arith(Op::kConvert, type.element, {safe});

  const Value too_large = at.compare(Op::kGe, x, upper);
  const Value largest = out.constant(type.element, is_signed ? kMagnitude : ~0u, type.lanes);
  Value result = at.select(too_large, largest, converted);
  if (is_signed) {
    const Value too_small = at.compare(Op::kLt, x, lower);
    result = at.select(too_small, out.constant(type.element, kSignBit, type.lanes), result);
  }
  return at.select(is_nan, out.constant(type.element, 0, type.lanes), result);
}

RuleResult raise_is_nan(Rewriter& out, const Instruction& in, ValueType type) {
  if (!is_arith(in, Op::kIsNan)) return std::nullopt;
  Bits at(out, type.lanes);
  const Value magnitude = at.apply(Op::kAnd, at.of(in.operands[0]), kMagnitude);
  return at.compare(Op::kGt, magnitude, kInfinity);
}

}  // namespace meganeura::spirv
