#include "kernels/kernel_writer.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/spec_walk.h"
#include "scalar/strict.h"

namespace meganeura::kernels {

using kir::Type;
using kir::Value;
using scalar::Op;

namespace {

// What a slot of that storage dtype holds as words.
Type slot_type(DType dtype) {
  if (dtype == DType::kF32) return Type::kF32;
  if (dtype == DType::kI32) return Type::kI32;
  return Type::kU32;
}

uint32_t per_word(DType dtype) { return 32 / storage_bits_of(dtype); }

}  // namespace

uint32_t storage_bits_of(DType dtype) { return info(dtype).bits < 8 ? 8 : info(dtype).bits; }

bool is_narrow(DType dtype) { return storage_bits_of(dtype) < 32; }

bool any_narrow(std::span<const Output* const> outputs) {
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const Output* output) { return is_narrow(output->dtype); });
}

void require_packed(std::span<const int64_t> extents, std::span<const Output* const> outputs) {
  for (const Output* output : outputs) {
    if (!is_narrow(output->dtype)) continue;
    int64_t expected = 1;
    bool packed = output->access.offset == 0;
    for (size_t d = extents.size(); d-- > 0;) {
      packed = packed && output->access.strides[d] == expected;
      expected *= extents[d];
    }
    if (!packed) {
      fail(ErrorKind::kUnsupported, "Output slot ", output->slot, " of dtype ", output->dtype,
           " is not written contiguously from its start. Elements narrower than 32 bits share "
           "words, so write them contiguously or convert them to a 32-bit dtype.");
    }
  }
}

uint32_t store_items(uint32_t elements, std::span<const Output* const> outputs) {
  return any_narrow(outputs) ? (elements + 3) / 4 : elements;
}

Load4 load4_mode(const Input& input) {
  bool same = true;
  bool steady = true;  // everything but the access stands still in the last dimension
  bool first = true;
  for_each_affine(input, [&](const Affine& affine) {
    if (!affine.strides.empty() && affine.strides.back() != 0) {
      same = false;
      if (!first) steady = false;
    }
    first = false;
  });
  if (same) return Load4::kSame;
  const Affine& access = input.access;
  bool aligned = steady && access.strides.back() == 1 && access.offset % 4 == 0;
  for (size_t d = 0; d + 1 < access.strides.size(); ++d) {
    aligned = aligned && access.strides[d] % 4 == 0;
  }
  for (const IndexTerm& term : input.terms) aligned = aligned && term.stride % 4 == 0;
  return aligned && input.slot != Input::kIndexValue ? Load4::kVector : Load4::kSingle;
}

bool stores_vectors(const Output& output) {
  const Input as_input{output.slot, output.dtype, output.access, {}, {}};
  return load4_mode(as_input) == Load4::kVector;
}

scalar::Body lower(const scalar::Body& body, const Capabilities& capabilities) {
  return scalar::lower_strict(body, {.fused_fma = capabilities.fused_fma,
                                     .exact_division = capabilities.exact_division,
                                     .exact_sqrt = capabilities.exact_sqrt});
}

bool fits(const Capabilities& capabilities, size_t slots, size_t params) {
  return params * 4 <= capabilities.push_constant_bytes &&
         slots <= max_slots(capabilities, static_cast<uint32_t>(params));
}

void require_fit(const Capabilities& capabilities, const std::string& name, size_t slots,
                 size_t params) {
  if (fits(capabilities, slots, params)) return;
  fail(ErrorKind::kUnsupported, "The kernel ", name, " binds ", slots, " slots and takes ", params,
       " arguments, but this device's push constants of ", capabilities.push_constant_bytes,
       " bytes hold at most ", max_slots(capabilities, static_cast<uint32_t>(params)),
       " slots beside them. Fuse fewer operations into one kernel.");
}

Launch plan_launch(uint32_t items, uint32_t local, uint32_t steps,
                   const Capabilities& capabilities) {
  Launch launch{items, local, 1, false};
  const uint32_t whole = static_cast<uint32_t>((uint64_t{items} + local - 1) / local);
  // Enough workgroups to keep every unit busy come before long loops.
  const uint32_t wanted = std::max((whole + steps - 1) / steps,
                                   std::min(whole, 16 * std::max(1u, capabilities.compute_units)));
  launch.groups = std::min(wanted, capabilities.max_workgroup_count[0]);
  // CPUs compile slowly and loop cheaply, so there all sizes share one module.
  launch.loop = launch.groups < whole || capabilities.device_class == DeviceClass::kCpu;
  return launch;
}

