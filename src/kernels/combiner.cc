#include <bit>
#include <limits>

#include "kernels/reduction.h"

namespace meganeura::kernels {

using kir::Type;
using kir::Value;
using scalar::Op;

namespace {

constexpr uint32_t kNoIndex = ~0u;

// Least and greatest bits by type (i32, u32, f32) in the order of the type.
uint32_t least(Type type) {
  if (type == Type::kF32) return std::bit_cast<uint32_t>(-std::numeric_limits<float>::infinity());
  return type == Type::kI32 ? 0x80000000u : 0u;
}
uint32_t greatest(Type type) {
  if (type == Type::kF32) return std::bit_cast<uint32_t>(std::numeric_limits<float>::infinity());
  return type == Type::kI32 ? 0x7fffffffu : ~0u;
}

// A u32 that orders as the values do: NaN above all, zeros alike.
Value ordered_key(KernelWriter& w, Value value) {
  const Type type = w.b.element_type(value);
  if (type == Type::kU32) return value;
  Value sign = w.b.u32(0x80000000u);
  Value bits = w.bitcast(value, Type::kU32);
  if (type == Type::kI32) return w.b.arith(Op::kXor, std::array{bits, sign}, Type::kU32);
  Value zero = w.b.f32(0);
  Value is_zero = w.b.equal(value, zero);
  bits = w.b.select(is_zero, w.b.u32(0), bits);
  Value sign_bit = w.bit_and(bits, sign);
  Value negative = w.not_equal(sign_bit, w.b.u32(0));
  Value flipped = w.b.arith(Op::kNot, std::array{bits}, Type::kU32);
  Value raised = w.bit_or(bits, sign);
  Value key = w.b.select(negative, flipped, raised);
  Value is_nan = w.b.arith(Op::kIsNan, std::array{value}, Type::kBool);
  return w.b.select(is_nan, w.b.u32(~0u), key);
}

// About the square root of the count, as a power of two.
uint32_t block_length(uint32_t count) {
  uint32_t length = 16;
  while (uint64_t{length} * length < count) length *= 2;
  return length;
}

}  // namespace

Type Combiner::accumulator_type(size_t) const {
  return combine_ == Combine::kArgMax ? Type::kU32 : type_;
}

Accumulator Combiner::identity(KernelWriter& w) const {
  switch (combine_) {
    case Combine::kSum:
      return {w.b.constant(type_, 0)};
    case Combine::kMax:
      return {w.b.constant(type_, least(type_))};
    case Combine::kMin:
      return {w.b.constant(type_, greatest(type_))};
    case Combine::kArgMax:
      break;
  }
  Value key = w.b.u32(0);
  return {key, w.b.u32(kNoIndex)};
}

Accumulator Combiner::single(KernelWriter& w, Value value, Value flat) const {
  if (combine_ != Combine::kArgMax) return {value};
  return {ordered_key(w, value), flat};
}

Accumulator Combiner::merge(KernelWriter& w, std::span<const Value> a,
                            std::span<const Value> b) const {
  switch (combine_) {
    case Combine::kSum:
      return {w.b.add(a[0], b[0])};
    case Combine::kMax:
      return {w.b.max(a[0], b[0])};
    case Combine::kMin:
      return {w.b.min(a[0], b[0])};
    case Combine::kArgMax:
      break;
  }
  Value greater = w.b.less(a[0], b[0]);
  Value same = w.b.equal(a[0], b[0]);
  Value earlier = w.b.less(b[1], a[1]);
  Value tie = w.b.logical_and(same, earlier);
  Value take = w.bit_or(greater, tie);
  Value key = w.b.select(take, b[0], a[0]);
  return {key, w.b.select(take, b[1], a[1])};
}

Accumulator Combiner::masked(KernelWriter& w, Value condition, const Accumulator& a) const {
  const Accumulator neutral = identity(w);
  Accumulator out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back(w.b.select(condition, a[i], neutral[i]));
  return out;
}

Accumulator Combiner::accumulate(KernelWriter& w, uint32_t count, const Step& step) const {
  const uint32_t block = block_length(count);
  const bool blocks =
      combine_ == Combine::kSum && type_ == Type::kF32 && count > 2 * uint64_t{block};
  auto add = [&](Value i, std::span<const Value> carried) { return merge(w, carried, step(i)); };
  const Accumulator neutral = identity(w);
  Value limit = w.b.u32(count);
  if (!blocks) return w.loop(limit, neutral, add);
  Value zero = w.b.u32(0);
  Value one = w.b.u32(1);
  Value length = w.b.u32(block);
  return w.b.for_range(zero, limit, length, neutral,
                       [&](Value first, std::span<const Value> carried) {
                         Value end = w.b.min(w.b.add(first, length), limit);
                         const Accumulator part = w.b.for_range(first, end, one, neutral, add);
                         return merge(w, carried, part);
                       });
}

}  // namespace meganeura::kernels
