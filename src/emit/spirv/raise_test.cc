#include "emit/spirv/raise.h"

#include <gtest/gtest.h>

#include "emit/spirv/op_kernels.h"
#include "scalar/evaluate.h"

namespace meganeura::spirv {
namespace {

using kir::Block;
using kir::Instruction;
using kir::Kernel;
using kir::Opcode;
using kir::Value;
using scalar::Lane;
using scalar::Op;
using scalar::Type;

// Runs invocation 0 of a raised kernel of op_kernels.h as SPIR-V defines its instructions: what
// SPIR-V leaves undefined fails the test, even where a later select would drop the value.
class SpirvSemantics {
 public:
  SpirvSemantics(const Kernel& kernel, std::vector<std::vector<Lane>> slots)
      : kernel_(kernel), slots_(std::move(slots)), values_(kernel.types.size()) {}

  std::vector<Lane> run() {
    run(kernel_.body);
    return slots_.back();
  }
  bool undefined() const { return undefined_; }

 private:
  using Lanes = std::vector<Lane>;

  void run(const Block& block) {
    for (const Instruction& instruction : block.body) run(instruction);
  }

  void run(const Instruction& in) {
    const auto operand = [&](size_t i) -> const Lanes& { return values_.at(in.operands[i].id); };
    Lanes result;
    switch (in.opcode) {
      case Opcode::kConstant:
        result.assign(kernel_.type(in.results[0]).lanes, in.immediates[0]);
        break;
      case Opcode::kBuiltin:
        result = {0};
        break;
      case Opcode::kLoad:
        for (uint32_t i = 0; i < kernel_.type(in.results[0]).lanes; ++i) {
          result.push_back(slots_[in.immediates[0]].at(operand(0)[0] + i));
        }
        break;
      case Opcode::kStore:
        for (uint32_t i = 0; i < operand(1).size(); ++i) {
          slots_[in.immediates[0]].at(operand(0)[0] + i) = operand(1)[i];
        }
        return;
      case Opcode::kExtract:
        result = {operand(0)[in.immediates[0]]};
        break;
      case Opcode::kCompose:
        for (size_t i = 0; i < in.operands.size(); ++i) result.push_back(operand(i)[0]);
        break;
      case Opcode::kArith:
        result = arithmetic(in);
        break;
      case Opcode::kFor:
        return loop(in);
      default:
        FAIL() << "unexpected instruction";
    }
    values_[in.results[0].id] = std::move(result);
  }

  Lanes arithmetic(const Instruction& in) {
    const Type type = kernel_.type(in.operands[in.arith == Op::kSelect ? 1 : 0]).element;
    const Type to = kernel_.type(in.results[0]).element;
    Lanes result;
    Lanes operands(in.operands.size());
    for (size_t lane = 0; lane < values_.at(in.operands[0].id).size(); ++lane) {
      for (size_t i = 0; i < operands.size(); ++i) {
        operands[i] = values_.at(in.operands[i].id).at(lane);
      }
      undefined_ |= is_undefined(in.arith, type, to, operands);
      result.push_back(scalar::evaluate_primitive(in.arith, type, to, operands));
    }
    return result;
  }

  static bool is_undefined(Op op, Type type, Type to, const std::vector<Lane>& operands) {
    switch (op) {
      case Op::kDiv:
        if (type == Type::kF32) return false;
        return operands[1] == 0 ||
               (type == Type::kI32 && operands[0] == 0x80000000 && operands[1] == ~0u);
      case Op::kRem:
        return type != Type::kU32 || operands[1] == 0;
      case Op::kShl:
      case Op::kShr:
        return operands[1] >= 32;
      case Op::kMin:
      case Op::kMax:
        return type == Type::kF32;
      case Op::kConvert: {
        if (type != Type::kF32) return type == Type::kBool || to != Type::kF32;
        const float x = std::bit_cast<float>(operands[0]);
        if (to == Type::kI32) return !(x >= -0x1p31f && x < 0x1p31f);
        return to != Type::kU32 || !(x >= 0 && x < 0x1p32f);
      }
      case Op::kIsNan:
      case Op::kRoundF16:
      case Op::kRoundBF16:
      case Op::kPackF16:
      case Op::kUnpackF16:
        return true;
      default:
        return false;
    }
  }

