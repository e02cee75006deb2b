#include "emit/spirv/emit.h"

#include <gtest/gtest.h>

#include "emit/spirv/disassemble.h"
#include "emit/spirv/op_kernels.h"
#include "emit/spirv/op_table.h"
#include "emit/spirv/validate.h"
#include "kernel_ir/builder.h"
#include "meganeura/error.h"

namespace meganeura {
namespace {

using kir::Builder;
using kir::Builtin;
using kir::Kernel;
using kir::Opcode;
using kir::SlotAccess;
using kir::Value;
using scalar::Op;
using scalar::Type;
using spirv::OpCase;

constexpr BindingMode kModes[] = {BindingMode::kAddress, BindingMode::kDescriptor};

Capabilities device(BindingMode binding) {
  Capabilities capabilities;
  capabilities.binding = binding;
  return capabilities;
}

void expect_valid(std::span<const uint32_t> words) {
  const SpirvVerdict verdict = validate_spirv(words);
  if (!verdict.available) GTEST_SKIP() << verdict.message;
  EXPECT_TRUE(verdict.valid) << verdict.message << spirv_assembly(words);
}

void expect_valid_in_both_modes(const Kernel& kernel) {
  for (const BindingMode mode : kModes) expect_valid(emit_spirv(kernel, device(mode)));
}

// The operands of `instruction`s with that opcode, in order of appearance.
std::vector<std::vector<uint32_t>> find(std::span<const uint32_t> words, spv::Op op) {
  std::vector<std::vector<uint32_t>> found;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    if ((words[at] & 0xffff) == static_cast<uint32_t>(op)) {
      found.emplace_back(words.begin() + static_cast<ptrdiff_t>(at) + 1,
                         words.begin() + static_cast<ptrdiff_t>(at + (words[at] >> 16)));
    }
  }
  return found;
}

std::vector<uint32_t> capabilities_of(std::span<const uint32_t> words) {
  std::vector<uint32_t> numbers;
  for (const auto& operands : find(words, spv::Op::OpCapability)) numbers.push_back(operands[0]);
  return numbers;
}

uint32_t number(spv::Capability capability) { return static_cast<uint32_t>(capability); }

// y[i] = x[i] * a + x[i] with a run-time argument as bits.
Kernel saxpy() {
  return kir::parse_kernel(R"(kernel "saxpy" local(8, 1, 1) subgroup(0) params(1) {
  slot 0 "x": f32 read
  slot 1 "y": f32 write
  %1: u32 = builtin local_index
  %2: f32 = load 0 %1
  %3: u32 = param 0
  %4: f32 = arith bitcast %3
  %5: f32 = arith mul %2 %4
  %6: f32 = arith add %5 %2
  store 1 %1 %6
}
)");
}

TEST(EmitSpirv, SaysEveryOpAtEveryTypeAndWidth) {
  const std::vector<OpCase> cases = spirv::all_op_cases();
  EXPECT_GT(cases.size(), 80u);
  for (const OpCase& c : cases) {
    for (const uint8_t lanes : {1, 2, 4}) {
      SCOPED_TRACE(spirv::to_string(c) + " x" + std::to_string(lanes));
      expect_valid_in_both_modes(spirv::op_kernel(c, lanes));
    }
  }
}

TEST(EmitSpirv, NamesTheOpcodeOfEveryPlainOp) {
  const struct {
    Op op;
    Type type;
    spv::Op opcode;
  } kExpected[] = {
      {Op::kAdd, Type::kF32, spv::Op::OpFAdd},
      {Op::kAdd, Type::kU32, spv::Op::OpIAdd},
      {Op::kSub, Type::kI32, spv::Op::OpISub},
      {Op::kMul, Type::kF32, spv::Op::OpFMul},
      {Op::kDiv, Type::kF32, spv::Op::OpFDiv},
      {Op::kDiv, Type::kI32, spv::Op::OpSDiv},
      {Op::kDiv, Type::kU32, spv::Op::OpUDiv},
      {Op::kShr, Type::kI32, spv::Op::OpShiftRightArithmetic},
      {Op::kShr, Type::kU32, spv::Op::OpShiftRightLogical},
      {Op::kXor, Type::kBool, spv::Op::OpLogicalNotEqual},
      {Op::kNe, Type::kF32, spv::Op::OpFUnordNotEqual},
      {Op::kEq, Type::kF32, spv::Op::OpFOrdEqual},
      {Op::kLt, Type::kI32, spv::Op::OpSLessThan},
      {Op::kLt, Type::kU32, spv::Op::OpULessThan},
      {Op::kGe, Type::kF32, spv::Op::OpFOrdGreaterThanEqual},
  };
  for (const auto& row : kExpected) {
    const spirv::Encoding encoding = spirv::arithmetic_encoding(row.op, row.type);
    EXPECT_EQ(encoding.form, spirv::Encoding::Form::kCore);
    EXPECT_EQ(encoding.code, static_cast<uint16_t>(row.opcode)) << info(row.op).name;
    const std::array operands = {row.type, row.type};
    const Type result = scalar::result_type(row.op, operands);
    const Kernel kernel = spirv::op_kernel({row.op, {row.type, row.type}, result}, 1);
    EXPECT_FALSE(find(emit_spirv(kernel, device(BindingMode::kAddress)), row.opcode).empty())
        << info(row.op).name;
  }
}

