// Cases of elementwise ops on floats and integers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "graph/values.h"
#include "meganeura/ops.h"
#include "tests/op_cases.h"

namespace meganeura {
namespace {

using Kind = Domain::Kind;
using Operands = std::span<const Tensor>;
using Numbers = std::span<const double>;
using Long = long double;

constexpr const char* kNames[] = {"a", "b", "c"};

// Shapes of the operands of an elementwise case.
struct Layout {
  const char* name;
  Shape (*shape)(size_t operand, int64_t size);
  bool permuted;  // operand 0 is declared transposed
  int min_operands;
};

const Layout kLayouts[] = {
    {"plain",
     [](size_t, int64_t n) {
       return Shape{2, n};
     },
     false, 1},
    {"scalar", [](size_t, int64_t) { return Shape{}; }, false, 1},
    {"empty",
     [](size_t, int64_t n) {
       return Shape{0, n};
     },
     false, 1},
    {"permuted",
     [](size_t, int64_t n) {
       return Shape{3, n};
     },
     true, 1},
    {"broadcast_rows",
     [](size_t operand, int64_t n) {
       return operand == 0 ? Shape{2, n} : Shape{n};
     },
     false, 2},
    {"broadcast_both",
     [](size_t operand, int64_t n) {
       return operand == 0 ? Shape{2, 1} : Shape{1, n};
     },
     false, 2},
};

struct Elementwise {
  const char* row;
  std::vector<DType> dtypes;  // of the operands
  std::vector<Domain> domains;
  Tensor (*build)(Operands x);
  double (*value)(Numbers x);
  bool differentiable = false;
  const char* variant = "";
};

Tensor declare(Graph& graph, const Elementwise& op, const Layout& layout, size_t i, int64_t size) {
  const Shape shape = layout.shape(i, size);
  if (!layout.permuted || i > 0) return graph.input(kNames[i], op.dtypes[i], shape);
  return transpose(graph.input(kNames[i], op.dtypes[i], {shape[1], shape[0]}));
}

OpCase make_case(const Elementwise& op, const Layout& layout) {
  OpCase result;
  result.name = cat(op.row, op.variant, "/", layout.name);
  result.row = op.row;
  result.differentiable = op.differentiable;
  for (size_t i = 0; i < op.dtypes.size(); ++i) result.domains[kNames[i]] = op.domains[i];
  result.build = [op, layout](Graph& graph, int64_t size) {
    std::vector<Tensor> operands;
    for (size_t i = 0; i < op.dtypes.size(); ++i) {
      operands.push_back(declare(graph, op, layout, i, size));
    }
    return op.build(operands);
  };
  result.expected = [op, layout](const CaseValues& values, int64_t size) {
    Shape shape = layout.shape(0, size);
    for (size_t i = 1; i < op.dtypes.size(); ++i) {
      shape = broadcast_shapes(shape, layout.shape(i, size));
    }
    return fill(shape, [&](Index index) {
      std::vector<double> numbers;
      for (size_t i = 0; i < op.dtypes.size(); ++i) {
        const Array& array = values.at(kNames[i]);
        const bool swapped = layout.permuted && i == 0;
        numbers.push_back(swapped ? array.at({index[1], index[0]}) : array.broadcast_at(index));
      }
      return op.value(numbers);
    });
  };
  return result;
}

std::vector<OpCase> make_cases(std::span<const Elementwise> ops) {
  std::vector<OpCase> cases;
  for (const Elementwise& op : ops) {
    for (const Layout& layout : kLayouts) {
      if (static_cast<int>(op.dtypes.size()) >= layout.min_operands) {
        cases.push_back(make_case(op, layout));
      }
    }
  }
  return cases;
}

double as_double(Long value) { return static_cast<double>(value); }
int64_t whole(double value) { return static_cast<int64_t>(value); }
double wrap_i32(int64_t value) { return as_stored(i32, static_cast<double>(value)); }
double wrap_u32(uint64_t value) { return static_cast<double>(static_cast<uint32_t>(value)); }

// Σ (−1)^k x^(2k+1) / (k! (2k+1)) · 2/√π, good for |x| ≤ 3 in long double.
double erf_series(double x) {
  Long term = x;
  Long sum = x;
  for (int k = 1; k < 80; ++k) {
    term *= -Long{x} * x / k;
    sum += term / (2 * k + 1);
  }
  return as_double(sum * 2.0L / std::sqrt(3.14159265358979323846264338327950288L));
}

double half_even(double x) {
  const double low = std::floor(x);
  const double rest = x - low;
  if (rest != 0.5) return rest < 0.5 ? low : low + 1;
  return std::fmod(low, 2.0) == 0.0 ? low : low + 1;
}

template <class T, class U>
T same_bits(U value) {
  static_assert(sizeof(T) == sizeof(U));
  T out;
  std::memcpy(&out, &value, sizeof out);
  return out;
}

const Domain kReal = {Kind::kReal, -2, 2};
const Domain kPositive = {Kind::kReal, 0.3, 3};
const Domain kNonzero = {Kind::kNonzero, 0.3, 2};
const Domain kFraction = {Kind::kFraction, -4, 4};
const Domain kTies = {Kind::kInteger, -2, 2};
const Domain kBits = {Kind::kInteger, 0, 1};
const Domain kEven = {Kind::kDistinct, 0.05, 0};
const Domain kOdd = {Kind::kDistinct, 0.05, 0.025};
const Domain kFullI32 = {Kind::kInteger, -2147483648.0, 2147483647.0};
const Domain kFullU32 = {Kind::kInteger, 0, 4294967295.0};
const Domain kSmall = {Kind::kInteger, -7, 7};
const Domain kShift = {Kind::kInteger, 0, 31};

const std::vector<DType> kOne = {f32};
const std::vector<DType> kTwo = {f32, f32};
const std::vector<DType> kI1 = {i32};
const std::vector<DType> kI2 = {i32, i32};
const std::vector<DType> kU2 = {u32, u32};
const std::vector<DType> kB2 = {boolean, boolean};

const Elementwise kFloatOps[] = {
    {"add",
     kTwo,
     {kReal, kReal},
     [](Operands x) { return x[0] + x[1]; },
     [](Numbers x) { return as_double(Long{x[0]} + x[1]); },
     true},
    {"sub",
     kTwo,
     {kReal, kReal},
     [](Operands x) { return x[0] - x[1]; },
     [](Numbers x) { return as_double(Long{x[0]} - x[1]); },
     true},
    {"mul",
     kTwo,
     {kReal, kReal},
     [](Operands x) { return x[0] * x[1]; },
     [](Numbers x) { return as_double(Long{x[0]} * x[1]); },
     true},
    {"div",
     kTwo,
     {kReal, kNonzero},
     [](Operands x) { return x[0] / x[1]; },
     [](Numbers x) { return as_double(Long{x[0]} / x[1]); },
     true},
    // The quotient is 2 all over the domain, with either sign of the dividend.
    {"rem",
     kTwo,
     {{Kind::kNonzero, 2.3, 2.7}, {Kind::kReal, 0.95, 1.05}},
     [](Operands x) { return rem(x[0], x[1]); },
     [](Numbers x) { return x[0] - (x[0] < 0 ? -2 : 2) * x[1]; },
     true},
    {"pow",
     kTwo,
     {{Kind::kReal, 0.5, 2.5}, kReal},
     [](Operands x) { return pow(x[0], x[1]); },
     [](Numbers x) { return as_double(std::exp(x[1] * std::log(Long{x[0]}))); },
     true},
    {"minimum",
     kTwo,
     {kEven, kOdd},
     [](Operands x) { return minimum(x[0], x[1]); },
     [](Numbers x) { return x[0] < x[1] ? x[0] : x[1]; },
     true},
    {"maximum",
     kTwo,
     {kEven, kOdd},
     [](Operands x) { return maximum(x[0], x[1]); },
     [](Numbers x) { return x[0] < x[1] ? x[1] : x[0]; },
     true},
    {"neg",
     kOne,
     {kReal},
     [](Operands x) { return -x[0]; },
     [](Numbers x) { return 0.0 - x[0]; },
     true},
    {"abs",
     kOne,
     {kNonzero},
     [](Operands x) { return abs(x[0]); },
     [](Numbers x) { return x[0] < 0 ? -x[0] : x[0]; },
     true},
    {"exp",
     kOne,
     {kReal},
     [](Operands x) { return exp(x[0]); },
     [](Numbers x) { return as_double(std::exp(Long{x[0]})); },
     true},
    {"log",
     kOne,
     {kPositive},
     [](Operands x) { return log(x[0]); },
     [](Numbers x) { return as_double(std::log(Long{x[0]})); },
     true},
    {"sqrt",
     kOne,
     {kPositive},
     [](Operands x) { return sqrt(x[0]); },
     [](Numbers x) { return as_double(std::sqrt(Long{x[0]})); },
     true},
    {"rsqrt",
     kOne,
     {kPositive},
     [](Operands x) { return rsqrt(x[0]); },
     [](Numbers x) { return as_double(1 / std::sqrt(Long{x[0]})); },
     true},
    {"sin",
     kOne,
     {{Kind::kReal, -8, 8}},
     [](Operands x) { return sin(x[0]); },
     [](Numbers x) { return as_double(std::sin(Long{x[0]})); },
     true},
    {"cos",
     kOne,
     {{Kind::kReal, -8, 8}},
     [](Operands x) { return cos(x[0]); },
     [](Numbers x) { return as_double(std::cos(Long{x[0]})); },
     true},
    {"tanh",
     kOne,
     {kReal},
     [](Operands x) { return tanh(x[0]); },
     [](Numbers x) {
       const Long e = std::expm1(2 * Long{x[0]});
       return as_double(e / (e + 2));
     },
     true},
    {"erf",
     kOne,
     {kReal},
     [](Operands x) { return erf(x[0]); },
     [](Numbers x) { return erf_series(x[0]); },
     true},
    {"floor",
     kOne,
     {kFraction},
     [](Operands x) { return floor(x[0]); },
     [](Numbers x) { return x[0] - (std::fmod(x[0], 1) + (x[0] < 0 ? 1 : 0)); },
     true},
    {"ceil",
     kOne,
     {kFraction},
     [](Operands x) { return ceil(x[0]); },
     [](Numbers x) { return x[0] - (std::fmod(x[0], 1) - (x[0] < 0 ? 0 : 1)); },
     true},
    {"round",
     kOne,
     {kFraction},
     [](Operands x) { return round(x[0]); },
     [](Numbers x) { return half_even(x[0]); },
     true},
    {"equal",
     kTwo,
     {kTies, kTies},
     [](Operands x) { return equal(x[0], x[1]); },
     [](Numbers x) { return x[0] - x[1] == 0 ? 1.0 : 0.0; }},
    {"not_equal",
     kTwo,
     {kTies, kTies},
     [](Operands x) { return not_equal(x[0], x[1]); },
     [](Numbers x) { return x[0] - x[1] == 0 ? 0.0 : 1.0; }},
    {"less",
     kTwo,
     {kTies, kTies},
     [](Operands x) { return less(x[0], x[1]); },
     [](Numbers x) { return x[0] - x[1] < 0 ? 1.0 : 0.0; }},
    {"less_equal",
     kTwo,
     {kTies, kTies},
     [](Operands x) { return less_equal(x[0], x[1]); },
     [](Numbers x) { return x[0] - x[1] <= 0 ? 1.0 : 0.0; }},
    {"greater",
     kTwo,
     {kTies, kTies},
     [](Operands x) { return greater(x[0], x[1]); },
     [](Numbers x) { return x[0] - x[1] > 0 ? 1.0 : 0.0; }},
    {"greater_equal",
     kTwo,
     {kTies, kTies},
     [](Operands x) { return greater_equal(x[0], x[1]); },
     [](Numbers x) { return x[0] - x[1] >= 0 ? 1.0 : 0.0; }},
    {"select",
     {boolean, f32, f32},
     {kBits, kReal, kReal},
     [](Operands x) { return select(x[0], x[1], x[2]); },
     [](Numbers x) { return x[0] != 0 ? x[1] : x[2]; },
     true},
    {"stop_gradient",
     kOne,
     {kReal},
     [](Operands x) { return stop_gradient(x[0]); },
     [](Numbers x) { return x[0]; }},
    {"cast",
     kOne,
     {kFraction},
     [](Operands x) { return cast(x[0], i32); },
     [](Numbers x) { return x[0] - std::fmod(x[0], 1); },
     false,
     "_f32_i32"},
    {"cast",
     kOne,
     {{Kind::kReal, -400, 400}},
     [](Operands x) { return cast(x[0], u8); },
     [](Numbers x) { return std::trunc(std::min(std::max(x[0], 0.0), 255.0)); },
     false,
     "_f32_u8"},
    {"cast",
     kOne,
     {{Kind::kReal, -400, 400}},
     [](Operands x) { return cast(x[0], i8); },
     [](Numbers x) { return std::trunc(std::min(std::max(x[0], -128.0), 127.0)); },
     false,
     "_f32_i8"},
    {"cast",
     kOne,
     {kTies},
     [](Operands x) { return cast(x[0], boolean); },
     [](Numbers x) { return x[0] * x[0] > 0 ? 1.0 : 0.0; },
     false,
     "_f32_bool"},
    {"cast",
     kOne,
     {kReal},
     [](Operands x) { return cast(cast(x[0], f16), f32); },
     [](Numbers x) { return x[0]; },
     true,
     "_f32_f16_f32"},
    {"cast",
     kOne,
     {kReal},
     [](Operands x) { return cast(cast(x[0], bf16), f32); },
     [](Numbers x) { return x[0]; },
     true,
     "_f32_bf16_f32"},
};

const Elementwise kIntegerOps[] = {
    {"add",
     kI2,
     {kFullI32, kFullI32},
     [](Operands x) { return x[0] + x[1]; },
     [](Numbers x) { return wrap_i32(whole(x[0]) + whole(x[1])); },
     false,
     "_i32"},
    {"sub",
     kU2,
     {kFullU32, kFullU32},
     [](Operands x) { return x[0] - x[1]; },
     [](Numbers x) { return wrap_u32(static_cast<uint64_t>(whole(x[0]) - whole(x[1]))); },
     false,
     "_u32"},
    {"mul",
     kU2,
     {kFullU32, kFullU32},
     [](Operands x) { return x[0] * x[1]; },
     [](Numbers x) {
       return wrap_u32(static_cast<uint64_t>(whole(x[0])) * static_cast<uint64_t>(whole(x[1])));
     },
     false,
     "_u32"},
    {"div",
     kI2,
     {kFullI32, kSmall},
     [](Operands x) { return x[0] / x[1]; },
     [](Numbers x) { return x[1] == 0 ? 0.0 : wrap_i32(whole(x[0]) / whole(x[1])); },
     false,
     "_i32"},
    {"rem",
     kI2,
     {kFullI32, kSmall},
     [](Operands x) { return rem(x[0], x[1]); },
     [](Numbers x) { return x[1] == 0 ? 0.0 : static_cast<double>(whole(x[0]) % whole(x[1])); },
     false,
     "_i32"},
    {"minimum",
     kI2,
     {kFullI32, kFullI32},
     [](Operands x) { return minimum(x[0], x[1]); },
     [](Numbers x) { return x[0] < x[1] ? x[0] : x[1]; },
     false,
     "_i32"},
    {"maximum",
     kU2,
     {kFullU32, kFullU32},
     [](Operands x) { return maximum(x[0], x[1]); },
     [](Numbers x) { return x[0] < x[1] ? x[1] : x[0]; },
     false,
     "_u32"},
    {"neg",
     kI1,
     {kFullI32},
     [](Operands x) { return -x[0]; },
     [](Numbers x) { return wrap_i32(-whole(x[0])); },
     false,
     "_i32"},
    {"abs",
     kI1,
     {kFullI32},
     [](Operands x) { return abs(x[0]); },
     [](Numbers x) { return wrap_i32(whole(x[0]) < 0 ? -whole(x[0]) : whole(x[0])); },
     false,
     "_i32"},
    {"add",
     {i8, i8},
     {{Kind::kInteger, -128, 127}, {Kind::kInteger, -128, 127}},
     [](Operands x) { return x[0] + x[1]; },
     [](Numbers x) {
       const int64_t sum = whole(x[0]) + whole(x[1]);
       return static_cast<double>(sum > 127 ? sum - 256 : sum < -128 ? sum + 256 : sum);
     },
     false,
     "_i8"},
    {"mul",
     {u8, u8},
     {{Kind::kInteger, 0, 255}, {Kind::kInteger, 0, 255}},
     [](Operands x) { return x[0] * x[1]; },
     [](Numbers x) { return static_cast<double>(whole(x[0]) * whole(x[1]) % 256); },
     false,
     "_u8"},
    {"less",
     kU2,
     {kFullU32, kFullU32},
     [](Operands x) { return less(x[0], x[1]); },
     [](Numbers x) { return x[0] < x[1] ? 1.0 : 0.0; },
     false,
     "_u32"},
    {"less",
     kI2,
     {kFullI32, kFullI32},
     [](Operands x) { return less(x[0], x[1]); },
     [](Numbers x) { return x[0] < x[1] ? 1.0 : 0.0; },
     false,
     "_i32"},
    {"bit_and",
     kI2,
     {kFullI32, kFullI32},
     [](Operands x) { return bit_and(x[0], x[1]); },
     [](Numbers x) { return static_cast<double>(whole(x[0]) & whole(x[1])); },
     false,
     "_i32"},
    {"bit_or",
     kU2,
     {kFullU32, kFullU32},
     [](Operands x) { return bit_or(x[0], x[1]); },
     [](Numbers x) { return static_cast<double>(whole(x[0]) | whole(x[1])); },
     false,
     "_u32"},
    {"bit_xor",
     kU2,
     {kFullU32, kFullU32},
     [](Operands x) { return bit_xor(x[0], x[1]); },
     [](Numbers x) { return static_cast<double>(whole(x[0]) ^ whole(x[1])); },
     false,
     "_u32"},
    {"bit_and",
     kB2,
     {kBits, kBits},
     [](Operands x) { return bit_and(x[0], x[1]); },
     [](Numbers x) { return x[0] * x[1]; },
     false,
     "_bool"},
    {"bit_or",
     kB2,
     {kBits, kBits},
     [](Operands x) { return bit_or(x[0], x[1]); },
     [](Numbers x) { return x[0] + x[1] > 0 ? 1.0 : 0.0; },
     false,
     "_bool"},
    {"bit_xor",
     kB2,
     {kBits, kBits},
     [](Operands x) { return bit_xor(x[0], x[1]); },
     [](Numbers x) { return x[0] + x[1] == 1 ? 1.0 : 0.0; },
     false,
     "_bool"},
    {"bit_not",
     kI1,
     {kFullI32},
     [](Operands x) { return bit_not(x[0]); },
     [](Numbers x) { return -x[0] - 1; },
     false,
     "_i32"},
    {"bit_not",
     {u32},
     {kFullU32},
     [](Operands x) { return bit_not(x[0]); },
     [](Numbers x) { return 4294967295.0 - x[0]; },
     false,
     "_u32"},
    {"bit_not",
     {boolean},
     {kBits},
     [](Operands x) { return bit_not(x[0]); },
     [](Numbers x) { return 1 - x[0]; },
     false,
     "_bool"},
    {"shift_left",
     kU2,
     {kFullU32, kShift},
     [](Operands x) { return shift_left(x[0], x[1]); },
     [](Numbers x) { return wrap_u32(static_cast<uint64_t>(whole(x[0])) << whole(x[1])); },
     false,
     "_u32"},
    {"shift_right",
     kU2,
     {kFullU32, kShift},
     [](Operands x) { return shift_right(x[0], x[1]); },
     [](Numbers x) { return std::floor(std::ldexp(x[0], -static_cast<int>(x[1]))); },
     false,
     "_u32"},
    {"shift_right",
     kI2,
     {kFullI32, kShift},
     [](Operands x) { return shift_right(x[0], x[1]); },
     [](Numbers x) { return std::floor(std::ldexp(x[0], -static_cast<int>(x[1]))); },
     false,
     "_i32"},
    {"cast",
     kI1,
     {kFullI32},
     [](Operands x) { return cast(x[0], u32); },
     [](Numbers x) { return x[0] < 0 ? x[0] + 4294967296.0 : x[0]; },
     false,
     "_i32_u32"},
    {"cast",
     {u32},
     {{Kind::kInteger, 0, 16777216}},
     [](Operands x) { return cast(x[0], f32); },
     [](Numbers x) { return x[0]; },
     false,
     "_u32_f32"},
    {"cast",
     {boolean},
     {kBits},
     [](Operands x) { return cast(x[0], f32); },
     [](Numbers x) { return x[0]; },
     false,
     "_bool_f32"},
    {"bitcast",
     kOne,
     {kReal},
     [](Operands x) { return bitcast(x[0], i32); },
     [](Numbers x) { return static_cast<double>(same_bits<int32_t>(static_cast<float>(x[0]))); },
     false,
     "_f32_i32"},
    {"bitcast",
     {u32},
     {{Kind::kInteger, 1065353216.0, 1082130431.0}},
     [](Operands x) { return bitcast(x[0], f32); },
     [](Numbers x) { return static_cast<double>(same_bits<float>(static_cast<uint32_t>(x[0]))); },
     false,
     "_u32_f32"},
};

}  // namespace

std::vector<OpCase> elementwise_cases() { return make_cases(kFloatOps); }
std::vector<OpCase> integer_cases() { return make_cases(kIntegerOps); }

}  // namespace meganeura
