#include "scalar/evaluate.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "meganeura/error.h"
#include "scalar/half.h"

namespace meganeura::scalar {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
constexpr int32_t kGreatest = std::numeric_limits<int32_t>::max();

Lane lane(float x) { return std::bit_cast<Lane>(x); }
Lane lane(int32_t x) { return static_cast<Lane>(x); }
Lane lane(uint32_t x) { return x; }
Lane lane(bool x) { return x ? 1 : 0; }

template <class T>
constexpr Type kTypeOf = std::is_same_v<T, float>     ? Type::kF32
                         : std::is_same_v<T, int32_t> ? Type::kI32
                         : std::is_same_v<T, bool>    ? Type::kBool
                                                      : Type::kU32;

template <class Result, class... Operands>
Result as(Op op, Operands... operands) {
  const std::vector<Lane> lanes = {lane(operands)...};
  constexpr Type kOperand = std::get<0>(std::tuple(kTypeOf<Operands>...));
  const Lane result = evaluate_primitive(op, kOperand, kTypeOf<Result>, lanes);
  if constexpr (std::is_same_v<Result, bool>) {
    EXPECT_LE(result, 1u);
    return result != 0;
  } else {
    return std::bit_cast<Result>(result);
  }
}

float f(Op op, auto... operands) { return as<float>(op, operands...); }
int32_t i(Op op, auto... operands) { return as<int32_t>(op, operands...); }
uint32_t u(Op op, auto... operands) { return as<uint32_t>(op, operands...); }
bool b(Op op, auto... operands) { return as<bool>(op, operands...); }

TEST(PrimitiveFloat, ArithmeticIsIeee) {
  EXPECT_EQ(f(Op::kAdd, 1.0f, 0x1p-24f), 1.0f);
  EXPECT_EQ(f(Op::kAdd, 1.0f, 0x1.8p-24f), 1.0f + 0x1p-23f);
  EXPECT_EQ(f(Op::kSub, kInf, 1.0f), kInf);
  EXPECT_TRUE(std::isnan(f(Op::kSub, kInf, kInf)));
  EXPECT_EQ(f(Op::kMul, 3e38f, 2.0f), kInf);
  EXPECT_EQ(f(Op::kDiv, 1.0f, 0.0f), kInf);
  EXPECT_EQ(f(Op::kDiv, 1.0f, -0.0f), -kInf);
  EXPECT_TRUE(std::isnan(f(Op::kDiv, 0.0f, 0.0f)));
  EXPECT_EQ(lane(f(Op::kNeg, 0.0f)), 0x80000000u);
  EXPECT_EQ(lane(f(Op::kAbs, -0.0f)), 0u);
  EXPECT_EQ(f(Op::kSqrt, 2.0f), 1.41421354f);
  EXPECT_TRUE(std::isnan(f(Op::kSqrt, -1.0f)));
}

TEST(PrimitiveFloat, FmaRoundsOnceOrTwiceAsAsked) {
  const float x = 1.0f + 0x1p-12f;
  const std::vector<Lane> lanes = {lane(x), lane(x), lane(-1.0f - 0x1p-11f)};
  EXPECT_EQ(evaluate_primitive(Op::kFma, Type::kF32, Type::kF32, lanes, true), lane(0x1p-24f));
  EXPECT_EQ(evaluate_primitive(Op::kFma, Type::kF32, Type::kF32, lanes, false), lane(0.0f));
}

TEST(PrimitiveFloat, RemainderIsFmod) {
  EXPECT_EQ(f(Op::kRem, 5.5f, 2.0f), 1.5f);
  EXPECT_EQ(f(Op::kRem, -5.5f, 2.0f), -1.5f);
  EXPECT_EQ(f(Op::kRem, 5.5f, -2.0f), 1.5f);
  EXPECT_EQ(f(Op::kRem, 3.0f, kInf), 3.0f);
  EXPECT_TRUE(std::isnan(f(Op::kRem, 1.0f, 0.0f)));
  EXPECT_EQ(f(Op::kRem, 1e30f, 3.0f), std::fmod(1e30f, 3.0f));
}

TEST(PrimitiveFloat, MinAndMaxPropagateNan) {
  for (Op op : {Op::kMin, Op::kMax}) {
    EXPECT_TRUE(std::isnan(f(op, kNaN, 1.0f)));
    EXPECT_TRUE(std::isnan(f(op, 1.0f, kNaN)));
    EXPECT_TRUE(std::isnan(f(op, kNaN, kNaN)));
  }
  EXPECT_EQ(f(Op::kMin, -kInf, 1.0f), -kInf);
  EXPECT_EQ(f(Op::kMax, 1.0f, 2.0f), 2.0f);
}

TEST(PrimitiveFloat, RoundsToIntegers) {
  EXPECT_EQ(f(Op::kFloor, -1.5f), -2.0f);
  EXPECT_EQ(f(Op::kCeil, -1.5f), -1.0f);
  EXPECT_EQ(f(Op::kTrunc, -1.7f), -1.0f);
  EXPECT_EQ(f(Op::kRound, 2.5f), 2.0f);
  EXPECT_EQ(f(Op::kRound, 3.5f), 4.0f);
  EXPECT_EQ(f(Op::kRound, -0.5f), 0.0f);
  EXPECT_EQ(f(Op::kFloor, kInf), kInf);
}

TEST(PrimitiveFloat, ComparisonsWithNanAreFalseButNotEqual) {
  for (Op op : {Op::kEq, Op::kLt, Op::kLe, Op::kGt, Op::kGe}) {
    EXPECT_FALSE(b(op, kNaN, 1.0f));
    EXPECT_FALSE(b(op, 1.0f, kNaN));
    EXPECT_FALSE(b(op, kNaN, kNaN));
  }
  EXPECT_TRUE(b(Op::kNe, kNaN, kNaN));
  EXPECT_TRUE(b(Op::kEq, 0.0f, -0.0f));
  EXPECT_TRUE(b(Op::kLt, -kInf, 0.0f));
  EXPECT_TRUE(b(Op::kGe, 2.0f, 2.0f));
}

TEST(PrimitiveFloat, IsNanGoesByBits) {
  for (uint32_t bits : {0x7fc00000u, 0x7f800001u, 0xff800001u, 0xffffffffu}) {
    EXPECT_TRUE(b(Op::kIsNan, std::bit_cast<float>(bits)));
  }
  for (float x : {0.0f, kInf, -kInf, 3e38f}) EXPECT_FALSE(b(Op::kIsNan, x));
}

TEST(PrimitiveInteger, ArithmeticWraps) {
  EXPECT_EQ(i(Op::kAdd, kGreatest, int32_t{1}), kLeast);
  EXPECT_EQ(i(Op::kSub, kLeast, int32_t{1}), kGreatest);
  EXPECT_EQ(i(Op::kMul, int32_t{65536}, int32_t{65536}), 0);
  EXPECT_EQ(i(Op::kNeg, kLeast), kLeast);
  EXPECT_EQ(i(Op::kAbs, kLeast), kLeast);
  EXPECT_EQ(i(Op::kAbs, int32_t{-7}), 7);
  EXPECT_EQ(u(Op::kNeg, 1u), ~0u);
  EXPECT_EQ(u(Op::kSub, 0u, 1u), ~0u);
  EXPECT_EQ(u(Op::kMulHigh, ~0u, ~0u), 0xfffffffeu);
}

TEST(PrimitiveInteger, DivisionTruncatesAndByZeroIsZero) {
  EXPECT_EQ(i(Op::kDiv, int32_t{-7}, int32_t{2}), -3);
  EXPECT_EQ(i(Op::kRem, int32_t{-7}, int32_t{2}), -1);
  EXPECT_EQ(i(Op::kRem, int32_t{7}, int32_t{-2}), 1);
  EXPECT_EQ(i(Op::kDiv, int32_t{5}, int32_t{0}), 0);
  EXPECT_EQ(i(Op::kRem, int32_t{5}, int32_t{0}), 0);
  EXPECT_EQ(i(Op::kDiv, kLeast, int32_t{-1}), kLeast);
  EXPECT_EQ(i(Op::kRem, kLeast, int32_t{-1}), 0);
  EXPECT_EQ(u(Op::kDiv, ~0u, 2u), 0x7fffffffu);
  EXPECT_EQ(u(Op::kDiv, 5u, 0u), 0u);
  EXPECT_EQ(u(Op::kRem, 5u, 0u), 0u);
}

TEST(PrimitiveInteger, OrderFollowsTheSign) {
  EXPECT_EQ(i(Op::kMin, int32_t{-1}, int32_t{1}), -1);
  EXPECT_EQ(u(Op::kMin, ~0u, 1u), 1u);
  EXPECT_EQ(u(Op::kMax, ~0u, 1u), ~0u);
  EXPECT_TRUE(b(Op::kLt, int32_t{-1}, int32_t{1}));
  EXPECT_FALSE(b(Op::kLt, ~0u, 1u));
  EXPECT_TRUE(b(Op::kGe, ~0u, 1u));
  EXPECT_TRUE(b(Op::kLe, kLeast, kGreatest));
  EXPECT_TRUE(b(Op::kGt, int32_t{0}, kLeast));
}

TEST(PrimitiveBits, ShiftsTakeTheirCountModulo32) {
  EXPECT_EQ(u(Op::kShl, 1u, 33u), 2u);
  EXPECT_EQ(u(Op::kShr, 0x80000000u, 31u), 1u);
  EXPECT_EQ(u(Op::kShr, 0x80000000u, 32u), 0x80000000u);
  EXPECT_EQ(i(Op::kShr, kLeast, int32_t{31}), -1);
  EXPECT_EQ(i(Op::kShr, int32_t{-8}, int32_t{-31}), -4);
  EXPECT_EQ(i(Op::kShl, int32_t{-1}, int32_t{31}), kLeast);
}

TEST(PrimitiveBits, LogicWorksOnIntegersAndTruthValues) {
  EXPECT_EQ(u(Op::kAnd, 0xcu, 0xau), 8u);
  EXPECT_EQ(u(Op::kOr, 0xcu, 0xau), 0xeu);
  EXPECT_EQ(u(Op::kXor, 0xcu, 0xau), 6u);
  EXPECT_EQ(u(Op::kNot, 0u), ~0u);
  EXPECT_TRUE(b(Op::kNot, false));
  EXPECT_FALSE(b(Op::kNot, true));
  EXPECT_TRUE(b(Op::kXor, true, false));
  EXPECT_TRUE(b(Op::kEq, true, true));
  EXPECT_TRUE(b(Op::kNe, true, false));
}

TEST(PrimitiveSelect, TakesEitherBranchUnchanged) {
  EXPECT_EQ(f(Op::kSelect, true, 1.0f, kNaN), 1.0f);
  EXPECT_EQ(f(Op::kSelect, false, kNaN, 2.0f), 2.0f);
}

TEST(PrimitiveConvert, FloatToIntegerTruncatesAndSaturates) {
  EXPECT_EQ(i(Op::kConvert, -1.9f), -1);
  EXPECT_EQ(i(Op::kConvert, 3e9f), kGreatest);
  EXPECT_EQ(i(Op::kConvert, 2147483648.0f), kGreatest);
  EXPECT_EQ(i(Op::kConvert, 2147483520.0f), 2147483520);
  EXPECT_EQ(i(Op::kConvert, -kInf), kLeast);
  EXPECT_EQ(i(Op::kConvert, kNaN), 0);
  EXPECT_EQ(u(Op::kConvert, -0.5f), 0u);
  EXPECT_EQ(u(Op::kConvert, -5.0f), 0u);
  EXPECT_EQ(u(Op::kConvert, 4294967040.0f), 4294967040u);
  EXPECT_EQ(u(Op::kConvert, 4294967296.0f), ~0u);
  EXPECT_EQ(u(Op::kConvert, kInf), ~0u);
  EXPECT_EQ(u(Op::kConvert, kNaN), 0u);
}

TEST(PrimitiveConvert, OtherDirections) {
  EXPECT_EQ(f(Op::kConvert, int32_t{-16777217}), -16777216.0f);
  EXPECT_EQ(f(Op::kConvert, int32_t{16777219}), 16777220.0f);
  EXPECT_EQ(f(Op::kConvert, ~0u), 4294967296.0f);
  EXPECT_EQ(f(Op::kConvert, true), 1.0f);
  EXPECT_EQ(i(Op::kConvert, ~0u), -1);
  EXPECT_EQ(u(Op::kConvert, int32_t{-1}), ~0u);
  EXPECT_EQ(i(Op::kConvert, true), 1);
  EXPECT_TRUE(b(Op::kConvert, int32_t{-5}));
  EXPECT_FALSE(b(Op::kConvert, 0u));
  EXPECT_TRUE(b(Op::kConvert, kNaN));
  EXPECT_FALSE(b(Op::kConvert, -0.0f));
  EXPECT_TRUE(b(Op::kConvert, 1e-45f));
}

TEST(PrimitiveBitcast, KeepsBits) {
  EXPECT_EQ(u(Op::kBitcast, 1.0f), 0x3f800000u);
  EXPECT_EQ(f(Op::kBitcast, 0x40000000u), 2.0f);
  EXPECT_EQ(i(Op::kBitcast, ~0u), -1);
}

TEST(PrimitiveHalf, PacksAndUnpacks) {
  EXPECT_EQ(u(Op::kPackF16, 1.0f, -2.0f), 0xc0003c00u);
  EXPECT_EQ(f(Op::kUnpackF16, 0xc0003c00u), 1.0f);
  EXPECT_EQ(f(Op::kRoundF16, 1.0f + 0x1p-11f), 1.0f);
  EXPECT_EQ(f(Op::kRoundF16, 1.0f + 0x3p-11f), 1.0f + 0x1p-9f);
  EXPECT_EQ(f(Op::kRoundF16, 65519.0f), 65504.0f);
  EXPECT_EQ(f(Op::kRoundF16, 65520.0f), kInf);
  EXPECT_EQ(f(Op::kRoundBF16, 1.0f + 0x1p-8f), 1.0f);
  EXPECT_EQ(f(Op::kRoundBF16, 3.4e38f), kInf);
}

TEST(PrimitiveRefusals, CompositeAndWrongArity) {
  const std::vector<Lane> one = {0};
  EXPECT_THROW(evaluate_primitive(Op::kExp, Type::kF32, Type::kF32, one), Error);
  EXPECT_THROW(evaluate_primitive(Op::kAdd, Type::kF32, Type::kF32, one), Error);
  EXPECT_THROW(evaluate_primitive(Op::kConstant, Type::kF32, Type::kF32, {}), Error);
  EXPECT_THROW(evaluate_primitive(Op::kFloor, Type::kI32, Type::kI32, one), Error);
}

TEST(Half, EveryF16RoundTripsAndNeighboursRoundToTheNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f32_from_f16(static_cast<uint16_t>(bits));
    const bool nan = (bits & 0x7fff) > 0x7c00;
    EXPECT_EQ(std::isnan(value), nan);
    if (nan) {
      EXPECT_EQ(f16_from_f32(value), bits | 0x200);
      continue;
    }
    ASSERT_EQ(f16_from_f32(value), bits);
    if ((bits & 0x7fff) >= 0x7bff) continue;
    const float next = f32_from_f16(static_cast<uint16_t>(bits + 1));
    const float middle = (value + next) / 2;
    ASSERT_EQ(f16_from_f32(middle), bits + (bits & 1));
    ASSERT_EQ(f16_from_f32(std::nextafter(middle, value)), bits);
    ASSERT_EQ(f16_from_f32(std::nextafter(middle, next)), bits + 1);
  }
  EXPECT_EQ(f32_from_f16(1), 0x1p-24f);
  EXPECT_EQ(f32_from_f16(0x3555), 0.333251953125f);
}