  void loop(const Instruction& in) {
    const Block& body = in.blocks[0];
    const Lane end = values_.at(in.operands[1].id)[0];
    const Lane step = values_.at(in.operands[2].id)[0];
    std::vector<Lanes> carried;
    for (size_t i = 3; i < in.operands.size(); ++i)
      carried.push_back(values_.at(in.operands[i].id));
    for (Lane i = values_.at(in.operands[0].id)[0]; i < end; i += step) {
      values_[body.parameters[0].id] = {i};
      for (size_t k = 0; k < carried.size(); ++k) values_[body.parameters[k + 1].id] = carried[k];
      run(body);
      for (size_t k = 0; k < carried.size(); ++k) carried[k] = values_.at(body.yields[k].id);
    }
    for (size_t k = 0; k < carried.size(); ++k) values_[in.results[k].id] = carried[k];
  }

  const Kernel& kernel_;
  std::vector<std::vector<Lane>> slots_;
  std::vector<Lanes> values_;  // by id
  bool undefined_ = false;
};

void expect_op_is_right(const OpCase& c, uint8_t lanes, BindingMode binding) {
  SCOPED_TRACE(to_string(c) + " x" + std::to_string(lanes));
  Capabilities capabilities;
  capabilities.binding = binding;
  const Kernel raised = raise(op_kernel(c, lanes), capabilities);
  kir::verify(raised);
  const std::vector<std::vector<Lane>> inputs = op_inputs(c, c.op == Op::kRem ? 1000 : 100);
  const Type type = c.operands.back();
  for (size_t at = 0; at < inputs[0].size(); at += lanes) {
    std::vector<std::vector<Lane>> slots;
    for (const auto& input : inputs) {
      slots.emplace_back(input.begin() + static_cast<ptrdiff_t>(at),
                         input.begin() + static_cast<ptrdiff_t>(at + lanes));
    }
    slots.emplace_back(lanes, 0);
    SpirvSemantics semantics(raised, std::move(slots));
    const std::vector<Lane> found = semantics.run();
    for (size_t i = 0; i < lanes; ++i) {
      std::vector<Lane> operands;
      for (const auto& input : inputs) operands.push_back(input[at + i]);
      const Lane expected = scalar::evaluate_primitive(c.op, type, c.result, operands);
      ASSERT_TRUE(same_result(c, expected, found[i]))
          << std::hex << operands[0] << " " << operands.back() << " gives " << found[i]
          << " instead of " << expected;
      ASSERT_FALSE(semantics.undefined()) << std::hex << operands[0] << " " << operands.back();
    }
  }
}

TEST(Raise, EveryOpKeepsItsMeaningWithoutUndefinedSteps) {
  for (const OpCase& c : all_op_cases()) {
    expect_op_is_right(c, 1, BindingMode::kAddress);
    expect_op_is_right(c, 4, BindingMode::kDescriptor);
  }
}

std::string raised_text(std::string_view pass, std::string_view text) {
  const Kernel raised = Rewriter::apply(kir::parse_kernel(text), raise_pass(pass).rule);
  kir::verify(raised);
  return kir::to_string(raised);
}

TEST(Raise, LeavesAloneWhatSpirvSays) {
  constexpr std::string_view kText = R"(kernel "plain" local(8, 1, 1) subgroup(0) params(1) {
  slot 0 "x": f32 readwrite
  slot 1 "n": i32 readwrite
  shared 0 "tile": f32[64]
  %1: u32 = builtin local_index
  %2: u32 = param 0
  %3: f32x4 = load 0 %1
  %4: f32x4 = arith mul %3 %3
  %5: f32x4 = arith fma %3 %4 %4
  store 0 %1 %5
  %6: u32 = constant 7
  %7: u32 = arith div %1 %6
  %8: u32 = arith rem %1 %6
  %9: u32 = arith shl %8 %6
  %10: u32 = arith min %9 %7
  %11: i32 = load 1 %10
  %12: i32 = constant -3
  %13: i32 = arith div %11 %12
  %14: i32 = arith max %11 %13
  store 1 %10 %14
  %15: f32 = arith convert %14
  %16: f32 = arith floor %15
  shared_store 0 %1 %16
  barrier
  %21: f32 = for %17: u32 in %1 to %2 step %6 carry(%18: f32 = %16) {
    %19: f32 = shared_load 0 %17
    %20: f32 = arith add %18 %19
    yield %20
  }
  %22: bool = arith lt %21 %16
  if %22 {
    store 0 %1 %21
  } else {
  }
}
)";
  Capabilities capabilities;
  EXPECT_EQ(kir::to_string(raise(kir::parse_kernel(kText), capabilities)), kText);
}

