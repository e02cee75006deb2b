// The strict functions, each once, over a value type F: float (strict_native.h) computes, DagF
// (strict_dag.h) builds the expression of the very same arithmetic.
//
// Only +, - and × in f32, integer and bit operations, comparisons and selects occur, and no
// intermediate denormal decides a result, so all devices that round f32 + and × correctly agree in
// every bit. Results whose magnitude is below 2^-126 come back as zero or denormal (strict.h).
// Polynomials are minimax fits of ours, their coefficients rounded to f32 one by one from the
// lowest on, the others refitted each time.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "scalar/strict_native.h"

namespace meganeura::scalar {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// c[0] + x (c[1] + x (c[2] + …)). Recursive, as compilers vectorise no loop around a loop.
template <size_t kFirst = 0, class F, size_t kCount>
F polynomial(F x, const std::array<float, kCount>& c) {
  if constexpr (kFirst + 1 == kCount) {
    return F(c[kFirst]);
  } else {
    return polynomial<kFirst + 1>(x, c) * x + F(c[kFirst]);
  }
}

// |x| ≤ 87: e^x = 2^n e^r with r in ±ln(2)/2. The sum with 1.5·2^23 rounds to the integer n and
// leaves it in the low bits; ln 2 is subtracted in two parts, the first of which is exact times n.
template <class F>
F exp_in_range(F x) {
  using U = typename Companions<F>::U;
  const F shifted = x * F(1.44269504f) + F(12582912.0f);
  const F n = shifted - F(12582912.0f);
  const F r = (x - n * F(0.693359375f)) - n * F(-2.12194440e-4f);
  constexpr std::array<float, 5> kTail = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558aep-5f,
                                          0x1.12398p-7f, 0x1.6a4f28p-10f};
  const F power = (r * r * polynomial(r, kTail) + r) + F(1.0f);
  return from_bits(bits(power) + (bits(shifted) << U(23u)));
}

template <class F>
F strict_exp(F x) {
  // From ln(2^-126) to the last x whose power is finite; beyond, x·∞ is +∞ or NaN.
  const F bounded = select(x <= F(88.7228317f), exp_in_range(x), x * F(kInfinity));
  return select(x < F(-87.3365402f), F(0.0f), bounded);
}

// A positive finite number as 2^exponent · mantissa, mantissa in [√½, √2); denormals too.
template <class F>
struct Decomposed {
  F exponent;
  F mantissa;
};

template <class F>
Decomposed<F> decompose(typename Companions<F>::U pattern) {
  using U = typename Companions<F>::U;
  using I = typename Companions<F>::I;
  // A denormal's bits, converted as an integer, are the number times 2^149.
  const auto denormal = pattern < U(0x00800000u);
  const U normal = select(denormal, bits(to_float(pattern)), pattern);
  const U offset = normal - U(0x3f3504f3u);
  const F mantissa = from_bits((offset & U(0x007fffffu)) + U(0x3f3504f3u));
  const I exponent = as_signed(offset) >> I(23);
  return {to_float(exponent) + select(denormal, F(-149.0f), F(0.0f)), mantissa};
}

template <class F>
F strict_log(F x) {
  using U = typename Companions<F>::U;
  const U pattern = bits(x);
  const auto [exponent, mantissa] = decompose<F>(pattern);
  const F f = mantissa - F(1.0f);
  constexpr std::array<float, 9> kTail = {0x1.555548p-2f,  -0x1.000006p-2f, 0x1.99a476p-3f,
                                          -0x1.555c46p-3f, 0x1.233ba8p-3f,  -0x1.fc2886p-4f,
                                          0x1.e6bf3ap-4f,  -0x1.de02bep-4f, 0x1.147610p-4f};
  const F square = f * f;
  const F tail = f * square * polynomial(f, kTail) - F(0.5f) * square;
  const F sum = exponent * F(0.693359375f) + (f + (exponent * F(-2.12194440e-4f) + tail));
  // Zeros give -∞; what is negative or NaN lies above +∞ as bits.
  const F undefined = select(pattern > U(0x7f800000u), F(kNan), x);
  const F special = select(equal(pattern << U(1u), U(0u)), F(-kInfinity), undefined);
  return select(pattern - U(1u) < U(0x7f7fffffu), sum, special);
}

template <class F>
F with_sign_of(F magnitude, F x) {
  using U = typename Companions<F>::U;
  return from_bits(bits(magnitude) | (bits(x) & U(0x80000000u)));
}

template <class F>
F magnitude_of(F x) {
  using U = typename Companions<F>::U;
  return from_bits(bits(x) & U(0x7fffffffu));
}

