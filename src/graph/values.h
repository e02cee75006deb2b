// Numbers as storage holds them: rounding, wrapping and bytes of every dtype.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "meganeura/dtype.h"

namespace meganeura {

// The number that comes back after storing `value`: floats round half to even (overflow gives
// infinity), integers drop the fraction and wrap in their own width (NaN gives 0), bool is 0 or 1.
double as_stored(DType dtype, double value);

// Dense storage of the values, each as as_stored() says. Error(kInternal) for block dtypes.
std::vector<std::byte> encode_values(DType dtype, std::span<const double> values);

// The values of dense storage; i64 values beyond 2^53 round to f64.
std::vector<double> decode_values(DType dtype, std::span<const std::byte> bytes);

}  // namespace meganeura