TEST(Raise, EveryPassStandsUnderItsName) {
  for (const RaisePass& pass : raise_passes()) EXPECT_EQ(&raise_pass(pass.name), &pass);
  EXPECT_EQ(&raise_pass("slot_vector"), &split_slot_vectors());
  EXPECT_THROW(raise_pass("nothing"), Error);
}

TEST(Raise, AMaximumWithANumberTestsOneOperandOnly) {
  EXPECT_EQ(raised_text("float_min_max", R"(kernel "relu" local(8, 1, 1) subgroup(0) params(0) {
  slot 0 "x": f32 readwrite
  %1: u32 = builtin local_index
  %2: f32 = load 0 %1
  %3: f32 = constant 0
  %4: f32 = arith max %3 %2
  store 0 %1 %4
}
)"),
            R"(kernel "relu" local(8, 1, 1) subgroup(0) params(0) {
  slot 0 "x": f32 readwrite
  %1: u32 = builtin local_index
  %2: f32 = load 0 %1
  %3: f32 = constant 0
  %4: bool = arith gt %2 %3
  %5: bool = arith is_nan %2
  %6: bool = arith or %4 %5
  %7: f32 = arith select %6 %2 %3
  store 0 %1 %7
}
)");
}

TEST(Raise, DivisionIsGuardedAgainstZero) {
  EXPECT_EQ(raised_text("integer_division", R"(kernel "d" local(8, 1, 1) subgroup(0) params(1) {
  slot 0 "x": u32 readwrite
  %1: u32 = builtin local_index
  %2: u32 = param 0
  %3: u32 = arith div %1 %2
  store 0 %1 %3
}
)"),
            R"(kernel "d" local(8, 1, 1) subgroup(0) params(1) {
  slot 0 "x": u32 readwrite
  %1: u32 = builtin local_index
  %2: u32 = param 0
  %3: u32 = constant 0
  %4: u32 = constant 1
  %5: bool = arith eq %2 %3
  %6: u32 = arith select %5 %4 %2
  %7: u32 = arith div %1 %6
  %8: u32 = constant 0
  %9: u32 = arith select %5 %8 %7
  store 0 %1 %9
}
)");
}

TEST(Raise, VectorsOfSharedArraysAreSplit) {
  EXPECT_EQ(raised_text("shared_vector", R"(kernel "s" local(8, 1, 1) subgroup(0) params(0) {
  shared 0 "tile": f32[16]
  %1: u32 = builtin local_index
  %2: f32x2 = constant 1
  shared_store 0 %1 %2
}
)"),
            R"(kernel "s" local(8, 1, 1) subgroup(0) params(0) {
  shared 0 "tile": f32[16]
  %1: u32 = builtin local_index
  %2: f32x2 = constant 1
  %3: f32 = extract 0 %2
  shared_store 0 %1 %3
  %4: u32 = constant 1
  %5: u32 = arith add %1 %4
  %6: f32 = extract 1 %2
  shared_store 0 %5 %6
}
)");
}

TEST(Raise, ASubgroupMaximumAsksForNanApart) {
  const std::string text =
      raised_text("subgroup_min_max", R"(kernel "m" local(8, 1, 1) subgroup(0) params(0) {
  slot 0 "x": f32 readwrite
  %1: u32 = builtin local_index
  %2: f32 = load 0 %1
  %3: f32 = subgroup_max %2
  store 0 %1 %3
}
)");
  EXPECT_NE(text.find("f32 = subgroup_max %5\n"), std::string::npos) << text;
  EXPECT_NE(text.find("u32 = subgroup_max %8\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace meganeura::spirv
