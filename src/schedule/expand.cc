#include "schedule/expand.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "graph/node.h"

namespace meganeura::schedule {
namespace {

using kernels::Affine;
using kernels::Guard;
using kernels::IndexTerm;
using kernels::Input;
using scalar::Scalar;
using scalar::Type;

// Placeholders for arguments whose final index is known only when all inputs are.
constexpr uint32_t kValueBase = 1u << 20;
constexpr uint32_t kFlagBase = 1u << 21;

Affine zero_affine(size_t rank) { return {0, std::vector<int64_t>(rank, 0)}; }

// The first element's bytes if all elements are equal.
std::optional<std::span<const std::byte>> splat_bytes(const Node& node) {
  const Bytes& data = node.get<Bytes>("data");
  const size_t size = info(node.dtype).block_bytes;
  if (data->size() < size || size == 0) return std::nullopt;
  if (std::memcmp(data->data(), data->data() + size, data->size() - size) != 0) {
    return std::nullopt;
  }
  return std::span(data->data(), size);
}

template <class T>
T read_as(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace

std::optional<Scalar> splat_value(const Node& node) {
  const auto bytes = splat_bytes(node);
  if (!bytes) return std::nullopt;
  switch (node.dtype) {
    case DType::kF32:
      return scalar::constant_f32(read_as<float>(*bytes));
    case DType::kI32:
      return scalar::constant_i32(read_as<int32_t>(*bytes));
    case DType::kU32:
      return scalar::constant_u32(read_as<uint32_t>(*bytes));
    case DType::kI16:
      return scalar::constant_i32(read_as<int16_t>(*bytes));
    case DType::kI8:
      return scalar::constant_i32(read_as<int8_t>(*bytes));
    case DType::kU8:
      return scalar::constant_u32(read_as<uint8_t>(*bytes));
    case DType::kBool:
      return scalar::constant_bool(read_as<uint8_t>(*bytes) != 0);
    case DType::kBF16:
      return scalar::bitcast(
          scalar::constant_u32(static_cast<uint32_t>(read_as<uint16_t>(*bytes)) << 16), Type::kF32);
    case DType::kF16:
      return scalar::make(scalar::Op::kUnpackF16,
                          {scalar::constant_u32(read_as<uint16_t>(*bytes))});
    default:
      return std::nullopt;
  }
}

Tensor through_reshapes(Tensor tensor) {
  while (tensor.node().row->lowering == Lowering::kReshape) tensor = tensor.node().operands[0];
  return tensor;
}

void flatten(const Shape& shape, const Point& point, size_t rank, Affine& access,
             std::vector<IndexTerm>& terms) {
  access = zero_affine(rank);
  const std::vector<int64_t> strides = shape.strides();
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    const Coordinate& coordinate = point.coordinates[axis];
    access.offset += coordinate.affine.offset * strides[axis];
    for (size_t d = 0; d < rank; ++d) {
      access.strides[d] += coordinate.affine.strides[d] * strides[axis];
    }
    for (IndexTerm term : coordinate.terms) {
      term.stride *= strides[axis];
      if (term.stride != 0) terms.push_back(std::move(term));
    }
  }
}

Scalar as_stored(const Scalar& value, DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return scalar::make(scalar::Op::kRoundF16, {value});
    case DType::kBF16:
      return scalar::make(scalar::Op::kRoundBF16, {value});
    case DType::kI8:
    case DType::kI16: {
      const Scalar shift = scalar::constant_i32(dtype == DType::kI8 ? 24 : 16);
      return (value << shift) >> shift;
    }
    case DType::kU8:
      return value & scalar::constant_u32(0xff);
    default:
      return value;
  }
}

std::optional<uint32_t> SlotTable::slot(Tensor tensor) {
  auto found = buffer_of_->find(tensor.id());
  if (found == buffer_of_->end() || tensor.id() == hidden_) return std::nullopt;
  tensors_.insert(tensor.id());
  return slot_of_buffer(found->second);
}

uint32_t SlotTable::slot_of_buffer(uint32_t buffer) {
  auto at = std::find(buffers_.begin(), buffers_.end(), buffer);
  if (at == buffers_.end()) at = buffers_.insert(at, buffer);
  return static_cast<uint32_t>(at - buffers_.begin());
}

void Expander::provide(Tensor tensor, Point point, Scalar value) {
  memo_[cat(tensor.id(), key(point))] = std::move(value);
}

Scalar Expander::expand(Tensor tensor, const Point& point) {
  const std::string memo_key = cat(tensor.id(), key(point));
  if (auto found = memo_.find(memo_key); found != memo_.end()) return found->second;
  Scalar value = expand_new(tensor, point);
  memo_[memo_key] = value;
  return value;
}

Scalar Expander::load(Tensor tensor, uint32_t slot, const Point& point) {
  Input input;
  input.slot = slot;
  input.dtype = tensor.dtype();
  input.guards = point.guards;
  flatten(tensor.shape(), point, extents_.size(), input.access, input.terms);
  const Type type = scalar::compute_type(tensor.dtype());
  if (tensor.shape().elements() == 0) return scalar::constant_like(scalar::argument(0, type), 0.0);
  return scalar::argument(kValueBase + static_cast<uint32_t>(add_input(std::move(input))), type);
}

size_t Expander::add_input(Input input) {
  auto at = std::find(inputs_.begin(), inputs_.end(), input);
  if (at == inputs_.end()) at = inputs_.insert(at, std::move(input));
  return static_cast<size_t>(at - inputs_.begin());
}

Scalar Expander::valid(const std::vector<Guard>& guards) {
  Input input;
  input.dtype = DType::kU32;
  input.access = zero_affine(extents_.size());
  input.guards = guards;
  return scalar::argument(kFlagBase + static_cast<uint32_t>(add_input(std::move(input))),
                          Type::kBool);
}

Scalar Expander::expand_new(Tensor tensor, const Point& point) {
  const Node& node = tensor.node();
  if (node.row->lowering == Lowering::kConstant) {
    if (auto value = splat_value(node)) return *value;
  }
  if (auto slot = slots_->slot(tensor)) return load(tensor, *slot, point);
  switch (node.row->lowering) {
    case Lowering::kIota: {
      const Coordinate& coordinate =
          point.coordinates[static_cast<size_t>(node.get<int64_t>("axis"))];
      Input input;
      input.dtype = DType::kU32;
      input.access = coordinate.affine;
      input.terms = coordinate.terms;
      const auto index = static_cast<uint32_t>(add_input(std::move(input)));
      return as_stored(scalar::convert(scalar::argument(kValueBase + index, Type::kU32),
                                       scalar::compute_type(node.dtype)),
                       node.dtype);
    }
    case Lowering::kMap: {
      std::vector<Scalar> arguments;
      for (Tensor operand : node.operands) arguments.push_back(expand(operand, point));
      return as_stored(node.row->body(arguments, node), node.dtype);
    }
    case Lowering::kAssign:
      return expand(node.operands[1], point);
    case Lowering::kReshape: {
      const Tensor base = through_reshapes(tensor);
      if (base.node().row->lowering == Lowering::kConstant) {
        if (auto value = splat_value(base.node())) return *value;
      }
      if (auto slot = slots_->slot(base)) {
        // Row-major order is the same on both sides: address the buffer through this shape.
        return load(tensor, *slot, point);
      }
      break;
    }
    case Lowering::kPad: {
      const auto& low = node.get<std::vector<int64_t>>("low");
      const auto& high = node.get<std::vector<int64_t>>("high");
      Point inner = point;
      std::vector<Guard> added;
      for (size_t axis = 0; axis < low.size(); ++axis) {
        if (low[axis] == 0 && high[axis] == 0) continue;
        Coordinate& coordinate = inner.coordinates[axis];
        coordinate.affine.offset -= low[axis];
        added.push_back({coordinate.affine, coordinate.terms,
                         node.operands[0].shape()[static_cast<int>(axis)]});
      }
      inner.guards.insert(inner.guards.end(), added.begin(), added.end());
      const Scalar value = expand(node.operands[0], inner);
      if (added.empty()) return value;
      const Scalar fill =
          as_stored(scalar::constant_like(value, node.get<double>("value")), node.dtype);
      return scalar::select(valid(added), value, fill);
    }
    case Lowering::kConcat:
      return expand_concat(tensor, point);
    case Lowering::kDynamicUpdateSlice:
      return expand_update(tensor, point);
    default:
      break;
  }
  if (auto inner = view_point(tensor, point, *slots_, extents_)) {
    return expand(node.operands[0], *inner);
  }
  throw NeedsBuffer{tensor.id()};
}

Scalar Expander::expand_concat(Tensor tensor, const Point& point) {
  const Node& node = tensor.node();
  const auto axis = static_cast<size_t>(node.get<int64_t>("axis"));
  int64_t start = node.shape[static_cast<int>(axis)];
  Scalar value;
  for (size_t part = node.operands.size(); part-- > 0;) {
    const int64_t extent = node.operands[part].shape()[static_cast<int>(axis)];
    start -= extent;
    if (extent == 0) continue;
    Point inner = point;
    Coordinate& coordinate = inner.coordinates[axis];
    coordinate.affine.offset -= start;
    const std::vector<Guard> added = {{coordinate.affine, coordinate.terms, extent}};
    inner.guards.insert(inner.guards.end(), added.begin(), added.end());
    const Scalar here = expand(node.operands[part], inner);
    value = value ? scalar::select(valid(added), here, value) : here;
  }
  if (!value) throw NeedsBuffer{tensor.id()};
  return value;
}

Scalar Expander::expand_update(Tensor tensor, const Point& point) {
  const Node& node = tensor.node();
  const Shape& outer = node.shape;
  const Tensor update = node.operands[1];
  const Scalar old = expand(node.operands[0], point);
  if (update.shape().elements() == 0) return old;
  if (!point.guards.empty()) throw NeedsBuffer{tensor.id()};
  Point inner = point;
  std::vector<Guard> added;
  for (size_t axis = 0; axis < inner.coordinates.size(); ++axis) {
    const auto a = static_cast<int>(axis);
    const int64_t slack = outer[a] - update.shape()[a];
    if (slack == 0) continue;
    Point at{{{zero_affine(extents_.size()), {}}}, {}};
    at.coordinates[0].affine.offset = static_cast<int64_t>(axis);
    const Input start = input(node.operands[2], at);
    if (!start.terms.empty() || !start.guards.empty()) throw NeedsBuffer{node.operands[2].id()};
    Coordinate& coordinate = inner.coordinates[axis];
    coordinate.terms.push_back(
        {start.slot, start.access, slack, -1, is_signed(node.operands[2].dtype())});
    added.push_back({coordinate.affine, coordinate.terms, update.shape()[a]});
  }
  inner.guards.insert(inner.guards.end(), added.begin(), added.end());
  const Scalar fresh = expand(update, inner);
  return added.empty() ? fresh : scalar::select(valid(added), fresh, old);
}

Input Expander::input(Tensor tensor, const Point& point) {
  Point here = point;
  for (;;) {
    Tensor base = tensor;
    if (!slots_->slot(base)) base = through_reshapes(tensor);
    if (auto slot = slots_->slot(base)) {
      Input input;
      input.slot = *slot;
      input.dtype = tensor.dtype();
      input.guards = here.guards;
      flatten(tensor.shape(), here, extents_.size(), input.access, input.terms);
      return input;
    }
    std::optional<Point> next = view_point(tensor, here, *slots_, extents_);
    if (!next) throw NeedsBuffer{tensor.id()};
    here = std::move(*next);
    tensor = tensor.node().operands[0];
  }
}

Expander::Result Expander::finish(std::span<const Scalar> outputs, std::span<const Type> leading) {
  Result result;
  result.inputs = inputs_;
  const auto first = static_cast<uint32_t>(leading.size());
  std::vector<Type> types(leading.begin(), leading.end());
  std::vector<Scalar> flags(inputs_.size());
  std::vector<Scalar> values;
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    types.push_back(scalar::compute_type(inputs_[i].dtype));
    values.push_back(scalar::argument(first + i, types.back()));
  }
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].guards.empty()) continue;
    flags[i] = scalar::argument(static_cast<uint32_t>(types.size()), Type::kBool);
    types.push_back(Type::kBool);
  }
  std::map<const Scalar::Expression*, Scalar> renamed;
  auto rename = [&](auto&& self, const Scalar& value) -> Scalar {
    const Scalar::Expression& expression = value.expression();
    if (auto found = renamed.find(&expression); found != renamed.end()) return found->second;
    Scalar out = value;
    if (expression.op == scalar::Op::kArgument) {
      if (expression.payload >= kFlagBase) {
        out = flags.at(expression.payload - kFlagBase);
      } else if (expression.payload >= kValueBase) {
        out = values.at(expression.payload - kValueBase);
      }
    } else if (!expression.operands.empty()) {
      std::vector<Scalar> operands;
      for (const Scalar& operand : expression.operands) operands.push_back(self(self, operand));
      out = scalar::make(expression.op, std::move(operands), expression.type);
    }
    renamed[&expression] = out;
    return out;
  };
  std::vector<Scalar> final_outputs;
  for (const Scalar& output : outputs) final_outputs.push_back(rename(rename, output));
  result.body = scalar::linearize(final_outputs, types);
  return result;
}

}  // namespace meganeura::schedule
