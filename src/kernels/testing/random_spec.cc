#include "kernels/testing/random_spec.h"

#include <algorithm>
#include <numeric>

#include "kernels/spec_walk.h"

namespace meganeura::kernels {

using scalar::Scalar;
using scalar::Type;

namespace {

constexpr std::initializer_list<DType> kDTypes = {
    DType::kF32, DType::kF32, DType::kF32, DType::kF16, DType::kBF16, DType::kI8,
    DType::kU8,  DType::kI16, DType::kI32, DType::kU32, DType::kBool};

int64_t product(const std::vector<int64_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

std::vector<int64_t> concat(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Scalar as_number(const Scalar& value) {
  if (value.type() == Type::kBool) {
    return select(value, scalar::constant_f32(1), scalar::constant_f32(0));
  }
  return convert(value, Type::kF32);
}

}  // namespace

// The modulus of mt19937 is the same everywhere; distributions are not.
int64_t SpecMaker::pick(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
}

SpecMaker::Extents SpecMaker::extents(int64_t max_rank, int64_t max_points) {
  Extents result(static_cast<size_t>(pick(0, max_rank)), 1);
  for (int64_t& extent : result) {
    const int64_t wanted = choose<int64_t>({1, 2, 3, 4, 4, 5, 8, 15, 16, 17, 33, 65});
    extent = std::min(wanted, max_points / product(result));
  }
  return result;
}

uint32_t SpecMaker::slot(DType dtype, int64_t elements) {
  std::vector<std::byte> bytes(slot_bytes(dtype, elements));
  for (int64_t i = 0; i < elements; ++i) {
    double value = static_cast<double>(pick(-4000, 4000)) / 1000;
    if (is_integer(dtype)) value = static_cast<double>(pick(is_signed(dtype) ? -9 : 0, 9));
    if (dtype == DType::kBool) value = static_cast<double>(pick(0, 1));
    write_element(bytes, dtype, i, value);
  }
  memory_.push_back(std::move(bytes));
  return static_cast<uint32_t>(memory_.size() - 1);
}

uint32_t SpecMaker::index_slot(DType dtype, int64_t elements, int64_t limit) {
  const uint32_t result = slot(dtype, elements);
  for (int64_t i = 0; i < elements; ++i) {
    // Some lie outside, to be clamped or skipped.
    const int64_t low = is_signed(dtype) ? -2 : 0;
    write_element(memory_[result], dtype, i, static_cast<double>(pick(low, limit + 2)));
  }
  return result;
}

Affine SpecMaker::walk(const Extents& extents, bool broadcast, int64_t& elements) {
  Affine access{0, std::vector<int64_t>(extents.size(), 0)};
  std::vector<size_t> order(extents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (pick(0, 2) == 0) {
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<size_t>(pick(0, static_cast<int64_t>(i) - 1))]);
    }
  }
  const int64_t gap = pick(0, 4) == 0 ? pick(1, 5) : 0;
  int64_t stride = pick(0, 7) == 0 ? 2 : 1;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t d = order[i];
    if (broadcast && pick(0, 4) == 0) continue;
    access.strides[d] = stride;
    if (pick(0, 9) == 0) {
      access.strides[d] = -stride;
      access.offset += stride * std::max<int64_t>(0, extents[d] - 1);
    }
    stride *= std::max<int64_t>(1, extents[d]) + gap;
  }
  if (pick(0, 3) == 0) access.offset += choose<int64_t>({1, 2, 4, 8});
  elements = access.offset + 1;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (access.strides[d] > 0 && extents[d] > 0) elements += access.strides[d] * (extents[d] - 1);
  }
  return access;
}

void SpecMaker::add_guard(Input& input, const Extents& extents) {
  const auto d = static_cast<size_t>(pick(0, static_cast<int64_t>(extents.size()) - 1));
  // Every guard shifts the window of a dimension of its own.
  for (const Guard& other : input.guards) {
    if (other.position.strides[d] != 0) return;
  }
  const int64_t before = pick(0, 3);
  const int64_t extent = pick(0, extents[d]);
  Guard guard;
  guard.position = {-before, std::vector<int64_t>(extents.size(), 0)};
  guard.position.strides[d] = 1;
  guard.extent = extent;
  input.guards.push_back(guard);
  input.access.offset -= before * input.access.strides[d];
}