TEST(Half, EveryBf16RoundTripsAndNeighboursRoundToTheNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f32_from_bf16(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f32_from_bf16(bf16_from_f32(value))));
      continue;
    }
    ASSERT_EQ(bf16_from_f32(value), bits);
    if (std::isinf(value)) continue;
    const uint32_t middle = bits << 16 | 0x8000;
    ASSERT_EQ(bf16_from_f32(std::bit_cast<float>(middle)), bits + (bits & 1));
    ASSERT_EQ(bf16_from_f32(std::bit_cast<float>(middle - 1)), bits);
    ASSERT_EQ(bf16_from_f32(std::bit_cast<float>(middle + 1)), bits + 1);
  }
  EXPECT_TRUE(std::isnan(round_bf16(std::bit_cast<float>(0x7f800001u))));
}

TEST(EvaluateLanes, RunsABodyWithSeveralOutputs) {
  const Body body = parse_body(
      "(a0: f32, a1: i32) { %2 = constant f32 0.5; %3 = mul a0 %2; %4 = convert f32 a1; "
      "%5 = lt %3 %4; %6 = select %5 %4 %3; return %6, %5, a1 }");
  const std::vector<Lane> arguments = {lane(6.0f), lane(int32_t{-4})};
  std::vector<Lane> outputs(3);
  evaluate_lanes(body, arguments, outputs);
  EXPECT_EQ(outputs, (std::vector<Lane>{lane(3.0f), 0, lane(int32_t{-4})}));
  EXPECT_THROW(evaluate_lanes(body, {}, outputs), Error);
  EXPECT_THROW(evaluate_lanes(body, arguments, {}), Error);
}

