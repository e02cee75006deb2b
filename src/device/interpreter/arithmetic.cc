#include "device/interpreter/arithmetic.h"

#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "scalar/evaluate.h"

namespace meganeura::device {
namespace {

using scalar::Op;
using scalar::Type;

using Loop = void (*)(uint32_t* out, const uint32_t* a, const uint32_t* b, const uint32_t* c,
                      size_t count);

template <class T>
T as(uint32_t bits) {
  return std::bit_cast<T>(bits);
}

template <class T>
uint32_t bits_of(T value) {
  if constexpr (sizeof(T) == 1) {
    return value ? 1 : 0;
  } else {
    return std::bit_cast<uint32_t>(value);
  }
}

template <class T, class F>
void unary(uint32_t* out, const uint32_t* a, const uint32_t*, const uint32_t*, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = bits_of(F{}(as<T>(a[i])));
}

template <class T, class F>
void binary(uint32_t* out, const uint32_t* a, const uint32_t* b, const uint32_t*, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = bits_of(F{}(as<T>(a[i]), as<T>(b[i])));
}

void select_loop(uint32_t* out, const uint32_t* a, const uint32_t* b, const uint32_t* c,
                 size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = a[i] != 0 ? b[i] : c[i];
}

void fused_loop(uint32_t* out, const uint32_t* a, const uint32_t* b, const uint32_t* c,
                size_t count) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = bits_of(std::fma(as<float>(a[i]), as<float>(b[i]), as<float>(c[i])));
  }
}

void unfused_loop(uint32_t* out, const uint32_t* a, const uint32_t* b, const uint32_t* c,
                  size_t count) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = bits_of(as<float>(a[i]) * as<float>(b[i]) + as<float>(c[i]));
  }
}

struct Smaller {
  float operator()(float a, float b) const {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<float>::quiet_NaN();
    return b < a ? b : a;
  }
  template <class Int>
  Int operator()(Int a, Int b) const {
    return b < a ? b : a;
  }
};
struct Larger {
  float operator()(float a, float b) const {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<float>::quiet_NaN();
    return b > a ? b : a;
  }
  template <class Int>
  Int operator()(Int a, Int b) const {
    return b > a ? b : a;
  }
};
struct Quotient {
  uint32_t operator()(uint32_t a, uint32_t b) const { return b == 0 ? 0 : a / b; }
};
struct Remainder {
  uint32_t operator()(uint32_t a, uint32_t b) const { return b == 0 ? 0 : a % b; }
};
struct ShiftLeft {
  uint32_t operator()(uint32_t a, uint32_t b) const { return a << (b & 31); }
};
struct ShiftRight {
  uint32_t operator()(uint32_t a, uint32_t b) const { return a >> (b & 31); }
  int32_t operator()(int32_t a, int32_t b) const { return a >> (b & 31); }
};
struct Negative {
  uint32_t operator()(uint32_t a) const { return a ^ 0x80000000u; }
};
struct Magnitude {
  uint32_t operator()(uint32_t a) const { return a & 0x7fffffffu; }
};
struct BoolNot {
  uint32_t operator()(uint32_t a) const { return a ^ 1; }
};
struct Root {
  float operator()(float a) const { return std::sqrt(a); }
};
struct ToFloat {
  template <class Int>
  float operator()(Int a) const {
    return static_cast<float>(a);
  }
};
struct Same {
  uint32_t operator()(uint32_t a) const { return a; }
};
struct Nan {
  bool operator()(uint32_t a) const { return (a & 0x7fffffffu) > 0x7f800000u; }
};

struct Row {
  Op op;
  Type operand;
  Loop loop;
};