Input SpecMaker::input(const Extents& extents, DType dtype, bool features) {
  Input input;
  input.dtype = dtype;
  int64_t elements = 0;
  input.access = walk(extents, true, elements);
  if (features && pick(0, 5) == 0) {
    // An embedding: rows of a table, picked by an index read from memory.
    IndexTerm term;
    term.is_signed = pick(0, 1) == 0;
    term.limit = pick(0, 6);
    int64_t indices = 0;
    term.at = walk(extents, true, indices);
    term.slot = index_slot(term.is_signed ? DType::kI32 : DType::kU32, indices, term.limit);
    term.stride = pick(0, 1) == 0 ? elements : (elements + 3) / 4 * 4;
    elements += term.limit * term.stride;
    input.terms.push_back(term);
  }
  input.slot = slot(dtype, elements);
  const bool forward = std::all_of(input.access.strides.begin(), input.access.strides.end(),
                                   [](int64_t stride) { return stride >= 0; });
  if (features && forward && !extents.empty() && pick(0, 3) == 0) {
    add_guard(input, extents);
    if (pick(0, 3) == 0) add_guard(input, extents);
  }
  return input;
}

Output SpecMaker::output(const Extents& extents, DType dtype) {
  Output output;
  output.dtype = dtype;
  int64_t elements = product(extents);
  if (info(dtype).bits < 32) {
    output.access = {0, std::vector<int64_t>(extents.size())};
    int64_t stride = 1;
    for (size_t d = extents.size(); d-- > 0;) {
      output.access.strides[d] = stride;
      stride *= extents[d];
    }
  } else {
    output.access = walk(extents, false, elements);
  }
  output.slot = slot(dtype, std::max<int64_t>(1, elements));
  return output;
}

std::vector<Type> SpecMaker::argument_types(std::vector<Type> leading,
                                            const std::vector<Input>& inputs) {
  for (const Input& input : inputs) leading.push_back(value_type(input));
  for (const Input& input : inputs) {
    if (!input.guards.empty()) leading.push_back(Type::kBool);
  }
  return leading;
}

scalar::Body SpecMaker::body(const std::vector<Type>& arguments, const std::vector<Type>& outputs) {
  std::vector<Scalar> results;
  for (Type type : outputs) {
    Scalar sum = scalar::constant_f32(0.5f);
    Scalar integer = scalar::constant_i32(3);
    for (uint32_t i = 0; i < arguments.size(); ++i) {
      const Scalar value = scalar::argument(i, arguments[i]);
      const Scalar weight = scalar::constant_f32(static_cast<float>(pick(1, 7)) / 4);
      sum = pick(0, 2) == 0 ? fma(as_number(value), weight, sum) : sum + as_number(value) * weight;
      if (arguments[i] == Type::kI32 || arguments[i] == Type::kU32) {
        integer = integer * scalar::constant_i32(3) + convert(value, Type::kI32);
      }
    }
    if (pick(0, 3) == 0) sum = make(scalar::Op::kTanh, {sum});
    if (type == Type::kF32) results.push_back(sum);
    if (type == Type::kI32) results.push_back(integer);
    if (type == Type::kU32) results.push_back(convert(integer, Type::kU32));
    if (type == Type::kBool) results.push_back(integer > scalar::constant_i32(40));
  }
  return scalar::linearize(results, arguments);
}

std::vector<Input> SpecMaker::extras(const Extents& extents) {
  std::vector<Input> result;
  const int64_t count = pick(0, 2);
  for (int64_t i = 0; i < count; ++i) result.push_back(input(extents, choose(kDTypes), true));
  return result;
}

RandomCase SpecMaker::done(KernelSpec spec) {
  RandomCase result{std::move(spec), std::move(memory_)};
  memory_.clear();
  return result;
}

RandomCase SpecMaker::pointwise() {
  PointwiseSpec spec;
  spec.extents = extents(4, 700);
  if (pick(0, 19) == 0 && !spec.extents.empty()) spec.extents.back() = 0;
  const int64_t inputs = pick(0, 3);
  for (int64_t i = 0; i < inputs; ++i) {
    spec.inputs.push_back(input(spec.extents, choose(kDTypes), true));
  }
  if (pick(0, 4) == 0) {
    int64_t unused = 0;
    Input index;
    index.access = walk(spec.extents, true, unused);
    spec.inputs.push_back(index);
  }
  std::vector<Type> types;
  const int64_t outputs = pick(1, 2);
  for (int64_t i = 0; i < outputs; ++i) {
    const DType dtype = choose(kDTypes);
    spec.outputs.push_back(output(spec.extents, dtype));
    types.push_back(scalar::compute_type(dtype));
  }
  spec.body = body(argument_types({}, spec.inputs), types);
  return done(spec);
}