// Odd; 1 - 2 / (e^2|x| + 1) from 5/8 on, with a reciprocal by Newton's iteration.
template <class F>
F strict_tanh(F x) {
  using U = typename Companions<F>::U;
  const F a = magnitude_of(x);
  const F square = a * a;
  constexpr std::array<float, 5> kTail = {-0x1.555532p-2f, 0x1.1106fap-3f, -0x1.b836c8p-5f,
                                          0x1.52041cp-6f, -0x1.754f46p-8f};
  const F near = a + a * (square * polynomial(square, kTail));
  const F capped = select(a > F(10.0f), F(10.0f), a);
  const F divisor = exp_in_range(capped + capped) + F(1.0f);
  const auto refine = [&](F guess) { return guess * (F(2.0f) - divisor * guess); };
  const F guess = from_bits(U(0x7ef311c7u) - bits(divisor));
  const F reciprocal = refine(refine(refine(guess)));
  const F far = F(1.0f) - (reciprocal + reciprocal);
  return with_sign_of(select(a >= F(0.625f), far, near), x);
}

// Odd; 1 - e^p(|x|) from 0.92 on, where p approximates log erfc.
template <class F>
F strict_erf(F x) {
  const F a = magnitude_of(x);
  const F square = a * a;
  constexpr std::array<float, 6> kNear = {0x1.06eba6p-3f,  -0x1.8126e2p-2f, 0x1.ce1986p-4f,
                                          -0x1.b67c04p-6f, 0x1.46d9e4p-8f,  -0x1.38742ep-11f};
  const F near = a + a * polynomial(square, kNear);
  constexpr std::array<float, 8> kLogErfc = {0x1.6e5712p-13f, -0x1.2127e4p+0f, -0x1.44460cp-1f,
                                             -0x1.bb83dap-4f, 0x1.9b8e30p-6f,  -0x1.1159dep-8f,
                                             0x1.c78bd6p-12f, -0x1.61df30p-16f};
  const F capped = select(a > F(4.0f), F(4.0f), a);
  const F far = F(1.0f) - exp_in_range(polynomial(capped, kLogErfc));
  return with_sign_of(select(a >= F(0.92f), far, near), x);
}

// An angle ≥ 0 as quadrant · π/2 + sign · (high + low), the sum in [0, π/4] (or [0, 1] with
// quadrant 0).
template <class F>
struct ReducedAngle {
  typename Companions<F>::U quadrant;  // modulo 4
  typename Companions<F>::U sign;      // 0 or 0x80000000
  F high;
  F low;
};

// Payne and Hanek's reduction by 96 of the bits of 2/π, selected by the exponent. `pattern` holds
// the bits of a finite number ≥ 0; those below 1 are left alone.
template <class F>
ReducedAngle<F> reduce_angle(typename Companions<F>::U pattern) {
  using U = typename Companions<F>::U;
  using I = typename Companions<F>::I;
  const U exponent = (pattern >> U(23u)) - U(127u);
  const U mantissa = ((pattern & U(0x007fffffu)) | U(0x00800000u)) << U(7u);
  // 2/π · 2^(32 i) for i = exponent / 32, modulo 2^32, as words from the integer part on.
  constexpr std::array<uint32_t, 7> kTwoOverPi = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                                  0xf534ddc0, 0xdb629599, 0x3c439041};
  const auto by_two = not_equal(exponent & U(64u), U(0u));
  const auto by_one = not_equal(exponent & U(32u), U(0u));
  std::array<U, 5> coarse;
  for (size_t i = 0; i < 5; ++i) {
    coarse[i] = select(by_two, U(kTwoOverPi[i + 2]), U(kTwoOverPi[i]));
  }
  std::array<U, 4> words;
  for (size_t i = 0; i < 4; ++i) words[i] = select(by_one, coarse[i + 1], coarse[i]);
  const U complement = ~exponent;  // 31 - exponent modulo 32
  std::array<U, 3> window;
  for (size_t i = 0; i < 3; ++i) {
    window[i] = shift_left(words[i], exponent) | shift_right(words[i + 1] >> U(1u), complement);
  }
  // The product in quarter turns, as a fixed-point number with two integer bits.
  const U middle = mantissa * window[1];
  const U low_word = middle + mul_high(mantissa, window[2]);
  const U carry = select(low_word < middle, U(1u), U(0u));
  const U high_word = (mantissa * window[0] + mul_high(mantissa, window[1])) + carry;
  const U quadrant = (high_word + U(0x20000000u)) >> U(30u);
  // The fraction from the nearest quarter turn, signed, then its magnitude (less 2^-64), in parts
  // of at most 24 bits, so that no conversion rounds.
  const U fraction_high = (high_word << U(2u)) | (low_word >> U(30u));
  const U fraction_low = low_word << U(2u);
  const U negative = as_unsigned(as_signed(fraction_high) >> I(31));
  const U top = fraction_high ^ negative;
  // Times π/2: twelve bits by twelve are exact, the rest is small.
  const F first = to_float(top >> U(19u));
  const F second = to_float(top & U(0x0007ffffu));
  const F third = to_float((fraction_low ^ negative) >> U(8u));
  const F rest = first * F(-0x1.2aeef4p-18f * 0x1p-13f) +
                 (second * F(0x1.921fb6p+0f * 0x1p-32f) + third * F(0x1.921fb6p+0f * 0x1p-56f));
  const auto small = as_signed(exponent) < I(0);
  return {select(small, U(0u), quadrant), select(small, U(0u), negative & U(0x80000000u)),
          select(small, from_bits(pattern), first * F(0x1.922p+0f * 0x1p-13f)),
          select(small, F(0.0f), rest)};
}

