#include "kernel_ir/builder.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "kernel_ir/opcode.h"
#include "scalar/evaluate.h"

namespace meganeura::kir {
namespace {

using scalar::Op;

// What makes two pure instructions the same.
struct Key {
  Opcode opcode = Opcode::kConstant;
  Op arith = Op::kAdd;
  uint8_t element = 0;
  uint8_t lanes = 0;
  uint32_t immediate = 0;
  std::array<uint32_t, 4> operands{};
  bool operator==(const Key&) const = default;
};

struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t hash = 14695981039346656037ull;
    auto mix = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211ull; };
    mix(static_cast<uint64_t>(key.opcode) | static_cast<uint64_t>(key.arith) << 8 |
        static_cast<uint64_t>(key.element) << 16 | static_cast<uint64_t>(key.lanes) << 24);
    mix(key.immediate);
    for (uint32_t operand : key.operands) mix(operand);
    return hash ^ (hash >> 29);
  }
};

Key make_key(const Instruction& instruction, ValueType type) {
  Key key;
  key.opcode = instruction.opcode;
  key.arith = instruction.arith;
  key.element = static_cast<uint8_t>(type.element);
  key.lanes = type.lanes;
  key.immediate = instruction.immediates[0];
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    key.operands[i] = instruction.operands[i].id;
  }
  if (instruction.opcode == Opcode::kArith && instruction.operands.size() == 2 &&
      scalar::info(instruction.arith).commutative && key.operands[0] > key.operands[1]) {
    std::swap(key.operands[0], key.operands[1]);
  }
  return key;
}

bool legal_lanes(size_t lanes) { return lanes == 1 || lanes == 2 || lanes == 4; }

}  // namespace

// Pure values that are visible in the open blocks, and values known while building.
struct Builder::Cache {
  std::unordered_map<Key, Value, KeyHash> values;
  std::vector<Key> order;                     // in order of insertion
  std::vector<size_t> scopes;                 // size of `order` when each open block was opened
  std::vector<std::optional<uint32_t>> bits;  // by value id
};

Builder::Builder(std::string name, std::array<uint32_t, 3> local_size, uint32_t subgroup_size)
    : cache_(std::make_unique<Cache>()) {
  kernel_.name = std::move(name);
  kernel_.local_size = local_size;
  kernel_.subgroup_size = subgroup_size;
  kernel_.types.emplace_back();
  cache_->bits.emplace_back();
  open_block();
}

Builder::~Builder() = default;
Builder::Builder(Builder&&) noexcept = default;
Builder& Builder::operator=(Builder&&) noexcept = default;

uint32_t Builder::slot(std::string name, Type element, SlotAccess access) {
  kernel_.slots.push_back({std::move(name), element, access});
  return static_cast<uint32_t>(kernel_.slots.size() - 1);
}

uint32_t Builder::shared(std::string name, Type element, uint32_t count) {
  kernel_.shared.push_back({std::move(name), element, count});
  return static_cast<uint32_t>(kernel_.shared.size() - 1);
}

uint32_t Builder::param() { return kernel_.params++; }

Value Builder::define(ValueType type) {
  kernel_.types.push_back(type);
  cache_->bits.emplace_back();
  return {static_cast<uint32_t>(kernel_.types.size() - 1)};
}

void Builder::append(Instruction instruction) {
  open_.back().body.push_back(std::move(instruction));
}

Value Builder::emit(Instruction instruction, ValueType type) {
  Value value = define(type);
  instruction.results = {value};
  append(std::move(instruction));
  return value;
}

Value Builder::emit_pure(Instruction instruction, ValueType type) {
  Key key = make_key(instruction, type);
  auto found = cache_->values.find(key);
  if (found != cache_->values.end()) return found->second;
  Value value = emit(std::move(instruction), type);
  cache_->values.emplace(key, value);
  cache_->order.push_back(key);
  return value;
}

void Builder::open_block() {
  open_.emplace_back();
  cache_->scopes.push_back(cache_->order.size());
}

Block Builder::close_block(std::vector<Value> yields) {
  Block block = std::move(open_.back());
  open_.pop_back();
  block.yields = std::move(yields);
  while (cache_->order.size() > cache_->scopes.back()) {
    cache_->values.erase(cache_->order.back());
    cache_->order.pop_back();
  }
  cache_->scopes.pop_back();
  return block;
}

