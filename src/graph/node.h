// Nodes and the rows that define their ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "meganeura/graph.h"
#include "scalar/scalar.h"

namespace meganeura {

using Bytes = std::shared_ptr<const std::vector<std::byte>>;
using AttributeValue =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, DType, Bytes>;

// The order of the alternatives of AttributeValue.
enum class AttributeType : uint8_t { kBool, kInt, kFloat, kString, kInts, kDType, kData };

struct AttributeField {
  std::string_view name;
  AttributeType type;
};

struct OpRow;

struct Node {
  const OpRow* row = nullptr;
  std::vector<Tensor> operands;
  std::vector<AttributeValue> attributes;  // parallel to row->fields
  Shape shape;
  DType dtype = DType::kF32;
  Place place;
  uint32_t recompute = 0;  // recompute region; 0 outside

  template <class T>
  const T& get(std::string_view field) const;
};

// How the compiler treats an op; it switches on this and never on names.
// clang-format off
enum class Lowering : uint8_t {
  kInput, kParameter, kState, kConstant,    // leaves
  kIota,                                    // index along `axis`
  kMap,                                     // elementwise body; all operands have the output's shape
  kReduce,                                  // over `axes`; ReduceKind in the row
  kContract,                                // batched product, see ops.h
  kReshape, kPermute, kBroadcast, kSlice,   // views
  kPad, kConcat, kDynamicSlice, kDynamicUpdateSlice,  // windows
  kGather, kScatterAdd,                     // indexed
  kIdentity,                                // same value (stop_gradient)
  kAssign,                                  // (leaf, value): the leaf's new value
};
// clang-format on

enum class ReduceKind : uint8_t { kSum, kMax, kMin, kArgMax };

struct InferredType {
  Shape shape;
  DType dtype;
};

// What a gradient rule gets. Rules return one tensor per operand, empty where the operand has no
// gradient (integers, or zero almost everywhere by definition).
struct GradientContext {
  Tensor output;     // the node's own value
  Tensor cotangent;  // of the output's shape and dtype
  std::span<const Tensor> operands;
  std::span<const bool> needed;  // operands whose gradient somebody wants
  const Node& node;
};

enum class Differentiability : uint8_t {
  kRule,     // `gradient` is set
  kZero,     // piecewise constant: the gradient is zero by definition
  kMissing,  // a gradient path through it is an error when the graph is differentiated
};

// One row per op: everything the project knows about it.
struct OpRow {
  std::string_view name;
  int min_operands;
  int max_operands;  // -1: any number
  std::span<const AttributeField> fields;
  Lowering lowering;
  // Shape and dtype from operands and attributes; throws Error(kShape) in full sentences.
  InferredType (*infer)(const Node& node);
  // kMap: the body over arguments in the operands' compute types.
  scalar::Scalar (*body)(std::span<const scalar::Scalar> arguments, const Node& node) = nullptr;
  ReduceKind reduce = ReduceKind::kSum;
  Differentiability differentiability = Differentiability::kMissing;
  std::vector<Tensor> (*gradient)(const GradientContext& context) = nullptr;
  std::string_view doc;  // one sentence for docs/ops.md
};

// The rows of inputs, parameters, states and constants.
std::span<const OpRow> leaf_rows();

struct ParsedGraph {
  Graph graph;
  std::vector<Output> outputs;
};
// Reads what print_graph wrote; `find` maps op names to rows. Throws Error(kInvalidArgument) that
// names line, column and what was expected.
ParsedGraph parse_graph(std::string_view text, const OpRow* (*find)(std::string_view name));

// Builds a node from a row: checks arity and attribute types, runs the shape rule, appends.
// `region` is the node's recompute region where no Graph::RecomputeRegion is open.
Tensor build_node(Graph& graph, const OpRow& row, std::vector<Tensor> operands,
                  std::vector<AttributeValue> attributes, Place place, uint32_t region = 0);

// While it lives, nodes of the graph are placed at `place`, whatever their builders say; the
// outermost scope wins. For composites and gradient rules.
class PlaceScope {
 public:
  PlaceScope(Graph& graph, Place place);
  ~PlaceScope();
  PlaceScope(const PlaceScope&) = delete;
  PlaceScope& operator=(const PlaceScope&) = delete;

  // The place in force.
  Place place() const;

 private:
  GraphState* state_;
  bool outermost_;
};

// "model.cc:12": the file without its folders.
std::string to_string(Place place);
// "add at model.cc:12", for messages.
std::string describe(const Node& node);
// "f32[3, 4], f32[4]", for messages.
std::string describe_operands(const Node& node);

const AttributeValue& attribute(const Node& node, std::string_view field);

template <class T>
const T& Node::get(std::string_view field) const {
  return std::get<T>(attribute(*this, field));
}

// Leaves.
inline bool is_leaf(const Node& node) { return node.row->lowering <= Lowering::kConstant; }
inline const std::string& leaf_name(const Node& node) { return node.get<std::string>("name"); }

}  // namespace meganeura
