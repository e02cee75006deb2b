// Loops over lanes for the arithmetic that kernels do most.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scalar/scalar.h"

namespace meganeura::device {

// out[i] = op(a[i], b[i], c[i]) for i < count; operands that the op lacks are not read. `out` may
// be none of the operands.
void evaluate_lanes(scalar::Op op, scalar::Type operand, scalar::Type result, bool fused_fma,
                    uint32_t* out, const uint32_t* a, const uint32_t* b, const uint32_t* c,
                    size_t count);

// Whether a direct loop exists (tests compare it with scalar::evaluate_primitive).
bool has_fast_loop(scalar::Op op, scalar::Type operand, scalar::Type result, bool fused_fma);

}  // namespace meganeura::device