// One output of a body over columns of arguments.
std::vector<double> reference(const Body& body, std::vector<std::vector<double>> columns,
                              Mode mode = Mode::kTyped) {
  std::vector<const double*> arguments;
  for (const auto& column : columns) arguments.push_back(column.data());
  std::vector<double> output(columns[0].size());
  double* const outputs[] = {output.data()};
  evaluate_f64(body, mode, static_cast<int64_t>(output.size()), arguments, outputs);
  return output;
}

TEST(EvaluateF64, ComputesInF64AcrossChunkBorders) {
  const Body body =
      parse_body("(a0: f32) { %1 = constant f32 3; %2 = div a0 %1; %3 = exp %2; return %3 }");
  for (size_t count : {size_t{1}, size_t{255}, size_t{256}, size_t{257}, size_t{1000}}) {
    std::vector<double> x(count);
    for (size_t k = 0; k < count; ++k) x[k] = 0.01 * static_cast<double>(k);
    const std::vector<double> y = reference(body, {x});
    for (size_t k = 0; k < count; ++k) EXPECT_EQ(y[k], std::exp(x[k] / 3));
  }
}

TEST(EvaluateF64, ZeroElementsAreFine) {
  const Body body = identity(Type::kF32);
  const double* const arguments[] = {nullptr};
  double* const outputs[] = {nullptr};
  EXPECT_NO_THROW(evaluate_f64(body, Mode::kIdeal, 0, arguments, outputs));
  EXPECT_THROW(evaluate_f64(body, Mode::kIdeal, 0, {}, outputs), Error);
}

