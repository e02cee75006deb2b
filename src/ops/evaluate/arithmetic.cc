// Elementwise bodies, reductions and contractions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "ops/evaluate/node_values.h"
#include "ops/evaluate/positions.h"

namespace meganeura {
namespace {

constexpr double kUnitRoundoff = 0x1p-24;     // of f32
constexpr double kSmallestNormal = 0x1p-126;  // devices may flush what is below
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double integer_sum(std::span<const double> values, std::span<const int64_t> offsets, int64_t base) {
  uint64_t sum = 0;
  for (int64_t offset : offsets) {
    sum += static_cast<uint64_t>(static_cast<int64_t>(values[static_cast<size_t>(base + offset)]));
  }
  return static_cast<double>(static_cast<int64_t>(sum));
}

// One fibre of a reduction: the elements base + offsets[k].
struct Fibre {
  const NodeValues& in;
  std::span<const int64_t> offsets;
  int64_t base;
  bool bounds;

  size_t size() const { return offsets.size(); }
  double value(size_t k) const { return in.values[static_cast<size_t>(base + offsets[k])]; }
  double error(size_t k) const {
    return bounds ? in.errors[static_cast<size_t>(base + offsets[k])] : 0.0;
  }
};

struct Bounded {
  double value = 0.0;
  double error = 0.0;
};

Bounded reduce_sum(const Fibre& fibre) {
  BoundedSum sum;
  for (size_t k = 0; k < fibre.size(); ++k) sum.add(fibre.value(k), fibre.error(k));
  return {sum.value(), sum.error(static_cast<int64_t>(fibre.size()))};
}

// The position of the first extreme element; a NaN beats every number. `sign` -1 looks for minima.
size_t extreme_index(const Fibre& fibre, double sign) {
  size_t best = 0;
  for (size_t k = 0; k < fibre.size(); ++k) {
    if (std::isnan(fibre.value(k))) return k;
    if (sign * fibre.value(k) > sign * fibre.value(best)) best = k;
  }
  return best;
}

double largest_error(const Fibre& fibre) {
  double largest = 0.0;
  for (size_t k = 0; k < fibre.size(); ++k) largest = std::max(largest, fibre.error(k));
  return largest;
}

Bounded reduce_extreme(const Fibre& fibre, double sign) {
  return {fibre.value(extreme_index(fibre, sign)), largest_error(fibre)};
}

Bounded reduce_arg_max(const Fibre& fibre) {
  const size_t best = extreme_index(fibre, 1.0);
  const auto index = static_cast<double>(best);
  if (std::isinf(largest_error(fibre))) return {index, kInfinity};
  for (size_t k = 0; k < fibre.size(); ++k) {
    const double slack = fibre.error(k) + fibre.error(best);
    if (k != best && slack > 0.0 && fibre.value(k) + slack >= fibre.value(best)) {
      return {index, kInfinity};
    }
  }
  return {index, 0.0};
}

Bounded reduce_fibre(ReduceKind kind, const Fibre& fibre) {
  switch (kind) {
    case ReduceKind::kSum:
      return reduce_sum(fibre);
    case ReduceKind::kMax:
      return reduce_extreme(fibre, 1.0);
    case ReduceKind::kMin:
      return reduce_extreme(fibre, -1.0);
    case ReduceKind::kArgMax:
      return reduce_arg_max(fibre);
  }
  return {};
}

// An operand of a contraction, packed as [batch, rows, depth] or, for the right one, as
// [batch, depth, rows].
NodeValues pack(const NodeValues& in, const Shape& shape,
                std::span<const std::vector<int64_t>> groups, const EvaluationMode& mode) {
  std::vector<int64_t> order;
  for (const std::vector<int64_t>& group : groups) {
    order.insert(order.end(), group.begin(), group.end());
  }
  const std::vector<int64_t> strides = shape.strides();
  const std::vector<int64_t> source =
      positions(pick(shape.extents(), order), 0, pick(strides, order));
  NodeValues out(source.size(), mode);
  for (size_t i = 0; i < source.size(); ++i) {
    const auto from = static_cast<size_t>(source[i]);
    out.values[i] = in.values[from];
    if (mode.bounds) out.errors[i] = in.errors[from];
  }
  return out;
}

struct ContractExtents {
  int64_t batch, rows, columns, depth;
};

void multiply(const ContractExtents& e, const NodeValues& a, const NodeValues& b, NodeValues& out) {
  const auto columns = static_cast<size_t>(e.columns);
  for (int64_t row = 0; row < e.batch * e.rows; ++row) {
    double* out_row = out.values.data() + static_cast<size_t>(row) * columns;
    const double* a_row = a.values.data() + row * e.depth;
    const double* b_block = b.values.data() + (row / e.rows) * e.depth * e.columns;
    for (int64_t k = 0; k < e.depth; ++k) {
      const double scale = a_row[k];
      const double* b_row = b_block + k * e.columns;
      for (size_t column = 0; column < columns; ++column) out_row[column] += scale * b_row[column];
    }
  }
}

void multiply_bounds(const ContractExtents& e, const NodeValues& a, const NodeValues& b,
                     NodeValues& out) {
  const auto columns = static_cast<size_t>(e.columns);
  std::vector<BoundedSum> sums(columns);
  for (int64_t row = 0; row < e.batch * e.rows; ++row) {
    std::fill(sums.begin(), sums.end(), BoundedSum{});
    for (int64_t k = 0; k < e.depth; ++k) {
      const auto at = static_cast<size_t>(row * e.depth + k);
      const auto b_row = static_cast<size_t>(((row / e.rows) * e.depth + k) * e.columns);
      for (size_t column = 0; column < columns; ++column) {
        sums[column].add_product(a.values[at], b.values[b_row + column], a.errors[at],
                                 b.errors[b_row + column]);
      }
    }
    for (size_t column = 0; column < columns; ++column) {
      const size_t at = static_cast<size_t>(row) * columns + column;
      out.values[at] = sums[column].value();
      out.errors[at] = sums[column].error(e.depth);
    }
  }
}

}  // namespace

void BoundedSum::add(double term, double error) {
  value_ += term;
  magnitude_ += std::abs(term);
  propagated_ += error;
}

void BoundedSum::add_product(double a, double b, double a_error, double b_error) {
  const double term = a * b;
  value_ += term;
  magnitude_ += std::abs(term);
  if (a_error != 0.0) propagated_ += a_error * (std::abs(b) + b_error);
  if (b_error != 0.0) propagated_ += std::abs(a) * b_error;
}

double BoundedSum::error(int64_t terms) const {
  if (std::isnan(propagated_) || std::isinf(propagated_)) return kInfinity;
  if (!std::isfinite(value_)) return propagated_ == 0.0 ? 0.0 : kInfinity;
  if (magnitude_ == 0.0) return propagated_;
  const auto count = static_cast<double>(terms);
  return (count + 2.0) * kUnitRoundoff * (magnitude_ + propagated_) + propagated_ +
         count * kSmallestNormal;
}

NodeValues evaluate_map(const Node& node, OperandValues operands, const EvaluationMode& mode) {
  std::vector<scalar::Type> types;
  std::vector<scalar::Scalar> arguments;
  std::vector<const double*> values;
  std::vector<const double*> errors;
  for (size_t i = 0; i < operands.size(); ++i) {
    types.push_back(scalar::compute_type(node.operands[i].dtype()));
    arguments.push_back(scalar::argument(static_cast<uint32_t>(i), types.back()));
    values.push_back(operands[i]->values.data());
    errors.push_back(operands[i]->errors.data());
  }
  const scalar::Scalar result = node.row->body(arguments, node);
  const scalar::Body body = scalar::linearize(std::span(&result, 1), types);
  const int64_t count = node.shape.elements();
  NodeValues out(static_cast<size_t>(count), mode);
  double* const out_values = out.values.data();
  double* const out_errors = out.errors.data();
  if (mode.bounds) {
    scalar::evaluate_f64_bounds(body, count, values, errors, std::span(&out_values, 1),
                                std::span(&out_errors, 1));
  } else {
    scalar::evaluate_f64(body, mode.scalar, count, values, std::span(&out_values, 1));
  }
  return out;
}

NodeValues evaluate_reduce(const Node& node, OperandValues operands, const EvaluationMode& mode) {
  const Shape& shape = node.operands[0].shape();
  const auto& axes = node.get<std::vector<int64_t>>("axes");
  const std::vector<int64_t> kept = other_axes(shape.rank(), axes);
  const std::vector<int64_t> strides = shape.strides();
  const std::vector<int64_t> bases = positions(pick(shape.extents(), kept), 0, pick(strides, kept));
  const std::vector<int64_t> offsets =
      positions(pick(shape.extents(), axes), 0, pick(strides, axes));
  const bool integers = node.row->reduce == ReduceKind::kSum && !is_float(node.dtype);
  MG_CHECK(node.row->reduce == ReduceKind::kSum || bases.empty() || !offsets.empty(),
           describe(node), " reduces an empty axis");
  NodeValues out(bases.size(), mode);
  for (size_t i = 0; i < bases.size(); ++i) {
    const Fibre fibre = {*operands[0], offsets, bases[i], mode.bounds};
    Bounded result =
        integers ? Bounded{integer_sum(fibre.in.values, offsets, bases[i]), largest_error(fibre)}
                 : reduce_fibre(node.row->reduce, fibre);
    out.values[i] = result.value;
    if (mode.bounds) out.errors[i] = result.error;
  }
  return out;
}

NodeValues evaluate_contract(const Node& node, OperandValues operands, const EvaluationMode& mode) {
  using Axes = std::vector<int64_t>;
  const Shape& a_shape = node.operands[0].shape();
  const Shape& b_shape = node.operands[1].shape();
  const auto& a_batch = node.get<Axes>("a_batch");
  const auto& b_batch = node.get<Axes>("b_batch");
  const auto& a_contract = node.get<Axes>("a_contract");
  const auto& b_contract = node.get<Axes>("b_contract");
  const auto free_axes = [](int rank, Axes bound, const Axes& contracted) {
    bound.insert(bound.end(), contracted.begin(), contracted.end());
    return other_axes(rank, bound);
  };
  const Axes a_free = free_axes(a_shape.rank(), a_batch, a_contract);
  const Axes b_free = free_axes(b_shape.rank(), b_batch, b_contract);
  const ContractExtents extents = {
      product(pick(a_shape.extents(), a_batch)), product(pick(a_shape.extents(), a_free)),
      product(pick(b_shape.extents(), b_free)), product(pick(a_shape.extents(), a_contract))};
  NodeValues out(static_cast<size_t>(node.shape.elements()), mode);
  if (out.values.empty()) return out;
  const std::array<Axes, 3> a_groups = {a_batch, a_free, a_contract};
  const std::array<Axes, 3> b_groups = {b_batch, b_contract, b_free};
  const NodeValues a = pack(*operands[0], a_shape, a_groups, mode);
  const NodeValues b = pack(*operands[1], b_shape, b_groups, mode);
  if (mode.bounds) {
    multiply_bounds(extents, a, b, out);
  } else {
    multiply(extents, a, b, out);
  }
  return out;
}

}  // namespace meganeura