// Every raise pass, section and control structure at once.
constexpr std::string_view kEverything =
    R"(kernel "everything" local(8, 1, 1) subgroup(0) params(2) {
  slot 0 "x": f32 read
  slot 1 "n": i32 readwrite
  slot 2 "y": u32 write
  shared 0 "tile": f32[64]
  shared 1 "flags": u32[64]
  %1: u32 = builtin workgroup_x
  %2: u32 = builtin local_index
  %3: u32 = builtin lane
  %4: u32 = param 0
  %5: u32 = param 1
  %6: f32x4 = load 0 %2
  %7: f32x4 = arith rem %6 %6
  %8: f32x4 = arith round_f16 %7
  %9: f32x4 = arith round_bf16 %8
  %10: f32x4 = arith max %9 %6
  %11: f32x4 = arith min %10 %7
  shared_store 0 %2 %11
  barrier
  %12: f32x2 = shared_load 0 %3
  %13: f32 = extract 1 %12
  %14: u32 = arith pack_f16 %13 %13
  %15: f32 = arith unpack_f16 %14
  %16: i32 = arith convert %15
  %17: u32 = arith convert %13
  %18: i32 = load 1 %4
  %19: i32 = arith div %18 %16
  %20: i32 = arith rem %19 %16
  %21: u32 = arith rem %17 %5
  %22: u32 = arith shl %21 %17
  %23: u32 = arith mul_high %22 %17
  %24: bool = arith is_nan %13
  %25: f32 = subgroup_max %15
  %26: u32 = subgroup_add %23
  %27: f32 = subgroup_shuffle_xor 2 %25
  %28: f32 = subgroup_broadcast 1 %27
  %33: f32, %34: u32 = for %29: u32 in %2 to %4 step %5 carry(%30: f32 = %28, %31: u32 = %26) {
    %32: f32 = arith fma %30 %28 %30
    yield %32 %29
  }
  %36: f32 = if %24 {
    yield %33
  } else {
    %35: f32 = arith neg %33
    yield %35
  }
  %37: i32 = arith convert %36
  %38: i32 = arith add %37 %20
  store 1 %4 %38
  store 2 %1 %34
}
)";

uint64_t hash_of(std::span<const uint32_t> words) {
  uint64_t hash = 14695981039346656037ull;
  for (const uint32_t word : words) hash = (hash ^ word) * 1099511628211ull;
  return hash;
}

// The constants stand for the words on every compiler and machine; drivers cache by these words.
TEST(EmitSpirv, EqualKernelsGiveEqualWordsEverywhere) {
  const Kernel kernel = kir::parse_kernel(kEverything);
  expect_valid_in_both_modes(kernel);
  EXPECT_EQ(hash_of(emit_spirv(kernel, device(BindingMode::kAddress))), 6660740711239384063u);
  EXPECT_EQ(hash_of(emit_spirv(kernel, device(BindingMode::kDescriptor))), 6891265141224213497u);
}

