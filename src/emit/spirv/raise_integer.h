// Raise rules over integers, bits, conversions and memory accesses (raise.h).
#pragma once

#include "emit/spirv/rewriter.h"

namespace meganeura::spirv {

using RuleResult = std::optional<kir::Value>;

RuleResult raise_integer_division(Rewriter& out, const kir::Instruction& in, kir::ValueType type);
RuleResult raise_shift_count(Rewriter& out, const kir::Instruction& in, kir::ValueType type);
RuleResult raise_trivial(Rewriter& out, const kir::Instruction& in, kir::ValueType type);
RuleResult raise_shared_vector(Rewriter& out, const kir::Instruction& in, kir::ValueType type);
RuleResult raise_slot_vector(Rewriter& out, const kir::Instruction& in, kir::ValueType type);

}  // namespace meganeura::spirv
