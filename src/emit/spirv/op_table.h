// What each raised kernel instruction is called in SPIR-V.
#pragma once

#include <cstdint>

#include <spirv/unified1/spirv.hpp11>

#include "kernel_ir/kernel.h"

namespace meganeura::spirv {

struct Encoding {
  enum class Form : uint8_t {
    kNone,      // SPIR-V cannot say it; a raise pass must have removed it
    kCore,      // a core opcode
    kExtended,  // a GLSL.std.450 instruction
    kHighHalf,  // member 1 of the struct that the core opcode gives
  };
  Form form = Form::kNone;
  uint16_t code = 0;
  bool no_contraction = false;  // f32 arithmetic that must not be fused or reassociated
};

// By the type of the operands; for kSelect by the type of the chosen values.
Encoding arithmetic_encoding(scalar::Op op, scalar::Type operand_type);
Encoding conversion_encoding(scalar::Type from, scalar::Type to);
// kSubgroupAdd, kSubgroupMin, kSubgroupMax.
Encoding subgroup_encoding(kir::Opcode opcode, scalar::Type type);

struct BuiltinEncoding {
  spv::BuiltIn builtin;
  bool is_vector;  // uvec3, of which `component` is meant
  uint32_t component;
  bool is_subgroup;  // needs GroupNonUniform
};
const BuiltinEncoding& builtin_encoding(kir::Builtin builtin);

}  // namespace meganeura::spirv