RandomCase SpecMaker::reduction() {
  ReductionSpec spec;
  spec.outer = extents(2, 40);
  spec.reduced = extents(3, 300);
  if (pick(0, 6) == 0) spec.reduced = {pick(300, 1500)};
  spec.combine =
      choose({Combine::kSum, Combine::kSum, Combine::kMax, Combine::kMin, Combine::kArgMax});
  if (spec.combine == Combine::kSum && pick(0, 9) == 0) spec.reduced = {3, 0};
  const Extents all = concat(spec.outer, spec.reduced);
  const int64_t inputs = pick(1, 2);
  for (int64_t i = 0; i < inputs; ++i) spec.inputs.push_back(input(all, choose(kDTypes), true));
  Type type = choose({Type::kF32, Type::kF32, Type::kI32, Type::kU32});
  if (spec.combine == Combine::kArgMax || spec.combine == Combine::kMax) {
    // The bare value, so that ties and maxima are exact.
    spec.inputs = {input(all, choose({DType::kF32, DType::kI32, DType::kU8, DType::kF16}), true)};
    type = value_type(spec.inputs[0]);
    const std::vector<Type> types = argument_types({}, spec.inputs);
    const Scalar value = scalar::argument(0, type);
    spec.prologue = scalar::linearize(std::array{value}, types);
  } else {
    spec.prologue = body(argument_types({}, spec.inputs), {type});
  }
  if (spec.combine == Combine::kArgMax) type = Type::kU32;
  spec.extras = extras(spec.outer);
  const DType dtype = type == Type::kF32 ? choose({DType::kF32, DType::kF32, DType::kF16})
                                         : choose({DType::kI32, DType::kU32, DType::kF32});
  spec.outputs = {output(spec.outer, dtype)};
  spec.epilogue = body(argument_types({type}, spec.extras), {scalar::compute_type(dtype)});
  return done(spec);
}

RandomCase SpecMaker::contraction() {
  ContractionSpec spec;
  const bool many = pick(0, 3) == 0;
  spec.batch = extents(many ? 2 : 1, 3);
  spec.m = extents(many ? 2 : 1, 40);
  spec.n = extents(many ? 2 : 1, 70);
  spec.k = extents(many ? 2 : 1, 40);
  if (pick(0, 15) == 0) spec.k = {0};
  const auto dtypes = {DType::kF32, DType::kF32, DType::kF32, DType::kF16, DType::kBF16};
  spec.a = input(concat(concat(spec.batch, spec.m), spec.k), choose<DType>(dtypes), false);
  spec.b = input(concat(concat(spec.batch, spec.k), spec.n), choose<DType>(dtypes), false);
  const Extents out = concat(concat(spec.batch, spec.m), spec.n);
  spec.extras = extras(out);
  const DType dtype = choose({DType::kF32, DType::kF32, DType::kF32, DType::kF16});
  spec.outputs = {output(out, dtype)};
  spec.epilogue = body(argument_types({Type::kF32}, spec.extras), {scalar::compute_type(dtype)});
  return done(spec);
}

RandomCase SpecMaker::scatter_add() {
  ScatterAddSpec spec;
  spec.rows = pick(1, 12);
  spec.positions = choose<int64_t>({0, 1, 5, 17, 40});
  spec.inner = extents(2, 60);
  spec.has_base = pick(0, 1) == 0;
  const DType dtype = choose({DType::kF32, DType::kF32, DType::kF16, DType::kI32, DType::kU32});
  const Extents target = concat({spec.rows}, spec.inner);
  int64_t indices = 0;
  spec.index.access = walk({spec.positions}, false, indices);
  spec.index.dtype = choose({DType::kI32, DType::kU32, DType::kU8});
  spec.index.slot = index_slot(spec.index.dtype, indices, spec.rows - 1);
  spec.updates = input(concat({spec.positions}, spec.inner), dtype, true);
  if (spec.has_base) spec.base = input(target, dtype, false);
  spec.output = output(target, dtype);
  return done(spec);
}

}  // namespace meganeura::kernels
