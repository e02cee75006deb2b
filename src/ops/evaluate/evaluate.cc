#include "ops/evaluate/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "graph/initialize.h"
#include "graph/values.h"
#include "ops/evaluate/node_values.h"

namespace meganeura {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSmallestNormal = 0x1p-126;
constexpr uint64_t kSeed = 0;

void check_names(const Graph& graph, const LeafValues& leaves) {
  for (const auto& [name, value] : leaves) {
    if (graph.find(name)) continue;
    fail(ErrorKind::kInvalidArgument, "A value was given for \"", name,
         "\", but the graph has no leaf of that name. Check its spelling.");
  }
}

void check_limit(const Node& node, std::span<const double> values) {
  const int64_t limit = node.get<int64_t>("limit");
  if (limit == 0) return;
  for (double value : values) {
    if (value < static_cast<double>(limit)) continue;
    fail(ErrorKind::kInvalidArgument, "The input \"", leaf_name(node), "\" holds ", value,
         ", but its values must be below ", limit, ".");
  }
}

std::vector<double> leaf_values(Tensor leaf, const LeafValues& leaves) {
  const Node& node = leaf.node();
  if (node.row->lowering == Lowering::kConstant) {
    return decode_values(node.dtype, *node.get<Bytes>("data"));
  }
  const std::string& name = leaf_name(node);
  const auto found = leaves.find(name);
  if (found != leaves.end()) {
    const ReferenceTensor& given = found->second;
    if (given.shape != node.shape || given.dtype != node.dtype ||
        static_cast<int64_t>(given.values.size()) != node.shape.elements()) {
      fail(ErrorKind::kShape, "The value given for \"", name, "\" is ", given.dtype, given.shape,
           " with ", given.values.size(), " elements, but the leaf is ", node.dtype, node.shape,
           ".");
    }
    if (node.row->lowering == Lowering::kInput) check_limit(node, given.values);
    return given.values;
  }
  if (node.row->lowering == Lowering::kInput) {
    fail(ErrorKind::kInvalidArgument, "The input \"", name, "\" (", node.dtype, node.shape,
         ") has no value. Give one under its name.");
  }
  return initial_value(name, node.shape, node.dtype,
                       Initializer::parse(node.get<std::string>("init")), kSeed);
}

// Half a unit in the last place of a narrow float format at `value`.
double storage_error(DType dtype, double value) {
  if (dtype == DType::kF16) return std::max(std::abs(value) * 0x1p-11, 0x1p-25);
  if (dtype == DType::kBF16) return std::abs(value) * 0x1p-8;
  return 0.0;
}

void store_bounds(const Node& node, NodeValues& out) {
  for (size_t i = 0; i < out.values.size(); ++i) {
    const double value = out.values[i];
    double& error = out.errors[i];
    if (std::isnan(error)) error = kInfinity;
    if (!is_float(node.dtype) || !std::isfinite(value) || value == 0.0) continue;
    if (!is_leaf(node)) error += storage_error(node.dtype, value);
    if (std::abs(value) < 2 * kSmallestNormal) error += kSmallestNormal;
    if (std::isinf(as_stored(node.dtype, std::abs(value) + error))) error = kInfinity;
  }
}

// What stays of the node's values once they are stored.
void store(const Node& node, const EvaluationMode& mode, NodeValues& out) {
  const bool exact_leaf = is_leaf(node) && mode.bounds;
  const bool rounds = mode.scalar == scalar::Mode::kTyped || exact_leaf || !is_float(node.dtype);
  if (rounds) {
    for (double& value : out.values) value = as_stored(node.dtype, value);
  }
  if (mode.bounds) store_bounds(node, out);
}

// Evaluates everything the roots need, operands first, and drops values after their last use.
class Evaluator {
 public:
  Evaluator(std::span<const Tensor> roots, const LeafValues& leaves, const EvaluationMode& mode)
      : leaves_(leaves), mode_(mode), order_(topological_order(roots)) {
    if (roots.empty()) return;
    check_names(roots[0].graph(), leaves);
    for (Tensor tensor : order_) {
      for (Tensor operand : tensor.node().operands) ++uses_[operand.id()];
    }
    for (Tensor root : roots) ++uses_[root.id()];
  }

  void run() {
    for (Tensor tensor : order_) {
      const Node& node = tensor.node();
      values_[tensor.id()] = is_leaf(node) ? leaf(tensor) : inner(node);
      store(node, mode_, values_[tensor.id()]);
      for (Tensor operand : node.operands) {
        if (--uses_[operand.id()] == 0) values_.erase(operand.id());
      }
    }
  }

  const NodeValues& values(Tensor root) const { return values_.at(root.id()); }

 private:
  NodeValues leaf(Tensor tensor) const {
    NodeValues out;
    out.values = leaf_values(tensor, leaves_);
    if (mode_.bounds) out.errors.assign(out.values.size(), 0.0);
    return out;
  }

  NodeValues inner(const Node& node) const {
    std::vector<const NodeValues*> operands;
    for (Tensor operand : node.operands) operands.push_back(&values_.at(operand.id()));
    NodeValues out = evaluate_node(node, operands, mode_);
    MG_CHECK(static_cast<int64_t>(out.values.size()) == node.shape.elements(), describe(node),
             " gave ", out.values.size(), " values for the shape ", node.shape);
    return out;
  }

  const LeafValues& leaves_;
  EvaluationMode mode_;
  std::vector<Tensor> order_;
  std::map<uint32_t, int64_t> uses_;
  std::map<uint32_t, NodeValues> values_;
};

}  // namespace

std::vector<ReferenceTensor> evaluate(std::span<const Tensor> roots, const LeafValues& leaves,
                                      scalar::Mode mode) {
  Evaluator evaluator(roots, leaves, {mode, false});
  evaluator.run();
  std::vector<ReferenceTensor> results;
  for (Tensor root : roots) {
    results.push_back({root.shape(), root.dtype(), evaluator.values(root).values});
  }
  return results;
}

std::vector<BoundedTensor> evaluate_bounds(std::span<const Tensor> roots,
                                           const LeafValues& leaves) {
  Evaluator evaluator(roots, leaves, {scalar::Mode::kIdeal, true});
  evaluator.run();
  std::vector<BoundedTensor> results;
  for (Tensor root : roots) {
    const NodeValues& values = evaluator.values(root);
    results.push_back({{root.shape(), root.dtype(), values.values}, values.errors});
  }
  return results;
}

BoundsReport compare_within_bounds(const BoundedTensor& expected, std::span<const double> actual) {
  const std::vector<double>& values = expected.reference.values;
  if (values.size() != actual.size()) {
    fail(ErrorKind::kShape, "The reference has ", values.size(), " elements, but ", actual.size(),
         " were given to compare.");
  }
  BoundsReport report;
  report.elements = static_cast<int64_t>(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double error = expected.errors[i];
    if (std::isinf(error)) {
      ++report.excluded;
      continue;
    }
    const bool same = values[i] == actual[i] || (std::isnan(values[i]) && std::isnan(actual[i]));
    const double difference = same ? 0.0 : std::abs(values[i] - actual[i]);
    const bool inside = same || difference <= error;
    if (inside && error > 0.0) report.worst = std::max(report.worst, difference / error);
    if (inside) continue;
    report.worst = error > 0.0 ? std::max(report.worst, difference / error) : kInfinity;
    if (report.outside++ > 0) continue;
    report.first =
        cat("Element ", i, " of ", expected.reference.dtype, expected.reference.shape, " is ",
            actual[i], ", but the reference is ", values[i], " within ", error, ".");
  }
  return report;
}

}  // namespace meganeura
