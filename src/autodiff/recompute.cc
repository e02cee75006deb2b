#include "autodiff/recompute.h"

namespace meganeura {

RecomputeCopies::RecomputeCopies(Graph& graph, std::span<const Tensor> order) : graph_(&graph) {
  for (Tensor tensor : order) {
    const Node& node = tensor.node();
    if (node.recompute != 0 && !is_leaf(node)) members_[node.recompute].push_back(tensor);
  }
}

Tensor RecomputeCopies::value(Tensor tensor, uint32_t region) {
  const Node& node = tensor.node();
  if (region == 0 || node.recompute != region || is_leaf(node)) return tensor;
  copy_region(region);
  return copies_.at(tensor.id());
}

void RecomputeCopies::copy_region(uint32_t region) {
  if (!copied_.emplace(region, true).second) return;
  const Graph::RecomputeRegion scope(*graph_);
  for (Tensor original : members_.at(region)) {
    Node copy = original.node();
    for (Tensor& operand : copy.operands) {
      const auto found = copies_.find(operand.id());
      if (found != copies_.end() && operand.node().recompute == region) operand = found->second;
    }
    copies_.emplace(original.id(), graph_->append(std::move(copy)));
  }
}

}  // namespace meganeura
