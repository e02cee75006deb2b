// Checks and states that the builders of this layer share.
#pragma once

#include <span>
#include <string_view>

#include "meganeura/graph.h"

namespace meganeura {

// Throws unless there is one gradient of the parameter's shape and dtype for each parameter, and
// the parameters are distinct trainable float parameters of the graph.
void check_pairs(const Graph& graph, std::span<const Tensor> parameters,
                 std::span<const Tensor> gradients, Place place);

// The f32 state "<parameter>.<slot>" of the parameter's shape, zero at first. One that exists is
// shared.
Tensor slot_state(Graph& graph, Tensor parameter, std::string_view slot, Place place);

}  // namespace meganeura