// sin(x) for quadrants = 0, cos(x) = sin(|x| + π/2) for quadrants = 1.
template <class F>
F strict_sine(F x, uint32_t quadrants) {
  using U = typename Companions<F>::U;
  const U pattern = bits(x) & U(0x7fffffffu);
  const ReducedAngle<F> angle = reduce_angle<F>(pattern);
  const F r = angle.high + angle.low;
  const F square = r * r;
  constexpr std::array<float, 4> kSine = {-0x1.555556p-3f, 0x1.11113ep-7f, -0x1.a0200ap-13f,
                                          0x1.6dee04p-19f};
  constexpr std::array<float, 4> kCosine = {0x1.555556p-5f, -0x1.6c1712p-10f, 0x1.a02c2p-16f,
                                            -0x1.26818ap-22f};
  const F sine = angle.high + (angle.low + r * (square * polynomial(square, kSine)));
  const F cosine = F(1.0f) - (F(0.5f) * square - (square * square) * polynomial(square, kCosine));
  const U quadrant = quadrants == 0 ? angle.quadrant : angle.quadrant + U(quadrants);
  const auto odd = not_equal(quadrant & U(1u), U(0u));
  const U half_turn = (quadrant & U(2u)) << U(30u);
  const U own = quadrants == 0 ? half_turn ^ (bits(x) & U(0x80000000u)) : half_turn;
  const U value = select(odd, bits(cosine), bits(sine) ^ angle.sign) ^ own;
  return select(pattern < U(0x7f800000u), from_bits(value), F(kNan));
}

template <class F>
F strict_sin(F x) {
  return strict_sine(x, 0);
}

template <class F>
F strict_cos(F x) {
  return strict_sine(x, 1);
}

// An unevaluated sum.
template <class F>
struct Pair {
  F high;
  F low;
};

// The upper 12 bits of the significand and the rest, both exact in products with each other.
template <class F>
Pair<F> split(F x) {
  using U = typename Companions<F>::U;
  const F high = from_bits(bits(x) & U(0xfffff000u));
  return {high, x - high};
}

// a · b exactly, unless parts overflow or fall below 2^-126 (Dekker).
template <class F>
Pair<F> exact_product(F a, F b) {
  const Pair<F> x = split(a);
  const Pair<F> y = split(b);
  const F product = a * b;
  const F error = ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low;
  return {product, error};
}

// c[0] - x (c[1] - x (c[2] - …)) of fractions x / 2^32.
template <size_t kFirst = 0, class U, size_t kCount>
U alternating_fixed_point(U x, const std::array<uint32_t, kCount>& c) {
  if constexpr (kFirst + 1 == kCount) {
    return U(c[kFirst]);
  } else {
    return U(c[kFirst]) - mul_high(x, alternating_fixed_point<kFirst + 1>(x, c));
  }
}

// log2 of a positive finite number to about 2^-30 of itself. log2(1 + f) / f comes from a
// polynomial in f + 1 - √½ with alternating signs, in fixed point with 31 fraction bits.
template <class F>
Pair<F> log2_pair(typename Companions<F>::U pattern) {
  using U = typename Companions<F>::U;
  const auto [exponent, mantissa] = decompose<F>(pattern);
  const U offset = to_unsigned((mantissa - F(0x1.6a09e6p-1f)) * F(0x1p24f)) << U(8u);
  constexpr std::array<uint32_t, 12> kQuotient = {0xda8279b7, 0x919a4735, 0x855dcdb6, 0x8b10d7ef,
                                                  0x9b5c6439, 0xb3b0f658, 0xce4de033, 0xdb44bbe1,
                                                  0xc3a90407, 0x824c1b14, 0x376e130d, 0x0b0d5d31};
  const U quotient = alternating_fixed_point(offset, kQuotient);
  const F quotient_high = to_float(quotient >> U(20u)) * F(0x1p-11f);
  const F quotient_low = to_float(quotient & U(0x000fffffu)) * F(0x1p-31f);
  const F f = mantissa - F(1.0f);
  const Pair<F> parts = split(f);
  const F fraction = parts.high * quotient_high;
  const F rest = parts.low * quotient_high + f * quotient_low;
  const F sum = exponent + fraction;
  const F below = (fraction - (sum - exponent)) + rest;
  const F high = sum + below;
  return {high, below - (high - sum)};
}

