// The typed static graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meganeura/dtype.h"
#include "meganeura/export.h"
#include "meganeura/shape.h"

namespace meganeura {

class Graph;
struct GraphState;
struct Node;

// Where user code built a node.
struct Place {
  const char* file = "";
  int line = 0;
  static Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// A value of a graph: a cheap handle that stays valid as long as its graph, also when that moves.
// Asking an empty handle for more than its truth is an Error(kInvalidArgument).
class MEGANEURA_API Tensor {
 public:
  Tensor() = default;
  Tensor(Graph* graph, uint32_t id);

  explicit operator bool() const { return state_ != nullptr; }
  Graph& graph() const;
  uint32_t id() const { return id_; }
  const Node& node() const;
  const Shape& shape() const;
  DType dtype() const;
  int rank() const { return shape().rank(); }
  bool operator==(const Tensor&) const = default;

 private:
  GraphState* state_ = nullptr;
  uint32_t id_ = 0;
};

// An operand of a builder function: a tensor and the place of the call.
struct MEGANEURA_API Operand {
  Operand(Tensor tensor, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : tensor(tensor), place{file, line} {}
  Tensor tensor;
  Place place;
};

// How a parameter or state gets its first value; drawn on the host from a seed and its name.
struct MEGANEURA_API Initializer {
  enum class Kind : uint8_t { kZeros, kOnes, kConstant, kUniform, kNormal };
  Kind kind = Kind::kZeros;
  double a = 0.0;  // kConstant: the value; kUniform: lower bound; kNormal: mean
  double b = 0.0;  // kUniform: upper bound; kNormal: standard deviation

  static Initializer zeros() { return {}; }
  static Initializer ones() { return {Kind::kOnes, 0, 0}; }
  static Initializer constant(double value) { return {Kind::kConstant, value, 0}; }
  static Initializer uniform(double low, double high) { return {Kind::kUniform, low, high}; }
  static Initializer normal(double mean, double deviation) {
    return {Kind::kNormal, mean, deviation};
  }
  // "zeros", "uniform(-0.05, 0.05)"; parse throws Error(kInvalidArgument).
  std::string to_string() const;
  static Initializer parse(std::string_view text);
};

// Owns nodes; append-only. Ids are private bookkeeping: whatever prints, hashes or orders walks
// from outputs.
class MEGANEURA_API Graph {
 public:
  Graph();
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;

  // A value the caller provides at every run. `limit`: integers must lie in [0, limit), which is
  // checked when they are set; 0 means unchecked. Names are unique among all leaves;
  // Error(kInvalidArgument) otherwise.
  Tensor input(std::string name, DType dtype, Shape shape, int64_t limit = 0,
               Place place = Place::here());
  // A persistent value that gradients and optimizers see. Frozen ones get no gradient.
  Tensor parameter(std::string name, DType dtype, Shape shape, Initializer initializer = {},
                   bool trainable = true, Place place = Place::here());
  // A persistent value that only `assign` changes: moments, running statistics, caches.
  Tensor state(std::string name, DType dtype, Shape shape, Initializer initializer = {},
               Place place = Place::here());
  // A dense constant; `bytes` holds storage_bytes(shape, dtype) bytes, row-major.
  Tensor constant(DType dtype, Shape shape, std::span<const std::byte> bytes,
                  Place place = Place::here());
  // A rank-0 constant, rounded to a float dtype; Error(kInvalidArgument) for a number that an
  // integer dtype does not have or a float dtype would turn into infinity.
  Tensor scalar(double value, DType dtype = f32, Place place = Place::here());

  // The leaf of that name, or an empty handle.
  Tensor find(std::string_view name) const;
  // Lowers the checked limit of an integer input (see input()); the smallest one wins.
  void limit_input(Tensor input, int64_t limit);
  // Marks a parameter frozen or trainable.
  void set_trainable(Tensor parameter, bool trainable);

  // Until the region object dies, new nodes carry its id: autodiff recomputes them instead of
  // keeping them, and nothing merges them with nodes outside.
  class RecomputeRegion;

  const Node& node(uint32_t id) const;
  uint32_t size() const;

  // For builders of ops: appends a node after its row's shape rule accepted the operands.
  // References to nodes stay valid.
  Tensor append(Node node);

 private:
  friend class Tensor;
  friend class PlaceScope;
  friend class RecomputeRegion;
  GraphState& live() const;
  std::unique_ptr<GraphState> state_;
};

class MEGANEURA_API Graph::RecomputeRegion {
 public:
  explicit RecomputeRegion(Graph& graph);
  ~RecomputeRegion();
  RecomputeRegion(const RecomputeRegion&) = delete;
  RecomputeRegion& operator=(const RecomputeRegion&) = delete;

 private:
  GraphState* state_;
  uint32_t outer_;
};

// A named result of a graph.
struct Output {
  std::string name;
  Tensor tensor;
};

// All nodes reachable from the roots, operands before users, in an order that depends on the
// graph's structure alone.
MEGANEURA_API std::vector<Tensor> topological_order(std::span<const Tensor> roots);

// Text of everything reachable from the outputs; parse_graph (ops.h) reads it back. Same structure,
// same text.
MEGANEURA_API std::string print_graph(std::span<const Output> outputs);

// Checks every reachable node against its row: arity, attributes, operand shapes and dtypes, leaf
// names. Throws Error(kShape or kInternal) naming op, operand shapes and place.
MEGANEURA_API void verify_graph(std::span<const Tensor> roots);

}  // namespace meganeura
