#include "scalar/scalar.h"

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace meganeura::scalar {
namespace {

constexpr std::array<std::string_view, 4> kTypeNames = {"bool", "i32", "u32", "f32"};

// Sets of types as bits, for the signature table.
constexpr uint8_t bit(Type type) { return static_cast<uint8_t>(1u << static_cast<int>(type)); }
constexpr uint8_t kBoolSet = bit(Type::kBool);
constexpr uint8_t kF32Set = bit(Type::kF32);
constexpr uint8_t kU32Set = bit(Type::kU32);
constexpr uint8_t kIntSet = bit(Type::kI32) | bit(Type::kU32);
constexpr uint8_t kSignedSet = bit(Type::kI32) | bit(Type::kF32);
constexpr uint8_t kNumberSet = kIntSet | kF32Set;
constexpr uint8_t kBitsSet = kIntSet | kBoolSet;
constexpr uint8_t kAnySet = kNumberSet | kBoolSet;

enum class Result : uint8_t { kSame, kBool, kU32, kF32, kChosen };

// Beside what everybody sees: which types the operands may have (all the same one; kSelect has a
// condition before them) and what comes back.
struct Row {
  OpInfo info;
  uint8_t operands;
  Result result;
};

constexpr Row kRows[] = {
    {{Op::kArgument, "argument", 0, true, false}, kAnySet, Result::kChosen},
    {{Op::kConstant, "constant", 0, true, false}, kAnySet, Result::kChosen},
    {{Op::kAdd, "add", 2, true, true}, kNumberSet, Result::kSame},
    {{Op::kSub, "sub", 2, true, false}, kNumberSet, Result::kSame},
    {{Op::kMul, "mul", 2, true, true}, kNumberSet, Result::kSame},
    {{Op::kFma, "fma", 3, true, false}, kF32Set, Result::kSame},
    {{Op::kNeg, "neg", 1, true, false}, kNumberSet, Result::kSame},
    {{Op::kAbs, "abs", 1, true, false}, kSignedSet, Result::kSame},
    {{Op::kDiv, "div", 2, true, false}, kNumberSet, Result::kSame},
    {{Op::kRem, "rem", 2, true, false}, kNumberSet, Result::kSame},
    {{Op::kMin, "min", 2, true, true}, kNumberSet, Result::kSame},
    {{Op::kMax, "max", 2, true, true}, kNumberSet, Result::kSame},
    {{Op::kMulHigh, "mul_high", 2, true, true}, kU32Set, Result::kSame},
    {{Op::kFloor, "floor", 1, true, false}, kF32Set, Result::kSame},
    {{Op::kCeil, "ceil", 1, true, false}, kF32Set, Result::kSame},
    {{Op::kTrunc, "trunc", 1, true, false}, kF32Set, Result::kSame},
    {{Op::kRound, "round", 1, true, false}, kF32Set, Result::kSame},
    {{Op::kSqrt, "sqrt", 1, true, false}, kF32Set, Result::kSame},
    {{Op::kAnd, "and", 2, true, true}, kBitsSet, Result::kSame},
    {{Op::kOr, "or", 2, true, true}, kBitsSet, Result::kSame},
    {{Op::kXor, "xor", 2, true, true}, kBitsSet, Result::kSame},
    {{Op::kNot, "not", 1, true, false}, kBitsSet, Result::kSame},
    {{Op::kShl, "shl", 2, true, false}, kIntSet, Result::kSame},
    {{Op::kShr, "shr", 2, true, false}, kIntSet, Result::kSame},
    {{Op::kEq, "eq", 2, true, true}, kAnySet, Result::kBool},
    {{Op::kNe, "ne", 2, true, true}, kAnySet, Result::kBool},
    {{Op::kLt, "lt", 2, true, false}, kNumberSet, Result::kBool},
    {{Op::kLe, "le", 2, true, false}, kNumberSet, Result::kBool},
    {{Op::kGt, "gt", 2, true, false}, kNumberSet, Result::kBool},
    {{Op::kGe, "ge", 2, true, false}, kNumberSet, Result::kBool},
    {{Op::kSelect, "select", 3, true, false}, kAnySet, Result::kSame},
    {{Op::kConvert, "convert", 1, true, false}, kAnySet, Result::kChosen},
    {{Op::kBitcast, "bitcast", 1, true, false}, kNumberSet, Result::kChosen},
    {{Op::kIsNan, "is_nan", 1, true, false}, kF32Set, Result::kBool},
    {{Op::kRoundF16, "round_f16", 1, true, false}, kF32Set, Result::kSame},
    {{Op::kRoundBF16, "round_bf16", 1, true, false}, kF32Set, Result::kSame},
    {{Op::kPackF16, "pack_f16", 2, true, false}, kF32Set, Result::kU32},
    {{Op::kUnpackF16, "unpack_f16", 1, true, false}, kU32Set, Result::kF32},
    {{Op::kExp, "exp", 1, false, false}, kF32Set, Result::kSame},
    {{Op::kLog, "log", 1, false, false}, kF32Set, Result::kSame},
    {{Op::kSin, "sin", 1, false, false}, kF32Set, Result::kSame},
    {{Op::kCos, "cos", 1, false, false}, kF32Set, Result::kSame},
    {{Op::kTanh, "tanh", 1, false, false}, kF32Set, Result::kSame},
    {{Op::kErf, "erf", 1, false, false}, kF32Set, Result::kSame},
    {{Op::kPow, "pow", 2, false, false}, kF32Set, Result::kSame},
    {{Op::kRsqrt, "rsqrt", 1, false, false}, kF32Set, Result::kSame},
};

const Row& row_of(Op op) {
  const auto index = static_cast<size_t>(op);
  MG_CHECK(index < std::size(kRows) && kRows[index].info.op == op, "scalar op ", index,
           " has no row");
  return kRows[index];
}

std::string describe(Op op, std::span<const Type> types) {
  std::string out = cat("scalar op ", info(op).name, "(");
  for (size_t i = 0; i < types.size(); ++i) {
    out += i == 0 ? "" : ", ";
    out += to_string(types[i]);
  }
  return out + ")";
}

Scalar leaf(Op op, Type type, uint32_t payload) {
  return Scalar(
      std::make_shared<const Scalar::Expression>(Scalar::Expression{op, type, payload, {}}));
}

struct NodeOrder {
  bool operator()(const Node& a, const Node& b) const {
    return std::tie(a.op, a.type, a.payload, a.operands) <
           std::tie(b.op, b.type, b.payload, b.operands);
  }
};

// Numbers expressions in post order, merging equal ones.
class Linearizer {
 public:
  explicit Linearizer(std::span<const Type> arguments) {
    body_.arguments.assign(arguments.begin(), arguments.end());
    for (uint32_t i = 0; i < arguments.size(); ++i) {
      add({.op = Op::kArgument, .type = arguments[i], .operands = {}, .payload = i});
    }
  }

  uint32_t visit(const Scalar& root) {
    struct Frame {
      const Scalar::Expression* expression;
      size_t next = 0;
    };
    std::vector<Frame> stack = {{root.address()}};
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const auto& expression = *frame.expression;
      if (numbers_.contains(&expression)) {
        stack.pop_back();
      } else if (frame.next < expression.operands.size()) {
        const Scalar& operand = expression.operands[frame.next++];
        stack.push_back({operand.address()});
      } else {
        numbers_[&expression] = number(expression);
        stack.pop_back();
      }
    }
    return numbers_.at(root.address());
  }

  Body take(std::vector<uint32_t> outputs) {
    body_.outputs = std::move(outputs);
    return std::move(body_);
  }

 private:
  uint32_t number(const Scalar::Expression& expression) {
    if (expression.op == Op::kArgument) {
      MG_CHECK(expression.payload < body_.arguments.size(), "a scalar expression uses argument ",
               expression.payload, " of ", body_.arguments.size());
      MG_CHECK(expression.type == body_.arguments[expression.payload], "scalar argument ",
               expression.payload, " is used as ", to_string(expression.type), " but declared ",
               to_string(body_.arguments[expression.payload]));
      return expression.payload;
    }
    Node node{.op = expression.op, .type = expression.type, .payload = expression.payload};
    for (size_t i = 0; i < expression.operands.size(); ++i) {
      node.operands[i] = numbers_.at(expression.operands[i].address());
    }
    return add(node);
  }

  uint32_t add(const Node& node) {
    auto [place, inserted] = merged_.try_emplace(node, static_cast<uint32_t>(body_.nodes.size()));
    if (inserted) body_.nodes.push_back(node);
    return place->second;
  }

  Body body_;
  std::unordered_map<const Scalar::Expression*, uint32_t> numbers_;  // looked up, never walked
  std::map<Node, uint32_t, NodeOrder> merged_;
};

void verify_node(const Body& body, uint32_t index) {
  const Node& node = body.nodes[index];
  const uint8_t arity = info(node.op).arity;
  std::array<Type, 3> types{};
  for (uint8_t i = 0; i < 3; ++i) {
    if (i >= arity) {
      MG_CHECK(node.operands[i] == 0, "scalar node ", index, " has an operand too many");
      continue;
    }
    MG_CHECK(node.operands[i] < index, "scalar node ", index, " uses node ", node.operands[i],
             ", which is not before it");
    types[i] = body.nodes[node.operands[i]].type;
  }
  if (node.op == Op::kArgument) {
    MG_CHECK(index < body.arguments.size() && node.payload == index, "scalar node ", index,
             " is argument ", node.payload, "; node i must be argument i");
    MG_CHECK(node.type == body.arguments[index], "scalar argument ", index, " has two types");
    return;
  }
  if (node.op == Op::kConstant) {
    MG_CHECK(node.type != Type::kBool || node.payload <= 1, "scalar node ", index,
             " is a bool constant of value ", node.payload);
    return;
  }
  MG_CHECK(node.payload == 0, "scalar node ", index, " carries a payload that its op ignores");
  const Type expected = result_type(node.op, std::span(types.data(), arity), node.type);
  MG_CHECK(expected == node.type, "scalar node ", index, " is ", to_string(node.type), " but ",
           describe(node.op, std::span(types.data(), arity)), " gives ", to_string(expected));
}

}  // namespace

