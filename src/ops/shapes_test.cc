// Shape rules and the messages of what they refuse.
#include <gtest/gtest.h>

#include <functional>

#include "base/check.h"
#include "graph/node.h"
#include "meganeura/ops.h"

namespace meganeura {
namespace {

using Ints = std::vector<int64_t>;

struct Fixture {
  Graph g;
  int inputs = 0;
  Tensor operator()(Shape shape, DType dtype = f32) {
    return g.input(cat("x", inputs++), dtype, std::move(shape));
  }
};

struct Good {
  const char* name;
  std::function<Tensor(Fixture&)> build;
  Shape shape;
  DType dtype = f32;
};

struct Bad {
  const char* message;
  std::function<void(Fixture&)> build;
};

void expect_shapes(const std::vector<Good>& cases) {
  for (const Good& c : cases) {
    Fixture x;
    const Tensor result = c.build(x);
    EXPECT_EQ(result.shape(), c.shape) << c.name << " gave " << result.shape().to_string();
    EXPECT_EQ(result.dtype(), c.dtype) << c.name;
    verify_graph(std::vector{result});
  }
}

void expect_refused(const std::vector<Bad>& cases, ErrorKind kind = ErrorKind::kShape) {
  for (const Bad& c : cases) {
    Fixture x;
    try {
      c.build(x);
      ADD_FAILURE() << "nothing was refused: " << c.message;
    } catch (const Error& error) {
      const std::string_view message = error.what();
      EXPECT_EQ(error.kind(), kind) << message;
      EXPECT_NE(message.find(c.message), message.npos) << message << "\nlacks: " << c.message;
      EXPECT_NE(message.find(" at shapes_test.cc:"), message.npos) << message;
      EXPECT_TRUE(message.ends_with('.')) << message;
    }
  }
}

TEST(Shapes, Elementwise) {
  expect_shapes({
      {"equal shapes",
       [](Fixture& x) {
         return x({2, 3}) + x({2, 3});
       },
       {2, 3}},
      {"broadcast",
       [](Fixture& x) {
         return x({2, 1}) * x({3});
       },
       {2, 3}},
      {"rank 0",
       [](Fixture& x) {
         return x({}) - x({2, 3});
       },
       {2, 3}},
      {"zero extents",
       [](Fixture& x) {
         return x({0, 3}) / x({1, 3});
       },
       {0, 3}},
      {"number", [](Fixture& x) { return 2.0 * x({3}, i32) + 1.0; }, {3}, i32},
      {"comparison",
       [](Fixture& x) {
         return less(x({2, 1}), x({2}));
       },
       {2, 2},
       boolean},
      {"select",
       [](Fixture& x) {
         return select(x({2, 1}, boolean), x({}), x({3}));
       },
       {2, 3}},
      {"cast", [](Fixture& x) { return cast(x({3}), u8); }, {3}, u8},
      {"bitcast", [](Fixture& x) { return bitcast(x({3}), i32); }, {3}, i32},
      {"bool or", [](Fixture& x) { return bit_or(x({3}, boolean), x({}, boolean)); }, {3}, boolean},
  });
  expect_refused({
      {"The op add",
       [](Fixture& x) {
         x({2, 3}) + x({2});
       }},
      {"cannot broadcast f32[2, 3] and f32[2]",
       [](Fixture& x) {
         x({2, 3}) + x({2});
       }},
      {"on f32[2], f16[2] mixes f32 and f16. Convert one of them with cast.",
       [](Fixture& x) { x({2}) + x({2}, f16); }},
      {"takes floats, not u32", [](Fixture& x) { exp(x({2}, u32)); }},
      {"takes integers, not f32", [](Fixture& x) { shift_left(x({2}), x({2})); }},
      {"takes integers and bools, not f32", [](Fixture& x) { bit_not(x({2})); }},
      {"takes numbers, not bool", [](Fixture& x) { neg(x({2}, boolean)); }},
      {"needs a bool condition, not f32", [](Fixture& x) { select(x({2}), x({2}), x({2})); }},
      {"mixes f32 and i32", [](Fixture& x) { select(x({}, boolean), x({}), x({}, i32)); }},
      {"between f32, i32 and u32", [](Fixture& x) { bitcast(x({2}, f16), u32); }},
  });
  expect_refused({{"cannot compute with f64", [](Fixture& x) { neg(x({2}, f64)); }},
                  {"cannot convert to i64", [](Fixture& x) { cast(x({2}), i64); }}},
                 ErrorKind::kUnsupported);
  expect_refused({{"The number 0.5 given", [](Fixture& x) { x({2}, i32) + 0.5; }},
                  {"empty tensor", [](Fixture& x) { add(x({2}), Tensor()); }},
                  {"empty tensor", [](Fixture&) { relu(Tensor()); }}},
                 ErrorKind::kInvalidArgument);
}

TEST(Shapes, Reductions) {
  expect_shapes({
      {"all",
       [](Fixture& x) {
         return sum(x({2, 3}));
       },
       {}},
      {"negative axis",
       [](Fixture& x) {
         return max(x({2, 3}), {-1});
       },
       {2}},
      {"keep",
       [](Fixture& x) {
         return min(x({2, 3, 4}), {2, 0}, true);
       },
       {1, 3, 1}},
      {"keep all",
       [](Fixture& x) {
         return mean(x({2, 3}), {}, true);
       },
       {1, 1}},
      {"empty sum",
       [](Fixture& x) {
         return sum(x({0, 3}), {0});
       },
       {3}},
      {"empty result",
       [](Fixture& x) {
         return max(x({0, 3}), {1});
       },
       {0}},
      {"rank 0", [](Fixture& x) { return max(x({})); }, {}},
      {"arg max",
       [](Fixture& x) {
         return arg_max(x({2, 3}), {0});
       },
       {3},
       u32},
      {"arg max of rank 0", [](Fixture& x) { return arg_max(x({})); }, {}, u32},
      {"half",
       [](Fixture& x) {
         return variance(x({2, 3}, f16), {1});
       },
       {2},
       f16},
      {"integers", [](Fixture& x) { return sum(x({2}, i32)); }, {}, i32},
  });
  expect_refused({
      {"has no axis 2: its operand is f32[2, 3]. Use an axis from -2 to 1.",
       [](Fixture& x) {
         sum(x({2, 3}), {2});
       }},
      {"names an axis twice: [1, -1]",
       [](Fixture& x) {
         sum(x({2, 3}), {1, -1});
       }},
      {"has no extreme along its empty axis 0",
       [](Fixture& x) {
         max(x({0, 3}), {0});
       }},
      {"has no extreme along its empty axis 0", [](Fixture& x) { arg_max(x({0})); }},
      {"cannot reduce bool values", [](Fixture& x) { sum(x({2}, boolean)); }},
      {"The op mean", [](Fixture& x) { mean(x({2}, i32)); }},
  });
}

TEST(Shapes, Products) {
  expect_shapes({
      {"contract",
       [](Fixture& x) {
         return contract(x({5, 2, 3}), x({3, 4, 5}), {0}, {2}, {2}, {0});
       },
       {5, 2, 4}},
      {"outer", [](Fixture& x) { return contract(x({2}), x({3}), {}, {}, {}, {}); }, {2, 3}},
      {"matrices",
       [](Fixture& x) {
         return matmul(x({2, 3}), x({3, 4}));
       },
       {2, 4}},
      {"vector matrix",
       [](Fixture& x) {
         return matmul(x({3}), x({3, 4}));
       },
       {4}},
      {"matrix vector",
       [](Fixture& x) {
         return matmul(x({2, 3}), x({3}));
       },
       {2}},
      {"vectors", [](Fixture& x) { return matmul(x({3}), x({3})); }, {}},
      {"batched",
       [](Fixture& x) {
         return matmul(x({7, 1, 2, 3}), x({5, 3, 4}));
       },
       {7, 5, 2, 4}},
      {"batched vector",
       [](Fixture& x) {
         return matmul(x({3}), x({5, 3, 4}));
       },
       {5, 4}},
      {"vector batched",
       [](Fixture& x) {
         return matmul(x({5, 2, 3}), x({3}));
       },
       {5, 2}},
      {"empty",
       [](Fixture& x) {
         return matmul(x({2, 0}), x({0, 4}));
       },
       {2, 4}},
      {"linear",
       [](Fixture& x) {
         return linear(x({5, 2, 3}), x({4, 3}), x({4}));
       },
       {5, 2, 4}},
      {"linear vector",
       [](Fixture& x) {
         return linear(x({3}), x({4, 3}));
       },
       {4}},
      {"half",
       [](Fixture& x) {
         return matmul(x({2, 3}, bf16), x({3, 4}, bf16));
       },
       {2, 4},
       bf16},
  });
  expect_refused({
      {"The op matmul",
       [](Fixture& x) {
         matmul(x({2, 3}), x({4, 3}));
       }},
      {"multiplies f32[2, 3] and f32[4, 3]",
       [](Fixture& x) {
         matmul(x({2, 3}), x({4, 3}));
       }},
      {"Use * for a scalar",
       [](Fixture& x) {
         matmul(x({}), x({4, 3}));
       }},
      {"cannot broadcast the leading axes",
       [](Fixture& x) {
         matmul(x({2, 1, 3}), x({4, 3, 1}));
       }},
      {"mixes f32 and f16",
       [](Fixture& x) {
         matmul(x({2, 3}), x({3, 3}, f16));
       }},
      {"multiplies f32, f16 or bf16, not i32",
       [](Fixture& x) {
         matmul(x({2, 3}, i32), x({3, 3}, i32));
       }},
      {"of extents 2 and 3", [](Fixture& x) { contract(x({2}), x({3}), {}, {}, {0}, {0}); }},
      {"pairs 1 batch axes with 0", [](Fixture& x) { contract(x({2}), x({3}), {0}, {}, {}, {}); }},
      {"at most once", [](Fixture& x) { contract(x({2}), x({2}), {0}, {0}, {0}, {0}); }},
      {"The weight is [out, in]",
       [](Fixture& x) {
         linear(x({5, 3}), x({3, 4}));
       }},
      {"Give a bias of shape [4]",
       [](Fixture& x) {
         linear(x({5, 3}), x({4, 3}), x({3}));
       }},
  });
}

TEST(Shapes, Views) {
  expect_shapes({
      {"reshape",
       [](Fixture& x) {
         return reshape(x({2, 6}), {3, -1});
       },
       {3, 4}},
      {"reshape empty",
       [](Fixture& x) {
         return reshape(x({0, 6}), {3, -1});
       },
       {3, 0}},
      {"reshape to rank 0",
       [](Fixture& x) {
         return reshape(x({1, 1}), {});
       },
       {}},
      {"flatten",
       [](Fixture& x) {
         return flatten(x({2, 3, 4}), 1);
       },
       {2, 12}},
      {"flatten rank 0", [](Fixture& x) { return flatten(x({})); }, {1}},
      {"permute",
       [](Fixture& x) {
         return permute(x({2, 3, 4}), {2, 0, -2});
       },
       {4, 2, 3}},
      {"transpose",
       [](Fixture& x) {
         return transpose(x({2, 3, 4}));
       },
       {2, 4, 3}},
      {"unsqueeze",
       [](Fixture& x) {
         return unsqueeze(x({2, 3}), -1);
       },
       {2, 3, 1}},
      {"unsqueeze front",
       [](Fixture& x) {
         return unsqueeze(x({2, 3}), 0);
       },
       {1, 2, 3}},
      {"squeeze",
       [](Fixture& x) {
         return squeeze(x({2, 1}), -1);
       },
       {2}},
      {"broadcast",
       [](Fixture& x) {
         return broadcast_to(x({1, 3}), {4, 2, 3});
       },
       {4, 2, 3}},
      {"broadcast to nothing", [](Fixture& x) { return broadcast_to(x({1}), {0}); }, {0}},
      {"slice",
       [](Fixture& x) {
         return slice(x({7, 5}), {-3, 1}, {99, -1}, {2, 1});
       },
       {2, 3}},
      {"empty slice", [](Fixture& x) { return slice(x({7}), {5}, {2}); }, {0}},
      {"iota",
       [](Fixture& x) {
         return iota(x.g, {2, 3}, -1, i32);
       },
       {2, 3},
       i32},
  });
  expect_refused({
      {"cannot become [4], which has 4 elements instead of 6",
       [](Fixture& x) {
         reshape(x({2, 3}), {4});
       }},
      {"cannot infer the -1 of [-1, -1]",
       [](Fixture& x) {
         reshape(x({2, 3}), {-1, -1});
       }},
      {"cannot infer the -1 of [-1, 4]",
       [](Fixture& x) {
         reshape(x({2, 3}), {-1, 4});
       }},
      {"cannot infer the -1 of [-1, 0]",
       [](Fixture& x) {
         reshape(x({0}), {-1, 0});
       }},
      {"got the order [0, 0]",
       [](Fixture& x) {
         permute(x({2, 3}), {0, 0});
       }},
      {"got the order [0]",
       [](Fixture& x) {
         permute(x({2, 3}), {0});
       }},
      {"cannot insert axis 3",
       [](Fixture& x) {
         unsqueeze(x({2, 3}), 3);
       }},
      {"cannot remove axis 0",
       [](Fixture& x) {
         squeeze(x({2, 3}), 0);
       }},
      {"does not broadcast to [3, 2]",
       [](Fixture& x) {
         broadcast_to(x({2, 3}), {3, 2});
       }},
      {"does not broadcast to [3]",
       [](Fixture& x) {
         broadcast_to(x({2, 3}), {3});
       }},
      {"in steps of [0]", [](Fixture& x) { slice(x({2}), {0}, {2}, {0}); }},
      {"cannot take [0] to [2]",
       [](Fixture& x) {
         slice(x({2, 3}), {0}, {2});
       }},
      {"counts along axis 2",
       [](Fixture& x) {
         iota(x.g, {2, 3}, 2);
       }},
      {"counts along axis", [](Fixture& x) { iota(x.g, {}, 0); }},
      {"cannot count in f16", [](Fixture& x) { iota(x.g, {2}, 0, f16); }},
  });
}

TEST(Shapes, Windows) {
  expect_shapes({
      {"pad",
       [](Fixture& x) {
         return pad(x({2, 3}), {1, 0}, {0, 2});
       },
       {3, 5}},
      {"concat",
       [](Fixture& x) {
         return concat(std::vector{x({2, 3}), x({2, 0}), x({2, 1})}, -1);
       },
       {2, 4}},
      {"dynamic slice",
       [](Fixture& x) {
         return dynamic_slice(x({5, 3}), x({2}, u32), {2, 3});
       },
       {2, 3}},
      {"dynamic update",
       [](Fixture& x) {
         return dynamic_update_slice(x({5, 3}), x({2, 1}), x({2}, i32));
       },
       {5, 3}},
      {"gather",
       [](Fixture& x) {
         return gather(x({5, 6, 7}), x({2, 3}, u32), 1);
       },
       {5, 2, 3, 7}},
      {"gather one",
       [](Fixture& x) {
         return gather(x({5, 6}), x({}, i32), -1);
       },
       {5}},
      {"gather none",
       [](Fixture& x) {
         return gather(x({0, 6}), x({0}, i32));
       },
       {0, 6}},
      {"scatter",
       [](Fixture& x) {
         return scatter_add(x({5, 6}), x({2, 3}, u32), x({2, 3, 6}));
       },
       {5, 6}},
      {"embedding",
       [](Fixture& x) {
         return embedding(x({10, 4}), x({2, 3}, u32));
       },
       {2, 3, 4}},
  });
  expect_refused({
      {"cannot add [-1] elements", [](Fixture& x) { pad(x({2}), {-1}, {0}); }},
      {"cannot add [1] elements",
       [](Fixture& x) {
         pad(x({2, 3}), {1}, {0});
       }},
      {"fills with 0.5, which is no value of i32",
       [](Fixture& x) { pad(x({2}, i32), {1}, {0}, 0.5); }},
      {"parts that differ elsewhere",
       [](Fixture& x) {
         concat(std::vector{x({2, 3}), x({3, 3})}, 1);
       }},
      {"parts that differ elsewhere",
       [](Fixture& x) {
         concat(std::vector{x({2}), x({2}, f16)}, 0);
       }},
      {"got no tensors", [](Fixture&) { concat({}, 0); }},
      {"has no axis 0",
       [](Fixture& x) {
         concat(std::vector{x({}), x({})}, 0);
       }},
      {"needs starts that are i32[2] or u32[2]",
       [](Fixture& x) {
         dynamic_slice(x({5, 3}), x({1}, u32), {2, 3});
       }},
      {"has a window of [6, 3] in [5, 3]",
       [](Fixture& x) {
         dynamic_slice(x({5, 3}), x({2}, u32), {6, 3});
       }},
      {"writes i32 into f32",
       [](Fixture& x) { dynamic_update_slice(x({5}), x({2}, i32), x({1}, u32)); }},
      {"is indexed by f32", [](Fixture& x) { gather(x({5}), x({2})); }},
      {"has no axis 1", [](Fixture& x) { gather(x({5}), x({2}, u32), 1); }},
      {"cannot pick elements of its empty axis 0", [](Fixture& x) { gather(x({0}), x({2}, u32)); }},
      {"needs updates of type f32[2, 6]",
       [](Fixture& x) {
         scatter_add(x({5, 6}), x({2}, u32), x({2, 5}));
       }},
      {"has no axis 0 to add along", [](Fixture& x) { scatter_add(x({}), x({}, u32), x({})); }},
      {"Its table is [V, D]", [](Fixture& x) { embedding(x({5}), x({2}, u32)); }},
      {"Only a parameter or a state can change", [](Fixture& x) { assign(x({5}), x({5})); }},
      {"assigns f32[4] to \"s\", which is f32[5]",
       [](Fixture& x) { assign(x.g.state("s", f32, {5}), x({4})); }},
  });
}

TEST(Shapes, Composites) {
  expect_shapes({
      {"softmax",
       [](Fixture& x) {
         return softmax(x({2, 3}), 0);
       },
       {2, 3}},
      {"softmax of nothing",
       [](Fixture& x) {
         return softmax(x({2, 0}));
       },
       {2, 0}},
      {"softmax half",
       [](Fixture& x) {
         return softmax(x({2, 3}, f16));
       },
       {2, 3},
       f16},
      {"layer norm",
       [](Fixture& x) {
         return layer_norm(x({5, 2, 3}), x({2, 3}), x({2, 3}));
       },
       {5, 2, 3}},
      {"rms norm",
       [](Fixture& x) {
         return rms_norm(x({5, 3}, bf16), x({3}, bf16));
       },
       {5, 3},
       bf16},
      {"cross entropy",
       [](Fixture& x) {
         return cross_entropy(x({5, 3}), x({5}, u32));
       },
       {}},
      {"cross entropy of one",
       [](Fixture& x) {
         return cross_entropy(x({3}), x({}, i32), {.reduction = Reduction::kNone});
       },
       {}},
      {"losses",
       [](Fixture& x) {
         return cross_entropy(x({5, 3}, f16), x({5, 3}), {.reduction = Reduction::kNone});
       },
       {5}},
      {"bce", [](Fixture& x) { return bce_with_logits(x({5}), x({5}), Reduction::kNone); }, {5}},
      {"normal",
       [](Fixture& x) {
         return random_normal(x({}, u32), x({}, u32), {3, 5}, 0);
       },
       {3, 5}},
      {"dropout",
       [](Fixture& x) {
         return dropout(x({0, 5}), 0.5, x({}, u32), x({}, u32), 1);
       },
       {0, 5}},
  });
  expect_refused({
      {"The op softmax",
       [](Fixture& x) {
         softmax(x({2, 3}), 2);
       }},
      {"takes floats, not u32", [](Fixture& x) { leaky_relu(x({2}, u32)); }},
      {"takes numbers, not bool", [](Fixture& x) { relu(x({2}, boolean)); }},
      {"Logits are [N, C] or [C]",
       [](Fixture& x) {
         cross_entropy(x({2, 3, 4}), x({2}, u32));
       }},
      {"got logits f32[5, 3] and labels u32[4]",
       [](Fixture& x) {
         cross_entropy(x({5, 3}), x({4}, u32));
       }},
      {"without classes",
       [](Fixture& x) {
         cross_entropy(x({5, 0}), x({5}, u32));
       }},
      {"They must be f32[3], one per class",
       [](Fixture& x) {
         cross_entropy(x({5, 3}), x({5}, u32), {.weights = x({2})});
       }},
      {"compares f32[5] with f32[1]", [](Fixture& x) { mse_loss(x({5}), x({1})); }},
      {"The weight has the extents of the last axes",
       [](Fixture& x) {
         layer_norm(x({5, 3}), x({5}), {});
       }},
      {"needs a seed that is u32[], not u32[1]",
       [](Fixture& x) { random_bits(x({1}, u32), x({}, u32), {3}, 0); }},
      {"has the stream -1", [](Fixture& x) { random_bits(x({}, u32), x({}, u32), {3}, -1); }},
  });
  expect_refused(
      {
          {"ignores the label -100",
           [](Fixture& x) {
             cross_entropy(x({5, 3}), x({5}, u32), {.ignore_index = -100});
           }},
          {"label smoothing of 2",
           [](Fixture& x) {
             cross_entropy(x({5, 3}), x({5}, u32), {.label_smoothing = 2.0});
           }},
          {"its labels are probabilities",
           [](Fixture& x) {
             cross_entropy(x({5, 3}), x({5, 3}), {.ignore_index = 0});
           }},
          {"has the probability 1.5",
           [](Fixture& x) { dropout(x({5}), 1.5, x({}, u32), x({}, u32), 1); }},
      },
      ErrorKind::kInvalidArgument);
}

TEST(Shapes, CompositesCarryTheCallersPlace) {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 3});
  const int line = __LINE__ + 1;
  const Tensor y = softmax(x);
  const std::vector<Tensor> order = topological_order(std::vector{y});
  for (Tensor tensor : order) {
    if (tensor == x) continue;
    EXPECT_EQ(to_string(tensor.node().place), cat("shapes_test.cc:", line));
  }
}

