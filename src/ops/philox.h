// Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), as scalar
// expressions.
#pragma once

#include <array>

#include "scalar/scalar.h"

namespace meganeura::ops {

// The four output words for a counter and a key of u32 expressions.
std::array<scalar::Scalar, 4> philox4x32(std::array<scalar::Scalar, 4> counter,
                                         std::array<scalar::Scalar, 2> key);

}  // namespace meganeura::ops