TEST(EvaluateF64, OutputsMayRepeatAndBeArgumentsOrConstants) {
  const Body body = parse_body("(a0: i32) { %1 = constant bool true; return a0, %1, a0 }");
  const double x[] = {-3, 2147483647};
  double out[3][2];
  const double* const arguments[] = {x};
  double* const outputs[] = {out[0], out[1], out[2]};
  evaluate_f64(body, Mode::kTyped, 2, arguments, outputs);
  EXPECT_EQ(out[0][0], -3);
  EXPECT_EQ(out[2][1], 2147483647);
  EXPECT_EQ(out[1][0], 1);
}

TEST(EvaluateF64, IntegersWrapInBothModes) {
  const Body body = parse_body(
      "(a0: i32, a1: u32) { %2 = add a0 a0; %3 = convert u32 %2; "
      "%4 = mul %3 a1; return %4 }");
  for (Mode mode : {Mode::kIdeal, Mode::kTyped}) {
    EXPECT_EQ(reference(body, {{2147483647}, {3}}, mode)[0], 4294967290.0);
  }
}

TEST(EvaluateF64, OnlyTypedModeRoundsStorage) {
  const Body body = parse_body("(a0: f32) { %1 = round_bf16 a0; return %1 }");
  EXPECT_EQ(reference(body, {{1.003}}, Mode::kIdeal)[0], 1.003);
  EXPECT_EQ(reference(body, {{1.003}}, Mode::kTyped)[0], 1.0);
}

