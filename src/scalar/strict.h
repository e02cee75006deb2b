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
// The functions use + and × only, never contracted, and integer operations, so their bits are equal
// on every device that rounds f32 + and × correctly. Results smaller than 2^-126 in magnitude may
// come back as zero; exp and pow always flush them. Special values are C's. Division and sqrt are
// corrected to within 1 ulp where no step can leave the normal range, roughly 2^-75 to 2^100.
Body lower_strict(const Body& body, const Arithmetic& arithmetic);

// The bound in ulp of the f32 result, over the whole range, that tests prove for a composite op;
// for kDiv and kSqrt what Vulkan promises of the built-in, which some extreme operands get.
double strict_max_ulp(Op op);

}  // namespace meganeura::scalar