ValueType Builder::type_of(Value value) const {
  MG_CHECK(value && value.id < kernel_.types.size(), "Kernel \"", kernel_.name,
           "\" uses a value that was never defined (id ", value.id, ").");
  return kernel_.types[value.id];
}

void Builder::expect_index(Value value, const char* what) const {
  ValueType type = type_of(value);
  MG_CHECK((type == ValueType{Type::kU32, 1}), "Kernel \"", kernel_.name, "\": the ", what,
           " must be one u32, not ", to_string(type), ".");
}

void Builder::expect_types(std::span<const Value> values, std::span<const Value> like,
                           const char* what) const {
  MG_CHECK(values.size() == like.size(), "Kernel \"", kernel_.name, "\": ", what, " gives ",
           values.size(), " values where ", like.size(), " are expected.");
  for (size_t i = 0; i < values.size(); ++i) {
    MG_CHECK(type_of(values[i]) == type_of(like[i]), "Kernel \"", kernel_.name, "\": value ", i,
             " of ", what, " is ", to_string(type_of(values[i])), " where ",
             to_string(type_of(like[i])), " is expected.");
  }
}

Value Builder::u32(uint32_t value) { return constant(Type::kU32, value); }
Value Builder::i32(int32_t value) { return constant(Type::kI32, static_cast<uint32_t>(value)); }
Value Builder::f32(float value) { return constant(Type::kF32, std::bit_cast<uint32_t>(value)); }
Value Builder::boolean(bool value) { return constant(Type::kBool, value ? 1 : 0); }

Value Builder::constant(Type type, uint32_t bits, uint8_t lanes) {
  Instruction instruction;
  instruction.opcode = Opcode::kConstant;
  instruction.immediates[0] = bits;
  Value value = emit_pure(std::move(instruction), {type, lanes});
  cache_->bits[value.id] = bits;
  return value;
}

std::optional<uint32_t> Builder::constant_bits(Value value) const {
  type_of(value);
  return cache_->bits[value.id];
}

Value Builder::read_param(uint32_t index) {
  MG_CHECK(index < kernel_.params, "Kernel \"", kernel_.name, "\" reads argument ", index,
           " but declares ", kernel_.params, ".");
  Instruction instruction;
  instruction.opcode = Opcode::kParam;
  instruction.immediates[0] = index;
  return emit_pure(std::move(instruction), {Type::kU32, 1});
}

Value Builder::builtin(Builtin builtin) {
  Instruction instruction;
  instruction.opcode = Opcode::kBuiltin;
  instruction.immediates[0] = static_cast<uint32_t>(builtin);
  return emit_pure(std::move(instruction), {Type::kU32, 1});
}

ValueType Builder::arith_type(Op op, std::span<const Value> operands, Type wanted) const {
  MG_CHECK(!operands.empty(), "Kernel \"", kernel_.name, "\": ", scalar::info(op).name,
           " has no operands.");
  std::vector<Type> types;
  for (Value operand : operands) {
    MG_CHECK(lanes(operand) == lanes(operands[0]), "Kernel \"", kernel_.name,
             "\": ", scalar::info(op).name, " mixes ", to_string(type_of(operands[0])), " with ",
             to_string(type_of(operand)), ".");
    types.push_back(element_type(operand));
  }
  try {
    return {scalar::result_type(op, types, wanted), lanes(operands[0])};
  } catch (const Error& error) {
    fail(ErrorKind::kInternal, "Kernel \"", kernel_.name, "\": ", error.what());
  }
}

Value Builder::arith(Op op, std::span<const Value> operands, Type result_type) {
  ValueType type = arith_type(op, operands, result_type);
  if (Value known = fold(op, operands, type)) return known;
  if (Value same = identity(op, operands, type.element)) return same;
  Instruction instruction;
  instruction.opcode = Opcode::kArith;
  instruction.arith = op;
  instruction.operands.assign(operands.begin(), operands.end());
  return emit_pure(std::move(instruction), type);
}

// f32 fma is left alone: whether it rounds once is the device's business.
Value Builder::fold(Op op, std::span<const Value> operands, ValueType type) {
  if (op == Op::kFma && type.element == Type::kF32) return {};
  std::array<uint32_t, 3> bits{};
  for (size_t i = 0; i < operands.size(); ++i) {
    auto known = constant_bits(operands[i]);
    if (!known) return {};
    bits[i] = *known;
  }
  uint32_t result =
      scalar::evaluate_primitive(op, element_type(operands[op == Op::kSelect ? 1 : 0]),
                                 type.element, {bits.data(), operands.size()});
  return constant(type.element, result, type.lanes);
}

