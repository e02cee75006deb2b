// Evaluation of scalar bodies on the host: the reference for kernels and for ops.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scalar/scalar.h"

namespace meganeura::scalar {

// One 32-bit lane; f32, i32, u32 share the bits, bool is 0 or 1.
using Lane = uint32_t;

// The result of one primitive node in exact 32-bit semantics (scalar.h states them). Composite ops
// (exp, …) are an internal fault: lower them first. `fused_fma` says whether kFma rounds once.
Lane evaluate_primitive(Op op, Type operand_type, Type result_type, std::span<const Lane> operands,
                        bool fused_fma = true);

// Lane-exact evaluation of a lowered body for one element: outputs[i] of body.outputs[i].
void evaluate_lanes(const Body& body, std::span<const Lane> arguments, std::span<Lane> outputs,
                    bool fused_fma = true);

// f64 evaluation for references. Every argument and output is a double array of `count` elements
// (bool as 0/1, integers exactly). In ideal mode f32 nodes compute in f64 and kRoundF16/kRoundBF16
// do nothing; in typed mode these round and every integer node wraps in its own 32 bits.
// Integer nodes always use 32-bit integer semantics; composite ops use the C library in f64.
enum class Mode : uint8_t { kIdeal, kTyped };
void evaluate_f64(const Body& body, Mode mode, int64_t count,
                  std::span<const double* const> arguments, std::span<double* const> outputs);

// Running error bounds beside the values: an f32 kernel that computes the same body from arguments
// with absolute errors `argument_errors` stays within `output_errors` of the f64 outputs. Elements
// where a comparison, floor, round or select could flip within the bounds get an infinite bound.
void evaluate_f64_bounds(const Body& body, int64_t count, std::span<const double* const> arguments,
                         std::span<const double* const> argument_errors,
                         std::span<double* const> outputs, std::span<double* const> output_errors);

}  // namespace meganeura::scalar
