// Builds kernels. Emits in call order: bind each call to a variable of its own when the order of
// two emissions in one expression would be unspecified.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel_ir/kernel.h"

namespace meganeura::kir {

class Builder {
 public:
  Builder(std::string name, std::array<uint32_t, 3> local_size, uint32_t subgroup_size = 0);
  ~Builder();
  Builder(Builder&&) noexcept;
  Builder& operator=(Builder&&) noexcept;

  uint32_t slot(std::string name, Type element, SlotAccess access);
  uint32_t shared(std::string name, Type element, uint32_t count);
  uint32_t param();  // declares the next run-time argument and returns its index

  // Pure instructions are emitted once per block nesting; operations on constants are evaluated.
  Value u32(uint32_t value);
  Value i32(int32_t value);
  Value f32(float value);
  Value boolean(bool value);
  Value constant(Type type, uint32_t bits, uint8_t lanes = 1);
  Value read_param(uint32_t index);
  Value builtin(Builtin builtin);

  // Elementwise; folds constants, and identities such as x+0, x*1, x*0 on integers and truth
  // values.
  Value arith(scalar::Op op, std::span<const Value> operands, Type result_type);
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b);
  Value rem(Value a, Value b);
  Value min(Value a, Value b);
  Value max(Value a, Value b);
  Value fma(Value a, Value b, Value c);
  Value less(Value a, Value b);
  Value equal(Value a, Value b);
  Value logical_and(Value a, Value b);
  Value select(Value condition, Value a, Value b);

  Value load(uint32_t slot, Value index, uint8_t lanes = 1);
  void store(uint32_t slot, Value index, Value value);
  Value shared_load(uint32_t array, Value index, uint8_t lanes = 1);
  void shared_store(uint32_t array, Value index, Value value);
  Value extract(Value vector, uint32_t lane);
  Value compose(std::span<const Value> scalars);
  Value splat(Value scalar, uint8_t lanes);
  void barrier();
  Value subgroup_broadcast(Value value, uint32_t lane);
  Value subgroup_shuffle_xor(Value value, uint32_t mask);
  Value subgroup_reduce(Opcode opcode, Value value);

  // for (i = begin; i < end; i += step) carried = body(i, carried); returns the final carried.
  // A loop that is known to run never or once leaves no loop behind.
  using LoopBody =
      std::function<std::vector<Value>(Value induction, std::span<const Value> carried)>;
  std::vector<Value> for_range(Value begin, Value end, Value step, std::span<const Value> initial,
                               const LoopBody& body);
  // Where the condition is known, only the branch taken is built.
  using Branch = std::function<std::vector<Value>()>;
  std::vector<Value> if_else(Value condition, const Branch& then_branch, const Branch& else_branch);
  void if_then(Value condition, const std::function<void()>& then_branch);

  // A lowered scalar body over values; where some arguments are vectors (of equal lanes) the
  // others are splat and so are the results.
  std::vector<Value> inline_body(const scalar::Body& body, std::span<const Value> arguments);

  Type element_type(Value value) const { return type_of(value).element; }
  uint8_t lanes(Value value) const { return type_of(value).lanes; }

  // The bits of a value that is known while building, the same in all its lanes.
  std::optional<uint32_t> constant_bits(Value value) const;

  // Verifies and hands out the kernel; the builder is empty afterwards.
  Kernel finish();

 private:
  struct Cache;
  Value define(ValueType type);
  void append(Instruction instruction);
  Value emit(Instruction instruction, ValueType type);
  Value emit_pure(Instruction instruction, ValueType type);
  ValueType arith_type(scalar::Op op, std::span<const Value> operands, Type wanted) const;
  Value identity(scalar::Op op, std::span<const Value> operands, Type result);
  Value fold(scalar::Op op, std::span<const Value> operands, ValueType type);
  Value compare(scalar::Op op, Value a, Value b);
  Value alike(scalar::Op op, std::span<const Value> operands);
  ValueType type_of(Value value) const;
  void expect_index(Value value, const char* what) const;
  void expect_types(std::span<const Value> values, std::span<const Value> like,
                    const char* what) const;
  void open_block();
  Block close_block(std::vector<Value> yields);

  Kernel kernel_;
  std::vector<Block> open_;
  std::unique_ptr<Cache> cache_;
};

}  // namespace meganeura::kir