// 2^(p.high + p.low) for any p.high; below 2^-126 it is 0.
template <class F>
F exp2_pair(Pair<F> p) {
  using U = typename Companions<F>::U;
  using I = typename Companions<F>::I;
  const F floor = select(p.high > F(-160.0f), p.high, F(-160.0f));
  const F capped = select(floor < F(128.75f), floor, F(128.75f));
  const F low = select(equal(capped, p.high), p.low, F(0.0f));
  const F shifted = capped + F(12582912.0f);
  const F n = shifted - F(12582912.0f);
  const F r = (capped - n) + low;
  constexpr std::array<float, 6> kTail = {0x1.62e430p-1f, 0x1.ebfbdcp-3f,  0x1.c6af7ap-5f,
                                          0x1.3b2dd4p-7f, 0x1.5f0952p-10f, 0x1.417872p-13f};
  const F power = r * polynomial(r, kTail) + F(1.0f);
  // Powers of 2 above 2^127 are reached by a last doubling.
  const auto large = n > F(0.0f);
  const U exponent = bits(shifted) - select(large, U(1u), U(0u));
  const U scaled = bits(power) + (exponent << U(23u));
  const F result = from_bits(scaled) * select(large, F(2.0f), F(1.0f));
  return select(as_signed(scaled) < I(0x00800000), F(0.0f), result);
}

// C's pow, special cases included.
template <class F>
F strict_pow(F x, F y) {
  using U = typename Companions<F>::U;
  using I = typename Companions<F>::I;
  const U pattern = bits(x) & U(0x7fffffffu);
  const auto zero = equal(pattern, U(0u));
  const auto infinite = equal(pattern, U(0x7f800000u));
  const Pair<F> logarithm = log2_pair<F>(pattern);
  const F ends = select(zero, F(-kInfinity), F(kInfinity));
  const F log_high = select(zero | infinite, ends, logarithm.high);
  const Pair<F> product = exact_product(y, log_high);
  const F power = exp2_pair(Pair<F>{product.high, product.low + y * logarithm.low});
  const F magnitude = select(equal(pattern, U(0x3f800000u)), F(1.0f), power);
  const F half = y * F(0.5f);
  const auto integer = equal(y, floor(y));
  const auto odd = integer & not_equal(half, floor(half));
  const U sign = select(odd, bits(x) & U(0x80000000u), U(0u));
  const F with_sign = from_bits(bits(magnitude) | sign);
  const auto negative = as_signed(bits(x)) < I(0);
  const auto outside = negative & !(integer | infinite | zero);
  const F defined = select(outside | is_nan(x) | is_nan(y), F(kNan), with_sign);
  return select(equal(y, F(0.0f)) | equal(x, F(1.0f)), F(1.0f), defined);
}

// Whether 2^low ≤ |x| < 2^high.
template <class F>
typename Companions<F>::B between_powers(F x, int low, int high) {
  using U = typename Companions<F>::U;
  const U least(static_cast<uint32_t>(low + 127) << 23);
  return (bits(x) & U(0x7fffffffu)) - least < U(static_cast<uint32_t>(high - low) << 23);
}

// c - a · b to one rounding or nearly so, while the product's parts stay above 2^-126.
template <class F>
F residual(F a, F b, F c, bool fused_fma) {
  if (fused_fma) return fma(-a, b, c);
  const Pair<F> product = exact_product(a, b);
  return (c - product.high) - product.low;
}

// a / b by `divide`, good to a few ulp, and one step of correction where no part of the residual
// can leave the normal range; elsewhere what `divide` gave.
template <class F, class Divide>
F strict_divide(F a, F b, bool fused_fma, const Divide& divide) {
  const F quotient = divide(a, b);
  const F corrected = quotient + divide(residual(quotient, b, a, fused_fma), b);
  const auto safe = between_powers(a, -75, 126) & between_powers(b, -100, 100) &
                    between_powers(quotient, -100, 100);
  return select(safe, corrected, quotient);
}

// √x by `root` and `divide`, corrected likewise; small x are scaled by 2^64.
template <class F, class Root, class Divide>
F strict_root(F x, bool fused_fma, const Root& root, const Divide& divide) {
  const auto small = x < F(0x1p-40f);
  const F scaled = select(small, x * F(0x1p64f), x);
  const F first = root(scaled);
  const F step = divide(F(0.5f) * residual(first, first, scaled, fused_fma), first);
  const F result = select(between_powers(scaled, -75, 126), first + step, first);
  return select(small, result * F(0x1p-32f), result);
}

}  // namespace meganeura::scalar