// Where f32 is exact, every primitive op must agree with its lane evaluation.
TEST(EvaluateF64, AgreesWithLanesOnEveryPrimitiveOp) {
  const std::vector<std::vector<double>> samples = {
      {0, 1},                                                // bool
      {0, 1, -1, 5, -7, 2147483647, -2147483648.0, 12},      // i32
      {0, 1, 5, 4294967295.0, 65537, 31, 33, 2147483648.0},  // u32
      {0, 1, -1, 2.5, -3.5, 1e6, -0.25, 4294967296.0},       // f32
  };
  int compared = 0;
  for (int index = static_cast<int>(Op::kAdd); index < static_cast<int>(Op::kExp); ++index) {
    const Op op = static_cast<Op>(index);
    for (Type operand : {Type::kBool, Type::kI32, Type::kU32, Type::kF32}) {
      for (Type chosen : {Type::kBool, Type::kI32, Type::kU32, Type::kF32}) {
        std::vector<Type> types(info(op).arity, operand);
        if (op == Op::kSelect) types[0] = Type::kBool;
        Body body;
        try {
          std::vector<Scalar> arguments;
          for (uint32_t k = 0; k < types.size(); ++k) arguments.push_back(argument(k, types[k]));
          const Scalar outputs[] = {make(op, arguments, chosen)};
          body = linearize(outputs, types);
        } catch (const Error&) {
          continue;
        }
        const Type result = body.nodes[body.outputs[0]].type;
        const auto& values = samples[static_cast<size_t>(operand)];
        for (double x : values) {
          for (double y : values) {
            std::vector<std::vector<double>> columns;
            std::vector<Lane> lanes;
            for (size_t k = 0; k < types.size(); ++k) {
              const double value = types[k] != operand ? (x > y) : k % 2 == 0 ? x : y;
              columns.push_back({value});
              lanes.push_back(types[k] == Type::kF32   ? lane(static_cast<float>(value))
                              : types[k] == Type::kI32 ? lane(static_cast<int32_t>(value))
                                                       : static_cast<Lane>(value));
            }
            Lane expected = 0;
            evaluate_lanes(body, lanes, std::span(&expected, 1));
            const double found = reference(body, columns)[0];
            const Lane narrow = result == Type::kF32   ? lane(static_cast<float>(found))
                                : result == Type::kI32 ? lane(static_cast<int32_t>(found))
                                                       : static_cast<Lane>(found);
            const bool both_nan = result == Type::kF32 && std::isnan(found) &&
                                  std::isnan(std::bit_cast<float>(expected));
            EXPECT_TRUE(narrow == expected || both_nan)
                << info(op).name << " of " << x << ", " << y << " gave " << found;
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 5000);
}

}  // namespace
}  // namespace meganeura::scalar
