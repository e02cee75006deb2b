// Copies of recompute regions for the backward pass.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "graph/node.h"

namespace meganeura {

// Gives a gradient rule the values it may use. A value inside a recompute region, used by the
// gradient of a node of the same region, is replaced by a copy that is computed again from the
// region's inputs; all others, the region's inputs and results among them, are kept.
class RecomputeCopies {
 public:
  // `order`: the forward graph, operands first.
  RecomputeCopies(Graph& graph, std::span<const Tensor> order);

  // The value of `tensor` for the gradient of a node in `region` (0: outside every region).
  Tensor value(Tensor tensor, uint32_t region);

 private:
  void copy_region(uint32_t region);

  Graph* graph_;
  std::map<uint32_t, std::vector<Tensor>> members_;  // of each region, operands first
  std::map<uint32_t, Tensor> copies_;                // by the id of the original
  std::map<uint32_t, bool> copied_;
};

}  // namespace meganeura