// Never on f32, where x+0 and x*0 are not identities.
Value Builder::identity(Op op, std::span<const Value> operands, Type result) {
  if (op == Op::kConvert || op == Op::kBitcast) {
    return element_type(operands[0]) == result ? operands[0] : Value{};
  }
  if (op == Op::kSelect) {
    auto condition = constant_bits(operands[0]);
    if (condition) return operands[*condition != 0 ? 1 : 2];
    return operands[1] == operands[2] ? operands[1] : Value{};
  }
  ValueType type = type_of(operands[0]);
  if (operands.size() != 2 || type.element == Type::kF32) return {};
  Value a = operands[0];
  Value b = operands[1];
  if (scalar::info(op).commutative && constant_bits(a)) std::swap(a, b);
  auto right = constant_bits(b);
  if (!right) return {};
  uint32_t all_ones = type.element == Type::kBool ? 1u : ~0u;
  bool zero = *right == 0;
  bool one = *right == 1;
  bool ones = *right == all_ones;
  switch (op) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kXor:
    case Op::kShl:
    case Op::kShr:
      return zero ? a : Value{};
    case Op::kOr:
      return zero ? a : ones ? b : Value{};
    case Op::kAnd:
      return zero ? b : ones ? a : Value{};
    case Op::kMul:
      return zero ? b : one ? a : Value{};
    case Op::kDiv:
      return one ? a : Value{};
    case Op::kRem:
      return one ? constant(type.element, 0, type.lanes) : Value{};
    default:
      return {};
  }
}

Value Builder::alike(Op op, std::span<const Value> operands) {
  return arith(op, operands, element_type(operands[0]));
}

Value Builder::compare(Op op, Value a, Value b) { return arith(op, std::array{a, b}, Type::kBool); }

Value Builder::add(Value a, Value b) { return alike(Op::kAdd, std::array{a, b}); }
Value Builder::sub(Value a, Value b) { return alike(Op::kSub, std::array{a, b}); }
Value Builder::mul(Value a, Value b) { return alike(Op::kMul, std::array{a, b}); }
Value Builder::div(Value a, Value b) { return alike(Op::kDiv, std::array{a, b}); }
Value Builder::rem(Value a, Value b) { return alike(Op::kRem, std::array{a, b}); }
Value Builder::min(Value a, Value b) { return alike(Op::kMin, std::array{a, b}); }
Value Builder::max(Value a, Value b) { return alike(Op::kMax, std::array{a, b}); }
Value Builder::fma(Value a, Value b, Value c) { return alike(Op::kFma, std::array{a, b, c}); }
Value Builder::less(Value a, Value b) { return compare(Op::kLt, a, b); }
Value Builder::equal(Value a, Value b) { return compare(Op::kEq, a, b); }
Value Builder::logical_and(Value a, Value b) { return compare(Op::kAnd, a, b); }
Value Builder::select(Value condition, Value a, Value b) {
  return arith(Op::kSelect, std::array{condition, a, b}, element_type(a));
}

Value Builder::load(uint32_t slot, Value index, uint8_t lanes) {
  MG_CHECK(slot < kernel_.slots.size(), "Kernel \"", kernel_.name, "\" loads from slot ", slot,
           " of ", kernel_.slots.size(), ".");
  expect_index(index, "index of a load");
  Instruction instruction;
  instruction.opcode = Opcode::kLoad;
  instruction.immediates[0] = slot;
  instruction.operands = {index};
  return emit(std::move(instruction), {kernel_.slots[slot].element, lanes});
}

void Builder::store(uint32_t slot, Value index, Value value) {
  MG_CHECK(slot < kernel_.slots.size(), "Kernel \"", kernel_.name, "\" stores to slot ", slot,
           " of ", kernel_.slots.size(), ".");
  expect_index(index, "index of a store");
  MG_CHECK(element_type(value) == kernel_.slots[slot].element, "Kernel \"", kernel_.name,
           "\" stores ", to_string(type_of(value)), " to slot \"", kernel_.slots[slot].name,
           "\" of ", scalar::to_string(kernel_.slots[slot].element), ".");
  Instruction instruction;
  instruction.opcode = Opcode::kStore;
  instruction.immediates[0] = slot;
  instruction.operands = {index, value};
  append(std::move(instruction));
}

