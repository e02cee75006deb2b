#include "kernels/testing/spec_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "base/check.h"
#include "kernels/spec_walk.h"
#include "scalar/evaluate.h"
#include "scalar/half.h"

namespace meganeura::kernels {
namespace {

constexpr double kEpsilon = 0x1p-24;  // half an ulp of 1

using Point = std::vector<int64_t>;

// All points of the extents in row-major order.
std::vector<Point> points_of(const std::vector<int64_t>& extents) {
  std::vector<Point> points;
  Point point(extents.size(), 0);
  for (int64_t extent : extents) {
    if (extent == 0) return points;
  }
  while (true) {
    points.push_back(point);
    size_t d = extents.size();
    while (d > 0 && ++point[d - 1] == extents[d - 1]) point[--d] = 0;
    if (d == 0) return points;
  }
}

int64_t at(const Affine& affine, const Point& point) {
  int64_t sum = affine.offset;
  for (size_t d = 0; d < point.size(); ++d) sum += affine.strides.at(d) * point[d];
  return sum;
}

int64_t terms_at(const std::vector<IndexTerm>& terms, const Point& point,
                 const SlotMemory& memory) {
  int64_t sum = 0;
  for (const IndexTerm& term : terms) {
    const DType dtype = term.is_signed ? DType::kI32 : DType::kU32;
    const double index = read_element(memory.at(term.slot), dtype, at(term.at, point));
    const int64_t clamped = std::clamp<int64_t>(static_cast<int64_t>(index), 0, term.limit);
    sum += clamped * term.stride;
  }
  return sum;
}

struct Value {
  double value = 0;
  bool valid = true;
};

Value value_at(const Input& input, const Point& point, const SlotMemory& memory) {
  for (const Guard& guard : input.guards) {
    const int64_t position = at(guard.position, point) + terms_at(guard.terms, point, memory);
    if (position < 0 || position >= guard.extent) return {0, false};
  }
  const int64_t index = at(input.access, point) + terms_at(input.terms, point, memory);
  if (input.slot == Input::kIndexValue) return {static_cast<double>(index), true};
  return {read_element(memory.at(input.slot), input.dtype, index), true};
}

// Argument columns of a body over many points.
struct Columns {
  std::vector<std::vector<double>> values;
  std::vector<std::vector<double>> errors;

  void add(std::vector<double> column, std::vector<double> error) {
    values.push_back(std::move(column));
    errors.push_back(std::move(error));
  }
  void add_inputs(const std::vector<Input>& inputs, const std::vector<Point>& points,
                  const SlotMemory& memory) {
    std::vector<std::vector<double>> flags;
    for (const Input& input : inputs) {
      std::vector<double> column;
      std::vector<double> flag;
      for (const Point& point : points) {
        const Value value = value_at(input, point, memory);
        column.push_back(value.value);
        flag.push_back(value.valid ? 1 : 0);
      }
      if (!input.guards.empty()) flags.push_back(std::move(flag));
      add(std::move(column), std::vector<double>(points.size(), 0));
    }
    for (auto& flag : flags) add(std::move(flag), std::vector<double>(points.size(), 0));
  }
};

Columns evaluate(const scalar::Body& body, const Columns& arguments, size_t count) {
  Columns results;
  results.values.assign(body.outputs.size(), std::vector<double>(count));
  results.errors = results.values;
  std::vector<const double*> values;
  std::vector<const double*> errors;
  std::vector<double*> out_values;
  std::vector<double*> out_errors;
  for (const auto& column : arguments.values) values.push_back(column.data());
  for (const auto& column : arguments.errors) errors.push_back(column.data());
  for (auto& column : results.values) out_values.push_back(column.data());
  for (auto& column : results.errors) out_errors.push_back(column.data());
  scalar::evaluate_f64_bounds(body, static_cast<int64_t>(count), values, errors, out_values,
                              out_errors);
  return results;
}

// What storing adds to the error.
double storage_error(DType dtype, double value) {
  if (dtype == DType::kF16) return std::abs(value) * 0x1p-11 + 0x1p-25;
  if (dtype == DType::kBF16) return std::abs(value) * 0x1p-8;
  return 0;
}

// What an integer output keeps of a 32-bit number.
double narrowed(DType dtype, double value) {
  if (!is_integer(dtype)) return value;
  const uint32_t bits = info(dtype).bits;
  const uint64_t word = static_cast<uint64_t>(static_cast<int64_t>(value));
  const uint64_t kept = word & ((uint64_t{1} << bits) - 1);
  if (is_signed(dtype) && (kept >> (bits - 1)) != 0) {
    return static_cast<double>(static_cast<int64_t>(kept) - (int64_t{1} << bits));
  }
  return static_cast<double>(kept);
}

void write_outputs(std::vector<ExpectedElement>& expected, const std::vector<Output>& outputs,
                   const std::vector<Point>& points, const Columns& results) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    for (size_t i = 0; i < points.size(); ++i) {
      const double value = narrowed(outputs[o].dtype, results.values[o][i]);
      expected.push_back({outputs[o].slot, outputs[o].dtype, at(outputs[o].access, points[i]),
                          value, results.errors[o][i] + storage_error(outputs[o].dtype, value)});
    }
  }
}

