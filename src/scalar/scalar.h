// Scalar expressions: the bodies of ops and the prologues and epilogues of kernels, as data.
//
// A Scalar is a handle to an immutable expression. Building has no side effect, so the order in
// which C++ evaluates arguments cannot show. A Body is the canonical form: a hash-consed list in an
// order fixed by a walk from the outputs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meganeura/dtype.h"

namespace meganeura::scalar {

// What a lane holds while computing: 32-bit numbers and truth values.
enum class Type : uint8_t { kBool, kI32, kU32, kF32 };

std::string_view to_string(Type type);
std::optional<Type> type_from_name(std::string_view name);
// The computing type of a storage dtype: f16 and bf16 widen to f32, i8 to i32, u8 to u32.
// Throws Error(kUnsupported) for dtypes whose row is not computable.
Type compute_type(DType dtype);

enum class Op : uint8_t {
  kArgument,
  kConstant,
  // Arithmetic. Integers wrap. f32 add, sub, mul are IEEE 754 round-to-nearest-even.
  kAdd,
  kSub,
  kMul,
  kFma,
  kNeg,
  kAbs,
  kDiv,  // f32: IEEE quotient; integers: truncating, x/0 = 0
  kRem,  // f32: C fmod; integers: sign of the dividend, x%0 = 0
  kMin,
  kMax,      // NaN propagates; of -0 and +0 either may come back
  kMulHigh,  // u32: upper 32 bits of the 64-bit product
  kFloor,
  kCeil,
  kTrunc,
  kRound,  // half to even
  kSqrt,
  // Bits (u32 and i32; and, or, xor, not also on bool).
  kAnd,
  kOr,
  kXor,
  kNot,
  kShl,
  kShr,  // shr is arithmetic on i32; shift counts are taken mod 32
  // Comparison: operands of one type, result bool. Every comparison with NaN but != is false.
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kSelect,   // (bool, x, y)
  kConvert,  // to the node's type; f32 to integer truncates and saturates, NaN gives 0
  kBitcast,  // between f32, i32 and u32
  kIsNan,    // f32 to bool, by bit pattern
  kRoundF16,
  kRoundBF16,  // f32 rounded to the storage format and widened again
  kPackF16,    // (f32 lo, f32 hi) to u32, two f16 values
  kUnpackF16,  // u32 to f32: the low half as f16
  // Composite: only in op bodies; lower_strict (strict.h) rewrites them before kernels are built.
  kExp,
  kLog,
  kSin,
  kCos,
  kTanh,
  kErf,
  kPow,
  kRsqrt,
};

struct OpInfo {
  Op op;
  std::string_view name;  // "add"
  uint8_t arity;
  bool primitive;  // kernel IR can carry it
  bool commutative;
};
const OpInfo& info(Op op);
std::optional<Op> op_from_name(std::string_view name);

// One node of a body. Constants and arguments keep their bits or index in `payload`.
struct Node {
  Op op = Op::kConstant;
  Type type = Type::kF32;
  std::array<uint32_t, 3> operands{};  // earlier nodes of the same body
  uint32_t payload = 0;
  bool operator==(const Node&) const = default;
};

// The type that an op gives for these operands; `chosen` is what kConvert and kBitcast give.
// Operands that do not fit the op are an internal fault. Not for kArgument and kConstant.
Type result_type(Op op, std::span<const Type> operands, Type chosen = Type::kF32);

// A canonical scalar function: arguments to outputs.
struct Body {
  std::vector<Type> arguments;
  std::vector<Node> nodes;        // node i is argument i, used or not; then operands before users
  std::vector<uint32_t> outputs;  // node indices
  bool operator==(const Body&) const = default;
};

// Handle to an expression. Default-constructed handles are empty and must not be used.
class Scalar {
 public:
  struct Expression;  // {Op, Type, payload, operands}
  Scalar() = default;
  explicit Scalar(std::shared_ptr<const Expression> expression);
  Type type() const;
  const Expression& expression() const { return *expression_; }
  const Expression* address() const { return expression_.get(); }
  explicit operator bool() const { return expression_ != nullptr; }

 private:
  std::shared_ptr<const Expression> expression_;
};

struct Scalar::Expression {
  Op op;
  Type type;
  uint32_t payload = 0;
  std::vector<Scalar> operands;
  ~Expression();
};

// Leaves.
Scalar argument(uint32_t index, Type type);
Scalar constant_f32(float value);
Scalar constant_i32(int32_t value);
Scalar constant_u32(uint32_t value);
Scalar constant_bool(bool value);
Scalar constant_bits(Type type, uint32_t bits);
// The number `value` in the type of `like` (saturating is an internal fault).
Scalar constant_like(const Scalar& like, double value);

// Checks operand types (internal fault if wrong) and builds a node; `type` is the result type
// for kConvert and kBitcast and ignored elsewhere. Casts to the same type and the magnitude of a
// u32 are the operand itself. Shift counts have the type of what they shift.
Scalar make(Op op, std::vector<Scalar> operands, Type type = Type::kF32);

Scalar operator+(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a, const Scalar& b);
Scalar operator*(const Scalar& a, const Scalar& b);
Scalar operator/(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a);
Scalar operator&(const Scalar& a, const Scalar& b);
Scalar operator|(const Scalar& a, const Scalar& b);
Scalar operator^(const Scalar& a, const Scalar& b);
Scalar operator<<(const Scalar& a, const Scalar& b);
Scalar operator>>(const Scalar& a, const Scalar& b);
Scalar operator<(const Scalar& a, const Scalar& b);
Scalar operator<=(const Scalar& a, const Scalar& b);
Scalar operator>(const Scalar& a, const Scalar& b);
Scalar operator>=(const Scalar& a, const Scalar& b);
Scalar equal(const Scalar& a, const Scalar& b);
Scalar not_equal(const Scalar& a, const Scalar& b);
Scalar select(const Scalar& condition, const Scalar& a, const Scalar& b);
Scalar convert(const Scalar& a, Type type);
Scalar bitcast(const Scalar& a, Type type);
Scalar fma(const Scalar& a, const Scalar& b, const Scalar& c);

// The canonical body of some expressions: common subexpressions merged, unreachable ones gone.
Body linearize(std::span<const Scalar> outputs, std::span<const Type> arguments);
// The body's outputs as expressions over `arguments`: composition of bodies.
std::vector<Scalar> apply(const Body& body, std::span<const Scalar> arguments);
// The identity of one argument.
Body identity(Type type);
// Throws Error(kInternal) unless operand order, types and arity are right.
void verify(const Body& body);
// "(a0: f32, a1: f32) { %2 = add a0 a1; return %2 }" and its inverse (Error(kInvalidArgument)).
std::string to_string(const Body& body);
Body parse_body(std::string_view text);
uint64_t hash(const Body& body);

}  // namespace meganeura::scalar
