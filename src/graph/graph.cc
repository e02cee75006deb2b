#include "meganeura/graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "graph/graph_state.h"
#include "graph/leaves.h"
#include "graph/values.h"

namespace meganeura {
namespace {

bool has_name(const Node& node) {
  return is_leaf(node) && node.row->lowering != Lowering::kConstant;
}

AttributeValue& attribute_of(Node& node, std::string_view field) {
  return const_cast<AttributeValue&>(attribute(node, field));
}

std::vector<int64_t> extents_of(const Shape& shape) {
  return {shape.extents().begin(), shape.extents().end()};
}

const std::vector<Tensor>& operands_of(Tensor tensor) { return tensor.node().operands; }

}  // namespace

Tensor::Tensor(Graph* graph, uint32_t id) : state_(&graph->live()), id_(id) {}

Graph& Tensor::graph() const {
  if (state_ == nullptr) {
    fail(ErrorKind::kInvalidArgument,
         "An empty tensor handle was used. Give it a tensor that a graph or an op returned.");
  }
  return *state_->owner;
}

const Node& Tensor::node() const { return graph().node(id_); }
const Shape& Tensor::shape() const { return node().shape; }
DType Tensor::dtype() const { return node().dtype; }

Graph::Graph() : state_(std::make_unique<GraphState>()) { state_->owner = this; }
Graph::~Graph() = default;

Graph::Graph(Graph&& other) noexcept : state_(std::move(other.state_)) {
  if (state_) state_->owner = this;
}

Graph& Graph::operator=(Graph&& other) noexcept {
  state_ = std::move(other.state_);
  if (state_) state_->owner = this;
  return *this;
}

GraphState& Graph::live() const {
  if (!state_) {
    fail(ErrorKind::kInvalidArgument,
         "A graph was used after it had been moved away. Use the graph it was moved to.");
  }
  return *state_;
}

Tensor Graph::input(std::string name, DType dtype, Shape shape, int64_t limit, Place place) {
  return build_node(*this, leaf_row(Lowering::kInput), {},
                    {std::move(name), dtype, extents_of(shape), limit}, place);
}

Tensor Graph::parameter(std::string name, DType dtype, Shape shape, Initializer initializer,
                        bool trainable, Place place) {
  return build_node(*this, leaf_row(Lowering::kParameter), {},
                    {std::move(name), dtype, extents_of(shape), initializer.to_string(), trainable},
                    place);
}

Tensor Graph::state(std::string name, DType dtype, Shape shape, Initializer initializer,
                    Place place) {
  return build_node(*this, leaf_row(Lowering::kState), {},
                    {std::move(name), dtype, extents_of(shape), initializer.to_string()}, place);
}

Tensor Graph::constant(DType dtype, Shape shape, std::span<const std::byte> bytes, Place place) {
  auto data = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  return build_node(*this, leaf_row(Lowering::kConstant), {},
                    {dtype, extents_of(shape), Bytes(std::move(data))}, place);
}

Tensor Graph::scalar(double value, DType dtype, Place place) {
  const double stored = as_stored(dtype, value);
  const bool fits =
      is_float(dtype) ? std::isfinite(stored) || !std::isfinite(value) : stored == value;
  if (!fits) {
    fail(ErrorKind::kInvalidArgument, "The number ", value, " given at ", to_string(place),
         " is not a value of ", dtype, ". Use one in its range, or cast the tensor beside it.");
  }
  return constant(dtype, {}, encode_values(dtype, std::span(&value, 1)), place);
}

Tensor Graph::find(std::string_view name) const {
  const auto found = live().names.find(name);
  return found == state_->names.end() ? Tensor() : Tensor(state_->owner, found->second);
}

void Graph::limit_input(Tensor input, int64_t limit) {
  MG_CHECK(&input.graph() == this, "limit_input got a tensor of another graph");
  Node& node = state_->nodes[input.id()];
  if (node.row->lowering != Lowering::kInput || !is_integer(node.dtype)) {
    fail(ErrorKind::kInvalidArgument, "limit_input was called for ", describe(node), " of type ",
         node.dtype, ". Only integer inputs have a limit.");
  }
  if (limit < 1) {
    fail(ErrorKind::kInvalidArgument, "The limit ", limit, " for the input \"", leaf_name(node),
         "\" leaves no legal value. Give a limit of 1 or more.");
  }
  auto& current = std::get<int64_t>(attribute_of(node, "limit"));
  current = current == 0 ? limit : std::min(current, limit);
}

void Graph::set_trainable(Tensor parameter, bool trainable) {
  MG_CHECK(&parameter.graph() == this, "set_trainable got a tensor of another graph");
  Node& node = state_->nodes[parameter.id()];
  if (node.row->lowering != Lowering::kParameter) {
    fail(ErrorKind::kInvalidArgument, "set_trainable was called for ", describe(node),
         ", which is no parameter. Only parameters can be trained or frozen.");
  }
  if (trainable) check_trainable(node);
  attribute_of(node, "trainable") = trainable;
}

const Node& Graph::node(uint32_t id) const {
  const GraphState& state = live();
  MG_CHECK(id < state.nodes.size(), "node ", id, " of a graph of ", state.nodes.size());
  return state.nodes[id];
}

uint32_t Graph::size() const { return static_cast<uint32_t>(live().nodes.size()); }

Tensor Graph::append(Node node) {
  GraphState& state = live();
  for (Tensor operand : node.operands) {
    MG_CHECK(&operand.graph() == this, "an operand of ", describe(node), " is of another graph");
  }
  const auto id = static_cast<uint32_t>(state.nodes.size());
  if (has_name(node)) {
    const auto [entry, fresh] = state.names.emplace(leaf_name(node), id);
    if (!fresh) {
      fail(ErrorKind::kInvalidArgument, "The name \"", entry->first, "\" of ", describe(node),
           " is taken by ", describe(state.nodes[entry->second]),
           ". Give every input, parameter and state a name of its own.");
    }
  }
  if (is_leaf(node)) {
    node.recompute = 0;
  } else if (state.region != 0) {
    node.recompute = state.region;
  }
  state.regions = std::max(state.regions, node.recompute);
  state.nodes.push_back(std::move(node));
  return Tensor(this, id);
}

Graph::RecomputeRegion::RecomputeRegion(Graph& graph)
    : state_(&graph.live()), outer_(state_->region) {
  state_->region = ++state_->regions;
}

Graph::RecomputeRegion::~RecomputeRegion() { state_->region = outer_; }

PlaceScope::PlaceScope(Graph& graph, Place place)
    : state_(&graph.live()), outermost_(!state_->place.has_value()) {
  if (outermost_) state_->place = place;
}

PlaceScope::~PlaceScope() {
  if (outermost_) state_->place.reset();
}

Place PlaceScope::place() const { return *state_->place; }

std::vector<Tensor> topological_order(std::span<const Tensor> roots) {
  std::vector<Tensor> order;
  if (roots.empty()) return order;
  struct Visit {
    Tensor tensor;
    size_t next = 0;  // operand
  };
  Graph& graph = roots[0].graph();
  std::vector<bool> seen(graph.size(), false);
  std::vector<Visit> stack;
  const auto enter = [&](Tensor tensor) {
    if (seen[tensor.id()]) return;
    seen[tensor.id()] = true;
    stack.push_back({tensor});
  };
  for (Tensor root : roots) {
    if (&root.graph() != &graph) {
      fail(ErrorKind::kInvalidArgument, "The output ", describe(root.node()),
           " belongs to another graph than ", describe(roots[0].node()),
           ". Use outputs of one graph.");
    }
    enter(root);
    while (!stack.empty()) {
      Visit& top = stack.back();
      const std::vector<Tensor>& operands = operands_of(top.tensor);
      if (top.next < operands.size()) {
        enter(operands[top.next++]);
      } else {
        order.push_back(top.tensor);
        stack.pop_back();
      }
    }
  }
  return order;
}

}  // namespace meganeura
