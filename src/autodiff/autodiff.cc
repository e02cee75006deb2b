#include "meganeura/autodiff.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "autodiff/recompute.h"
#include "base/check.h"
#include "graph/node.h"
#include "meganeura/ops.h"

namespace meganeura {
namespace {

bool is_parameter(const Node& node) { return node.row->lowering == Lowering::kParameter; }

// "the parameter \"w\"" or "the result of exp at model.cc:3".
std::string name_of(const Node& node) {
  if (!is_leaf(node)) return cat("the result of ", describe(node));
  if (node.row->lowering == Lowering::kConstant) return describe(node);
  return cat("\"", leaf_name(node), "\"");
}

void check_requested(Tensor tensor, const Graph& graph, Place place) {
  if (!tensor || &tensor.graph() != &graph) {
    fail(ErrorKind::kInvalidArgument, "The gradient asked for at ", to_string(place), " names ",
         tensor ? "a tensor of another graph" : "an empty tensor",
         ". Ask for tensors of the graph that is differentiated.");
  }
  const Node& node = tensor.node();
  if (is_parameter(node) && !node.get<bool>("trainable")) {
    fail(ErrorKind::kInvalidArgument, "The gradient asked for at ", to_string(place),
         " names the frozen parameter \"", leaf_name(node),
         "\". Leave it out, or mark it trainable with Graph::set_trainable.");
  }
  if (!is_float(node.dtype)) {
    fail(ErrorKind::kInvalidArgument, "The gradient asked for at ", to_string(place), " names ",
         name_of(node), ", which holds ", node.dtype, " values; only floats have gradients.");
  }
}

void check_cotangent(Tensor output, Tensor cotangent, Place place) {
  if (!output || !cotangent || &output.graph() != &cotangent.graph()) {
    fail(ErrorKind::kInvalidArgument, "The product asked for at ", to_string(place),
         " needs outputs and cotangents of one graph, and none of them empty.");
  }
  if (output.shape() == cotangent.shape() && output.dtype() == cotangent.dtype()) return;
  fail(ErrorKind::kShape, "The product asked for at ", to_string(place), " pairs the output ",
       output.dtype(), output.shape(), " with the cotangent ", cotangent.dtype(), cotangent.shape(),
       "; shape and dtype must be equal.");
}

// The reverse walk of one vjp call.
class ReverseWalk {
 public:
  ReverseWalk(Graph& graph, std::span<const Tensor> outputs, std::span<const Tensor> requested)
      : graph_(graph), order_(topological_order(outputs)), copies_(graph, order_) {
    for (Tensor tensor : requested) wanted_.insert(tensor.id());
    for (Tensor tensor : order_) {
      if (passes_gradient(tensor.node())) wanted_.insert(tensor.id());
    }
  }

  void seed(Tensor output, Tensor cotangent) {
    if (!wanted(output)) return;
    reached_.insert(output.id());
    accumulate(output, cotangent);
  }

  void run() {
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      if (reached_.contains(it->id()) && passes_gradient(it->node())) visit(*it);
    }
  }

  Tensor gradient(Tensor requested) const {
    const auto found = gradients_.find(requested.id());
    if (found != gradients_.end()) return found->second;
    return zeros(graph_, requested);
  }

 private:
  bool wanted(Tensor tensor) const { return wanted_.contains(tensor.id()); }

  bool passes_gradient(const Node& node) const {
    return node.row->differentiability != Differentiability::kZero &&
           std::any_of(node.operands.begin(), node.operands.end(),
                       [this](Tensor operand) { return wanted(operand); });
  }

  // A node that takes some elements of its float operands by a condition, as select does.
  static bool chooses(const Node& node) {
    return node.row->lowering == Lowering::kMap && is_float(node.dtype) &&
           std::any_of(node.operands.begin(), node.operands.end(),
                       [](Tensor operand) { return operand.dtype() == DType::kBool; });
  }

  // Elements that a choice did not take have no gradient, even where the rule multiplies their zero
  // cotangent by an infinite or undefined slope. Where nothing is NaN the result stays the rule's,
  // so that higher derivatives are right.
  static Tensor guarded(Tensor result, Tensor cotangent) {
    if (result == cotangent) return result;
    const Tensor undefined = not_equal(result, result);
    const Tensor untaken = equal(cotangent, zeros(cotangent.graph(), cotangent));
    return select(bit_and(undefined, untaken), zeros(result.graph(), result), result);
  }

  static Tensor zeros(Graph& graph, Tensor like) {
    return broadcast_to(graph.scalar(0.0, like.dtype()), like.shape());
  }

  // Sums in the order of the walk, which depends on the graph's structure alone.
  void accumulate(Tensor tensor, Tensor cotangent) {
    const auto [entry, first] = gradients_.emplace(tensor.id(), cotangent);
    if (!first) entry->second = add(entry->second, cotangent);
  }