KernelWriter::KernelWriter(WriterOptions options, std::span<const Input* const> inputs,
                           std::span<const Output* const> outputs)
    : b(std::move(options.name), options.local_size, options.subgroup_size),
      runtime_strides_(options.runtime_strides) {
  for (const Input* input : inputs) {
    if (input->slot != Input::kIndexValue) use(input->slot, input->dtype, false);
    for_each_term(*input, [&](const IndexTerm& term) {
      use(term.slot, term.is_signed ? DType::kI32 : DType::kU32, false);
    });
  }
  for (const Output* output : outputs) use(output->slot, output->dtype, true);
  std::sort(slots_.begin(), slots_.end(),
            [](const SlotState& x, const SlotState& y) { return x.spec_slot < y.spec_slot; });
  for (size_t i = 0; i < slots_.size(); ++i) {
    const SlotState& slot = slots_[i];
    b.slot("s" + std::to_string(i), slot.element,
           slot.read ? (slot.write ? kir::SlotAccess::kReadWrite : kir::SlotAccess::kRead)
                     : kir::SlotAccess::kWrite);
  }
}

void KernelWriter::use(uint32_t spec_slot, DType dtype, bool write) {
  auto found = std::find_if(slots_.begin(), slots_.end(),
                            [&](const SlotState& slot) { return slot.spec_slot == spec_slot; });
  if (found == slots_.end()) {
    slots_.push_back({spec_slot, slot_type(dtype), false, false});
    found = slots_.end() - 1;
  }
  // Words that are read in two ways are plain words.
  if (found->element != slot_type(dtype)) found->element = Type::kU32;
  (write ? found->write : found->read) = true;
}

uint32_t KernelWriter::kernel_slot(uint32_t spec_slot) const {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].spec_slot == spec_slot) return static_cast<uint32_t>(i);
  }
  MG_CHECK(false, "A kernel uses the undeclared spec slot ", spec_slot, ".");
}

Value KernelWriter::argument(uint32_t value) {
  params_.push_back(value);
  return b.read_param(b.param());
}

Value KernelWriter::number(const int64_t& value) {
  if (!runtime_strides_ || value == 0) return b.u32(static_cast<uint32_t>(value));
  for (const auto& [place, index] : numbers_) {
    if (place == &value) return b.read_param(index);
  }
  const uint32_t index = b.param();
  numbers_.emplace_back(&value, index);
  params_.push_back(static_cast<uint32_t>(value));
  return b.read_param(index);
}

Value KernelWriter::bit_and(Value a, Value b_) {
  return b.arith(Op::kAnd, std::array{a, b_}, b.element_type(a));
}
Value KernelWriter::bit_or(Value a, Value b_) {
  return b.arith(Op::kOr, std::array{a, b_}, b.element_type(a));
}
Value KernelWriter::shift_left(Value a, Value count) {
  return b.arith(Op::kShl, std::array{a, count}, b.element_type(a));
}
Value KernelWriter::shift_right(Value a, Value count) {
  return b.arith(Op::kShr, std::array{a, count}, b.element_type(a));
}
Value KernelWriter::bitcast(Value a, Type type) {
  return b.arith(Op::kBitcast, std::array{a}, type);
}
Value KernelWriter::not_equal(Value a, Value b_) {
  return b.arith(Op::kNe, std::array{a, b_}, Type::kBool);
}

Value KernelWriter::address(const Affine& affine, std::span<const Value> coordinates) {
  Value sum = number(affine.offset);
  for (size_t d = 0; d < coordinates.size(); ++d) {
    Value step = b.mul(coordinates[d], number(affine.strides[d]));
    sum = b.add(sum, step);
  }
  return sum;
}

std::vector<Value> KernelWriter::coordinates(Value flat, std::span<const int64_t> extents) {
  std::vector<Value> result(extents.size());
  for (size_t d = extents.size(); d-- > 0;) {
    if (d == 0) {
      result[d] = flat;
      break;
    }
    Value extent = b.u32(static_cast<uint32_t>(extents[d]));
    Value quotient = b.div(flat, extent);
    // The remainder by a multiplication: cheaper than a second division.
    Value whole = b.mul(quotient, extent);
    result[d] = b.sub(flat, whole);
    flat = quotient;
  }
  return result;
}

