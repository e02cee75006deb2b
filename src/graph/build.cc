// Building and verifying nodes against their rows.
#include <map>

#include "base/check.h"
#include "graph/graph_state.h"

namespace meganeura {
namespace {

constexpr std::string_view kTypeNames[] = {"bool",         "integer", "float", "string",
                                           "integer list", "dtype",   "data"};

std::string describe_arity(const OpRow& row) {
  if (row.max_operands < 0) return cat("at least ", row.min_operands);
  if (row.min_operands == row.max_operands) return cat(row.min_operands);
  return cat(row.min_operands, " to ", row.max_operands);
}

void check_arity(const Node& node) {
  const auto count = static_cast<int>(node.operands.size());
  const OpRow& row = *node.row;
  if (count >= row.min_operands && (row.max_operands < 0 || count <= row.max_operands)) return;
  fail(ErrorKind::kShape, "The op ", describe(node), " takes ", describe_arity(row),
       " operands but got ", count, ". Pass as many as its row says.");
}

void check_attributes(const Node& node) {
  const auto fields = node.row->fields;
  MG_CHECK(node.attributes.size() == fields.size(), describe(node), " has ", node.attributes.size(),
           " attributes for ", fields.size(), " fields");
  for (size_t i = 0; i < fields.size(); ++i) {
    MG_CHECK(node.attributes[i].index() == static_cast<size_t>(fields[i].type), "the attribute ",
             fields[i].name, " of ", describe(node), " is a ",
             kTypeNames[node.attributes[i].index()], " instead of a ",
             kTypeNames[static_cast<size_t>(fields[i].type)]);
  }
}

void check_operands(const Node& node, const Graph& graph) {
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const Tensor operand = node.operands[i];
    if (operand && &operand.graph() == &graph) continue;
    fail(ErrorKind::kInvalidArgument, "Operand ", i, " of the op ", describe(node), " is ",
         operand ? "a tensor of another graph" : "an empty tensor", ". Use tensors of one graph.");
  }
}

void verify_node(const Tensor tensor) {
  const Node& node = tensor.node();
  MG_CHECK(node.row != nullptr, "node ", tensor.id(), " has no row");
  check_arity(node);
  check_attributes(node);
  check_operands(node, tensor.graph());
  for (Tensor operand : node.operands) {
    MG_CHECK(operand.id() < tensor.id(), describe(node), " uses a node built after it");
  }
  const InferredType type = node.row->infer(node);
  MG_CHECK(type.shape == node.shape && type.dtype == node.dtype, "The op ", describe(node), " on ",
           describe_operands(node), " is recorded as ", node.dtype, node.shape,
           " but its shape rule gives ", type.dtype, type.shape);
}

}  // namespace

const AttributeValue& attribute(const Node& node, std::string_view field) {
  const auto fields = node.row->fields;
  for (size_t i = 0; i < fields.size() && i < node.attributes.size(); ++i) {
    if (fields[i].name == field) return node.attributes[i];
  }
  internal_fault(__FILE__, __LINE__, cat(describe(node), " has no attribute ", field));
}

std::string to_string(Place place) {
  const std::string_view file = place.file;
  const size_t slash = file.find_last_of("/\\");
  return cat(slash == std::string_view::npos ? file : file.substr(slash + 1), ":", place.line);
}

std::string describe(const Node& node) {
  return cat(node.row->name, " at ", to_string(node.place));
}

std::string describe_operands(const Node& node) {
  std::vector<std::string> parts;
  for (Tensor operand : node.operands) parts.push_back(cat(operand.dtype(), operand.shape()));
  return join(parts);
}

Tensor build_node(Graph& graph, const OpRow& row, std::vector<Tensor> operands,
                  std::vector<AttributeValue> attributes, Place place, uint32_t region) {
  Node node;
  node.row = &row;
  node.operands = std::move(operands);
  node.attributes = std::move(attributes);
  node.place = PlaceScope(graph, place).place();
  check_arity(node);
  check_attributes(node);
  check_operands(node, graph);
  InferredType type = row.infer(node);
  node.shape = std::move(type.shape);
  node.dtype = type.dtype;
  node.recompute = region;
  return graph.append(std::move(node));
}

void verify_graph(std::span<const Tensor> roots) {
  std::map<uint32_t, Tensor> assigned;  // by leaf
  for (Tensor tensor : topological_order(roots)) {
    verify_node(tensor);
    const Node& node = tensor.node();
    if (node.row->lowering != Lowering::kAssign) continue;
    const auto [entry, fresh] = assigned.emplace(node.operands[0].id(), tensor);
    if (fresh) continue;
    fail(ErrorKind::kInvalidArgument, "\"", leaf_name(node.operands[0].node()),
         "\" gets two new values, from ", describe(entry->second.node()), " and from ",
         describe(node), ". Assign every parameter and state at most once per step.");
  }
}

}  // namespace meganeura
