// Networks of the demos and workloads, built from nn.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "meganeura/export.h"
#include "meganeura/graph.h"
#include "meganeura/nn.h"

namespace meganeura::models {

// A multilayer perceptron: linear layers with ReLU between, named "layers.0", "layers.2", … as in
// torch.nn.Sequential(Linear, ReLU, Linear, …).
struct MEGANEURA_API Mlp {
  // `widths`: input, hidden…, output; at least two, else Error(kInvalidArgument).
  Mlp(Graph& graph, const std::string& prefix, std::span<const int64_t> widths,
      Place place = Place::here());
  // x [N, …] flattened to [N, widths.front()] → [N, widths.back()].
  Tensor operator()(Operand x) const;

  std::vector<nn::Linear> layers;
};

}  // namespace meganeura::models