Cursor KernelWriter::start(const Input& input) {
  Cursor cursor{&input, {}, 0};
  for_each_affine(input,
                  [&](const Affine& affine) { cursor.partial.push_back(number(affine.offset)); });
  return cursor;
}

Cursor KernelWriter::advance(const Cursor& cursor, std::span<const Value> coordinates) {
  Cursor next = cursor;
  size_t i = 0;
  for_each_affine(*cursor.input, [&](const Affine& affine) {
    for (size_t d = 0; d < coordinates.size(); ++d) {
      Value step = b.mul(coordinates[d], number(affine.strides[cursor.dimensions + d]));
      next.partial[i] = b.add(next.partial[i], step);
    }
    ++i;
  });
  next.dimensions += coordinates.size();
  return next;
}

Value KernelWriter::clamped_terms(std::span<const IndexTerm> terms, std::span<const Value> at,
                                  Value sum) {
  for (size_t i = 0; i < terms.size(); ++i) {
    const IndexTerm& term = terms[i];
    const DType dtype = term.is_signed ? DType::kI32 : DType::kU32;
    Value index = load_element(term.slot, dtype, at[i]);
    if (term.is_signed) {
      index = b.max(index, b.i32(0));
      index = bitcast(index, Type::kU32);
    }
    index = b.min(index, b.u32(static_cast<uint32_t>(term.limit)));
    Value step = b.mul(index, b.u32(static_cast<uint32_t>(term.stride)));
    sum = b.add(sum, step);
  }
  return sum;
}

Loaded KernelWriter::load(const Cursor& cursor) {
  const Input& input = *cursor.input;
  std::span<const Value> partial = cursor.partial;
  Value index = clamped_terms(input.terms, partial.subspan(1, input.terms.size()), partial[0]);
  partial = partial.subspan(1 + input.terms.size());
  Loaded loaded;
  for (const Guard& guard : input.guards) {
    Value position = clamped_terms(guard.terms, partial.subspan(1, guard.terms.size()), partial[0]);
    partial = partial.subspan(1 + guard.terms.size());
    // Positions below 0 wrap to large numbers, so one comparison checks both ends.
    Value inside = b.less(position, b.u32(static_cast<uint32_t>(guard.extent)));
    loaded.valid = loaded.valid ? b.logical_and(loaded.valid, inside) : inside;
  }
  const bool never = std::any_of(input.guards.begin(), input.guards.end(),
                                 [](const Guard& guard) { return guard.extent == 0; });
  if (never) {
    // The slot may have no element that could be read in place.
    loaded.valid = b.boolean(false);
    loaded.value = b.constant(value_type(input), 0);
    return loaded;
  }
  if (loaded.valid) index = b.select(loaded.valid, index, b.u32(0));
  loaded.value =
      input.slot == Input::kIndexValue ? index : load_element(input.slot, input.dtype, index);
  if (loaded.valid) {
    Value zero = b.constant(b.element_type(loaded.value), 0);
    loaded.value = b.select(loaded.valid, loaded.value, zero);
  }
  return loaded;
}

Loaded KernelWriter::load4(const Cursor& cursor) {
  const Input& input = *cursor.input;
  const Load4 mode = load4_mode(input);
  if (mode == Load4::kSame) {
    Loaded one = load(cursor);
    one.value = b.splat(one.value, 4);
    if (one.valid) one.valid = b.splat(one.valid, 4);
    return one;
  }
  if (mode == Load4::kVector && input.guards.empty()) {
    std::span<const Value> terms = std::span(cursor.partial).subspan(1, input.terms.size());
    Value index = clamped_terms(input.terms, terms, cursor.partial[0]);
    return {load_elements4(input.slot, input.dtype, index), {}};
  }
  std::array<Value, 4> values;
  std::array<Value, 4> flags;
  for (uint32_t lane = 0; lane < 4; ++lane) {
    Cursor at = cursor;
    size_t i = 0;
    for_each_affine(input, [&](const Affine& affine) {
      const uint32_t step = lane * static_cast<uint32_t>(affine.strides.back());
      at.partial[i] = b.add(at.partial[i], b.u32(step));
      ++i;
    });
    const Loaded one = load(at);
    values[lane] = one.value;
    flags[lane] = one.valid;
  }
  return {b.compose(values), flags[0] ? b.compose(flags) : Value{}};
}