  void visit(Tensor tensor) {
    const Node& node = tensor.node();
    const PlaceScope scope(graph_, node.place);
    if (node.row->differentiability == Differentiability::kMissing) refuse(node);
    const bool below_choice = choices_.contains(tensor.id());
    for (Tensor operand : node.operands) {
      if (!wanted(operand)) continue;
      reached_.insert(operand.id());
      if (chooses(node) || (below_choice && node.row->lowering != Lowering::kContract)) {
        choices_.insert(operand.id());
      }
    }
    const auto cotangent = gradients_.find(tensor.id());
    if (cotangent == gradients_.end()) return;
    const std::vector<Tensor> results = ask_row(tensor, node, cotangent->second);
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i] || !wanted(node.operands[i])) continue;
      check_result(node, i, results[i]);
      const bool guards = below_choice && node.row->lowering == Lowering::kMap;
      accumulate(node.operands[i], guards ? guarded(results[i], cotangent->second) : results[i]);
    }
  }

  std::vector<Tensor> ask_row(Tensor tensor, const Node& node, Tensor cotangent) {
    const size_t count = node.operands.size();
    std::vector<Tensor> operands;
    const auto needed = std::make_unique<bool[]>(count);
    for (size_t i = 0; i < count; ++i) {
      operands.push_back(copies_.value(node.operands[i], node.recompute));
      needed[i] = wanted(node.operands[i]) && is_float(node.operands[i].dtype());
    }
    const GradientContext context = {copies_.value(tensor, node.recompute), cotangent, operands,
                                     std::span<const bool>(needed.get(), count), node};
    std::vector<Tensor> results = node.row->gradient(context);
    MG_CHECK(results.size() == count, "the gradient rule of ", node.row->name, " gave ",
             results.size(), " tensors for ", count, " operands");
    return results;
  }

  static void check_result(const Node& node, size_t i, Tensor result) {
    const Tensor operand = node.operands[i];
    MG_CHECK(result.shape() == operand.shape() && result.dtype() == operand.dtype(),
             "the gradient rule of ", node.row->name, " gave ", result.dtype(), result.shape(),
             " for operand ", i, ", which is ", operand.dtype(), operand.shape());
  }

  // Names the op without a gradient and one leaf or tensor that asked for it.
  [[noreturn]] void refuse(const Node& node) const {
    const Node* culprit = &node;
    while (true) {
      const auto next = std::find_if(culprit->operands.begin(), culprit->operands.end(),
                                     [this](Tensor operand) { return wanted(operand); });
      if (next == culprit->operands.end()) break;
      culprit = &next->node();
    }
    fail(ErrorKind::kUnsupported, "The op ", describe(node), " on ", describe_operands(node),
         " has no gradient, but it lies on the way from the loss to ", name_of(*culprit),
         ". Freeze that, or put stop_gradient around the op's operands.");
  }

  Graph& graph_;
  std::vector<Tensor> order_;
  RecomputeCopies copies_;
  std::set<uint32_t> wanted_;   // requested tensors, and what a gradient may pass on its way there
  std::set<uint32_t> reached_;  // wanted tensors that the outputs depend on
  std::set<uint32_t> choices_;  // reached tensors of which a later node takes some elements
  std::map<uint32_t, Tensor> gradients_;
};

}  // namespace

std::vector<Tensor> vjp(std::span<const Tensor> outputs, std::span<const Tensor> cotangents,
                        std::span<const Tensor> parameters, Place place) {
  if (outputs.size() != cotangents.size()) {
    fail(ErrorKind::kInvalidArgument, "The product asked for at ", to_string(place), " has ",
         outputs.size(), " outputs but ", cotangents.size(),
         " cotangents; give one of the same shape for every output.");
  }
  if (outputs.empty()) {
    fail(ErrorKind::kInvalidArgument, "The product asked for at ", to_string(place),
         " has no outputs. Give at least one output to differentiate.");
  }
  for (size_t i = 0; i < outputs.size(); ++i) check_cotangent(outputs[i], cotangents[i], place);
  Graph& graph = outputs[0].graph();
  for (Tensor output : outputs) {
    if (&output.graph() == &graph) continue;
    fail(ErrorKind::kInvalidArgument, "The outputs differentiated at ", to_string(place),
         " belong to different graphs. Differentiate one graph at a time.");
  }
  for (Tensor tensor : parameters) check_requested(tensor, graph, place);

  ReverseWalk walk(graph, outputs, parameters);
  for (size_t i = 0; i < outputs.size(); ++i) walk.seed(outputs[i], cotangents[i]);
  walk.run();
  std::vector<Tensor> gradients;
  for (Tensor tensor : parameters) gradients.push_back(walk.gradient(tensor));
  return gradients;
}

std::vector<Tensor> grad(Tensor loss, std::span<const Tensor> parameters, Place place) {
  if (!loss) {
    fail(ErrorKind::kInvalidArgument, "The loss differentiated at ", to_string(place),
         " is an empty tensor. Give the loss of a graph.");
  }
  if (loss.rank() != 0 || !is_float(loss.dtype())) {
    fail(ErrorKind::kInvalidArgument, "The loss differentiated at ", to_string(place), " is ",
         loss.dtype(), loss.shape(),
         "; it must be a float of rank 0. Reduce it with mean or sum first.");
  }
  const Tensor one = loss.graph().scalar(1.0, loss.dtype(), place);
  return vjp(std::span(&loss, 1), std::span(&one, 1), parameters, place);
}

std::vector<Tensor> trainable_parameters(Tensor loss) {
  std::vector<Tensor> parameters;
  for (Tensor tensor : topological_order(std::span(&loss, 1))) {
    const Node& node = tensor.node();
    if (is_parameter(node) && node.get<bool>("trainable")) parameters.push_back(tensor);
  }
  return parameters;
}

}  // namespace meganeura
