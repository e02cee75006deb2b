#include "optim/states.h"

#include <set>

#include "base/check.h"
#include "graph/node.h"

namespace meganeura {
namespace {

void check_parameter(const Graph& graph, Tensor parameter, Place place) {
  if (!parameter || &parameter.graph() != &graph) {
    fail(ErrorKind::kInvalidArgument, "The optimizer at ", to_string(place), " got ",
         parameter ? "a parameter of another graph" : "an empty tensor as parameter",
         ". Pass parameters of the graph it extends.");
  }
  const Node& node = parameter.node();
  if (node.row->lowering != Lowering::kParameter) {
    fail(ErrorKind::kInvalidArgument, "The optimizer at ", to_string(place), " got ",
         describe(node), ", which is not a parameter. Pass what Graph::parameter returned.");
  }
  if (!node.get<bool>("trainable")) {
    fail(ErrorKind::kInvalidArgument, "The optimizer at ", to_string(place),
         " got the frozen parameter \"", leaf_name(node),
         "\". Leave it out, or mark it trainable with Graph::set_trainable.");
  }
  if (!is_float(node.dtype) || !info(node.dtype).computable) {
    fail(ErrorKind::kUnsupported, "The optimizer at ", to_string(place), " cannot update \"",
         leaf_name(node), "\", which is ", node.dtype, ". Use f32, f16 or bf16.");
  }
}

}  // namespace

void check_pairs(const Graph& graph, std::span<const Tensor> parameters,
                 std::span<const Tensor> gradients, Place place) {
  if (parameters.size() != gradients.size()) {
    fail(ErrorKind::kInvalidArgument, "The optimizer at ", to_string(place), " got ",
         parameters.size(), " parameters but ", gradients.size(), " gradients; give one for each.");
  }
  std::set<uint32_t> seen;
  for (size_t i = 0; i < parameters.size(); ++i) {
    check_parameter(graph, parameters[i], place);
    const std::string& name = leaf_name(parameters[i].node());
    if (!seen.insert(parameters[i].id()).second) {
      fail(ErrorKind::kInvalidArgument, "The optimizer at ", to_string(place), " got \"", name,
           "\" twice. List every parameter once.");
    }
    const Tensor gradient = gradients[i];
    if (!gradient || &gradient.graph() != &graph) {
      fail(ErrorKind::kInvalidArgument, "The gradient of \"", name, "\" given at ",
           to_string(place), gradient ? " belongs to another graph." : " is an empty tensor.",
           " Pass what grad() returned for the parameter.");
    }
    if (gradient.shape() == parameters[i].shape() && gradient.dtype() == parameters[i].dtype()) {
      continue;
    }
    fail(ErrorKind::kShape, "The gradient of \"", name, "\" given at ", to_string(place), " is ",
         gradient.dtype(), gradient.shape(), ", but the parameter is ", parameters[i].dtype(),
         parameters[i].shape(), ". Pass the gradients in the order of the parameters.");
  }
}

Tensor slot_state(Graph& graph, Tensor parameter, std::string_view slot, Place place) {
  const std::string name = cat(leaf_name(parameter.node()), ".", slot);
  const Tensor found = graph.find(name);
  if (found && found.node().row->lowering == Lowering::kState && found.dtype() == f32 &&
      found.shape() == parameter.shape()) {
    return found;
  }
  return graph.state(name, f32, parameter.shape(), Initializer::zeros(), place);
}

}  // namespace meganeura
