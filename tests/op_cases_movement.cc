// Cases of ops that move or index values.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "graph/initialize.h"
#include "meganeura/ops.h"
#include "tests/op_cases.h"

namespace meganeura {
namespace {

using Kind = Domain::Kind;
using Domains = std::map<std::string, Domain>;

const Domain kReal = {Kind::kReal, -2, 2};
const Domains kA = {{"a", kReal}};
const Domains kAb = {{"a", kReal}, {"b", kReal}};

// One case: the output's shape and each element by its index.
struct Movement {
  const char* row;
  const char* variant;
  Domains domains;
  Tensor (*build)(Graph& g, int64_t n);
  Shape (*shape)(int64_t n);
  double (*value)(const CaseValues& x, int64_t n, Index i);
  bool differentiable = true;
};

double a_at(const CaseValues& x, std::initializer_list<int64_t> index) {
  return x.at("a").at(index);
}

int64_t clamped(double value, int64_t last) {
  return std::clamp<int64_t>(static_cast<int64_t>(value), 0, last);
}

const Movement kViews[] = {
    {"reshape", "split", kA,
     [](Graph& g, int64_t n) {
       return reshape(g.input("a", f32, {2 * n, 6}), {2, n, 2, -1});
     },
     [](int64_t n) {
       return Shape{2, n, 2, 3};
     },
     [](const CaseValues& x, int64_t n, Index i) {
       return a_at(x, {i[0] * n + i[1], i[2] * 3 + i[3]});
     }},
    {"reshape", "of_permuted", kA,
     [](Graph& g, int64_t n) {
       return reshape(transpose(g.input("a", f32, {2, n})), {2 * n});
     },
     [](int64_t n) { return Shape{2 * n}; },
     [](const CaseValues& x, int64_t, Index i) {
       return a_at(x, {i[0] % 2, i[0] / 2});
     }},
    {"reshape", "empty", kA,
     [](Graph& g, int64_t n) {
       return reshape(g.input("a", f32, {n, 0, 3}), {0, 7});
     },
     [](int64_t) {
       return Shape{0, 7};
     },
     [](const CaseValues&, int64_t, Index) { return 0.0; }},
    {"permute", "three_axes", kA,
     [](Graph& g, int64_t n) {
       return permute(g.input("a", f32, {2, n, 3}), {1, 2, 0});
     },
     [](int64_t n) {
       return Shape{n, 3, 2};
     },
     [](const CaseValues& x, int64_t, Index i) {
       return a_at(x, {i[2], i[0], i[1]});
     }},
    {"permute", "empty", kA,
     [](Graph& g, int64_t n) {
       return permute(g.input("a", f32, {2, n, 0}), {2, 0, 1});
     },
     [](int64_t n) {
       return Shape{0, 2, n};
     },
     [](const CaseValues&, int64_t, Index) { return 0.0; }},
    {"broadcast", "leading_and_inner", kA,
     [](Graph& g, int64_t n) {
       return broadcast_to(g.input("a", f32, {n, 1}), {2, n, 3});
     },
     [](int64_t n) {
       return Shape{2, n, 3};
     },
     [](const CaseValues& x, int64_t, Index i) {
       return a_at(x, {i[1], 0});
     }},
    {"broadcast", "scalar", kA,
     [](Graph& g, int64_t n) {
       return broadcast_to(g.input("a", f32, {}), {2, n});
     },
     [](int64_t n) {
       return Shape{2, n};
     },
     [](const CaseValues& x, int64_t, Index) { return a_at(x, {}); }},
    {"broadcast", "to_empty", kA,
     [](Graph& g, int64_t n) {
       return broadcast_to(g.input("a", f32, {1, n}), {0, n});
     },
     [](int64_t n) {
       return Shape{0, n};
     },
     [](const CaseValues&, int64_t, Index) { return 0.0; }},
    {"slice", "stepped", kA,
     [](Graph& g, int64_t n) {
       return slice(g.input("a", f32, {3, 2 * n + 3}), {1, 1}, {3, 2 * n + 2}, {1, 2});
     },
     [](int64_t n) {
       return Shape{2, n + 1};
     },
     [](const CaseValues& x, int64_t, Index i) {
       return a_at(x, {1 + i[0], 1 + 2 * i[1]});
     }},
    {"slice", "negative_and_clipped", kA,
     [](Graph& g, int64_t n) {
       return slice(g.input("a", f32, {2, n + 2}), {0, -2}, {99, n + 50});
     },
     [](int64_t) {
       return Shape{2, 2};
     },
     [](const CaseValues& x, int64_t n, Index i) {
       return a_at(x, {i[0], n + i[1]});
     }},
    {"slice", "empty", kA,
     [](Graph& g, int64_t n) {
       return slice(g.input("a", f32, {2, n}), {0, n}, {2, n});
     },
     [](int64_t) {
       return Shape{2, 0};
     },
     [](const CaseValues&, int64_t, Index) { return 0.0; }},
    {"pad", "both_axes", kA,
     [](Graph& g, int64_t n) {
       return pad(g.input("a", f32, {2, n}), {1, 0}, {0, 3}, 0.25);
     },
     [](int64_t n) {
       return Shape{3, n + 3};
     },
     [](const CaseValues& x, int64_t n, Index i) {
       return i[0] == 0 || i[1] >= n ? 0.25 : a_at(x, {i[0] - 1, i[1]});
     }},
    {"pad", "empty", kA,
     [](Graph& g, int64_t n) {
       return pad(g.input("a", f32, {0, n}), {1, 0}, {1, 0}, -1.0);
     },
     [](int64_t n) {
       return Shape{2, n};
     },
     [](const CaseValues&, int64_t, Index) { return -1.0; }},
    {"concat",
     "three_parts",
     {{"a", kReal}, {"b", kReal}, {"c", kReal}},
     [](Graph& g, int64_t n) {
       const Tensor parts[] = {g.input("a", f32, {2, n}), g.input("b", f32, {2, 0}),
                               g.input("c", f32, {2, 3})};
       return concat(parts, -1);
     },
     [](int64_t n) {
       return Shape{2, n + 3};
     },
     [](const CaseValues& x, int64_t n, Index i) {
       return i[1] < n ? a_at(x, {i[0], i[1]}) : x.at("c").at({i[0], i[1] - n});
     }},
    {"concat", "leading_axis", kAb,
     [](Graph& g, int64_t n) {
       const Tensor b = g.input("b", f32, {3, n});
       const Tensor parts[] = {b, transpose(g.input("a", f32, {n, 2})), b};
       return concat(parts, 0);
     },
     [](int64_t n) {
       return Shape{8, n};
     },
     [](const CaseValues& x, int64_t, Index i) {
       if (i[0] < 3) return x.at("b").at(i);
       return i[0] < 5 ? a_at(x, {i[1], i[0] - 3}) : x.at("b").at({i[0] - 5, i[1]});
     }},
};

const Domain kStart = {Kind::kInteger, -3, 6};

const Movement kIndexed[] = {
    {"dynamic_slice",
     "clamped",
     {{"a", kReal}, {"starts", kStart}},
     [](Graph& g, int64_t n) {
       return dynamic_slice(g.input("a", f32, {4, n + 2}), g.input("starts", i32, {2}), {3, n});
     },
     [](int64_t n) {
       return Shape{3, n};
     },
     [](const CaseValues& x, int64_t, Index i) {
       const Array& starts = x.at("starts");
       return a_at(x, {clamped(starts.at({0}), 1) + i[0], clamped(starts.at({1}), 2) + i[1]});
     }},
    {"dynamic_update_slice",
     "clamped",
     {{"a", kReal}, {"b", kReal}, {"starts", kStart}},
     [](Graph& g, int64_t n) {
       const Tensor a = g.input("a", f32, {4, n + 2});
       const Tensor b = g.input("b", f32, {3, n});
       return dynamic_update_slice(a, b, g.input("starts", i32, {2}));
     },
     [](int64_t n) {
       return Shape{4, n + 2};
     },
     [](const CaseValues& x, int64_t n, Index i) {
       const Array& starts = x.at("starts");
       const int64_t row = i[0] - clamped(starts.at({0}), 1);
       const int64_t column = i[1] - clamped(starts.at({1}), 2);
       const bool inside = row >= 0 && row < 3 && column >= 0 && column < n;
       return inside ? x.at("b").at({row, column}) : x.at("a").at(i);
     }},
    {"gather",
     "rows_clamped",
     {{"a", kReal}, {"indices", {Kind::kInteger, -2, 7}}},
     [](Graph& g, int64_t n) {
       return gather(g.input("a", f32, {5, n}), g.input("indices", i32, {2, 3}));
     },
     [](int64_t n) {
       return Shape{2, 3, n};
     },
     [](const CaseValues& x, int64_t, Index i) {
       return a_at(x, {clamped(x.at("indices").at({i[0], i[1]}), 4), i[2]});
     }},
    {"gather",
     "inner_axis",
     {{"a", kReal}, {"indices", {Kind::kInteger, 0, 4}}},
     [](Graph& g, int64_t n) {
       return gather(g.input("a", f32, {2, 5, 3}), g.input("indices", u32, {n}), 1);
     },
     [](int64_t n) {
       return Shape{2, n, 3};
     },
     [](const CaseValues& x, int64_t, Index i) {
       const auto index = static_cast<int64_t>(x.at("indices").at({i[1]}));
       return a_at(x, {i[0], index, i[2]});
     }},
    {"gather",
     "scalar_index",
     {{"a", kReal}, {"indices", {Kind::kInteger, 0, 1}}},
     [](Graph& g, int64_t n) {
       return gather(g.input("a", f32, {n, 2}), g.input("indices", u32, {}), -1);
     },
     [](int64_t n) { return Shape{n}; },
     [](const CaseValues& x, int64_t, Index i) {
       return a_at(x, {i[0], static_cast<int64_t>(x.at("indices").at({}))});
     }},
    {"gather",
     "no_indices",
     {{"a", kReal}, {"indices", {Kind::kInteger, 0, 1}}},
     [](Graph& g, int64_t n) {
       return gather(g.input("a", f32, {n, 2}), g.input("indices", u32, {0}));
     },
     [](int64_t) {
       return Shape{0, 2};
     },
     [](const CaseValues&, int64_t, Index) { return 0.0; }},
    {"scatter_add",
     "repeated_and_dropped",
     {{"a", kReal}, {"indices", {Kind::kInteger, -1, 4}}, {"b", kReal}},
     [](Graph& g, int64_t n) {
       const Tensor a = g.input("a", f32, {4, 3});
       const Tensor indices = g.input("indices", i32, {n, 2});
       return scatter_add(a, indices, g.input("b", f32, {n, 2, 3}));
     },
     [](int64_t) {
       return Shape{4, 3};
     },
     [](const CaseValues& x, int64_t n, Index i) {
       long double total = x.at("a").at(i);
       for (int64_t k = 0; k < 2 * n; ++k) {
         if (x.at("indices").at({k / 2, k % 2}) == static_cast<double>(i[0])) {
           total += x.at("b").at({k / 2, k % 2, i[1]});
         }
       }
       return static_cast<double>(total);
     }},
    {"scatter_add",
     "counts",
     {{"indices", {Kind::kInteger, 0, 3}}},
     [](Graph& g, int64_t n) {
       const Tensor zeros = broadcast_to(g.scalar(0, u32), {4});
       const Tensor ones = broadcast_to(g.scalar(1, u32), {n});
       return scatter_add(zeros, g.input("indices", u32, {n}), ones);
     },
     [](int64_t) { return Shape{4}; },
     [](const CaseValues& x, int64_t, Index i) {
       const std::vector<double>& indices = x.at("indices").values;
       return static_cast<double>(
           std::count(indices.begin(), indices.end(), static_cast<double>(i[0])));
     },
     false},
    {"iota",
     "u32",
     {},
     [](Graph& g, int64_t n) {
       return iota(g, {2, n, 3}, 1);
     },
     [](int64_t n) {
       return Shape{2, n, 3};
     },
     [](const CaseValues&, int64_t, Index i) { return static_cast<double>(i[1]); },
     false},
    {"iota",
     "f32",
     {},
     [](Graph& g, int64_t n) {
       return iota(g, {n, 2}, -1, f32);
     },
     [](int64_t n) {
       return Shape{n, 2};
     },
     [](const CaseValues&, int64_t, Index i) { return static_cast<double>(i[1]); },
     false},
    {"assign", "state", kAb,
     [](Graph& g, int64_t n) {
       const Tensor state = g.state("a", f32, {2, n});
       return assign(state, state * 2.0 + g.input("b", f32, {n}));
     },
     [](int64_t n) {
       return Shape{2, n};
     },
     [](const CaseValues& x, int64_t, Index i) {
       return x.at("a").at(i) * 2.0 + x.at("b").at({i[1]});
     },
     false},
};

const Movement kLeaves[] = {
    {"input", "alone", kA,
     [](Graph& g, int64_t n) {
       return g.input("a", f32, {2, n});
     },
     [](int64_t n) {
       return Shape{2, n};
     },
     [](const CaseValues& x, int64_t, Index i) { return x.at("a").at(i); }, false},
    {"parameter", "given", kA,
     [](Graph& g, int64_t n) {
       return g.parameter("a", f32, {n, 2});
     },
     [](int64_t n) {
       return Shape{n, 2};
     },
     [](const CaseValues& x, int64_t, Index i) { return x.at("a").at(i); }, false},
    {"parameter",
     "initialized",
     {},
     [](Graph& g, int64_t n) {
       return g.parameter("a", f32, {n}, Initializer::constant(0.75)) * 2.0;
     },
     [](int64_t n) { return Shape{n}; },
     [](const CaseValues&, int64_t, Index) { return 1.5; },
     false},
    {"state",
     "initialized",
     {},
     [](Graph& g, int64_t n) {
       return g.state("a", i32, {n, 1}, Initializer::ones());
     },
     [](int64_t n) {
       return Shape{n, 1};
     },
     [](const CaseValues&, int64_t, Index) { return 1.0; },
     false},
    {"constant",
     "bytes",
     {},
     [](Graph& g, int64_t n) {
       std::vector<std::byte> bytes;
       for (int64_t k = 0; k < 3 * n; ++k) bytes.push_back(static_cast<std::byte>(k % 256));
       return g.constant(u8, {3, n}, bytes);
     },
     [](int64_t n) {
       return Shape{3, n};
     },
     [](const CaseValues&, int64_t n, Index i) {
       return static_cast<double>((i[0] * n + i[1]) % 256);
     },
     false},
};

const Domain kWord = {Kind::kInteger, 0, 4294967295.0};

const Movement kRandom[] = {
    {"random_bits",
     "philox",
     {{"seed", kWord}, {"step", kWord}},
     [](Graph& g, int64_t n) {
       const Tensor seed = g.input("seed", u32, {});
       return random_bits(seed, g.input("step", u32, {}), {3, n}, 7);
     },
     [](int64_t n) {
       return Shape{3, n};
     },
     [](const CaseValues& x, int64_t n, Index i) {
       const auto element = static_cast<uint32_t>(i[0] * n + i[1]);
       const auto step = static_cast<uint32_t>(x.at("step").at({}));
       const auto seed = static_cast<uint32_t>(x.at("seed").at({}));
       return static_cast<double>(philox4x32({element, step, 0, 0}, {seed, 7})[0]);
     },
     false},
};

OpCase movement_case(const Movement& op) {
  OpCase result;
  result.name = cat(op.row, "/", op.variant);
  result.row = op.row;
  result.domains = op.domains;
  result.differentiable = op.differentiable;
  result.build = op.build;
  result.expected = [op](const CaseValues& values, int64_t n) {
    return fill(op.shape(n), [&](Index i) { return op.value(values, n, i); });
  };
  return result;
}

}  // namespace

std::vector<OpCase> movement_cases() {
  std::vector<OpCase> cases;
  for (const Movement& op : kViews) cases.push_back(movement_case(op));
  for (const Movement& op : kIndexed) cases.push_back(movement_case(op));
  for (const Movement& op : kLeaves) cases.push_back(movement_case(op));
  for (const Movement& op : kRandom) cases.push_back(movement_case(op));
  return cases;
}

}  // namespace meganeura
