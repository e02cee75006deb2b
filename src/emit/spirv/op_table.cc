#include "emit/spirv/op_table.h"

#include <array>

#include <spirv/unified1/GLSL.std.450.h>

#include "base/check.h"

namespace meganeura::spirv {

namespace {

using scalar::Op;
using scalar::Type;

constexpr Encoding core(spv::Op op) {
  return {Encoding::Form::kCore, static_cast<uint16_t>(op), false};
}

constexpr Encoding exact(spv::Op op) {
  return {Encoding::Form::kCore, static_cast<uint16_t>(op), true};
}

constexpr Encoding glsl(GLSLstd450 op) {
  return {Encoding::Form::kExtended, static_cast<uint16_t>(op), false};
}

constexpr Encoding kNone{};

struct ArithmeticRow {
  Op op;
  std::array<Encoding, 4> by_type;  // bool, i32, u32, f32
};

constexpr ArithmeticRow kArithmetic[] = {
    {Op::kAdd, {kNone, core(spv::Op::OpIAdd), core(spv::Op::OpIAdd), exact(spv::Op::OpFAdd)}},
    {Op::kSub, {kNone, core(spv::Op::OpISub), core(spv::Op::OpISub), exact(spv::Op::OpFSub)}},
    {Op::kMul, {kNone, core(spv::Op::OpIMul), core(spv::Op::OpIMul), exact(spv::Op::OpFMul)}},
    {Op::kFma, {kNone, kNone, kNone, {Encoding::Form::kExtended, GLSLstd450Fma, true}}},
    {Op::kNeg,
     {kNone, core(spv::Op::OpSNegate), core(spv::Op::OpSNegate), exact(spv::Op::OpFNegate)}},
    {Op::kAbs, {kNone, glsl(GLSLstd450SAbs), kNone, glsl(GLSLstd450FAbs)}},
    {Op::kDiv, {kNone, core(spv::Op::OpSDiv), core(spv::Op::OpUDiv), exact(spv::Op::OpFDiv)}},
    {Op::kRem, {kNone, kNone, core(spv::Op::OpUMod), kNone}},
    {Op::kMin, {kNone, glsl(GLSLstd450SMin), glsl(GLSLstd450UMin), kNone}},
    {Op::kMax, {kNone, glsl(GLSLstd450SMax), glsl(GLSLstd450UMax), kNone}},
    {Op::kMulHigh,
     {kNone,
      kNone,
      {Encoding::Form::kHighHalf, static_cast<uint16_t>(spv::Op::OpUMulExtended), false},
      kNone}},
    {Op::kFloor, {kNone, kNone, kNone, glsl(GLSLstd450Floor)}},
    {Op::kCeil, {kNone, kNone, kNone, glsl(GLSLstd450Ceil)}},
    {Op::kTrunc, {kNone, kNone, kNone, glsl(GLSLstd450Trunc)}},
    {Op::kRound, {kNone, kNone, kNone, glsl(GLSLstd450RoundEven)}},
    {Op::kSqrt, {kNone, kNone, kNone, glsl(GLSLstd450Sqrt)}},
    {Op::kAnd,
     {core(spv::Op::OpLogicalAnd), core(spv::Op::OpBitwiseAnd), core(spv::Op::OpBitwiseAnd),
      kNone}},
    {Op::kOr,
     {core(spv::Op::OpLogicalOr), core(spv::Op::OpBitwiseOr), core(spv::Op::OpBitwiseOr), kNone}},
    {Op::kXor,
     {core(spv::Op::OpLogicalNotEqual), core(spv::Op::OpBitwiseXor), core(spv::Op::OpBitwiseXor),
      kNone}},
    {Op::kNot, {core(spv::Op::OpLogicalNot), core(spv::Op::OpNot), core(spv::Op::OpNot), kNone}},
    {Op::kShl,
     {kNone, core(spv::Op::OpShiftLeftLogical), core(spv::Op::OpShiftLeftLogical), kNone}},
    {Op::kShr,
     {kNone, core(spv::Op::OpShiftRightArithmetic), core(spv::Op::OpShiftRightLogical), kNone}},
    {Op::kEq,
     {core(spv::Op::OpLogicalEqual), core(spv::Op::OpIEqual), core(spv::Op::OpIEqual),
      core(spv::Op::OpFOrdEqual)}},
    {Op::kNe,
     {core(spv::Op::OpLogicalNotEqual), core(spv::Op::OpINotEqual), core(spv::Op::OpINotEqual),
      core(spv::Op::OpFUnordNotEqual)}},
    {Op::kLt,
     {kNone, core(spv::Op::OpSLessThan), core(spv::Op::OpULessThan),
      core(spv::Op::OpFOrdLessThan)}},
    {Op::kLe,
     {kNone, core(spv::Op::OpSLessThanEqual), core(spv::Op::OpULessThanEqual),
      core(spv::Op::OpFOrdLessThanEqual)}},
    {Op::kGt,
     {kNone, core(spv::Op::OpSGreaterThan), core(spv::Op::OpUGreaterThan),
      core(spv::Op::OpFOrdGreaterThan)}},
    {Op::kGe,
     {kNone, core(spv::Op::OpSGreaterThanEqual), core(spv::Op::OpUGreaterThanEqual),
      core(spv::Op::OpFOrdGreaterThanEqual)}},
    {Op::kSelect,
     {core(spv::Op::OpSelect), core(spv::Op::OpSelect), core(spv::Op::OpSelect),
      core(spv::Op::OpSelect)}},
    {Op::kBitcast,
     {kNone, core(spv::Op::OpBitcast), core(spv::Op::OpBitcast), core(spv::Op::OpBitcast)}},
};

struct ConversionRow {
  Type from;
  Type to;
  Encoding encoding;
};

constexpr ConversionRow kConversions[] = {
    {Type::kI32, Type::kF32, core(spv::Op::OpConvertSToF)},
    {Type::kU32, Type::kF32, core(spv::Op::OpConvertUToF)},
    {Type::kF32, Type::kI32, core(spv::Op::OpConvertFToS)},
    {Type::kF32, Type::kU32, core(spv::Op::OpConvertFToU)},
};

struct SubgroupRow {
  kir::Opcode opcode;
  std::array<Encoding, 4> by_type;
};

// No f32 sum: its order would be the device's choice.
constexpr SubgroupRow kSubgroup[] = {
    {kir::Opcode::kSubgroupAdd,
     {kNone, core(spv::Op::OpGroupNonUniformIAdd), core(spv::Op::OpGroupNonUniformIAdd), kNone}},
    {kir::Opcode::kSubgroupMin,
     {kNone, core(spv::Op::OpGroupNonUniformSMin), core(spv::Op::OpGroupNonUniformUMin),
      core(spv::Op::OpGroupNonUniformFMin)}},
    {kir::Opcode::kSubgroupMax,
     {kNone, core(spv::Op::OpGroupNonUniformSMax), core(spv::Op::OpGroupNonUniformUMax),
      core(spv::Op::OpGroupNonUniformFMax)}},
};

constexpr std::array<BuiltinEncoding, 7> kBuiltins = {{
    {spv::BuiltIn::WorkgroupId, true, 0, false},
    {spv::BuiltIn::WorkgroupId, true, 1, false},
    {spv::BuiltIn::WorkgroupId, true, 2, false},
    {spv::BuiltIn::LocalInvocationIndex, false, 0, false},
    {spv::BuiltIn::SubgroupLocalInvocationId, false, 0, true},
    {spv::BuiltIn::SubgroupId, false, 0, true},
    {spv::BuiltIn::SubgroupSize, false, 0, true},
}};

}  // namespace

Encoding arithmetic_encoding(Op op, Type operand_type) {
  for (const ArithmeticRow& row : kArithmetic) {
    if (row.op == op) return row.by_type.at(static_cast<size_t>(operand_type));
  }
  return kNone;
}

Encoding conversion_encoding(Type from, Type to) {
  for (const ConversionRow& row : kConversions) {
    if (row.from == from && row.to == to) return row.encoding;
  }
  return kNone;
}

Encoding subgroup_encoding(kir::Opcode opcode, Type type) {
  for (const SubgroupRow& row : kSubgroup) {
    if (row.opcode == opcode) return row.by_type.at(static_cast<size_t>(type));
  }
  return kNone;
}

const BuiltinEncoding& builtin_encoding(kir::Builtin builtin) {
  const auto index = static_cast<size_t>(builtin);
  MG_CHECK(index < kBuiltins.size(), "There is no kernel built-in number ", index, ".");
  return kBuiltins[index];
}

}  // namespace meganeura::spirv