TEST(EmitSpirv, ASmallModuleReadsLikeThis) {
  const std::vector<uint32_t> words = emit_spirv(saxpy(), device(BindingMode::kAddress));
  EXPECT_EQ(disassemble_spirv(words), R"(; SPIR-V 1.5, ids below 37
OpCapability 1
OpCapability 5347
OpMemoryModel 5348 1
OpEntryPoint 5 %13 "main" %10 %30
OpExecutionMode %13 17 8 1 1
OpDecorate %2 6 4
OpDecorate %3 2
OpMemberDecorate %3 0 35 0
OpMemberDecorate %3 0 24
OpDecorate %4 2
OpMemberDecorate %4 0 35 0
OpMemberDecorate %4 0 25
OpDecorate %8 2
OpMemberDecorate %8 0 35 0
OpMemberDecorate %8 1 35 8
OpMemberDecorate %8 2 35 16
OpDecorate %30 11 29
OpDecorate %18 42
OpDecorate %19 42
%1 = OpTypeFloat 32
%2 = OpTypeRuntimeArray %1
%3 = OpTypeStruct %2
%4 = OpTypeStruct %2
%5 = OpTypePointer 5349 %3
%6 = OpTypePointer 5349 %4
%7 = OpTypeInt 32 0
%8 = OpTypeStruct %5 %6 %7
%9 = OpTypePointer 9 %8
%10 = OpVariable %9 9
%11 = OpTypeVoid
%12 = OpTypeFunction %11
%21 = OpTypePointer 9 %5
%22 = OpConstant %7 0
%25 = OpTypePointer 9 %6
%26 = OpConstant %7 1
%29 = OpTypePointer 1 %7
%30 = OpVariable %29 1
%31 = OpTypePointer 5349 %1
%33 = OpTypePointer 9 %7
%34 = OpConstant %7 2
%13 = OpFunction %11 0 %12
%20 = OpLabel
%23 = OpAccessChain %21 %10 %22
%24 = OpLoad %5 %23
%27 = OpAccessChain %25 %10 %26
%28 = OpLoad %6 %27
%14 = OpLoad %7 %30
%32 = OpAccessChain %31 %24 %22 %14
%15 = OpLoad %1 %32 2 4
%35 = OpAccessChain %33 %10 %34
%16 = OpLoad %7 %35
%17 = OpBitcast %1 %16
%18 = OpFMul %1 %15 %17
%19 = OpFAdd %1 %18 %15
%36 = OpAccessChain %31 %28 %22 %14
OpStore %36 %19 2 4
OpReturn
OpFunctionEnd
)");
}

TEST(EmitSpirv, DeclaresOnlyWhatTheKernelNeeds) {
  const std::vector<uint32_t> address = emit_spirv(saxpy(), device(BindingMode::kAddress));
  EXPECT_EQ(capabilities_of(address),
            (std::vector{number(spv::Capability::Shader),
                         number(spv::Capability::PhysicalStorageBufferAddresses)}));
  const std::vector<uint32_t> descriptor = emit_spirv(saxpy(), device(BindingMode::kDescriptor));
  EXPECT_EQ(capabilities_of(descriptor), std::vector{number(spv::Capability::Shader)});
  EXPECT_TRUE(find(descriptor, spv::Op::OpExtInstImport).empty());
}

TEST(EmitSpirv, DeclaresFloatControlsWhereTheDeviceHasThem) {
  Capabilities capabilities = device(BindingMode::kAddress);
  EXPECT_EQ(find(emit_spirv(saxpy(), capabilities), spv::Op::OpExecutionMode).size(), 1u);
  capabilities.denorm_preserve = true;
  capabilities.rounding_rte = true;
  capabilities.signed_zero_inf_nan_preserve = true;
  const std::vector<uint32_t> words = emit_spirv(saxpy(), capabilities);
  expect_valid(words);
  EXPECT_EQ(find(words, spv::Op::OpExecutionMode).size(), 4u);
  EXPECT_EQ(capabilities_of(words).size(), 5u);
}

TEST(EmitSpirv, ForbidsContractionOfFloatArithmetic) {
  const std::vector<uint32_t> words = emit_spirv(saxpy(), device(BindingMode::kAddress));
  size_t decorated = 0;
  for (const auto& operands : find(words, spv::Op::OpDecorate)) {
    decorated += operands[1] == static_cast<uint32_t>(spv::Decoration::NoContraction) ? 1 : 0;
  }
  EXPECT_EQ(decorated, 2u);
}

TEST(EmitSpirv, AlignsVectorsAndSplitsThemWhereSlotsAreDescriptors) {
  Builder b("copy", {8, 1, 1});
  const uint32_t x = b.slot("x", Type::kF32, SlotAccess::kRead);
  const uint32_t y = b.slot("y", Type::kF32, SlotAccess::kReadWrite);
  const Value i = b.builtin(Builtin::kLocalIndex);
  const Value index = b.mul(i, b.u32(4));
  b.store(y, index, b.load(x, index, 4));
  const Kernel kernel = b.finish();
  expect_valid_in_both_modes(kernel);
  const std::vector<uint32_t> address = emit_spirv(kernel, device(BindingMode::kAddress));
  const auto stores = find(address, spv::Op::OpStore);
  ASSERT_EQ(stores.size(), 1u);
  EXPECT_EQ(stores[0][2], static_cast<uint32_t>(spv::MemoryAccessMask::Aligned));
  EXPECT_EQ(stores[0][3], 16u);
  const std::vector<uint32_t> descriptor = emit_spirv(kernel, device(BindingMode::kDescriptor));
  EXPECT_EQ(find(descriptor, spv::Op::OpStore).size(), 4u);
}