TEST(Shapes, IndicesLimitTheirInputs) {
  const auto limit = [](Tensor input) { return input.node().get<int64_t>("limit"); };
  Fixture x;
  const Tensor labels = x({6}, u32);
  cross_entropy(x({6, 10}), labels);
  EXPECT_EQ(limit(labels), 10);
  const Tensor ids = x({2, 3}, i32);
  embedding(x({7, 4}), reshape(ids, {6}));
  EXPECT_EQ(limit(ids), 7);
  const Tensor ignored = x({6}, u32);
  cross_entropy(x({6, 10}), ignored, {.ignore_index = 255});
  EXPECT_EQ(limit(ignored), 256);
}

TEST(Shapes, NothingIsBuiltForNothing) {
  Fixture f;
  const Tensor x = f({2, 3});
  EXPECT_EQ(reshape(x, {2, -1}), x);
  EXPECT_EQ(permute(x, {0, 1}), x);
  EXPECT_EQ(broadcast_to(x, {2, 3}), x);
  EXPECT_EQ(slice(x, {0, 0}, {9, 3}), x);
  EXPECT_EQ(pad(x, {0, 0}, {0, 0}), x);
  EXPECT_EQ(cast(x, f32), x);
  EXPECT_EQ(concat(std::vector{x}, 0), x);
  EXPECT_EQ(dropout(x, 0.0, f({}, u32), f({}, u32), 0), x);
}

}  // namespace
}  // namespace meganeura
