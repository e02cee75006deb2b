#include "emit/spirv/disassemble.h"

#define SPV_ENABLE_UTILITY_CODE
#include <algorithm>
#include <spirv/unified1/spirv.hpp11>
#include <string_view>

#include "base/format.h"

namespace meganeura {
namespace {

// Operands after result and type: i id, n number, s string; the last letter repeats.
struct Row {
  spv::Op op;
  std::string_view name;
  std::string_view operands = "i";
};

#define ROW(name) \
  { spv::Op::name, #name }
#define ROW_OF(name, operands) \
  { spv::Op::name, #name, operands }
constexpr Row kRows[] = {
    ROW_OF(OpCapability, "n"),
    ROW_OF(OpExtension, "s"),
    ROW_OF(OpExtInstImport, "s"),
    ROW_OF(OpMemoryModel, "n"),
    ROW_OF(OpEntryPoint, "nisi"),
    ROW_OF(OpExecutionMode, "in"),
    ROW_OF(OpDecorate, "in"),
    ROW_OF(OpMemberDecorate, "in"),
    ROW(OpTypeVoid),
    ROW(OpTypeBool),
    ROW_OF(OpTypeInt, "n"),
    ROW_OF(OpTypeFloat, "n"),
    ROW_OF(OpTypeVector, "in"),
    ROW(OpTypeArray),
    ROW(OpTypeRuntimeArray),
    ROW(OpTypeStruct),
    ROW_OF(OpTypePointer, "ni"),
    ROW_OF(OpTypeForwardPointer, "in"),
    ROW(OpTypeFunction),
    ROW_OF(OpConstant, "n"),
    ROW(OpConstantTrue),
    ROW(OpConstantFalse),
    ROW(OpConstantComposite),
    ROW(OpConstantNull),
    ROW_OF(OpVariable, "n"),
    ROW_OF(OpFunction, "ni"),
    ROW(OpFunctionEnd),
    ROW(OpLabel),
    ROW(OpBranch),
    ROW(OpBranchConditional),
    ROW_OF(OpSelectionMerge, "in"),
    ROW_OF(OpLoopMerge, "iin"),
    ROW(OpPhi),
    ROW(OpReturn),
    ROW_OF(OpLoad, "in"),
    ROW_OF(OpStore, "iin"),
    ROW(OpAccessChain),
    ROW(OpBitcast),
    ROW_OF(OpExtInst, "ini"),
    ROW_OF(OpCompositeExtract, "in"),
    ROW(OpCompositeConstruct),
    ROW(OpControlBarrier),
    ROW(OpMemoryBarrier),
    ROW(OpSelect),
    ROW(OpIAdd),
    ROW(OpISub),
    ROW(OpIMul),
    ROW(OpUDiv),
    ROW(OpSDiv),
    ROW(OpUMod),
    ROW(OpSRem),
    ROW(OpSNegate),
    ROW(OpNot),
    ROW(OpBitwiseAnd),
    ROW(OpBitwiseOr),
    ROW(OpBitwiseXor),
    ROW(OpShiftLeftLogical),
    ROW(OpShiftRightLogical),
    ROW(OpShiftRightArithmetic),
    ROW(OpUMulExtended),
    ROW(OpFAdd),
    ROW(OpFSub),
    ROW(OpFMul),
    ROW(OpFDiv),
    ROW(OpFRem),
    ROW(OpFNegate),
    ROW(OpIEqual),
    ROW(OpINotEqual),
    ROW(OpULessThan),
    ROW(OpULessThanEqual),
    ROW(OpUGreaterThan),
    ROW(OpUGreaterThanEqual),
    ROW(OpSLessThan),
    ROW(OpSLessThanEqual),
    ROW(OpSGreaterThan),
    ROW(OpSGreaterThanEqual),
    ROW(OpFOrdEqual),
    ROW(OpFUnordNotEqual),
    ROW(OpFOrdLessThan),
    ROW(OpFOrdLessThanEqual),
    ROW(OpFOrdGreaterThan),
    ROW(OpFOrdGreaterThanEqual),
    ROW(OpLogicalAnd),
    ROW(OpLogicalOr),
    ROW(OpLogicalNot),
    ROW(OpLogicalEqual),
    ROW(OpLogicalNotEqual),
    ROW(OpConvertFToU),
    ROW(OpConvertFToS),
    ROW(OpConvertUToF),
    ROW(OpConvertSToF),
    ROW_OF(OpGroupNonUniformBroadcast, "i"),
    ROW_OF(OpGroupNonUniformShuffleXor, "i"),
    ROW_OF(OpGroupNonUniformIAdd, "ini"),
    ROW_OF(OpGroupNonUniformFAdd, "ini"),
    ROW_OF(OpGroupNonUniformUMin, "ini"),
    ROW_OF(OpGroupNonUniformUMax, "ini"),
    ROW_OF(OpGroupNonUniformSMin, "ini"),
    ROW_OF(OpGroupNonUniformSMax, "ini"),
    ROW_OF(OpGroupNonUniformFMin, "ini"),
    ROW_OF(OpGroupNonUniformFMax, "ini"),
};
#undef ROW
#undef ROW_OF

std::string read_string(std::span<const uint32_t> words, size_t& at) {
  std::string text;
  while (at < words.size()) {
    const uint32_t word = words[at++];
    for (int byte = 0; byte < 4; ++byte) {
      const char c = static_cast<char>(word >> (8 * byte) & 0xff);
      if (c == 0) return text;
      text += c;
    }
  }
  return text;
}

void append_operands(std::string& out, std::string_view kinds, std::span<const uint32_t> words) {
  size_t kind = 0;
  for (size_t at = 0; at < words.size();) {
    switch (kinds[kind]) {
      case 's':
        out += cat(" \"", read_string(words, at), "\"");
        break;
      case 'n':
        out += cat(" ", words[at++]);
        break;
      default:
        out += cat(" %", words[at++]);
        break;
    }
    if (kind + 1 < kinds.size()) ++kind;
  }
}

void append_instruction(std::string& out, std::span<const uint32_t> words) {
  const auto op = static_cast<spv::Op>(words[0] & 0xffff);
  const Row* row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const Row& candidate) { return candidate.op == op; });
  const bool known = row != std::end(kRows);
  bool has_result = false;
  bool has_type = false;
  spv::HasResultAndType(op, &has_result, &has_type);
  const size_t leading = size_t{1} + has_type + has_result;
  if (words.size() < leading) {
    out += "; instruction too short\n";
    return;
  }
  if (has_result) out += cat("%", words[leading - 1], " = ");
  out += known ? std::string(row->name) : cat("Op", static_cast<uint32_t>(op));
  if (has_type) out += cat(" %", words[1]);
  append_operands(out, known ? row->operands : "n", words.subspan(leading));
  out += "\n";
}

}  // namespace

std::string disassemble_spirv(std::span<const uint32_t> words) {
  constexpr size_t kHeaderWords = 5;
  if (words.size() < kHeaderWords || words[0] != spv::MagicNumber) return "; no SPIR-V module\n";
  std::string out = cat("; SPIR-V ", words[1] >> 16 & 0xff, ".", words[1] >> 8 & 0xff,
                        ", ids below ", words[3], "\n");
  for (size_t at = kHeaderWords; at < words.size();) {
    const size_t count = words[at] >> 16;
    if (count == 0 || at + count > words.size()) return out + "; truncated\n";
    append_instruction(out, words.subspan(at, count));
    at += count;
  }
  return out;
}

}  // namespace meganeura
