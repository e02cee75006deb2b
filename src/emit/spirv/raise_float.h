// Raise rules over f32 and its narrower storage forms (raise.h).
#pragma once

#include "emit/spirv/rewriter.h"

namespace meganeura::spirv {

using RuleResult = std::optional<kir::Value>;

RuleResult raise_float_remainder(Rewriter& out, const kir::Instruction& in, kir::ValueType type);
RuleResult raise_half(Rewriter& out, const kir::Instruction& in, kir::ValueType type);
RuleResult raise_float_min_max(Rewriter& out, const kir::Instruction& in, kir::ValueType type);
RuleResult raise_subgroup_min_max(Rewriter& out, const kir::Instruction& in, kir::ValueType type);
RuleResult raise_float_to_integer(Rewriter& out, const kir::Instruction& in, kir::ValueType type);
RuleResult raise_is_nan(Rewriter& out, const kir::Instruction& in, kir::ValueType type);

}  // namespace meganeura::spirv