TEST(EmitSpirv, LoopsCarryManyValuesAndNest) {
  Builder b("loops", {8, 1, 1});
  const uint32_t x = b.slot("x", Type::kF32, SlotAccess::kRead);
  const uint32_t y = b.slot("y", Type::kF32, SlotAccess::kWrite);
  const Value count = b.read_param(b.param());
  const Value zero = b.u32(0);
  const Value one = b.u32(1);
  const Value lane = b.builtin(Builtin::kLocalIndex);
  const std::vector<Value> initial(100, b.f32(0));
  const std::vector<Value> sums =
      b.for_range(zero, count, one, initial, [&](Value i, std::span<const Value> carried) {
        // Rotates the carried values and sums one of them in an inner loop of its own.
        std::vector<Value> next(carried.begin() + 1, carried.end());
        const std::vector<Value> inner =
            b.for_range(zero, i, one, carried.first(1), [&](Value j, std::span<const Value> sum) {
              const Value loaded = b.load(x, b.add(j, lane));
              return std::vector{b.add(sum[0], loaded)};
            });
        next.push_back(inner[0]);
        return next;
      });
  for (const Value sum : sums) b.store(y, lane, sum);
  const Kernel kernel = b.finish();
  expect_valid_in_both_modes(kernel);
  const std::vector<uint32_t> words = emit_spirv(kernel, device(BindingMode::kAddress));
  EXPECT_EQ(find(words, spv::Op::OpLoopMerge).size(), 2u);
  EXPECT_EQ(find(words, spv::Op::OpPhi).size(), 101u + 2u);
}

TEST(EmitSpirv, ALoopMayYieldAParamOrBuiltinReadInside) {
  Builder b("yields", {8, 1, 1});
  const uint32_t y = b.slot("y", Type::kU32, SlotAccess::kWrite);
  const uint32_t index = b.param();
  const Value zero = b.u32(0);
  const Value one = b.u32(1);
  const Value three = b.u32(3);
  const std::vector<Value> results =
      b.for_range(zero, three, one, std::array{zero, zero}, [&](Value, std::span<const Value>) {
        const Value param = b.read_param(index);
        return std::vector{param, b.builtin(Builtin::kWorkgroupY)};
      });
  b.store(y, results[0], results[1]);
  expect_valid_in_both_modes(b.finish());
}

TEST(EmitSpirv, BranchesJoinTheirResults) {
  Builder b("branches", {8, 1, 1});
  const uint32_t x = b.slot("x", Type::kF32, SlotAccess::kRead);
  const uint32_t y = b.slot("y", Type::kF32, SlotAccess::kWrite);
  const Value lane = b.builtin(Builtin::kLocalIndex);
  const Value inside = b.less(lane, b.u32(5));
  const std::vector<Value> value = b.if_else(
      inside, [&] { return std::vector{b.load(x, lane)}; }, [&] { return std::vector{b.f32(0)}; });
  b.if_then(inside,
            [&] { b.if_then(b.less(lane, b.u32(3)), [&] { b.store(y, lane, value[0]); }); });
  const Kernel kernel = b.finish();
  expect_valid_in_both_modes(kernel);
  const std::vector<uint32_t> words = emit_spirv(kernel, device(BindingMode::kAddress));
  EXPECT_EQ(find(words, spv::Op::OpSelectionMerge).size(), 3u);
  EXPECT_EQ(find(words, spv::Op::OpPhi).size(), 1u);
}

TEST(EmitSpirv, SharedMemoryBarriersAndBuiltins) {
  Builder b("shared", {16, 2, 1});
  const uint32_t y = b.slot("y", Type::kU32, SlotAccess::kWrite);
  const uint32_t tile = b.shared("tile", Type::kU32, 128);
  const Value local = b.builtin(Builtin::kLocalIndex);
  const Value at = b.mul(local, b.u32(4));
  b.shared_store(tile, at, b.splat(local, 4));
  b.barrier();
  const Value mirrored = b.sub(b.u32(127), local);
  Value sum = b.shared_load(tile, mirrored);
  for (const Builtin builtin : {Builtin::kWorkgroupX, Builtin::kWorkgroupY, Builtin::kWorkgroupZ,
                                Builtin::kLane, Builtin::kSubgroup, Builtin::kSubgroupSize}) {
    sum = b.add(sum, b.builtin(builtin));
  }
  b.store(y, local, sum);
  const Kernel kernel = b.finish();
  expect_valid_in_both_modes(kernel);
  const std::vector<uint32_t> words = emit_spirv(kernel, device(BindingMode::kDescriptor));
  EXPECT_EQ(find(words, spv::Op::OpControlBarrier).size(), 1u);
  EXPECT_EQ(capabilities_of(words), (std::vector{number(spv::Capability::Shader),
                                                 number(spv::Capability::GroupNonUniform)}));
}