std::string_view to_string(Type type) { return kTypeNames.at(static_cast<size_t>(type)); }

std::optional<Type> type_from_name(std::string_view name) {
  for (size_t i = 0; i < kTypeNames.size(); ++i) {
    if (kTypeNames[i] == name) return static_cast<Type>(i);
  }
  return std::nullopt;
}

Type compute_type(DType dtype) {
  const DTypeInfo& row = meganeura::info(dtype);
  if (!row.computable) {
    fail(ErrorKind::kUnsupported, "Kernels cannot compute with ", row.name,
         " elements. Cast them to f32 or i32 first.");
  }
  switch (row.number_class) {
    case NumberClass::kFloat:
      return Type::kF32;
    case NumberClass::kSigned:
      return Type::kI32;
    case NumberClass::kUnsigned:
      return Type::kU32;
    case NumberClass::kBool:
      break;
  }
  return Type::kBool;
}

const OpInfo& info(Op op) { return row_of(op).info; }

std::optional<Op> op_from_name(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.info.name == name) return row.info.op;
  }
  return std::nullopt;
}

Type result_type(Op op, std::span<const Type> operands, Type chosen) {
  MG_CHECK(operands.size() == info(op).arity && !operands.empty(), describe(op, operands),
           " takes ", info(op).arity, " operands");
  const Row& row = row_of(op);
  const auto values = op == Op::kSelect ? operands.subspan(1) : operands;
  MG_CHECK(op != Op::kSelect || operands[0] == Type::kBool, describe(op, operands),
           " needs a bool condition");
  for (Type type : values) {
    MG_CHECK(type == values[0], describe(op, operands), " mixes types; convert one operand");
    MG_CHECK((row.operands & bit(type)) != 0, describe(op, operands), " does not take ",
             to_string(type));
  }
  switch (row.result) {
    case Result::kSame:
      return values[0];
    case Result::kBool:
      return Type::kBool;
    case Result::kU32:
      return Type::kU32;
    case Result::kF32:
      return Type::kF32;
    case Result::kChosen:
      break;
  }
  MG_CHECK(op != Op::kBitcast || chosen != Type::kBool, "bitcast to bool does not exist");
  return chosen;
}