// Signed sums wrap, so they run as unsigned ones.
constexpr Row kRows[] = {
    {Op::kAdd, Type::kF32, binary<float, std::plus<>>},
    {Op::kAdd, Type::kU32, binary<uint32_t, std::plus<>>},
    {Op::kAdd, Type::kI32, binary<uint32_t, std::plus<>>},
    {Op::kSub, Type::kF32, binary<float, std::minus<>>},
    {Op::kSub, Type::kU32, binary<uint32_t, std::minus<>>},
    {Op::kSub, Type::kI32, binary<uint32_t, std::minus<>>},
    {Op::kMul, Type::kF32, binary<float, std::multiplies<>>},
    {Op::kMul, Type::kU32, binary<uint32_t, std::multiplies<>>},
    {Op::kMul, Type::kI32, binary<uint32_t, std::multiplies<>>},
    {Op::kDiv, Type::kF32, binary<float, std::divides<>>},
    {Op::kDiv, Type::kU32, binary<uint32_t, Quotient>},
    {Op::kRem, Type::kU32, binary<uint32_t, Remainder>},
    {Op::kMin, Type::kF32, binary<float, Smaller>},
    {Op::kMin, Type::kU32, binary<uint32_t, Smaller>},
    {Op::kMin, Type::kI32, binary<int32_t, Smaller>},
    {Op::kMax, Type::kF32, binary<float, Larger>},
    {Op::kMax, Type::kU32, binary<uint32_t, Larger>},
    {Op::kMax, Type::kI32, binary<int32_t, Larger>},
    {Op::kNeg, Type::kF32, unary<uint32_t, Negative>},
    {Op::kAbs, Type::kF32, unary<uint32_t, Magnitude>},
    {Op::kSqrt, Type::kF32, unary<float, Root>},
    {Op::kAnd, Type::kU32, binary<uint32_t, std::bit_and<>>},
    {Op::kAnd, Type::kI32, binary<uint32_t, std::bit_and<>>},
    {Op::kAnd, Type::kBool, binary<uint32_t, std::bit_and<>>},
    {Op::kOr, Type::kU32, binary<uint32_t, std::bit_or<>>},
    {Op::kOr, Type::kI32, binary<uint32_t, std::bit_or<>>},
    {Op::kOr, Type::kBool, binary<uint32_t, std::bit_or<>>},
    {Op::kXor, Type::kU32, binary<uint32_t, std::bit_xor<>>},
    {Op::kXor, Type::kI32, binary<uint32_t, std::bit_xor<>>},
    {Op::kNot, Type::kBool, unary<uint32_t, BoolNot>},
    {Op::kShl, Type::kU32, binary<uint32_t, ShiftLeft>},
    {Op::kShl, Type::kI32, binary<uint32_t, ShiftLeft>},
    {Op::kShr, Type::kU32, binary<uint32_t, ShiftRight>},
    {Op::kShr, Type::kI32, binary<int32_t, ShiftRight>},
    {Op::kEq, Type::kF32, binary<float, std::equal_to<>>},
    {Op::kEq, Type::kU32, binary<uint32_t, std::equal_to<>>},
    {Op::kEq, Type::kI32, binary<uint32_t, std::equal_to<>>},
    {Op::kNe, Type::kF32, binary<float, std::not_equal_to<>>},
    {Op::kNe, Type::kU32, binary<uint32_t, std::not_equal_to<>>},
    {Op::kNe, Type::kI32, binary<uint32_t, std::not_equal_to<>>},
    {Op::kLt, Type::kF32, binary<float, std::less<>>},
    {Op::kLt, Type::kU32, binary<uint32_t, std::less<>>},
    {Op::kLt, Type::kI32, binary<int32_t, std::less<>>},
    {Op::kLe, Type::kF32, binary<float, std::less_equal<>>},
    {Op::kLe, Type::kU32, binary<uint32_t, std::less_equal<>>},
    {Op::kLe, Type::kI32, binary<int32_t, std::less_equal<>>},
    {Op::kGt, Type::kF32, binary<float, std::greater<>>},
    {Op::kGt, Type::kU32, binary<uint32_t, std::greater<>>},
    {Op::kGt, Type::kI32, binary<int32_t, std::greater<>>},
    {Op::kGe, Type::kF32, binary<float, std::greater_equal<>>},
    {Op::kGe, Type::kU32, binary<uint32_t, std::greater_equal<>>},
    {Op::kGe, Type::kI32, binary<int32_t, std::greater_equal<>>},
    {Op::kBitcast, Type::kF32, unary<uint32_t, Same>},
    {Op::kBitcast, Type::kU32, unary<uint32_t, Same>},
    {Op::kBitcast, Type::kI32, unary<uint32_t, Same>},
    {Op::kIsNan, Type::kF32, unary<uint32_t, Nan>},
};

constexpr size_t kOps = 64;
using Table = std::array<std::array<Loop, 4>, kOps>;

constexpr Table make_table() {
  Table table{};
  for (const Row& row : kRows) {
    table[static_cast<size_t>(row.op)][static_cast<size_t>(row.operand)] = row.loop;
  }
  return table;
}
constexpr Table kTable = make_table();

Loop convert_loop(Type from, Type to) {
  if (to == Type::kF32 && from == Type::kU32) return unary<uint32_t, ToFloat>;
  if (to == Type::kF32 && from == Type::kI32) return unary<int32_t, ToFloat>;
  bool from_integer = from == Type::kI32 || from == Type::kU32;
  bool to_integer = to == Type::kI32 || to == Type::kU32;
  return from_integer && to_integer ? unary<uint32_t, Same> : nullptr;
}

Loop find_loop(Op op, Type operand, Type result, bool fused_fma) {
  if (op == Op::kSelect) return select_loop;
  if (op == Op::kFma) return fused_fma ? fused_loop : unfused_loop;
  if (op == Op::kConvert) return convert_loop(operand, result);
  return kTable.at(static_cast<size_t>(op))[static_cast<size_t>(operand)];
}

}  // namespace

void evaluate_lanes(Op op, Type operand, Type result, bool fused_fma, uint32_t* out,
                    const uint32_t* a, const uint32_t* b, const uint32_t* c, size_t count) {
  if (Loop loop = find_loop(op, operand, result, fused_fma)) {
    loop(out, a, b, c, count);
    return;
  }
  size_t arity = scalar::info(op).arity;
  for (size_t i = 0; i < count; ++i) {
    std::array<scalar::Lane, 3> operands = {a[i], arity > 1 ? b[i] : 0, arity > 2 ? c[i] : 0};
    out[i] = scalar::evaluate_primitive(op, operand, result, {operands.data(), arity}, fused_fma);
  }
}

bool has_fast_loop(Op op, Type operand, Type result, bool fused_fma) {
  return find_loop(op, operand, result, fused_fma) != nullptr;
}

}  // namespace meganeura::device
