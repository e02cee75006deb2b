// The operations of strict_functions.h on float and its companions, run by this processor.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace meganeura::scalar {

// The integer and truth types beside F: Companions<F>::U (u32), ::I (i32), ::B.
template <class F>
struct Companions;

template <>
struct Companions<float> {
  using U = uint32_t;
  using I = int32_t;
  using B = bool;
};

inline uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }
inline float from_bits(uint32_t x) { return std::bit_cast<float>(x); }
inline int32_t as_signed(uint32_t x) { return static_cast<int32_t>(x); }
inline uint32_t as_unsigned(int32_t x) { return static_cast<uint32_t>(x); }
inline float to_float(uint32_t x) { return static_cast<float>(x); }
inline float to_float(int32_t x) { return static_cast<float>(x); }
inline uint32_t to_unsigned(float x) { return static_cast<uint32_t>(x); }
inline uint32_t mul_high(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>((uint64_t{a} * b) >> 32);
}
inline uint32_t shift_left(uint32_t a, uint32_t count) { return a << (count & 31); }
inline uint32_t shift_right(uint32_t a, uint32_t count) { return a >> (count & 31); }
template <class T>
requires std::is_arithmetic_v<T> T select(bool condition, T a, T b) { return condition ? a : b; }
template <class T>
requires std::is_arithmetic_v<T>
bool equal(T a, T b) { return a == b; }
template <class T>
requires std::is_arithmetic_v<T>
bool not_equal(T a, T b) { return a != b; }
inline float floor(float x) { return std::floor(x); }
inline float fma(float a, float b, float c) { return std::fma(a, b, c); }
inline bool is_nan(float x) { return (bits(x) & 0x7fffffff) > 0x7f800000; }

}  // namespace meganeura::scalar