Scalar::Scalar(std::shared_ptr<const Expression> expression) : expression_(std::move(expression)) {}

Type Scalar::type() const {
  MG_CHECK(expression_ != nullptr, "an empty scalar expression was used");
  return expression_->type;
}

// Long chains are released in a loop: recursion would exhaust the stack.
Scalar::Expression::~Expression() {
  std::vector<Scalar> pending = std::move(operands);
  while (!pending.empty()) {
    Scalar last = std::move(pending.back());
    pending.pop_back();
    if (last.expression_.use_count() != 1) continue;
    auto& inner = const_cast<Expression&>(*last.expression_).operands;
    pending.insert(pending.end(), std::make_move_iterator(inner.begin()),
                   std::make_move_iterator(inner.end()));
    inner.clear();
  }
}

Scalar argument(uint32_t index, Type type) { return leaf(Op::kArgument, type, index); }
Scalar constant_f32(float value) {
  return leaf(Op::kConstant, Type::kF32, std::bit_cast<uint32_t>(value));
}
Scalar constant_i32(int32_t value) {
  return leaf(Op::kConstant, Type::kI32, static_cast<uint32_t>(value));
}
Scalar constant_u32(uint32_t value) { return leaf(Op::kConstant, Type::kU32, value); }
Scalar constant_bool(bool value) { return leaf(Op::kConstant, Type::kBool, value ? 1 : 0); }
Scalar constant_bits(Type type, uint32_t bits) {
  MG_CHECK(type != Type::kBool || bits <= 1, "a bool constant has the bits ", bits);
  return leaf(Op::kConstant, type, bits);
}