Value Builder::shared_load(uint32_t array, Value index, uint8_t lanes) {
  MG_CHECK(array < kernel_.shared.size(), "Kernel \"", kernel_.name, "\" loads shared array ",
           array, " of ", kernel_.shared.size(), ".");
  expect_index(index, "index of a shared load");
  Instruction instruction;
  instruction.opcode = Opcode::kSharedLoad;
  instruction.immediates[0] = array;
  instruction.operands = {index};
  return emit(std::move(instruction), {kernel_.shared[array].element, lanes});
}

void Builder::shared_store(uint32_t array, Value index, Value value) {
  MG_CHECK(array < kernel_.shared.size(), "Kernel \"", kernel_.name, "\" stores shared array ",
           array, " of ", kernel_.shared.size(), ".");
  expect_index(index, "index of a shared store");
  MG_CHECK(element_type(value) == kernel_.shared[array].element, "Kernel \"", kernel_.name,
           "\" stores ", to_string(type_of(value)), " to shared array \"",
           kernel_.shared[array].name, "\" of ", scalar::to_string(kernel_.shared[array].element),
           ".");
  Instruction instruction;
  instruction.opcode = Opcode::kSharedStore;
  instruction.immediates[0] = array;
  instruction.operands = {index, value};
  append(std::move(instruction));
}

Value Builder::extract(Value vector, uint32_t lane) {
  ValueType type = type_of(vector);
  MG_CHECK(lane < type.lanes, "Kernel \"", kernel_.name, "\" extracts lane ", lane, " of ",
           to_string(type), ".");
  if (type.lanes == 1) return vector;
  if (auto bits = constant_bits(vector)) return constant(type.element, *bits);
  Instruction instruction;
  instruction.opcode = Opcode::kExtract;
  instruction.immediates[0] = lane;
  instruction.operands = {vector};
  return emit_pure(std::move(instruction), {type.element, 1});
}

Value Builder::compose(std::span<const Value> scalars) {
  MG_CHECK(legal_lanes(scalars.size()), "Kernel \"", kernel_.name, "\" composes a vector of ",
           scalars.size(), " lanes; 1, 2 and 4 exist.");
  if (scalars.size() == 1) return scalars[0];
  Type element = element_type(scalars[0]);
  bool alike = true;
  for (Value value : scalars) {
    MG_CHECK((type_of(value) == ValueType{element, 1}), "Kernel \"", kernel_.name,
             "\" composes a vector of ", scalar::to_string(element), " from ",
             to_string(type_of(value)), ".");
    alike = alike && value == scalars[0];
  }
  auto lane_count = static_cast<uint8_t>(scalars.size());
  auto bits = constant_bits(scalars[0]);
  if (alike && bits) return constant(element, *bits, lane_count);
  Instruction instruction;
  instruction.opcode = Opcode::kCompose;
  instruction.operands.assign(scalars.begin(), scalars.end());
  return emit_pure(std::move(instruction), {element, lane_count});
}

Value Builder::splat(Value scalar, uint8_t lanes) {
  std::vector<Value> copies(lanes, scalar);
  return compose(copies);
}

void Builder::barrier() {
  Instruction instruction;
  instruction.opcode = Opcode::kBarrier;
  append(std::move(instruction));
}

Value Builder::subgroup_broadcast(Value value, uint32_t lane) {
  Instruction instruction;
  instruction.opcode = Opcode::kSubgroupBroadcast;
  instruction.immediates[0] = lane;
  instruction.operands = {value};
  return emit(std::move(instruction), type_of(value));
}

Value Builder::subgroup_shuffle_xor(Value value, uint32_t mask) {
  Instruction instruction;
  instruction.opcode = Opcode::kSubgroupShuffleXor;
  instruction.immediates[0] = mask;
  instruction.operands = {value};
  return emit(std::move(instruction), type_of(value));
}

Value Builder::subgroup_reduce(Opcode opcode, Value value) {
  MG_CHECK(opcode == Opcode::kSubgroupAdd || opcode == Opcode::kSubgroupMin ||
               opcode == Opcode::kSubgroupMax,
           "Kernel \"", kernel_.name, "\": ", kir::info(opcode).name,
           " is not a subgroup reduction.");
  Instruction instruction;
  instruction.opcode = opcode;
  instruction.operands = {value};
  return emit(std::move(instruction), type_of(value));
}