Value KernelWriter::load_element(uint32_t spec_slot, DType dtype, Value index) {
  const uint32_t slot = kernel_slot(spec_slot);
  if (!is_narrow(dtype)) return bitcast(b.load(slot, index), scalar::compute_type(dtype));
  const uint32_t bits = storage_bits_of(dtype);
  const uint32_t word_shift = bits == 16 ? 1 : 2;
  Value word_index = shift_right(index, b.u32(word_shift));
  Value word = bitcast(b.load(slot, word_index), Type::kU32);
  Value position = bit_and(index, b.u32(per_word(dtype) - 1));
  Value shift = b.mul(position, b.u32(bits));
  Value raw = shift_right(word, shift);
  return widen(dtype, raw);
}

// The element in the low bits of a word, in its compute type.
Value KernelWriter::widen(DType dtype, Value raw) {
  const uint32_t bits = storage_bits_of(dtype);
  if (dtype == DType::kF16) return b.arith(Op::kUnpackF16, std::array{raw}, Type::kF32);
  if (dtype == DType::kBF16) return bitcast(shift_left(raw, b.u32(16)), Type::kF32);
  if (is_signed(dtype)) {
    Value high = bitcast(shift_left(raw, b.u32(32 - bits)), Type::kI32);
    return shift_right(high, b.i32(static_cast<int32_t>(32 - bits)));
  }
  Value masked = bit_and(raw, b.u32((1u << bits) - 1));
  return dtype == DType::kBool ? not_equal(masked, b.u32(0)) : masked;
}

Value KernelWriter::load_elements4(uint32_t spec_slot, DType dtype, Value index) {
  const uint32_t slot = kernel_slot(spec_slot);
  if (!is_narrow(dtype)) return bitcast(b.load(slot, index, 4), scalar::compute_type(dtype));
  const uint32_t bits = storage_bits_of(dtype);
  std::array<Value, 4> values;
  Value words = bits == 16 ? b.load(slot, shift_right(index, b.u32(1)), 2)
                           : b.load(slot, shift_right(index, b.u32(2)));
  words = bitcast(words, Type::kU32);
  for (uint32_t lane = 0; lane < 4; ++lane) {
    Value word = bits == 16 ? b.extract(words, lane / 2) : words;
    Value shift = b.u32(bits == 16 ? 16 * (lane % 2) : 8 * lane);
    values[lane] = widen(dtype, shift_right(word, shift));
  }
  return b.compose(values);
}

void KernelWriter::store(const Output& output, Value index, Value value) {
  const uint32_t slot = kernel_slot(output.slot);
  b.store(slot, index, bitcast(value, slots_[slot].element));
}

Value KernelWriter::storage_bits(DType dtype, Value value) {
  if (dtype == DType::kF16) {
    return b.arith(Op::kPackF16, std::array{value, b.f32(0)}, Type::kU32);
  }
  if (dtype == DType::kBF16) {
    Value rounded = b.arith(Op::kRoundBF16, std::array{value}, Type::kF32);
    return shift_right(bitcast(rounded, Type::kU32), b.u32(16));
  }
  if (dtype == DType::kBool) {
    Value one = b.u32(1);
    return b.select(value, one, b.u32(0));
  }
  Value word = bitcast(value, Type::kU32);
  return bit_and(word, b.u32((1u << storage_bits_of(dtype)) - 1));
}

void KernelWriter::store_word(const Output& output, Value word_index, Value word) {
  const uint32_t slot = kernel_slot(output.slot);
  b.store(slot, word_index, bitcast(word, slots_[slot].element));
}

std::vector<Value> KernelWriter::arguments(std::span<const Value> leading,
                                           std::span<const Loaded> loaded) {
  std::vector<Value> result(leading.begin(), leading.end());
  for (const Loaded& one : loaded) result.push_back(one.value);
  for (const Loaded& one : loaded) {
    if (one.valid) result.push_back(one.valid);
  }
  return result;
}