Scalar constant_like(const Scalar& like, double value) {
  const auto fits = [&](double low, double high) {
    MG_CHECK(value >= low && value <= high && value == std::trunc(value), "the constant ", value,
             " is no ", to_string(like.type()), " value");
  };
  switch (like.type()) {
    case Type::kBool:
      fits(0, 1);
      return constant_bool(value != 0);
    case Type::kI32:
      fits(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
      return constant_i32(static_cast<int32_t>(value));
    case Type::kU32:
      fits(0, std::numeric_limits<uint32_t>::max());
      return constant_u32(static_cast<uint32_t>(value));
    case Type::kF32:
      break;
  }
  const bool overflow =
      std::isfinite(value) && std::fabs(value) > std::numeric_limits<float>::max();
  MG_CHECK(!overflow, "the constant ", value, " exceeds the range of f32");
  return constant_f32(static_cast<float>(value));
}

Scalar make(Op op, std::vector<Scalar> operands, Type type) {
  std::array<Type, 3> types{};
  MG_CHECK(operands.size() <= types.size(), "scalar op ", info(op).name, " got ", operands.size(),
           " operands");
  for (size_t i = 0; i < operands.size(); ++i) types[i] = operands[i].type();
  if (op == Op::kAbs && operands.size() == 1 && types[0] == Type::kU32) return operands[0];
  const bool casts = op == Op::kConvert || op == Op::kBitcast;
  const Type result = result_type(op, std::span(types.data(), operands.size()), type);
  if (casts && result == types[0]) return operands[0];
  return Scalar(std::make_shared<const Scalar::Expression>(
      Scalar::Expression{op, result, 0, std::move(operands)}));
}

Scalar operator+(const Scalar& a, const Scalar& b) { return make(Op::kAdd, {a, b}); }
Scalar operator-(const Scalar& a, const Scalar& b) { return make(Op::kSub, {a, b}); }
Scalar operator*(const Scalar& a, const Scalar& b) { return make(Op::kMul, {a, b}); }
Scalar operator/(const Scalar& a, const Scalar& b) { return make(Op::kDiv, {a, b}); }
Scalar operator-(const Scalar& a) { return make(Op::kNeg, {a}); }
Scalar operator&(const Scalar& a, const Scalar& b) { return make(Op::kAnd, {a, b}); }
Scalar operator|(const Scalar& a, const Scalar& b) { return make(Op::kOr, {a, b}); }
Scalar operator^(const Scalar& a, const Scalar& b) { return make(Op::kXor, {a, b}); }
Scalar operator<<(const Scalar& a, const Scalar& b) { return make(Op::kShl, {a, b}); }
Scalar operator>>(const Scalar& a, const Scalar& b) { return make(Op::kShr, {a, b}); }
Scalar operator<(const Scalar& a, const Scalar& b) { return make(Op::kLt, {a, b}); }
Scalar operator<=(const Scalar& a, const Scalar& b) { return make(Op::kLe, {a, b}); }
Scalar operator>(const Scalar& a, const Scalar& b) { return make(Op::kGt, {a, b}); }
Scalar operator>=(const Scalar& a, const Scalar& b) { return make(Op::kGe, {a, b}); }
Scalar equal(const Scalar& a, const Scalar& b) { return make(Op::kEq, {a, b}); }
Scalar not_equal(const Scalar& a, const Scalar& b) { return make(Op::kNe, {a, b}); }
Scalar select(const Scalar& condition, const Scalar& a, const Scalar& b) {
  return make(Op::kSelect, {condition, a, b});
}
Scalar convert(const Scalar& a, Type type) { return make(Op::kConvert, {a}, type); }
Scalar bitcast(const Scalar& a, Type type) { return make(Op::kBitcast, {a}, type); }
Scalar fma(const Scalar& a, const Scalar& b, const Scalar& c) { return make(Op::kFma, {a, b, c}); }

Body linearize(std::span<const Scalar> outputs, std::span<const Type> arguments) {
  Linearizer linearizer(arguments);
  std::vector<uint32_t> indices;
  for (const Scalar& output : outputs) {
    MG_CHECK(static_cast<bool>(output), "an output of a scalar body is empty");
    indices.push_back(linearizer.visit(output));
  }
  return linearizer.take(std::move(indices));
}

std::vector<Scalar> apply(const Body& body, std::span<const Scalar> arguments) {
  MG_CHECK(arguments.size() == body.arguments.size(), "a scalar body of ", body.arguments.size(),
           " arguments was applied to ", arguments.size());
  std::vector<Scalar> values;
  values.reserve(body.nodes.size());
  for (const Node& node : body.nodes) {
    if (node.op == Op::kArgument) {
      const Scalar& value = arguments[node.payload];
      MG_CHECK(value.type() == node.type, "scalar argument ", node.payload, " must be ",
               to_string(node.type), ", not ", to_string(value.type()));
      values.push_back(value);
    } else if (node.op == Op::kConstant) {
      values.push_back(constant_bits(node.type, node.payload));
    } else {
      std::vector<Scalar> operands;
      for (uint8_t i = 0; i < info(node.op).arity; ++i)
        operands.push_back(values[node.operands[i]]);
      values.push_back(make(node.op, std::move(operands), node.type));
    }
  }
  std::vector<Scalar> outputs;
  for (uint32_t output : body.outputs) outputs.push_back(values[output]);
  return outputs;
}

Body identity(Type type) {
  const Scalar outputs[] = {argument(0, type)};
  const Type arguments[] = {type};
  return linearize(outputs, arguments);
}

void verify(const Body& body) {
  MG_CHECK(body.nodes.size() >= body.arguments.size(), "a scalar body lists ",
           body.arguments.size(), " arguments but has ", body.nodes.size(), " nodes");
  for (uint32_t i = 0; i < body.nodes.size(); ++i) {
    MG_CHECK(i >= body.arguments.size() || body.nodes[i].op == Op::kArgument, "scalar node ", i,
             " must be argument ", i);
    verify_node(body, i);
  }
  for (uint32_t output : body.outputs) {
    MG_CHECK(output < body.nodes.size(), "a scalar body returns node ", output, " of ",
             body.nodes.size());
  }
}

uint64_t hash(const Body& body) {
  uint64_t state = 0xcbf29ce484222325;
  const auto mix = [&state](uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      state = (state ^ ((value >> (8 * byte)) & 0xff)) * 0x100000001b3;
    }
  };
  mix(body.arguments.size());
  for (Type type : body.arguments) mix(static_cast<uint64_t>(type));
  mix(body.nodes.size());
  for (const Node& node : body.nodes) {
    mix(static_cast<uint64_t>(node.op) << 40 | static_cast<uint64_t>(node.type) << 32 |
        node.payload);
    for (uint32_t operand : node.operands) mix(operand);
  }
  mix(body.outputs.size());
  for (uint32_t output : body.outputs) mix(output);
  return state;
}

}  // namespace meganeura::scalar
