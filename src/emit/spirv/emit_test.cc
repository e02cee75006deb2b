#include "emit/spirv/emit.h"

#include <gtest/gtest.h>

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
  Builder b("saxpy", {8, 1, 1});
  const uint32_t x = b.slot("x", Type::kF32, SlotAccess::kRead);
  const uint32_t y = b.slot("y", Type::kF32, SlotAccess::kWrite);
  const uint32_t bits = b.param();
  const Value i = b.builtin(Builtin::kLocalIndex);
  const Value value = b.load(x, i);
  const Value parameter = b.read_param(bits);
  const Value scale = b.arith(Op::kBitcast, std::array{parameter}, Type::kF32);
  const Value product = b.mul(value, scale);
  b.store(y, i, b.add(product, value));
  return b.finish();
}

struct Case {
  Op op;
  std::vector<Type> operands;
  Type result;
};

std::optional<Type> type_if_legal(Op op, std::span<const Type> operands, Type wanted) {
  try {
    return scalar::result_type(op, operands, wanted);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Every primitive op at every type that kernel IR allows.
std::vector<Case> all_cases() {
  constexpr Type kTypes[] = {Type::kBool, Type::kI32, Type::kU32, Type::kF32};
  std::vector<Case> cases;
  for (uint8_t number = 0; number <= static_cast<uint8_t>(Op::kRsqrt); ++number) {
    const auto op = static_cast<Op>(number);
    const scalar::OpInfo& row = scalar::info(op);
    if (!row.primitive || op == Op::kArgument || op == Op::kConstant) continue;
    for (const Type type : kTypes) {
      std::vector<Type> operands(row.arity, type);
      if (op == Op::kSelect) operands[0] = Type::kBool;
      if (op == Op::kConvert || op == Op::kBitcast) {
        for (const Type to : kTypes) {
          if (type_if_legal(op, operands, to)) cases.push_back({op, operands, to});
        }
      } else if (const auto result = type_if_legal(op, operands, type)) {
        cases.push_back({op, operands, *result});
      }
    }
  }
  return cases;
}

// Loads operands of any type from u32 slots, applies the op, stores the result as u32.
Kernel op_kernel(const Case& c, uint8_t lanes) {
  Builder b("op", {8, 1, 1});
  std::vector<Value> operands;
  const Value i = b.builtin(Builtin::kLocalIndex);
  const Value index = b.mul(i, b.u32(lanes));
  for (size_t k = 0; k < c.operands.size(); ++k) {
    const uint32_t slot = b.slot("x" + std::to_string(k), Type::kU32, SlotAccess::kRead);
    Value value = b.load(slot, index, lanes);
    if (c.operands[k] == Type::kBool) {
      const Value zero = b.constant(Type::kU32, 0, lanes);
      value = b.arith(Op::kNe, std::array{value, zero}, Type::kBool);
    } else if (c.operands[k] != Type::kU32) {
      value = b.arith(Op::kBitcast, std::array{value}, c.operands[k]);
    }
    operands.push_back(value);
  }
  Value result = b.arith(c.op, operands, c.result);
  if (c.result == Type::kBool) {
    const Value one = b.constant(Type::kU32, 1, lanes);
    const Value zero = b.constant(Type::kU32, 0, lanes);
    result = b.arith(Op::kSelect, std::array{result, one, zero}, Type::kU32);
  } else if (c.result != Type::kU32) {
    result = b.arith(Op::kBitcast, std::array{result}, Type::kU32);
  }
  const uint32_t y = b.slot("y", Type::kU32, SlotAccess::kWrite);
  b.store(y, index, result);
  return b.finish();
}

TEST(EmitSpirv, SaysEveryOpAtEveryTypeAndWidth) {
  const std::vector<Case> cases = all_cases();
  EXPECT_GT(cases.size(), 80u);
  for (const Case& c : cases) {
    for (const uint8_t lanes : {1, 2, 4}) {
      SCOPED_TRACE(std::string(info(c.op).name) + " of " +
                   std::string(scalar::to_string(c.operands.back())) + " to " +
                   std::string(scalar::to_string(c.result)) + " x" + std::to_string(lanes));
      expect_valid_in_both_modes(op_kernel(c, lanes));
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
    const Kernel kernel = op_kernel({row.op, {row.type, row.type}, result}, 1);
    EXPECT_FALSE(find(emit_spirv(kernel, device(BindingMode::kAddress)), row.opcode).empty())
        << info(row.op).name;
  }
}

TEST(EmitSpirv, EqualKernelsGiveEqualWordsOnEveryCompiler) {
  for (const Case& c : all_cases()) {
    for (const BindingMode mode : kModes) {
      EXPECT_EQ(emit_spirv(op_kernel(c, 2), device(mode)),
                emit_spirv(op_kernel(c, 2), device(mode)));
    }
  }
  uint64_t hash = 14695981039346656037ull;
  for (const uint32_t word : emit_spirv(saxpy(), device(BindingMode::kAddress))) {
    hash = (hash ^ word) * 1099511628211ull;
  }
  EXPECT_EQ(hash, 0x3bb31f9e669ae055u);
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
  const std::vector<Value> results = b.for_range(
      zero, b.u32(3), b.u32(1), std::array{zero, zero}, [&](Value, std::span<const Value>) {
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