std::vector<Value> KernelWriter::loop(Value count, std::span<const Value> initial,
                                      const kir::Builder::LoopBody& body) {
  Value zero = b.u32(0);
  Value one = b.u32(1);
  return b.for_range(zero, count, one, initial, body);
}

void KernelWriter::for_items(const Launch& launch, const ItemBody& body) {
  for_items(launch, b.builtin(kir::Builtin::kLocalIndex), body);
}

void KernelWriter::for_items(const Launch& launch, Value index, const ItemBody& body) {
  Value group = b.builtin(kir::Builtin::kWorkgroupX);
  Value base = b.mul(group, b.u32(launch.local));
  Value first = b.add(base, index);
  Value count = argument(launch.items);
  if (!launch.loop) {
    b.if_then(b.less(first, count), [&] { body(first); });
    return;
  }
  Value stride = argument(launch.groups * launch.local);
  b.for_range(first, count, stride, {}, [&](Value item, std::span<const Value>) {
    body(item);
    return std::vector<Value>{};
  });
}

void KernelWriter::store_item(Value item, std::span<const int64_t> extents,
                              std::span<const Output* const> outputs, const Compute& compute) {
  if (any_narrow(outputs)) {
    const uint32_t total = element_count({extents.begin(), extents.end()});
    store_packed(item, total, extents, outputs, compute);
    return;
  }
  const std::vector<Value> at = coordinates(item, extents);
  const std::vector<Value> values = compute(at);
  for (size_t i = 0; i < outputs.size(); ++i) {
    store(*outputs[i], address(outputs[i]->access, at), values[i]);
  }
}

// Item `item` is the elements 4·item … 4·item+3: whole words of every narrow output.
void KernelWriter::store_packed(Value item, uint32_t total, std::span<const int64_t> extents,
                                std::span<const Output* const> outputs, const Compute& compute) {
  Value count = b.u32(total);
  Value first = b.mul(item, b.u32(4));
  std::vector<Value> words;
  for (const Output* output : outputs) {
    if (!is_narrow(output->dtype)) continue;
    words.resize(words.size() + storage_bits_of(output->dtype) / 8, b.u32(0));
  }
  words = loop(b.u32(4), words, [&](Value j, std::span<const Value> carried) {
    Value element = b.add(first, j);
    Value inside = b.less(element, count);
    Value clamped = b.min(element, b.u32(total - 1));
    const std::vector<Value> at = coordinates(clamped, extents);
    const std::vector<Value> values = compute(at);
    std::vector<Value> next(carried.begin(), carried.end());
    size_t word = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Output& output = *outputs[i];
      if (!is_narrow(output.dtype)) {
        b.if_then(inside, [&] { store(output, address(output.access, at), values[i]); });
        continue;
      }
      Value stored = storage_bits(output.dtype, values[i]);
      Value bits = b.select(inside, stored, b.u32(0));
      const uint32_t each = per_word(output.dtype);
      Value place = bit_and(j, b.u32(each - 1));
      Value shift = b.mul(place, b.u32(storage_bits_of(output.dtype)));
      Value shifted = shift_left(bits, shift);
      for (uint32_t w = 0; w < 4 / each; ++w, ++word) {
        Value target = b.div(j, b.u32(each));
        Value mine = b.equal(target, b.u32(w));
        Value part = b.select(mine, shifted, b.u32(0));
        next[word] = bit_or(next[word], part);
      }
    }
    return next;
  });
  size_t word = 0;
  for (const Output* output : outputs) {
    if (!is_narrow(output->dtype)) continue;
    const uint32_t each = per_word(output->dtype);
    Value word_index = b.mul(item, b.u32(4 / each));
    for (uint32_t w = 0; w < 4 / each; ++w, ++word) {
      Value begin = b.add(first, b.u32(w * each));
      b.if_then(b.less(begin, count),
                [&] { store_word(*output, b.add(word_index, b.u32(w)), words[word]); });
    }
  }
}

Stage KernelWriter::finish(std::array<uint32_t, 3> grid) {
  Stage stage;
  stage.kernel = b.finish();
  stage.grid = grid;
  for (const SlotState& slot : slots_) stage.slots.push_back(slot.spec_slot);
  stage.params = params_;
  return stage;
}

}  // namespace meganeura::kernels