double wrap(scalar::Type type, double sum) {
  if (type == scalar::Type::kI32) return narrowed(DType::kI32, sum);
  if (type == scalar::Type::kU32) return narrowed(DType::kU32, sum);
  return sum;
}

// One row of a reduction over values [begin, end).
struct Reduced {
  double value = 0;
  double error = 0;
};

Reduced sum_row(const Columns& values, size_t begin, size_t end, scalar::Type type) {
  Reduced result;
  double magnitude = 0;
  for (size_t i = begin; i < end; ++i) {
    result.value += values.values[0][i];
    result.error += values.errors[0][i];
    magnitude += std::abs(values.values[0][i]) + values.errors[0][i];
  }
  if (type != scalar::Type::kF32) return {wrap(type, result.value), 0};
  // Blocks of about the root of the length: far fewer roundings than elements.
  const double length = static_cast<double>(end - begin);
  const double roundings = std::min(length, 64 + 6 * std::sqrt(length));
  result.error += roundings * kEpsilon * magnitude;
  return result;
}

Reduced extreme_row(const Columns& values, size_t begin, size_t end, double sign) {
  Reduced result{-std::numeric_limits<double>::infinity(), 0};
  for (size_t i = begin; i < end; ++i) {
    const double value = sign * values.values[0][i];
    if (std::isnan(value)) return {value, 0};
    result.value = std::max(result.value, value);
    result.error = std::max(result.error, values.errors[0][i]);
  }
  result.value *= sign;
  return result;
}

Reduced arg_max_row(const Columns& values, size_t begin, size_t end) {
  size_t best = begin;
  for (size_t i = begin; i < end; ++i) {
    const double value = values.values[0][i];
    const double champion = values.values[0][best];
    if (std::isnan(champion)) break;
    if (std::isnan(value) || value > champion) best = i;
  }
  Reduced result{static_cast<double>(best - begin), 0};
  const double champion = values.values[0][best];
  for (size_t i = begin; i < end; ++i) {
    // Another one that errors could lift above it leaves the index open.
    const double reach = values.errors[0][i] + values.errors[0][best];
    if (i != best && reach > 0 && values.values[0][i] + reach >= champion) {
      result.error = std::numeric_limits<double>::infinity();
    }
  }
  return result;
}

std::vector<Point> joined(const std::vector<Point>& outer, const std::vector<Point>& inner) {
  std::vector<Point> points;
  for (const Point& a : outer) {
    for (const Point& b : inner) {
      points.push_back(a);
      points.back().insert(points.back().end(), b.begin(), b.end());
    }
  }
  return points;
}

struct Evaluator {
  const SlotMemory& memory;
  std::vector<ExpectedElement> expected;

  void operator()(const PointwiseSpec& spec) {
    const std::vector<Point> points = points_of(spec.extents);
    Columns columns;
    columns.add_inputs(spec.inputs, points, memory);
    write_outputs(expected, spec.outputs, points, evaluate(spec.body, columns, points.size()));
  }

  void operator()(const ReductionSpec& spec) {
    const std::vector<Point> outer = points_of(spec.outer);
    const std::vector<Point> reduced = points_of(spec.reduced);
    const std::vector<Point> points = joined(outer, reduced);
    Columns inputs;
    inputs.add_inputs(spec.inputs, points, memory);
    const Columns values = evaluate(spec.prologue, inputs, points.size());
    const scalar::Type type = spec.prologue.nodes.at(spec.prologue.outputs[0]).type;
    std::vector<double> results;
    std::vector<double> errors;
    for (size_t row = 0; row < outer.size(); ++row) {
      const size_t begin = row * reduced.size();
      const size_t end = begin + reduced.size();
      Reduced result;
      if (spec.combine == Combine::kSum) result = sum_row(values, begin, end, type);
      if (spec.combine == Combine::kMax) result = extreme_row(values, begin, end, 1);
      if (spec.combine == Combine::kMin) result = extreme_row(values, begin, end, -1);
      if (spec.combine == Combine::kArgMax) result = arg_max_row(values, begin, end);
      results.push_back(result.value);
      errors.push_back(result.error);
    }
    finish(spec.epilogue, spec.extras, spec.outputs, outer, std::move(results), std::move(errors));
  }

  void operator()(const ContractionSpec& spec) {
    std::vector<Point> points;
    std::vector<double> results;
    std::vector<double> errors;
    const std::vector<Point> ks = points_of(spec.k);
    auto append = [](Point point, const Point& more) {
      point.insert(point.end(), more.begin(), more.end());
      return point;
    };
    for (const Point& batch : points_of(spec.batch)) {
      for (const Point& m : points_of(spec.m)) {
        for (const Point& n : points_of(spec.n)) {
          double sum = 0;
          double magnitude = 0;
          for (const Point& k : ks) {
            const double x = value_at(spec.a, append(append(batch, m), k), memory).value;
            const double y = value_at(spec.b, append(append(batch, k), n), memory).value;
            sum += x * y;
            magnitude += std::abs(x * y);
          }
          points.push_back(append(append(batch, m), n));
          results.push_back(sum);
          errors.push_back((static_cast<double>(ks.size()) + 2) * kEpsilon * magnitude);
        }
      }
    }
    finish(spec.epilogue, spec.extras, spec.outputs, points, std::move(results), std::move(errors));
  }

