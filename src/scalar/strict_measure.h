// For tests: the error of the strict functions over ranges of f32 bit patterns.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "scalar/scalar.h"
#include "scalar/strict_functions.h"

namespace meganeura::scalar {

struct Measured {
  double max_ulp = 0;
  uint32_t worst = 0;     // the bits of the argument with that error
  uint64_t wrong = 0;     // special values that are not C's
  uint32_t wrong_at = 0;  // the bits of one such argument

  void merge(const Measured& other) {
    if (other.max_ulp > max_ulp) {
      max_ulp = other.max_ulp;
      worst = other.worst;
    }
    if (other.wrong != 0) wrong_at = other.wrong_at;
    wrong += other.wrong;
  }
};

// The distance in units in the last place of the f32 next to `reference`; negative where a special
// value is wrong. Infinity counts as 2^128; below 2^-126 anything as small with the sign will do.
inline double ulp_distance(float value, double reference) {
  if (std::isnan(reference)) return std::isnan(value) ? 0 : -1;
  if (std::isnan(value)) return -1;
  if (std::isinf(reference)) return value == reference ? 0 : -1;
  const double magnitude = std::fabs(reference);
  const bool sign_differs = std::signbit(value) != std::signbit(reference);
  if (magnitude < 0x1p-126) {
    return !sign_differs && std::fabs(value) <= 0x1p-126f ? 0 : -1;
  }
  if (sign_differs) return -1;
  const auto exponent = static_cast<int>(std::bit_cast<uint64_t>(magnitude) >> 52) - 1023;
  const double unit = std::bit_cast<double>(static_cast<uint64_t>(exponent - 23 + 1023) << 52);
  const double number = std::min(std::fabs(double{value}), 0x1p128);
  return std::fabs(number - std::min(magnitude, 0x1p128)) / unit;
}

// Bit patterns begin, begin + stride, … below end.
template <class Function, class Reference>
Measured measure(uint64_t begin, uint64_t end, uint64_t stride, const Function& function,
                 const Reference& reference) {
  constexpr uint64_t kBlock = 1024;
  std::array<float, kBlock> arguments;
  std::array<float, kBlock> results;
  Measured measured;
  for (uint64_t next = begin; next < end; next += kBlock * stride) {
    for (uint64_t i = 0; i < kBlock; ++i) {
      arguments[i] = from_bits(static_cast<uint32_t>(std::min(next + i * stride, end - 1)));
    }
    for (uint64_t i = 0; i < kBlock; ++i) results[i] = function(arguments[i]);
    for (uint64_t i = 0; i < kBlock; ++i) {
      const double error = ulp_distance(results[i], reference(double{arguments[i]}));
      if (error < 0) {
        ++measured.wrong;
        measured.wrong_at = bits(arguments[i]);
      } else if (error > measured.max_ulp) {
        measured.max_ulp = error;
        measured.worst = bits(arguments[i]);
      }
    }
  }
  return measured;
}

// A function of one argument, its f64 reference and the op whose bound it has to keep.
struct UnaryCase {
  Op op;
  float (*function)(float);
  double (*reference)(double);
};

inline float native_rsqrt(float x) { return 1.0f / std::sqrt(x); }

inline constexpr UnaryCase kUnaryCases[] = {
    {Op::kExp, strict_exp<float>, std::exp},
    {Op::kLog, strict_log<float>, std::log},
    {Op::kSin, strict_sin<float>, std::sin},
    {Op::kCos, strict_cos<float>, std::cos},
    {Op::kTanh, strict_tanh<float>, std::tanh},
    {Op::kErf, strict_erf<float>, std::erf},
    {Op::kRsqrt, native_rsqrt, [](double x) { return 1 / std::sqrt(x); }},
};

}  // namespace meganeura::scalar
