// Strict f32 forms of exp, log, sin, cos, tanh, erf, pow, rsqrt, and of division and square root.
#pragma once

#include "scalar/scalar.h"

namespace meganeura::scalar {

// What the device's built-ins are known to do; where false, corrections are emitted.
struct Arithmetic {
  bool fused_fma = false;       // fma rounds once
  bool exact_division = false;  // built-in / is correctly rounded
  bool exact_sqrt = false;      // built-in sqrt is correctly rounded
};

// Rewrites composite ops (and division, sqrt where the device is not exact) into primitive ones.
// Polynomials use + and × only, never contracted, so their bits are equal on every device that
// rounds f32 + and × correctly. Error bounds (ulp of the f32 result, whole f32 range):
// kMaxUlp in strict_bounds() by op, proven by tests.
Body lower_strict(const Body& body, const Arithmetic& arithmetic);

// The proven bound of a composite op in ulp.
double strict_max_ulp(Op op);

}  // namespace meganeura::scalar
