// Evaluation of one node from the values of its operands.
#pragma once

#include <span>
#include <vector>

#include "graph/node.h"
#include "scalar/evaluate.h"

namespace meganeura {

struct EvaluationMode {
  scalar::Mode scalar = scalar::Mode::kIdeal;
  bool bounds = false;  // keep error bounds beside the values; ideal mode only
};

// The values of one node; `errors` is as long as `values` with bounds, else empty.
struct NodeValues {
  std::vector<double> values;
  std::vector<double> errors;

  NodeValues() = default;
  NodeValues(size_t count, const EvaluationMode& mode)
      : values(count, 0.0), errors(mode.bounds ? count : 0, 0.0) {}
};

using OperandValues = std::span<const NodeValues* const>;

// The node's values before they are stored. The node is no leaf.
NodeValues evaluate_node(const Node& node, OperandValues operands, const EvaluationMode& mode);

NodeValues evaluate_map(const Node& node, OperandValues operands, const EvaluationMode& mode);
NodeValues evaluate_reduce(const Node& node, OperandValues operands, const EvaluationMode& mode);
NodeValues evaluate_contract(const Node& node, OperandValues operands, const EvaluationMode& mode);
NodeValues evaluate_gather(const Node& node, OperandValues operands, const EvaluationMode& mode);
NodeValues evaluate_scatter_add(const Node& node, OperandValues operands,
                                const EvaluationMode& mode);

// A sum as an f32 device computes it, in any order: its value and its error bound.
class BoundedSum {
 public:
  void add(double term, double error);
  void add_product(double a, double b, double a_error, double b_error);
  double value() const { return value_; }
  // For a sum of `terms` terms, each possibly a rounded product.
  double error(int64_t terms) const;

 private:
  double value_ = 0.0;
  double magnitude_ = 0.0;   // Σ |terms|
  double propagated_ = 0.0;  // from the errors of the operands
};

}  // namespace meganeura
