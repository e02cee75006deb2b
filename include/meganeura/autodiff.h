// Reverse-mode differentiation, graph to graph.
#pragma once

#include <span>
#include <vector>

#include "meganeura/graph.h"

namespace meganeura {

// d(loss)/d(parameters[i]), appended to the loss's graph. The loss is a rank-0 float. A tensor the
// loss does not depend on gets zeros. Error(kUnsupported) naming the op when a path from a
// requested tensor passes an op without a gradient; Error(kInvalidArgument) for a loss of rank > 0,
// a frozen parameter, or a tensor of another graph.
MEGANEURA_API std::vector<Tensor> grad(Tensor loss, std::span<const Tensor> parameters,
                                       Place place = Place::here());

// Vector-Jacobian product: gradients of Σ_i <outputs[i], cotangents[i]>.
MEGANEURA_API std::vector<Tensor> vjp(std::span<const Tensor> outputs,
                                      std::span<const Tensor> cotangents,
                                      std::span<const Tensor> parameters,
                                      Place place = Place::here());

// The trainable parameters the tensor depends on, in canonical order.
MEGANEURA_API std::vector<Tensor> trainable_parameters(Tensor loss);

}  // namespace meganeura
