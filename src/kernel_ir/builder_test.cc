#include "kernel_ir/builder.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "kernel_ir/opcode.h"

namespace meganeura::kir {
namespace {

using scalar::Op;

Builder builder() { return Builder("test", {64, 1, 1}); }

size_t count(const Block& block, Opcode opcode) {
  size_t total = 0;
  for (const Instruction& instruction : block.body) {
    if (instruction.opcode == opcode) ++total;
    for (const Block& inner : instruction.blocks) total += count(inner, opcode);
  }
  return total;
}

TEST(Builder, CopyKernelHasTheExpectedInstructions) {
  Builder b("copy", {64, 1, 1});
  uint32_t in = b.slot("in", Type::kF32, SlotAccess::kRead);
  uint32_t out = b.slot("out", Type::kF32, SlotAccess::kWrite);
  Value group = b.builtin(Builtin::kWorkgroupX);
  Value width = b.u32(64);
  Value base = b.mul(group, width);
  Value index = b.add(base, b.builtin(Builtin::kLocalIndex));
  b.store(out, index, b.load(in, index));
  EXPECT_EQ(to_string(b.finish()),
            "kernel \"copy\" local(64, 1, 1) subgroup(0) params(0) {\n"
            "  slot 0 \"in\": f32 read\n"
            "  slot 1 \"out\": f32 write\n"
            "  %1: u32 = builtin workgroup_x\n"
            "  %2: u32 = constant 64\n"
            "  %3: u32 = arith mul %1 %2\n"
            "  %4: u32 = builtin local_index\n"
            "  %5: u32 = arith add %3 %4\n"
            "  %6: f32 = load 0 %5\n"
            "  store 1 %5 %6\n"
            "}\n");
}

TEST(Builder, FoldsOperationsOnConstants) {
  Builder b = builder();
  EXPECT_EQ(b.constant_bits(b.add(b.u32(3), b.u32(4))), 7u);
  EXPECT_EQ(b.constant_bits(b.sub(b.u32(3), b.u32(4))), ~0u);
  EXPECT_EQ(b.constant_bits(b.div(b.u32(7), b.u32(0))), 0u);
  EXPECT_EQ(b.constant_bits(b.less(b.i32(-1), b.i32(0))), 1u);
  EXPECT_EQ(b.constant_bits(b.add(b.f32(0.5f), b.f32(0.25f))), std::bit_cast<uint32_t>(0.75f));
  EXPECT_EQ(b.constant_bits(b.arith(Op::kConvert, std::array{b.f32(-1.5f)}, Type::kI32)), ~0u);
  EXPECT_EQ(b.constant_bits(b.arith(Op::kNot, std::array{b.boolean(false)}, Type::kBool)), 1u);
  EXPECT_EQ(b.constant_bits(b.select(b.boolean(false), b.u32(1), b.u32(2))), 2u);
}

TEST(Builder, LeavesF32FmaToTheDevice) {
  Builder b = builder();
  EXPECT_FALSE(b.constant_bits(b.fma(b.f32(1), b.f32(2), b.f32(3))));
}

TEST(Builder, AppliesIntegerIdentities) {
  Builder b = builder();
  Value x = b.builtin(Builtin::kLocalIndex);
  Value zero = b.u32(0);
  Value one = b.u32(1);
  Value ones = b.u32(~0u);
  auto two = [&](Op op, Value left, Value right) {
    return b.arith(op, std::array{left, right}, Type::kU32);
  };
  EXPECT_EQ(b.add(x, zero), x);
  EXPECT_EQ(b.add(zero, x), x);
  EXPECT_EQ(b.sub(x, zero), x);
  EXPECT_EQ(b.mul(x, one), x);
  EXPECT_EQ(b.mul(one, x), x);
  EXPECT_EQ(b.mul(x, zero), zero);
  EXPECT_EQ(b.mul(zero, x), zero);
  EXPECT_EQ(b.div(x, one), x);
  EXPECT_EQ(b.rem(x, one), zero);
  EXPECT_EQ(two(Op::kShl, x, zero), x);
  EXPECT_EQ(two(Op::kShr, x, zero), x);
  EXPECT_EQ(two(Op::kOr, x, zero), x);
  EXPECT_EQ(two(Op::kOr, ones, x), ones);
  EXPECT_EQ(two(Op::kAnd, x, ones), x);
  EXPECT_EQ(two(Op::kAnd, x, zero), zero);
  EXPECT_EQ(two(Op::kXor, zero, x), x);
  EXPECT_EQ(b.arith(Op::kConvert, std::array{x}, Type::kU32), x);
}

TEST(Builder, KeepsWhatLooksLikeAnIdentityButIsNone) {
  Builder b = builder();
  Value x = b.builtin(Builtin::kLocalIndex);
  Value zero = b.u32(0);
  Value one = b.u32(1);
  auto two = [&](Op op, Value left, Value right) {
    return b.arith(op, std::array{left, right}, Type::kU32);
  };
  EXPECT_NE(b.sub(zero, x), x);
  EXPECT_NE(b.sub(zero, x), zero);
  EXPECT_NE(b.div(one, x), x);
  EXPECT_NE(b.div(zero, x), zero);  // 0/0 = 0, but nothing claims to know x
  EXPECT_NE(two(Op::kShl, zero, x), x);
  EXPECT_NE(two(Op::kShr, zero, x), x);
  uint32_t in = b.slot("in", Type::kF32, SlotAccess::kRead);
  Value f = b.load(in, x);
  EXPECT_NE(b.add(f, b.f32(0)), f);  // -0 + 0 = 0
  EXPECT_NE(b.mul(f, b.f32(1)), f);  // a signalling NaN is quieted
  EXPECT_FALSE(b.constant_bits(b.mul(f, b.f32(0))));
}

TEST(Builder, EmitsPureInstructionsOncePerNesting) {
  Builder b = builder();
  Value x = b.builtin(Builtin::kLocalIndex);
  Value y = b.builtin(Builtin::kWorkgroupX);
  EXPECT_EQ(b.u32(5), b.u32(5));
  EXPECT_NE(b.u32(5), b.i32(5));
  EXPECT_EQ(b.builtin(Builtin::kLocalIndex), x);
  EXPECT_EQ(b.add(x, y), b.add(y, x));
  EXPECT_NE(b.sub(x, y), b.sub(y, x));
  EXPECT_NE(b.constant(Type::kF32, 0), b.constant(Type::kF32, 0, 4));
  uint32_t in = b.slot("in", Type::kF32, SlotAccess::kRead);
  EXPECT_NE(b.load(in, x), b.load(in, x));
  Value outer = b.mul(x, y);
  Value condition = b.less(x, y);
  Value inside;
  b.if_then(condition, [&] {
    EXPECT_EQ(b.mul(x, y), outer);
    inside = b.u32(77);
    EXPECT_EQ(b.u32(77), inside);
  });
  EXPECT_NE(b.u32(77), inside);
  b.finish();
}

TEST(Builder, LoopsCarryValues) {
  Builder b = builder();
  uint32_t out = b.slot("out", Type::kU32, SlotAccess::kWrite);
  uint32_t limit = b.param();
  Value end = b.read_param(limit);
  Value zero = b.u32(0);
  std::vector<Value> sums = b.for_range(
      zero, end, b.u32(1), std::array{zero, zero}, [&](Value i, std::span<const Value> carried) {
        return std::vector{b.add(carried[0], i), b.add(carried[1], b.u32(2))};
      });
  ASSERT_EQ(sums.size(), 2u);
  b.store(out, b.builtin(Builtin::kLocalIndex), b.add(sums[0], sums[1]));
  Kernel kernel = b.finish();
  EXPECT_EQ(count(kernel.body, Opcode::kFor), 1u);
}

TEST(Builder, LoopsKnownToRunNeverOrOnceLeaveNoLoop) {
  Builder b = builder();
  Value start = b.u32(10);
  int calls = 0;
  auto body = [&](Value i, std::span<const Value> carried) {
    ++calls;
    return std::vector{b.add(carried[0], i)};
  };
  EXPECT_EQ(b.for_range(b.u32(4), b.u32(4), b.u32(1), std::array{start}, body)[0], start);
  EXPECT_EQ(calls, 0);
  Value once = b.for_range(b.u32(3), b.u32(7), b.u32(4), std::array{start}, body)[0];
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(b.constant_bits(once), 13u);
  b.for_range(b.u32(3), b.u32(8), b.u32(4), std::array{start}, body);
  EXPECT_EQ(count(b.finish().body, Opcode::kFor), 1u);
}

TEST(Builder, KnownConditionsBuildOneBranch) {
  Builder b = builder();
  Value one = b.u32(1);
  Value two = b.u32(2);
  auto result = [](Value value) { return [value] { return std::vector{value}; }; };
  EXPECT_EQ(b.if_else(b.boolean(true), result(one), result(two))[0], one);
  EXPECT_EQ(b.if_else(b.boolean(false), result(one), result(two))[0], two);
  Value unknown = b.less(b.builtin(Builtin::kLocalIndex), two);
  Value either = b.if_else(unknown, result(one), result(two))[0];
  EXPECT_FALSE(b.constant_bits(either));
  EXPECT_EQ(count(b.finish().body, Opcode::kIf), 1u);
}

TEST(Builder, VectorsAreComposedAndTakenApart) {
  Builder b = builder();
  Value x = b.builtin(Builtin::kLocalIndex);
  Value four = b.splat(x, 4);
  EXPECT_EQ(b.lanes(four), 4);
  EXPECT_EQ(b.splat(x, 1), x);
  EXPECT_EQ(b.constant_bits(b.splat(b.f32(2), 4)), std::bit_cast<uint32_t>(2.0f));
  EXPECT_EQ(b.lanes(b.splat(b.f32(2), 4)), 4);
  EXPECT_EQ(b.extract(x, 0), x);
  EXPECT_EQ(b.element_type(b.extract(four, 3)), Type::kU32);
  EXPECT_EQ(b.add(b.splat(b.u32(0), 4), four), four);
  EXPECT_THROW(b.extract(four, 4), Error);
  EXPECT_THROW(b.splat(x, 3), Error);
}

TEST(Builder, InlinesBodiesOverVectorsAndScalars) {
  scalar::Scalar x = scalar::argument(0, Type::kF32);
  scalar::Scalar y = scalar::argument(1, Type::kF32);
  scalar::Body body =
      scalar::linearize(std::array{scalar::select(x < y, x, y) + scalar::constant_f32(1), y},
                        std::array{Type::kF32, Type::kF32});
  Builder b = builder();
  uint32_t in = b.slot("in", Type::kF32, SlotAccess::kRead);
  Value zero = b.u32(0);
  Value wide = b.load(in, zero, 4);
  Value narrow = b.load(in, zero);
  std::vector<Value> out = b.inline_body(body, std::array{wide, narrow});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(b.lanes(out[0]), 4);
  EXPECT_EQ(b.lanes(out[1]), 4);
  std::vector<Value> known = b.inline_body(body, std::array{b.f32(2), b.f32(3)});
  EXPECT_EQ(b.constant_bits(known[0]), std::bit_cast<uint32_t>(3.0f));
  EXPECT_THROW(b.inline_body(body, std::array{narrow}), Error);
  EXPECT_THROW(b.inline_body(body, std::array{zero, narrow}), Error);
  b.finish();
}

TEST(Builder, RefusesWrongTypes) {
  Builder b = builder();
  uint32_t in = b.slot("in", Type::kF32, SlotAccess::kReadWrite);
  Value x = b.u32(1);
  Value f = b.f32(1);
  EXPECT_THROW(b.add(x, f), Error);
  EXPECT_THROW(b.add(x, b.splat(x, 2)), Error);
  EXPECT_THROW(b.fma(x, x, x), Error);
  EXPECT_THROW(b.load(in, f), Error);
  EXPECT_THROW(b.load(7, x), Error);
  EXPECT_THROW(b.store(in, x, x), Error);
  EXPECT_THROW(b.shared_load(0, x), Error);
  EXPECT_THROW(b.read_param(0), Error);
  EXPECT_THROW(b.if_then(x, [] {}), Error);
  EXPECT_THROW(b.arith(Op::kExp, std::array{f}, Type::kF32), Error);
  EXPECT_THROW(b.subgroup_reduce(Opcode::kBarrier, x), Error);
  EXPECT_THROW(b.add(Value{}, x), Error);
  EXPECT_THROW(b.add(Value{1000}, x), Error);
  Value p = b.read_param(b.param());
  EXPECT_THROW(b.for_range(x, p, b.u32(0), {},
                           [](Value, std::span<const Value>) { return std::vector<Value>{}; }),
               Error);
}

TEST(Builder, RefusesBodiesThatYieldOtherTypes) {
  Builder b = builder();
  Value x = b.builtin(Builtin::kLocalIndex);
  EXPECT_THROW(b.for_range(b.u32(0), x, b.u32(1), std::array{x},
                           [&](Value, std::span<const Value>) { return std::vector{b.f32(1)}; }),
               Error);
  Builder other = builder();
  Value y = other.builtin(Builtin::kLocalIndex);
  EXPECT_THROW(other.if_else(
                   other.less(y, other.u32(3)), [&] { return std::vector{y}; },
                   [] { return std::vector<Value>{}; }),
               Error);
}

TEST(Builder, SameCallsGiveTheSameKernel) {
  auto make = [] {
    Builder b = builder();
    uint32_t out = b.slot("out", Type::kU32, SlotAccess::kWrite);
    Value sum = b.builtin(Builtin::kLocalIndex);
    for (uint32_t i = 0; i < 5000; ++i) sum = b.add(b.mul(sum, sum), b.u32(i));
    b.store(out, b.builtin(Builtin::kLocalIndex), sum);
    return to_string(b.finish());
  };
  EXPECT_EQ(make(), make());
}

}  // namespace
}  // namespace meganeura::kir