std::vector<Value> Builder::for_range(Value begin, Value end, Value step,
                                      std::span<const Value> initial, const LoopBody& body) {
  expect_index(begin, "begin of a loop");
  expect_index(end, "end of a loop");
  expect_index(step, "step of a loop");
  auto first = constant_bits(begin);
  auto limit = constant_bits(end);
  auto stride = constant_bits(step);
  MG_CHECK(stride.value_or(1) != 0, "Kernel \"", kernel_.name, "\" has a loop of step 0.");
  if (first && limit && *first >= *limit) return {initial.begin(), initial.end()};
  if (first && limit && stride && *limit - *first <= *stride) {
    std::vector<Value> carried(initial.begin(), initial.end());
    std::vector<Value> yields = body(begin, carried);
    expect_types(yields, initial, "a loop body");
    return yields;
  }
  Instruction instruction;
  instruction.opcode = Opcode::kFor;
  instruction.operands = {begin, end, step};
  instruction.operands.insert(instruction.operands.end(), initial.begin(), initial.end());
  open_block();
  std::vector<Value> parameters = {define({Type::kU32, 1})};
  for (Value value : initial) parameters.push_back(define(type_of(value)));
  open_.back().parameters = parameters;
  std::vector<Value> yields = body(parameters[0], std::span(parameters).subspan(1));
  expect_types(yields, initial, "a loop body");
  instruction.blocks.push_back(close_block(std::move(yields)));
  for (Value value : initial) instruction.results.push_back(define(type_of(value)));
  std::vector<Value> results = instruction.results;
  append(std::move(instruction));
  return results;
}

std::vector<Value> Builder::if_else(Value condition, const Branch& then_branch,
                                    const Branch& else_branch) {
  MG_CHECK((type_of(condition) == ValueType{Type::kBool, 1}), "Kernel \"", kernel_.name,
           "\" branches on ", to_string(type_of(condition)), " where one bool is expected.");
  if (auto known = constant_bits(condition)) return *known != 0 ? then_branch() : else_branch();
  Instruction instruction;
  instruction.opcode = Opcode::kIf;
  instruction.operands = {condition};
  open_block();
  std::vector<Value> then_yields = then_branch();
  instruction.blocks.push_back(close_block(then_yields));
  open_block();
  std::vector<Value> else_yields = else_branch();
  instruction.blocks.push_back(close_block(else_yields));
  expect_types(else_yields, then_yields, "the second branch");
  for (Value value : then_yields) instruction.results.push_back(define(type_of(value)));
  std::vector<Value> results = instruction.results;
  append(std::move(instruction));
  return results;
}

void Builder::if_then(Value condition, const std::function<void()>& then_branch) {
  if_else(
      condition,
      [&] {
        then_branch();
        return std::vector<Value>{};
      },
      [] { return std::vector<Value>{}; });
}

std::vector<Value> Builder::inline_body(const scalar::Body& body,
                                        std::span<const Value> arguments) {
  MG_CHECK(arguments.size() == body.arguments.size(), "Kernel \"", kernel_.name,
           "\" inlines a body of ", body.arguments.size(), " arguments over ", arguments.size(),
           " values.");
  uint8_t lane_count = 1;
  for (Value value : arguments) lane_count = std::max(lane_count, lanes(value));
  std::vector<Value> inputs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    Value value = arguments[i];
    MG_CHECK(element_type(value) == body.arguments[i], "Kernel \"", kernel_.name,
             "\" inlines a body whose argument ", i, " is ", scalar::to_string(body.arguments[i]),
             " over ", to_string(type_of(value)), ".");
    inputs.push_back(lanes(value) == lane_count ? value : splat(value, lane_count));
  }
  std::vector<Value> values;
  for (const scalar::Node& node : body.nodes) {
    if (node.op == Op::kArgument) {
      values.push_back(inputs.at(node.payload));
    } else if (node.op == Op::kConstant) {
      values.push_back(constant(node.type, node.payload, lane_count));
    } else {
      std::array<Value, 3> operands{};
      size_t arity = scalar::info(node.op).arity;
      for (size_t i = 0; i < arity; ++i) operands[i] = values.at(node.operands[i]);
      values.push_back(arith(node.op, {operands.data(), arity}, node.type));
    }
  }
  std::vector<Value> outputs;
  for (uint32_t output : body.outputs) outputs.push_back(values.at(output));
  return outputs;
}

Kernel Builder::finish() {
  MG_CHECK(open_.size() == 1, "Kernel \"", kernel_.name, "\" is finished inside an open block.");
  kernel_.body = close_block({});
  Kernel kernel = std::exchange(kernel_, {});
  verify(kernel);
  return kernel;
}

}  // namespace meganeura::kir
