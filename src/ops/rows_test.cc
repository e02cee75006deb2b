// The table of ops as a whole.
#include "ops/rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/check.h"
#include "meganeura/ops.h"
#include "ops/docs.h"

namespace meganeura {
namespace {

// Leaves for the examples, each made once.
struct Leaves {
  Graph& g;
  Tensor f = g.input("f", f32, {2, 3});
  Tensor w = g.parameter("w", f32, {2, 3}, Initializer::normal(0, 1));
  Tensor s = g.state("s", f32, {2, 3});
  Tensor c = g.input("c", boolean, {2, 3});
  Tensor u = g.input("u", u32, {2, 3});
  Tensor i = g.input("i", i32, {4});
  Tensor starts = g.input("starts", u32, {2});
  Tensor seed = g.input("seed", u32, {});
  Tensor step = g.input("step", u32, {});
};

using Example = std::function<Tensor(Leaves&)>;

const std::map<std::string_view, Example>& examples() {
  static const std::map<std::string_view, Example> table = {
      {"input", [](Leaves& l) { return l.f; }},
      {"parameter", [](Leaves& l) { return l.w; }},
      {"state", [](Leaves& l) { return l.s; }},
      {"constant", [](Leaves& l) { return l.g.scalar(0.1); }},
      {"add", [](Leaves& l) { return add(l.f, l.w); }},
      {"sub", [](Leaves& l) { return sub(l.f, l.w); }},
      {"mul", [](Leaves& l) { return mul(l.f, l.w); }},
      {"div", [](Leaves& l) { return div(l.f, l.w); }},
      {"rem", [](Leaves& l) { return rem(l.f, l.w); }},
      {"pow", [](Leaves& l) { return pow(l.f, l.w); }},
      {"minimum", [](Leaves& l) { return minimum(l.f, l.w); }},
      {"maximum", [](Leaves& l) { return maximum(l.f, l.w); }},
      {"neg", [](Leaves& l) { return neg(l.f); }},
      {"abs", [](Leaves& l) { return abs(l.f); }},
      {"exp", [](Leaves& l) { return exp(l.f); }},
      {"log", [](Leaves& l) { return log(l.f); }},
      {"sqrt", [](Leaves& l) { return sqrt(l.f); }},
      {"rsqrt", [](Leaves& l) { return rsqrt(l.f); }},
      {"sin", [](Leaves& l) { return sin(l.f); }},
      {"cos", [](Leaves& l) { return cos(l.f); }},
      {"tanh", [](Leaves& l) { return tanh(l.f); }},
      {"erf", [](Leaves& l) { return erf(l.f); }},
      {"floor", [](Leaves& l) { return floor(l.f); }},
      {"ceil", [](Leaves& l) { return ceil(l.f); }},
      {"round", [](Leaves& l) { return round(l.f); }},
      {"bit_and", [](Leaves& l) { return bit_and(l.u, l.u); }},
      {"bit_or", [](Leaves& l) { return bit_or(l.u, l.u); }},
      {"bit_xor", [](Leaves& l) { return bit_xor(l.c, l.c); }},
      {"bit_not", [](Leaves& l) { return bit_not(l.u); }},
      {"shift_left", [](Leaves& l) { return shift_left(l.u, l.u); }},
      {"shift_right", [](Leaves& l) { return shift_right(l.u, l.u); }},
      {"equal", [](Leaves& l) { return equal(l.c, l.c); }},
      {"not_equal", [](Leaves& l) { return not_equal(l.f, l.w); }},
      {"less", [](Leaves& l) { return less(l.f, l.w); }},
      {"less_equal", [](Leaves& l) { return less_equal(l.f, l.w); }},
      {"greater", [](Leaves& l) { return greater(l.f, l.w); }},
      {"greater_equal", [](Leaves& l) { return greater_equal(l.f, l.w); }},
      {"select", [](Leaves& l) { return select(l.c, l.f, l.w); }},
      {"cast", [](Leaves& l) { return cast(l.f, f16); }},
      {"bitcast", [](Leaves& l) { return bitcast(l.f, u32); }},
      {"stop_gradient", [](Leaves& l) { return stop_gradient(l.f); }},
      {"random_bits",
       [](Leaves& l) {
         return random_bits(l.seed, l.step, {2, 2}, 7);
       }},
      {"sum", [](Leaves& l) { return sum(l.f, {1}); }},
      {"max", [](Leaves& l) { return max(l.f); }},
      {"min", [](Leaves& l) { return min(l.f, {0}); }},
      {"arg_max", [](Leaves& l) { return arg_max(l.f, {-1}); }},
      {"contract", [](Leaves& l) { return contract(l.f, l.w, {0}, {0}, {1}, {1}); }},
      {"iota",
       [](Leaves& l) {
         return iota(l.g, {2, 3}, 1);
       }},
      {"reshape", [](Leaves& l) { return reshape(l.f, {-1}); }},
      {"permute",
       [](Leaves& l) {
         return permute(l.f, {1, 0});
       }},
      {"broadcast",
       [](Leaves& l) {
         return broadcast_to(l.f, {4, 2, 3});
       }},
      {"slice",
       [](Leaves& l) {
         return slice(l.f, {0, 0}, {2, 3}, {1, 2});
       }},
      {"pad",
       [](Leaves& l) {
         return pad(l.f, {0, 1}, {2, 0}, -INFINITY);
       }},
      {"concat",
       [](Leaves& l) {
         return concat(std::vector{l.f, l.w}, 1);
       }},
      {"dynamic_slice",
       [](Leaves& l) {
         return dynamic_slice(l.f, l.starts, {1, 2});
       }},
      {"dynamic_update_slice",
       [](Leaves& l) {
         return dynamic_update_slice(l.f, l.g.constant(f32, {1, 0}, {}), l.starts);
       }},
      {"gather", [](Leaves& l) { return gather(l.f, l.i, 1); }},
      {"scatter_add",
       [](Leaves& l) {
         return scatter_add(l.f, l.i, broadcast_to(l.g.scalar(1), {4, 3}));
       }},
      {"assign", [](Leaves& l) { return assign(l.s, l.f); }},
  };
  return table;
}

std::vector<Output> every_row(Graph& graph) {
  Leaves leaves{graph};
  std::vector<Output> outputs;
  for (const auto& [name, example] : examples()) {
    outputs.push_back({std::string(name), example(leaves)});
  }
  return outputs;
}

TEST(OpRows, EveryRowHasAnExample) {
  std::set<std::string_view> names;
  for (const OpRow* row : op_rows()) {
    EXPECT_TRUE(names.insert(row->name).second) << "two rows are called " << row->name;
    EXPECT_EQ(find_op(row->name), row);
    const auto example = examples().find(row->name);
    ASSERT_NE(example, examples().end()) << row->name;
    Graph graph;
    Leaves leaves{graph};
    EXPECT_EQ(example->second(leaves).node().row, row) << row->name;
  }
  EXPECT_EQ(examples().size(), names.size());
  EXPECT_EQ(find_op("no_such_op"), nullptr);
}

TEST(OpRows, RowsAreComplete) {
  for (const OpRow* row : op_rows()) {
    EXPECT_NE(row->infer, nullptr) << row->name;
    EXPECT_EQ(row->body != nullptr, row->lowering == Lowering::kMap) << row->name;
    EXPECT_EQ(row->gradient != nullptr, row->differentiability == Differentiability::kRule)
        << row->name;
    EXPECT_TRUE(row->doc.ends_with('.')) << row->name;
  }
}

TEST(OpRows, TextRoundTripsThroughEveryRow) {
  Graph graph;
  const std::vector<Output> outputs = every_row(graph);
  const std::string text = print_graph(outputs);
  const GraphAndOutputs parsed = parse_graph(text);
  EXPECT_EQ(print_graph(parsed.outputs), text);
  std::vector<Tensor> roots;
  for (const Output& output : parsed.outputs) roots.push_back(output.tensor);
  verify_graph(roots);
  ASSERT_EQ(roots.size(), outputs.size());
  for (size_t i = 0; i < roots.size(); ++i) {
    EXPECT_EQ(roots[i].node().attributes.size(), outputs[i].tensor.node().attributes.size());
    EXPECT_EQ(roots[i].shape(), outputs[i].tensor.shape()) << outputs[i].name;
    EXPECT_EQ(roots[i].dtype(), outputs[i].tensor.dtype()) << outputs[i].name;
  }
}

TEST(OpRows, VerifierRefusesEveryOtherResultType) {
  for (const OpRow* row : op_rows()) {
    Graph graph;
    Leaves leaves{graph};
    Node node = examples().at(row->name)(leaves).node();
    if (is_leaf(node)) continue;
    node.dtype = node.dtype == i64 ? f32 : i64;
    const Tensor wrong = graph.append(node);
    try {
      verify_graph(std::vector{wrong});
      ADD_FAILURE() << row->name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInternal);
      EXPECT_NE(std::string_view(error.what()).find(cat("The op ", row->name, " at rows_test.cc:")),
                std::string_view::npos)
          << error.what();
    }
  }
}

TEST(OpRows, OrderOfConstructionDoesNotShow) {
  const auto text = [](bool relu_first) {
    Graph g;
    const Tensor x = g.input("x", f32, {2, 3});
    const Tensor y = g.input("y", f32, {3, 4});
    Tensor left = relu_first ? relu(x) : Tensor();
    const Tensor right = silu(y);
    if (!left) left = relu(x);
    return print_graph(std::vector<Output>{{"z", matmul(left, right)}});
  };
  EXPECT_EQ(text(true), text(false));
}

TEST(OpRows, MarkdownListsEveryRow) {
  const std::string text = ops_markdown();
  for (const OpRow* row : op_rows()) {
    EXPECT_NE(text.find(cat("| `", row->name, "` | ")), std::string::npos) << row->name;
  }
  EXPECT_NE(text.find("| `concat` | 1 or more | `axis`: int | rule | The operands one after"),
            std::string::npos);
  EXPECT_NE(text.find("| `bitcast` | 1 | `dtype`: dtype | none |"), std::string::npos);
}

}  // namespace
}  // namespace meganeura
