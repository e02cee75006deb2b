#include "emit/spirv/rewriter.h"

#include <utility>

#include "base/check.h"

namespace meganeura::spirv {

using kir::Block;
using kir::Instruction;
using kir::Kernel;
using kir::Opcode;
using kir::Value;
using kir::ValueType;
using scalar::Op;
using scalar::Type;

Rewriter::Rewriter(const Kernel& source, const Rule& rule)
    : source_(source), rule_(rule), map_(source.types.size()) {
  kernel_.name = source.name;
  kernel_.local_size = source.local_size;
  kernel_.subgroup_size = source.subgroup_size;
  kernel_.slots = source.slots;
  kernel_.shared = source.shared;
  kernel_.params = source.params;
  kernel_.types.emplace_back();
  constants_.emplace_back();
}

Kernel Rewriter::apply(const Kernel& kernel, const Rule& rule) {
  Rewriter rewriter(kernel, rule);
  rewriter.copy(kernel.body, rewriter.kernel_.body);
  return std::move(rewriter.kernel_);
}

Value Rewriter::define(ValueType type) {
  kernel_.types.push_back(type);
  constants_.emplace_back();
  return {static_cast<uint32_t>(kernel_.types.size() - 1)};
}

Value Rewriter::mapped(Value old) const {
  const Value value = map_.at(old.id);
  MG_CHECK(value, "Kernel ", source_.name, " uses value %", old.id, " before its definition.");
  return value;
}

Value Rewriter::redefine(Value old) {
  map_.at(old.id) = define(source_.type(old));
  return map_[old.id];
}

Value Rewriter::constant(Type type, uint32_t bits, uint8_t lanes) {
  const Value value = emit({.opcode = Opcode::kConstant, .immediates = {bits, 0}}, {type, lanes});
  constants_[value.id] = bits;
  return value;
}

Value Rewriter::arith(Op op, Type result, std::initializer_list<Value> operands) {
  const uint8_t lanes = type(*operands.begin()).lanes;
  return emit({.opcode = Opcode::kArith, .arith = op, .operands = operands}, {result, lanes});
}

Value Rewriter::emit(Instruction instruction, ValueType result) {
  const Value value = define(result);
  instruction.results = {value};
  open_->body.push_back(std::move(instruction));
  return value;
}

void Rewriter::emit_without_result(Instruction instruction) {
  open_->body.push_back(std::move(instruction));
}

Value Rewriter::extract(Value vector, uint32_t lane) {
  return emit({.opcode = Opcode::kExtract, .immediates = {lane, 0}, .operands = {vector}},
              {type(vector).element, 1});
}

Value Rewriter::compose(std::span<const Value> scalars) {
  return emit({.opcode = Opcode::kCompose, .operands = {scalars.begin(), scalars.end()}},
              {type(scalars[0]).element, static_cast<uint8_t>(scalars.size())});
}

Value Rewriter::loop(Value count, Value initial, const std::function<Value(Value, Value)>& body) {
  const Value begin = constant(Type::kU32, 0, 1);
  const Value step = constant(Type::kU32, 1, 1);
  Block block;
  const Value induction = define({Type::kU32, 1});
  const Value carried = define(type(initial));
  block.parameters = {induction, carried};
  Block* outer = std::exchange(open_, &block);
  block.yields = {body(induction, carried)};
  open_ = outer;
  Instruction instruction{.opcode = Opcode::kFor, .operands = {begin, count, step, initial}};
  instruction.blocks.push_back(std::move(block));
  return emit(std::move(instruction), type(initial));
}

void Rewriter::copy(const Block& from, Block& to) {
  Block* outer = std::exchange(open_, &to);
  for (const Value parameter : from.parameters) to.parameters.push_back(redefine(parameter));
  for (const Instruction& instruction : from.body) copy(instruction);
  for (const Value yield : from.yields) to.yields.push_back(mapped(yield));
  open_ = outer;
}

void Rewriter::copy(const Instruction& instruction) {
  Instruction made{.opcode = instruction.opcode,
                   .arith = instruction.arith,
                   .immediates = instruction.immediates};
  for (const Value operand : instruction.operands) made.operands.push_back(mapped(operand));
  if (instruction.blocks.empty()) {
    const bool has_result = !instruction.results.empty();
    const ValueType result = has_result ? source_.type(instruction.results[0]) : ValueType{};
    if (const std::optional<Value> replacement = rule_(*this, made, result)) {
      if (has_result) map_.at(instruction.results[0].id) = *replacement;
      return;
    }
  }
  made.blocks.resize(instruction.blocks.size());
  for (size_t i = 0; i < made.blocks.size(); ++i) copy(instruction.blocks[i], made.blocks[i]);
  for (const Value result : instruction.results) made.results.push_back(redefine(result));
  if (made.opcode == Opcode::kConstant) constants_[made.results[0].id] = made.immediates[0];
  open_->body.push_back(std::move(made));
}

}  // namespace meganeura::spirv
