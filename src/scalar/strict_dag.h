// The value type DagF for strict_functions.h: operations build scalar expressions.
#pragma once

#include "scalar/scalar.h"
#include "scalar/strict_functions.h"

namespace meganeura::scalar {

template <Type kType>
struct Dag {
  Scalar scalar;

  explicit Dag(Scalar value) : scalar(std::move(value)) {}
  explicit Dag(float value) requires(kType == Type::kF32) : scalar(constant_f32(value)) {}
  explicit Dag(uint32_t value) requires(kType == Type::kU32) : scalar(constant_u32(value)) {}
  explicit Dag(int32_t value) requires(kType == Type::kI32) : scalar(constant_i32(value)) {}
  // Only so that arrays can be filled later.
  Dag() = default;

  friend Dag operator+(const Dag& a, const Dag& b) { return Dag(a.scalar + b.scalar); }
  friend Dag operator-(const Dag& a, const Dag& b) { return Dag(a.scalar - b.scalar); }
  friend Dag operator*(const Dag& a, const Dag& b) { return Dag(a.scalar * b.scalar); }
  friend Dag operator-(const Dag& a) { return Dag(-a.scalar); }
  friend Dag operator&(const Dag& a, const Dag& b) { return Dag(a.scalar & b.scalar); }
  friend Dag operator|(const Dag& a, const Dag& b) { return Dag(a.scalar | b.scalar); }
  friend Dag operator^(const Dag& a, const Dag& b) { return Dag(a.scalar ^ b.scalar); }
  friend Dag operator<<(const Dag& a, const Dag& b) { return Dag(a.scalar << b.scalar); }
  friend Dag operator>>(const Dag& a, const Dag& b) { return Dag(a.scalar >> b.scalar); }
  friend Dag operator~(const Dag& a) { return Dag(make(Op::kNot, {a.scalar})); }
  friend Dag operator!(const Dag& a) { return ~a; }

  using Truth = Dag<Type::kBool>;
  friend Truth operator<(const Dag& a, const Dag& b) { return Truth(a.scalar < b.scalar); }
  friend Truth operator<=(const Dag& a, const Dag& b) { return Truth(a.scalar <= b.scalar); }
  friend Truth operator>(const Dag& a, const Dag& b) { return Truth(a.scalar > b.scalar); }
  friend Truth operator>=(const Dag& a, const Dag& b) { return Truth(a.scalar >= b.scalar); }
};

using DagF = Dag<Type::kF32>;
using DagU = Dag<Type::kU32>;
using DagI = Dag<Type::kI32>;
using DagB = Dag<Type::kBool>;

template <>
struct Companions<DagF> {
  using U = DagU;
  using I = DagI;
  using B = DagB;
};

inline DagU bits(const DagF& x) { return DagU(bitcast(x.scalar, Type::kU32)); }
inline DagF from_bits(const DagU& x) { return DagF(bitcast(x.scalar, Type::kF32)); }
inline DagI as_signed(const DagU& x) { return DagI(bitcast(x.scalar, Type::kI32)); }
inline DagU as_unsigned(const DagI& x) { return DagU(bitcast(x.scalar, Type::kU32)); }
inline DagF to_float(const DagU& x) { return DagF(convert(x.scalar, Type::kF32)); }
inline DagF to_float(const DagI& x) { return DagF(convert(x.scalar, Type::kF32)); }
inline DagU to_unsigned(const DagF& x) { return DagU(convert(x.scalar, Type::kU32)); }
inline DagU mul_high(const DagU& a, const DagU& b) {
  return DagU(make(Op::kMulHigh, {a.scalar, b.scalar}));
}
inline DagU shift_left(const DagU& a, const DagU& count) { return a << count; }
inline DagU shift_right(const DagU& a, const DagU& count) { return a >> count; }
template <Type kType>
Dag<kType> select(const DagB& condition, const Dag<kType>& a, const Dag<kType>& b) {
  return Dag<kType>(select(condition.scalar, a.scalar, b.scalar));
}
template <Type kType>
DagB equal(const Dag<kType>& a, const Dag<kType>& b) {
  return DagB(equal(a.scalar, b.scalar));
}
template <Type kType>
DagB not_equal(const Dag<kType>& a, const Dag<kType>& b) {
  return DagB(not_equal(a.scalar, b.scalar));
}
inline DagF floor(const DagF& x) { return DagF(make(Op::kFloor, {x.scalar})); }
inline DagF fma(const DagF& a, const DagF& b, const DagF& c) {
  return DagF(fma(a.scalar, b.scalar, c.scalar));
}
inline DagB is_nan(const DagF& x) { return DagB(make(Op::kIsNan, {x.scalar})); }

}  // namespace meganeura::scalar
