// What the f64 evaluators share.
#pragma once

#include "scalar/evaluate.h"

namespace meganeura::scalar {

// Elements that a node processes at a time.
inline constexpr int64_t kChunk = 256;

// A lane's number; bool gives 0 or 1.
double f64_from_lane(Type type, Lane lane);
// The lane that holds `value`, which is in range for integers and gets rounded for f32.
Lane lane_from_f64(Type type, double value);

// One node (neither argument nor constant) over `count` elements; `operand` is the type of its
// first operand.
void evaluate_node_f64(const Node& node, Type operand, Mode mode, int64_t count,
                       std::span<const double* const> operands, double* result);

}  // namespace meganeura::scalar
