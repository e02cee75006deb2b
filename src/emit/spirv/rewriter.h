// Copies a kernel while replacing instructions: the frame of every raise pass.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "kernel_ir/kernel.h"

namespace meganeura::spirv {

class Rewriter {
 public:
  // Sees an unstructured instruction whose operands are values of the new kernel and whose result,
  // if any, has type `result`. Returns nothing to keep it, or what stands for its result (an empty
  // Value for an instruction without result) after emitting the replacement.
  using Rule = std::function<std::optional<kir::Value>(Rewriter&, const kir::Instruction&,
                                                       kir::ValueType result)>;

  static kir::Kernel apply(const kir::Kernel& kernel, const Rule& rule);

  kir::ValueType type(kir::Value value) const { return kernel_.type(value); }
  // The bits of a value that is a constant (splat over its lanes).
  std::optional<uint32_t> constant_bits(kir::Value value) const { return constants_[value.id]; }

  kir::Value constant(scalar::Type type, uint32_t bits, uint8_t lanes);
  // Operands of equal lanes; the result has as many.
  kir::Value arith(scalar::Op op, scalar::Type result, std::initializer_list<kir::Value> operands);
  kir::Value emit(kir::Instruction instruction, kir::ValueType result);
  void emit_without_result(kir::Instruction instruction);
  kir::Value extract(kir::Value vector, uint32_t lane);
  kir::Value compose(std::span<const kir::Value> scalars);
  // for (i = 0; i < count; ++i) carried = body(i, carried); all scalar.
  kir::Value loop(kir::Value count, kir::Value initial,
                  const std::function<kir::Value(kir::Value, kir::Value)>& body);

 private:
  Rewriter(const kir::Kernel& source, const Rule& rule);
  kir::Value define(kir::ValueType type);
  kir::Value mapped(kir::Value old) const;
  kir::Value redefine(kir::Value old);
  void copy(const kir::Block& from, kir::Block& to);
  void copy(const kir::Instruction& instruction);

  const kir::Kernel& source_;
  const Rule& rule_;
  kir::Kernel kernel_;
  kir::Block* open_ = nullptr;
  std::vector<kir::Value> map_;
  std::vector<std::optional<uint32_t>> constants_;
};

}  // namespace meganeura::spirv
