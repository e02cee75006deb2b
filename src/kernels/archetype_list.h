// The archetypes behind candidates(). Specs are canonical and valid, iteration spaces not empty.
#pragma once

#include <vector>

#include "kernels/archetypes.h"

namespace meganeura::kernels {

std::vector<KernelPlan> pointwise_candidates(const PointwiseSpec& spec,
                                             const Capabilities& capabilities);
std::vector<KernelPlan> reduction_candidates(const ReductionSpec& spec,
                                             const Capabilities& capabilities);
std::vector<KernelPlan> contraction_candidates(const ContractionSpec& spec,
                                               const Capabilities& capabilities);
std::vector<KernelPlan> scatter_add_candidates(const ScatterAddSpec& spec,
                                               const Capabilities& capabilities);

}  // namespace meganeura::kernels
