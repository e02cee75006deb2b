#include "scalar/scalar.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "meganeura/error.h"

namespace meganeura::scalar {
namespace {

Scalar f(uint32_t index) { return argument(index, Type::kF32); }

Body body_of(std::vector<Scalar> outputs, std::vector<Type> arguments) {
  return linearize(outputs, arguments);
}

template <class Function>
std::string message_of(ErrorKind kind, const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(ScalarTable, EveryOpHasARowWhoseNameFindsIt) {
  for (int i = 0; i <= static_cast<int>(Op::kRsqrt); ++i) {
    const Op op = static_cast<Op>(i);
    EXPECT_EQ(info(op).op, op);
    EXPECT_EQ(op_from_name(info(op).name), op);
    EXPECT_EQ(info(op).primitive, op < Op::kExp);
    EXPECT_LE(info(op).arity, 3);
  }
  EXPECT_FALSE(op_from_name("Add"));
  EXPECT_FALSE(op_from_name(""));
  EXPECT_THROW(info(static_cast<Op>(200)), Error);
}

TEST(ScalarTable, TypesHaveNames) {
  for (Type type : {Type::kBool, Type::kI32, Type::kU32, Type::kF32}) {
    EXPECT_EQ(type_from_name(to_string(type)), type);
  }
  EXPECT_FALSE(type_from_name("f16"));
}

TEST(ScalarTable, StorageTypesWidenForComputing) {
  EXPECT_EQ(compute_type(f16), Type::kF32);
  EXPECT_EQ(compute_type(bf16), Type::kF32);
  EXPECT_EQ(compute_type(f32), Type::kF32);
  EXPECT_EQ(compute_type(i8), Type::kI32);
  EXPECT_EQ(compute_type(i16), Type::kI32);
  EXPECT_EQ(compute_type(u8), Type::kU32);
  EXPECT_EQ(compute_type(boolean), Type::kBool);
  for (DType dtype : {f64, i64}) {
    const std::string message = message_of(ErrorKind::kUnsupported, [&] { compute_type(dtype); });
    EXPECT_NE(message.find(meganeura::info(dtype).name), std::string::npos);
  }
}

TEST(ScalarMake, RefusesOperandsThatDoNotFit) {
  const Scalar number = f(0);
  const Scalar integer = argument(1, Type::kI32);
  const Scalar truth = argument(2, Type::kBool);
  const auto refuses = [](Op op, std::vector<Scalar> operands) {
    message_of(ErrorKind::kInternal, [&] { make(op, std::move(operands)); });
  };
  refuses(Op::kAdd, {number, integer});
  refuses(Op::kAdd, {truth, truth});
  refuses(Op::kAdd, {number});
  refuses(Op::kAdd, {number, number, number, number});
  refuses(Op::kFma, {integer, integer, integer});
  refuses(Op::kAnd, {number, number});
  refuses(Op::kShl, {truth, truth});
  refuses(Op::kLt, {truth, truth});
  refuses(Op::kSelect, {number, number, number});
  refuses(Op::kSelect, {truth, number, integer});
  refuses(Op::kBitcast, {truth});
  refuses(Op::kExp, {integer});
  refuses(Op::kMulHigh, {integer, integer});
  refuses(Op::kIsNan, {integer});
  refuses(Op::kNeg, {Scalar()});
  EXPECT_THROW(make(Op::kBitcast, {number}, Type::kBool), Error);
}

TEST(ScalarMake, KnowsResultTypes) {
  const Scalar truth = f(0) < f(1);
  EXPECT_EQ(truth.type(), Type::kBool);
  EXPECT_EQ(select(truth, constant_u32(1), constant_u32(2)).type(), Type::kU32);
  EXPECT_EQ(make(Op::kPackF16, {f(0), f(1)}).type(), Type::kU32);
  EXPECT_EQ(make(Op::kUnpackF16, {constant_u32(1)}).type(), Type::kF32);
  EXPECT_EQ(convert(truth, Type::kI32).type(), Type::kI32);
  EXPECT_EQ(equal(truth, truth).type(), Type::kBool);
}

TEST(ScalarMake, LeavesOutWhatDoesNothing) {
  const Scalar x = f(0);
  const Scalar n = argument(1, Type::kU32);
  EXPECT_EQ(convert(x, Type::kF32).address(), x.address());
  EXPECT_EQ(bitcast(n, Type::kU32).address(), n.address());
  EXPECT_EQ(make(Op::kAbs, {n}).address(), n.address());
}

TEST(ScalarConstants, TakeTheTypeOfAnother) {
  EXPECT_EQ(constant_like(f(0), 0.1).expression().payload, std::bit_cast<uint32_t>(0.1f));
  EXPECT_EQ(constant_like(argument(0, Type::kI32), -3).expression().payload, 0xfffffffdu);
  EXPECT_EQ(constant_like(argument(0, Type::kU32), 4294967295.0).expression().payload, ~0u);
  EXPECT_EQ(constant_like(argument(0, Type::kBool), 1).expression().payload, 1u);
  EXPECT_EQ(constant_like(f(0), -INFINITY).expression().payload, 0xff800000u);
  EXPECT_THROW(constant_like(argument(0, Type::kI32), 0.5), Error);
  EXPECT_THROW(constant_like(argument(0, Type::kU32), -1), Error);
  EXPECT_THROW(constant_like(argument(0, Type::kI32), 2147483648.0), Error);
  EXPECT_THROW(constant_like(argument(0, Type::kU32), NAN), Error);
  EXPECT_THROW(constant_like(argument(0, Type::kBool), 2), Error);
  EXPECT_THROW(constant_like(f(0), 1e39), Error);
  EXPECT_THROW(constant_bits(Type::kBool, 2), Error);
}

TEST(Linearize, IsAPostOrderWalkAfterTheArguments) {
  const Body body = body_of({f(1) - make(Op::kNeg, {f(0)})}, {Type::kF32, Type::kF32});
  EXPECT_EQ(to_string(body), "(a0: f32, a1: f32) { %2 = neg a0; %3 = sub a1 %2; return %3 }");
  EXPECT_NO_THROW(verify(body));
}

TEST(Linearize, MergesEqualExpressionsBuiltTwice) {
  const auto square = [] { return (f(0) + constant_f32(1)) * (f(0) + constant_f32(1)); };
  const Body body = body_of({square(), square() + f(0), f(0)}, {Type::kF32});
  EXPECT_EQ(to_string(body),
            "(a0: f32) { %1 = constant f32 1; %2 = add a0 %1; %3 = mul %2 %2; %4 = add %3 a0; "
            "return %3, %4, a0 }");
}

TEST(Linearize, KeepsTheOrderOfCommutativeOperandsAndTheSignOfZero) {
  const Body body = body_of({f(0) + f(1), f(1) + f(0), constant_f32(0), constant_f32(-0.0f)},
                            {Type::kF32, Type::kF32});
  EXPECT_EQ(body.nodes.size(), 6u);
}

TEST(Linearize, DoesNotDependOnSharing) {
  const Scalar shared = f(0) * f(0);
  const Body a = body_of({shared + shared}, {Type::kF32});
  const Body b = body_of({f(0) * f(0) + f(0) * f(0)}, {Type::kF32});
  EXPECT_EQ(a, b);
  EXPECT_EQ(hash(a), hash(b));
}

TEST(Linearize, RefusesArgumentsThatAreNotDeclared) {
  EXPECT_THROW(body_of({f(1)}, {Type::kF32}), Error);
  EXPECT_THROW(body_of({f(0)}, {Type::kI32}), Error);
  EXPECT_THROW(body_of({Scalar()}, {}), Error);
}

TEST(Linearize, SurvivesVeryDeepExpressions) {
  Scalar sum = f(0);
  for (int i = 0; i < 300000; ++i) sum = sum + f(0);
  const Body body = body_of({sum}, {Type::kF32});
  EXPECT_EQ(body.nodes.size(), 300001u);
}

TEST(Linearize, SurvivesWideSharing) {
  // 2^200 paths, 200 nodes.
  Scalar x = f(0);
  for (int i = 0; i < 200; ++i) x = x + x;
  EXPECT_EQ(body_of({x}, {Type::kF32}).nodes.size(), 201u);
}

TEST(Apply, ReproducesTheBody) {
  const Body body = body_of({f(0) * f(1) + constant_f32(2), f(1)}, {Type::kF32, Type::kF32});
  const Scalar arguments[] = {f(0), f(1)};
  const std::vector<Scalar> outputs = apply(body, arguments);
  EXPECT_EQ(body_of(outputs, body.arguments), body);
}

TEST(Apply, ComposesBodies) {
  const Body square = body_of({f(0) * f(0)}, {Type::kF32});
  const Scalar inner[] = {f(0) - f(1)};
  const Body body = body_of(apply(square, inner), {Type::kF32, Type::kF32});
  EXPECT_EQ(to_string(body), "(a0: f32, a1: f32) { %2 = sub a0 a1; %3 = mul %2 %2; return %3 }");
}

TEST(Apply, RefusesWrongArguments) {
  const Body body = identity(Type::kF32);
  const Scalar integer[] = {argument(0, Type::kI32)};
  EXPECT_THROW(apply(body, integer), Error);
  EXPECT_THROW(apply(body, {}), Error);
}

TEST(Identity, ReturnsItsArgument) {
  EXPECT_EQ(to_string(identity(Type::kBool)), "(a0: bool) { return a0 }");
}

TEST(Verify, FindsEachViolation) {
  const Body good = body_of({f(0) + f(1)}, {Type::kF32, Type::kF32});
  const auto refuses = [&](auto change) {
    Body body = good;
    change(body);
    message_of(ErrorKind::kInternal, [&] { verify(body); });
  };
  EXPECT_NO_THROW(verify(good));
  refuses([](Body& b) { b.nodes[2].operands[1] = 2; });
  refuses([](Body& b) { b.nodes[2].operands[2] = 1; });
  refuses([](Body& b) { b.nodes[2].type = Type::kI32; });
  refuses([](Body& b) { b.nodes[2].op = Op::kAnd; });
  refuses([](Body& b) { b.nodes[2].payload = 1; });
  refuses([](Body& b) { b.nodes[0].payload = 1; });
  refuses([](Body& b) { b.nodes[0].type = Type::kU32; });
  refuses([](Body& b) { b.nodes[2] = b.nodes[0]; });
  refuses([](Body& b) { std::swap(b.nodes[1], b.nodes[2]); });
  refuses([](Body& b) { b.outputs[0] = 3; });
  refuses([](Body& b) { b.nodes.resize(1); });
  refuses([](Body& b) { b.nodes[2] = {.op = Op::kConstant, .type = Type::kBool, .payload = 2}; });
}

TEST(Text, RoundTripsEveryKindOfNode) {
  std::vector<Scalar> outputs;
  const std::vector<Type> types = {Type::kF32, Type::kI32, Type::kU32, Type::kBool};
  std::vector<Scalar> leaves;
  for (uint32_t i = 0; i < 4; ++i) leaves.push_back(argument(i, types[i]));
  // Every op on every combination of operand types that it takes.
  for (int i = static_cast<int>(Op::kAdd); i <= static_cast<int>(Op::kRsqrt); ++i) {
    const Op op = static_cast<Op>(i);
    for (const Scalar& leaf : leaves) {
      std::vector<Scalar> operands(info(op).arity, leaf);
      if (op == Op::kSelect) operands[0] = leaves[3];
      for (Type type : types) {
        try {
          outputs.push_back(make(op, operands, type));
        } catch (const Error&) {
        }
      }
    }
  }
  for (float value : {0.0f, -0.0f, 1.5f, -1e-45f, 3.4028235e38f, INFINITY, -INFINITY, 0.1f}) {
    outputs.push_back(constant_f32(value));
  }
  outputs.push_back(constant_bits(Type::kF32, 0x7fc00001));
  outputs.push_back(constant_bits(Type::kF32, 0xff800001));
  outputs.push_back(constant_i32(std::numeric_limits<int32_t>::min()));
  outputs.push_back(constant_u32(~0u));
  outputs.push_back(constant_bool(true));
  outputs.push_back(constant_bool(false));
  const Body body = linearize(outputs, types);
  EXPECT_GT(body.nodes.size(), 80u);
  EXPECT_NO_THROW(verify(body));
  const std::string text = to_string(body);
  const Body parsed = parse_body(text);
  EXPECT_EQ(parsed, body);
  EXPECT_EQ(to_string(parsed), text);
}

TEST(Text, RoundTripsEmptyBodies) {
  const Body body = body_of({}, {});
  EXPECT_EQ(to_string(body), "() { return }");
  EXPECT_EQ(parse_body(to_string(body)), body);
  EXPECT_EQ(parse_body(" ( a0 :f32 )\n{return a0}\n"), identity(Type::kF32));
}

TEST(Text, RefusesWhatIsNoBodyAndSaysWhere) {
  const auto refuses = [](std::string_view text, std::string_view expected) {
    const std::string message = message_of(ErrorKind::kInvalidArgument, [&] { parse_body(text); });
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  };
  refuses("", "nothing");
  refuses("(a0: f32", "nothing");
  refuses("(a1: f32) { return a1 }", "'a0'");
  refuses("(a0: f16) { return a0 }", "bool, i32, u32 or f32");
  refuses("(a0: f32) { return a1 }", "'a1'");
  refuses("(a0: f32) { return %0 }", "'%0'");
  refuses("(a0: f32) { %2 = neg a0; return %2 }", "'%1'");
  refuses("(a0: f32) { %1 = negate a0; return %1 }", "scalar op");
  refuses("(a0: f32) { %1 = argument a0; return %1 }", "scalar op");
  refuses("(a0: f32) { %1 = neg %1; return %1 }", "earlier node");
  refuses("(a0: f32) { %1 = and a0 a0; return %1 }", "does not take");
  refuses("(a0: f32) { %1 = add a0; return %1 }", "';'");
  refuses("(a0: f32) { %1 = constant f32 one; return %1 }", "constant of type f32");
  refuses("(a0: f32) { %1 = constant u32 -1; return %1 }", "constant of type u32");
  refuses("(a0: f32) { %1 = constant i32 2147483648; return %1 }", "constant of type i32");
  refuses("(a0: f32) { %1 = constant bool 1; return %1 }", "constant of type bool");
  refuses("(a0: f32) { return a0 } x", "the end");
  refuses("(a0: f32) { return a99999999999 }", "earlier node");
}

TEST(Hash, DependsOnEverything) {
  const Body base = body_of({f(0) + f(1)}, {Type::kF32, Type::kF32});
  std::vector<Body> others(5, base);
  others[0].nodes[2].op = Op::kSub;
  others[1].nodes[2].operands[0] = 1;
  others[2].outputs[0] = 1;
  others[3].outputs.push_back(0);
  others[4].arguments.push_back(Type::kF32);
  for (const Body& other : others) EXPECT_NE(hash(other), hash(base));
}

}  // namespace
}  // namespace meganeura::scalar