  void operator()(const ScatterAddSpec& spec) {
    const scalar::Type type = scalar::compute_type(spec.output.dtype);
    for (int64_t row = 0; row < spec.rows; ++row) {
      for (const Point& inner : points_of(spec.inner)) {
        auto with = [&](int64_t first) {
          Point point = {first};
          point.insert(point.end(), inner.begin(), inner.end());
          return point;
        };
        double sum = spec.has_base ? value_at(spec.base, with(row), memory).value : 0;
        double magnitude = std::abs(sum);
        double additions = 0;
        for (int64_t p = 0; p < spec.positions; ++p) {
          if (value_at(spec.index, {p}, memory).value != static_cast<double>(row)) continue;
          const double update = value_at(spec.updates, with(p), memory).value;
          sum += update;
          magnitude += std::abs(update);
          additions += 1;
        }
        double bound = type == scalar::Type::kF32 ? additions * kEpsilon * magnitude : 0;
        const double value = narrowed(spec.output.dtype, sum);
        bound += storage_error(spec.output.dtype, value);
        expected.push_back(
            {spec.output.slot, spec.output.dtype, at(spec.output.access, with(row)), value, bound});
      }
    }
  }

  void finish(const scalar::Body& epilogue, const std::vector<Input>& extras,
              const std::vector<Output>& outputs, const std::vector<Point>& points,
              std::vector<double> results, std::vector<double> errors) {
    Columns columns;
    columns.add(std::move(results), std::move(errors));
    columns.add_inputs(extras, points, memory);
    write_outputs(expected, outputs, points, evaluate(epilogue, columns, points.size()));
  }
};

template <class T>
T fetch(const std::vector<std::byte>& bytes, int64_t index) {
  T value;
  const size_t place = static_cast<size_t>(index) * sizeof(T);
  MG_CHECK(index >= 0 && place + sizeof(T) <= bytes.size(), "The reference reads element ", index,
           " of a slot of ", bytes.size(), " bytes.");
  std::memcpy(&value, bytes.data() + place, sizeof(T));
  return value;
}

template <class T>
void put(std::vector<std::byte>& bytes, int64_t index, T value) {
  const size_t place = static_cast<size_t>(index) * sizeof(T);
  MG_CHECK(index >= 0 && place + sizeof(T) <= bytes.size(), "The reference writes element ", index,
           " of a slot of ", bytes.size(), " bytes.");
  std::memcpy(bytes.data() + place, &value, sizeof(T));
}

}  // namespace

std::vector<ExpectedElement> evaluate_spec(const KernelSpec& spec, const SlotMemory& memory) {
  Evaluator evaluator{memory, {}};
  std::visit(evaluator, spec);
  return std::move(evaluator.expected);
}

double read_element(const std::vector<std::byte>& bytes, DType dtype, int64_t index) {
  switch (dtype) {
    case DType::kF32:
      return fetch<float>(bytes, index);
    case DType::kF16:
      return scalar::f32_from_f16(fetch<uint16_t>(bytes, index));
    case DType::kBF16:
      return scalar::f32_from_bf16(fetch<uint16_t>(bytes, index));
    case DType::kI8:
      return fetch<int8_t>(bytes, index);
    case DType::kU8:
    case DType::kBool:
      return fetch<uint8_t>(bytes, index);
    case DType::kI16:
      return fetch<int16_t>(bytes, index);
    case DType::kI32:
      return fetch<int32_t>(bytes, index);
    case DType::kU32:
      return fetch<uint32_t>(bytes, index);
    default:
      fail(ErrorKind::kInternal, "The reference does not know ", dtype, ".");
  }
}

void write_element(std::vector<std::byte>& bytes, DType dtype, int64_t index, double value) {
  const auto number = static_cast<int64_t>(value);
  switch (dtype) {
    case DType::kF32:
      return put(bytes, index, static_cast<float>(value));
    case DType::kF16:
      return put(bytes, index, scalar::f16_from_f32(static_cast<float>(value)));
    case DType::kBF16:
      return put(bytes, index, scalar::bf16_from_f32(static_cast<float>(value)));
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return put(bytes, index, static_cast<uint8_t>(number));
    case DType::kI16:
      return put(bytes, index, static_cast<uint16_t>(number));
    case DType::kI32:
    case DType::kU32:
      return put(bytes, index, static_cast<uint32_t>(number));
    default:
      fail(ErrorKind::kInternal, "The reference does not know ", dtype, ".");
  }
}

size_t slot_bytes(DType dtype, int64_t elements) {
  const uint64_t bits = std::max<uint32_t>(8, info(dtype).bits);
  return (static_cast<size_t>(elements) * bits + 31) / 32 * 4;
}

}  // namespace meganeura::kernels