TEST(EmitSpirv, SubgroupOperationsAskForTheirCapabilityOnly) {
  const struct {
    std::function<Value(Builder&, Value)> emit;
    spv::Capability needed;
    bool Capabilities::*feature;
    bool integers_only = false;
  } kCases[] = {
      {[](Builder& b, Value v) { return b.subgroup_broadcast(v, 3); },
       spv::Capability::GroupNonUniformBallot, &Capabilities::subgroup_ballot},
      {[](Builder& b, Value v) { return b.subgroup_shuffle_xor(v, 4); },
       spv::Capability::GroupNonUniformShuffle, &Capabilities::subgroup_shuffle},
      {[](Builder& b, Value v) { return b.subgroup_reduce(Opcode::kSubgroupAdd, v); },
       spv::Capability::GroupNonUniformArithmetic, &Capabilities::subgroup_arithmetic, true},
      {[](Builder& b, Value v) { return b.subgroup_reduce(Opcode::kSubgroupMin, v); },
       spv::Capability::GroupNonUniformArithmetic, &Capabilities::subgroup_arithmetic},
      {[](Builder& b, Value v) { return b.subgroup_reduce(Opcode::kSubgroupMax, v); },
       spv::Capability::GroupNonUniformArithmetic, &Capabilities::subgroup_arithmetic},
  };
  for (const auto& c : kCases) {
    for (const Type type : {Type::kI32, Type::kU32, Type::kF32}) {
      if (type == Type::kF32 && c.integers_only) continue;
      Builder b("subgroup", {8, 1, 1});
      const uint32_t x = b.slot("x", type, SlotAccess::kReadWrite);
      const Value lane = b.builtin(Builtin::kLocalIndex);
      const Value loaded = b.load(x, lane);
      b.store(x, lane, c.emit(b, loaded));
      const Kernel kernel = b.finish();
      expect_valid_in_both_modes(kernel);
      Capabilities capabilities = device(BindingMode::kDescriptor);
      EXPECT_EQ(capabilities_of(emit_spirv(kernel, capabilities)),
                (std::vector{number(spv::Capability::Shader),
                             number(spv::Capability::GroupNonUniform), number(c.needed)}));
      capabilities.*c.feature = false;
      EXPECT_THROW(emit_spirv(kernel, capabilities), Error);
    }
  }
}

TEST(EmitSpirv, KernelsWithoutSlotsAreLegal) {
  Builder b("nothing", {1, 1, 1});
  expect_valid_in_both_modes(b.finish());
}

TEST(EmitSpirv, RefusesWhatTheDeviceCannotHold) {
  const auto message = [](const Kernel& kernel, const Capabilities& capabilities) {
    try {
      emit_spirv(kernel, capabilities);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
      return std::string(error.what());
    }
    return std::string("nothing thrown");
  };
  Capabilities capabilities = device(BindingMode::kAddress);
  capabilities.push_constant_bytes = 16;
  EXPECT_NE(message(saxpy(), capabilities).find("20 bytes of push constants"), std::string::npos);
  EXPECT_NE(message(Builder("wide", {256, 1, 1}).finish(), device(BindingMode::kAddress))
                .find("256 invocations along axis 0"),
            std::string::npos);
  EXPECT_NE(message(Builder("many", {64, 4, 1}).finish(), device(BindingMode::kAddress))
                .find("256 invocations where the device allows 128"),
            std::string::npos);
  Builder shared("shared", {1, 1, 1});
  shared.shared("tile", Type::kF32, 4097);
  EXPECT_NE(message(shared.finish(), device(BindingMode::kAddress)).find("16388 bytes"),
            std::string::npos);
  EXPECT_NE(message(Builder("subgroup", {32, 1, 1}, 32).finish(), device(BindingMode::kAddress))
                .find("subgroups of 32"),
            std::string::npos);
}

}  // namespace
}  // namespace meganeura
