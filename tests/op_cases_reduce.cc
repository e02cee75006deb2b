// Cases of reductions and contractions.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "meganeura/ops.h"
#include "tests/op_cases.h"

namespace meganeura {
namespace {

using Kind = Domain::Kind;

const Domain kReal = {Kind::kReal, -2, 2};
const Domain kDistinct = {Kind::kDistinct, 0.05, 0};
const Domain kTies = {Kind::kInteger, -1, 1};

// ---- Reductions over an input a [2, n, 3] ----------------------------------------------------

using Fold = double (*)(const std::vector<double>& fibre);

double fold_sum(const std::vector<double>& fibre) {
  long double sum = 0;
  for (auto it = fibre.rbegin(); it != fibre.rend(); ++it) sum += *it;
  return static_cast<double>(sum);
}
double fold_max(const std::vector<double>& fibre) {
  return *std::max_element(fibre.begin(), fibre.end());
}
double fold_min(const std::vector<double>& fibre) {
  return *std::min_element(fibre.begin(), fibre.end());
}
double fold_arg_max(const std::vector<double>& fibre) {
  const double largest = fold_max(fibre);
  size_t index = 0;
  while (fibre[index] < largest) ++index;
  return static_cast<double>(index);
}

struct ReductionOp {
  const char* row;
  Tensor (*build)(Operand x, std::vector<int64_t> axes, bool keep);
  Fold fold;
  Domain domain;
  bool differentiable;
  const char* variant = "";
  DType dtype = f32;
};

struct ReductionLayout {
  const char* name;
  std::vector<int64_t> axes;
  bool keep;
  int64_t batch;    // extent of axis 0
  bool transposed;  // the input is declared [3, n, batch]
};

const ReductionLayout kReductionLayouts[] = {
    {"last", {2}, false, 2, false},          {"middle", {1}, false, 2, false},
    {"first", {0}, false, 2, false},         {"outer_axes", {0, 2}, false, 2, false},
    {"keep", {1, 2}, true, 2, false},        {"all", {}, false, 2, false},
    {"negative_axis", {-1}, true, 2, false}, {"empty_result", {1}, false, 0, false},
    {"transposed", {1}, false, 2, true},
};

const ReductionOp kReductions[] = {
    {"sum", sum, fold_sum, kReal, true},
    {"max", max, fold_max, kDistinct, true},
    {"min", min, fold_min, kDistinct, true},
    {"arg_max", arg_max, fold_arg_max, kDistinct, false},
    {"max", max, fold_max, kTies, false, "_ties"},
    {"arg_max", arg_max, fold_arg_max, kTies, false, "_ties"},
    {"sum", sum, fold_sum, {Kind::kInteger, -1000, 1000}, false, "_i32", i32},
    {"max", max, fold_max, {Kind::kInteger, 0, 4294967295.0}, false, "_u32", u32},
    {"min", min, fold_min, {Kind::kInteger, -2147483648.0, 2147483647.0}, false, "_i32", i32},
};

bool reduces(const ReductionLayout& layout, int64_t axis) {
  return layout.axes.empty() || std::any_of(layout.axes.begin(), layout.axes.end(),
                                            [&](int64_t a) { return (a < 0 ? a + 3 : a) == axis; });
}

// The elements of `a` that fold into the output element `index` of a kept-rank result.
std::vector<double> fibre_of(const Array& a, const Shape& shape, const ReductionLayout& layout,
                             Index index) {
  std::vector<double> fibre;
  std::array<int64_t, 3> low{}, high{};
  for (size_t axis = 0; axis < 3; ++axis) {
    const bool all = reduces(layout, static_cast<int64_t>(axis));
    low[axis] = all ? 0 : index[axis];
    high[axis] = all ? shape.extents()[axis] : index[axis] + 1;
  }
  for (int64_t i = low[0]; i < high[0]; ++i) {
    for (int64_t j = low[1]; j < high[1]; ++j) {
      for (int64_t k = low[2]; k < high[2]; ++k) {
        fibre.push_back(layout.transposed ? a.at({k, j, i}) : a.at({i, j, k}));
      }
    }
  }
  return fibre;
}

OpCase reduction_case(const ReductionOp& op, const ReductionLayout& layout) {
  OpCase result;
  result.name = cat(op.row, op.variant, "/", layout.name);
  result.row = op.row;
  result.differentiable = op.differentiable;
  result.domains["a"] = op.domain;
  result.build = [op, layout](Graph& graph, int64_t n) {
    if (!layout.transposed) {
      return op.build(graph.input("a", op.dtype, {layout.batch, n, 3}), layout.axes, layout.keep);
    }
    const Tensor a = graph.input("a", op.dtype, {3, n, layout.batch});
    return op.build(permute(a, {2, 1, 0}), layout.axes, layout.keep);
  };
  result.expected = [op, layout](const CaseValues& values, int64_t n) {
    const Shape shape = {layout.batch, n, 3};
    std::vector<int64_t> kept;
    for (int64_t axis = 0; axis < 3; ++axis) {
      kept.push_back(reduces(layout, axis) ? 1 : shape.extents()[static_cast<size_t>(axis)]);
    }
    return fill(Shape(kept), [&](Index index) {
      return op.fold(fibre_of(values.at("a"), shape, layout, index));
    });
  };
  return result;
}

// ---- Contractions ----------------------------------------------------------------------------

double dot(int64_t depth, const std::function<double(int64_t)>& term) {
  long double sum = 0;
  for (int64_t k = 0; k < depth; ++k) sum += term(k);
  return static_cast<double>(sum);
}

// a · b over a [2, 5, n] and b [2, n, 4], either of them declared with its last axes swapped.
OpCase product_case(bool a_transposed, bool b_transposed) {
  OpCase result;
  result.name = cat("contract/", a_transposed ? "T" : "N", b_transposed ? "T" : "N");
  result.row = "contract";
  result.differentiable = true;
  result.domains = {{"a", kReal}, {"b", kReal}};
  result.build = [=](Graph& graph, int64_t n) {
    const Tensor a = graph.input("a", f32, a_transposed ? Shape{2, n, 5} : Shape{2, 5, n});
    const Tensor b = graph.input("b", f32, b_transposed ? Shape{2, 4, n} : Shape{2, n, 4});
    return contract(a, b, {0}, {0}, {a_transposed ? 1 : 2}, {b_transposed ? 2 : 1});
  };
  result.expected = [=](const CaseValues& values, int64_t n) {
    const Array& a = values.at("a");
    const Array& b = values.at("b");
    return fill({2, 5, 4}, [&](Index i) {
      return dot(n, [&](int64_t k) {
        const double left = a_transposed ? a.at({i[0], k, i[1]}) : a.at({i[0], i[1], k});
        return left * (b_transposed ? b.at({i[0], i[2], k}) : b.at({i[0], k, i[2]}));
      });
    });
  };
  return result;
}

struct ContractCase {
  const char* name;
  Shape (*a)(int64_t n);
  Shape (*b)(int64_t n);
  std::array<std::vector<int64_t>, 4> axes;  // a_batch, b_batch, a_contract, b_contract
  Shape (*out)(int64_t n);
  double (*value)(const Array& a, const Array& b, int64_t n, Index i);
};

const ContractCase kContractions[] = {
    {"outer_product",
     [](int64_t n) { return Shape{n}; },
     [](int64_t) { return Shape{3}; },
     {},
     [](int64_t n) {
       return Shape{n, 3};
     },
     [](const Array& a, const Array& b, int64_t, Index i) { return a.at({i[0]}) * b.at({i[1]}); }},
    {"inner_product",
     [](int64_t n) { return Shape{n}; },
     [](int64_t n) { return Shape{n}; },
     {{{}, {}, {0}, {0}}},
     [](int64_t) { return Shape{}; },
     [](const Array& a, const Array& b, int64_t n, Index) {
       return dot(n, [&](int64_t k) { return a.at({k}) * b.at({k}); });
     }},
    {"two_contracted_axes",
     [](int64_t n) {
       return Shape{3, n, 2};
     },
     [](int64_t n) {
       return Shape{2, 4, n};
     },
     {{{}, {}, {1, 2}, {2, 0}}},
     [](int64_t) {
       return Shape{3, 4};
     },
     [](const Array& a, const Array& b, int64_t n, Index i) {
       return dot(2 * n, [&](int64_t k) {
         return a.at({i[0], k / 2, k % 2}) * b.at({k % 2, i[1], k / 2});
       });
     }},
    {"inner_batch_axes",
     [](int64_t n) {
       return Shape{3, 2, n};
     },
     [](int64_t n) {
       return Shape{n, 4, 2};
     },
     {{{1}, {2}, {2}, {0}}},
     [](int64_t) {
       return Shape{2, 3, 4};
     },
     [](const Array& a, const Array& b, int64_t n, Index i) {
       return dot(n, [&](int64_t k) { return a.at({i[1], i[0], k}) * b.at({k, i[2], i[0]}); });
     }},
    {"batch_alone",
     [](int64_t n) {
       return Shape{2, n};
     },
     [](int64_t n) {
       return Shape{n, 2};
     },
     {{{0, 1}, {1, 0}, {}, {}}},
     [](int64_t n) {
       return Shape{2, n};
     },
     [](const Array& a, const Array& b, int64_t, Index i) {
       return a.at(i) * b.at({i[1], i[0]});
     }},
    {"empty_sum",
     [](int64_t n) {
       return Shape{n, 0};
     },
     [](int64_t) {
       return Shape{0, 3};
     },
     {{{}, {}, {1}, {0}}},
     [](int64_t n) {
       return Shape{n, 3};
     },
     [](const Array&, const Array&, int64_t, Index) { return 0.0; }},
    {"empty_result",
     [](int64_t n) {
       return Shape{0, n};
     },
     [](int64_t n) {
       return Shape{n, 3};
     },
     {{{}, {}, {1}, {0}}},
     [](int64_t) {
       return Shape{0, 3};
     },
     [](const Array&, const Array&, int64_t, Index) { return 0.0; }},
};

OpCase contract_case(const ContractCase& op) {
  OpCase result;
  result.name = cat("contract/", op.name);
  result.row = "contract";
  result.differentiable = true;
  result.domains = {{"a", kReal}, {"b", kReal}};
  result.build = [op](Graph& graph, int64_t n) {
    const Tensor a = graph.input("a", f32, op.a(n));
    const Tensor b = graph.input("b", f32, op.b(n));
    return contract(a, b, op.axes[0], op.axes[1], op.axes[2], op.axes[3]);
  };
  result.expected = [op](const CaseValues& values, int64_t n) {
    return fill(op.out(n), [&](Index i) { return op.value(values.at("a"), values.at("b"), n, i); });
  };
  return result;
}

}  // namespace

std::vector<OpCase> reduction_cases() {
  std::vector<OpCase> cases;
  for (const ReductionOp& op : kReductions) {
    for (const ReductionLayout& layout : kReductionLayouts) {
      cases.push_back(reduction_case(op, layout));
    }
  }
  for (bool a_transposed : {false, true}) {
    for (bool b_transposed : {false, true}) {
      cases.push_back(product_case(a_transposed, b_transposed));
    }
  }
  for (const ContractCase& op : kContractions) cases.push_back(contract_case(op));
  return cases;
}

}  // namespace meganeura
