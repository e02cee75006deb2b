#include "meganeura/graph.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "graph/node.h"

namespace meganeura {
namespace {

// A toy op, so that the layer is tested without the table above it.
constexpr AttributeField kFields[] = {{"scale", AttributeType::kFloat},
                                      {"axes", AttributeType::kInts},
                                      {"exact", AttributeType::kBool},
                                      {"count", AttributeType::kInt}};

InferredType infer_join(const Node& node) {
  for (Tensor operand : node.operands) {
    if (operand.shape() == node.operands[0].shape()) continue;
    fail(ErrorKind::kShape, "The op ", describe(node), " on ", describe_operands(node),
         " needs one shape.");
  }
  return {node.operands[0].shape(), node.operands[0].dtype()};
}

constexpr OpRow kJoin = {.name = "join",
                         .min_operands = 1,
                         .max_operands = -1,
                         .fields = kFields,
                         .lowering = Lowering::kMap,
                         .infer = infer_join};
constexpr OpRow kAssign = {.name = "set",
                           .min_operands = 2,
                           .max_operands = 2,
                           .fields = {},
                           .lowering = Lowering::kAssign,
                           .infer = infer_join};

const OpRow* find(std::string_view name) {
  if (name == "join") return &kJoin;
  return name == "set" ? &kAssign : nullptr;
}

Tensor join_of(Graph& graph, std::vector<Tensor> operands, double scale = 1.0,
               Place place = Place::here()) {
  return build_node(graph, kJoin, std::move(operands),
                    {scale, std::vector<int64_t>{}, false, int64_t{0}}, place);
}

template <class Call>
std::string error_of(Call call, ErrorKind kind) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

void expect_has(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

std::string reprinted(const std::string& text) {
  return print_graph(parse_graph(text, find).outputs);
}

TEST(Graph, HandlesSurviveAMove) {
  Graph first;
  const Tensor x = first.input("x", f32, {2});
  Graph second(std::move(first));
  EXPECT_EQ(&x.graph(), &second);
  EXPECT_EQ(join_of(second, {x}).shape(), (Shape{2}));
  Graph third;
  third = std::move(second);
  EXPECT_EQ(&x.graph(), &third);
  EXPECT_EQ(third.find("x"), x);
  expect_has(error_of([&] { second.find("x"); }, ErrorKind::kInvalidArgument), "moved away");
}

TEST(Graph, EmptyHandlesAreRefused) {
  Graph graph;
  EXPECT_FALSE(Tensor());
  expect_has(error_of([] { Tensor().shape(); }, ErrorKind::kInvalidArgument), "empty tensor");
  expect_has(error_of([&] { join_of(graph, {Tensor()}); }, ErrorKind::kInvalidArgument),
             "Operand 0 of the op join at graph_test.cc:");
}

TEST(Graph, NamesAreUnique) {
  Graph graph;
  graph.input("x", f32, {});
  EXPECT_TRUE(graph.find("x"));
  EXPECT_FALSE(graph.find("y"));
  expect_has(error_of([&] { graph.parameter("x", f32, {}); }, ErrorKind::kInvalidArgument),
             "The name \"x\" of parameter at graph_test.cc:");
  expect_has(error_of([&] { graph.state("", f32, {}); }, ErrorKind::kInvalidArgument), "is empty");
  EXPECT_EQ(graph.size(), 1u);
}

TEST(Graph, LimitsTakeTheSmallest) {
  Graph graph;
  const Tensor x = graph.input("x", u32, {4});
  const auto limit = [&] { return x.node().get<int64_t>("limit"); };
  EXPECT_EQ(limit(), 0);
  graph.limit_input(x, 10);
  graph.limit_input(x, 20);
  EXPECT_EQ(limit(), 10);
  graph.limit_input(x, 5);
  EXPECT_EQ(limit(), 5);
  const Tensor y = graph.input("y", f32, {});
  expect_has(error_of([&] { graph.limit_input(y, 3); }, ErrorKind::kInvalidArgument),
             "Only integer inputs");
  expect_has(error_of([&] { graph.limit_input(x, 0); }, ErrorKind::kInvalidArgument),
             "no legal value");
  expect_has(error_of([&] { graph.input("z", f32, {}, 3); }, ErrorKind::kInvalidArgument),
             "The limit 3");
  expect_has(error_of([&] { graph.input("z", u32, {}, -1); }, ErrorKind::kInvalidArgument),
             "The limit -1");
}

TEST(Graph, FreezesParametersOnly) {
  Graph graph;
  const Tensor w = graph.parameter("w", f32, {2});
  EXPECT_TRUE(w.node().get<bool>("trainable"));
  graph.set_trainable(w, false);
  EXPECT_FALSE(w.node().get<bool>("trainable"));
  const Tensor s = graph.state("s", f32, {2});
  expect_has(error_of([&] { graph.set_trainable(s, true); }, ErrorKind::kInvalidArgument),
             "no parameter");
  expect_has(error_of([&] { graph.parameter("i", i32, {}); }, ErrorKind::kInvalidArgument),
             "trainable = false");
  const Tensor frozen = graph.parameter("i", i32, {}, {}, false);
  expect_has(error_of([&] { graph.set_trainable(frozen, true); }, ErrorKind::kInvalidArgument),
             "have no gradient");
}

TEST(Graph, ScalarsMustFitTheirType) {
  Graph graph;
  const auto bytes = [](Tensor t) { return *t.node().get<Bytes>("data"); };
  float stored = 0;
  std::memcpy(&stored, bytes(graph.scalar(0.1)).data(), sizeof stored);
  EXPECT_EQ(stored, 0.1f);
  EXPECT_EQ(bytes(graph.scalar(-1, i8)), std::vector{std::byte{255}});
  graph.scalar(std::numeric_limits<double>::infinity());
  graph.scalar(std::nan(""));
  for (const auto& [value, dtype] : {std::pair{2.5, i32},
                                     {-1.0, u32},
                                     {300.0, u8},
                                     {1e300, f32},
                                     {1e6, f16},
                                     {std::nan(""), i32},
                                     {2.0, boolean}}) {
    const auto call = [&, v = value, d = dtype] { graph.scalar(v, d); };
    expect_has(error_of(call, ErrorKind::kInvalidArgument), "is not a value of");
  }
}

TEST(Graph, ConstantsNeedTheirBytes) {
  Graph graph;
  const std::vector<std::byte> two(2);
  expect_has(error_of([&] { graph.constant(f32, {1}, two); }, ErrorKind::kShape),
             "needs 4 bytes but got 2");
  const std::vector<std::byte> bad = {std::byte{2}};
  expect_has(error_of([&] { graph.constant(boolean, {1}, bad); }, ErrorKind::kInvalidArgument),
             "other than 0 and 1");
  EXPECT_EQ(graph.constant(f32, {0, 5}, {}).shape(), (Shape{0, 5}));
}

TEST(Graph, PlaceScopesNestOutermostFirst) {
  Graph graph;
  const Tensor x = graph.input("x", f32, {});
  {
    const PlaceScope outer(graph, {"user/model.cc", 12});
    const PlaceScope inner(graph, {"other.cc", 3});
    EXPECT_EQ(describe(join_of(graph, {x}).node()), "join at model.cc:12");
  }
  EXPECT_EQ(describe(join_of(graph, {x}, 1.0, {"a.cc", 1}).node()), "join at a.cc:1");
}

TEST(Graph, RecomputeRegionsNest) {
  Graph graph;
  const Tensor x = graph.input("x", f32, {});
  uint32_t outer_id = 0;
  {
    const Graph::RecomputeRegion outer(graph);
    outer_id = join_of(graph, {x}).node().recompute;
    EXPECT_NE(outer_id, 0u);
    EXPECT_EQ(graph.scalar(1.0).node().recompute, 0u) << "leaves belong to no region";
    {
      const Graph::RecomputeRegion inner(graph);
      EXPECT_NE(join_of(graph, {x}).node().recompute, outer_id);
    }
    EXPECT_EQ(join_of(graph, {x}).node().recompute, outer_id);
  }
  EXPECT_EQ(join_of(graph, {x}).node().recompute, 0u);
}

TEST(TopologicalOrder, FollowsOperandsOnly) {
  Graph graph;
  const Tensor b = graph.input("b", f32, {});
  const Tensor a = graph.input("a", f32, {});
  const Tensor right = join_of(graph, {b});
  const Tensor left = join_of(graph, {a});
  join_of(graph, {a, b});
  const Tensor root = join_of(graph, {left, right, left});
  EXPECT_EQ(topological_order(std::vector{root}), (std::vector{a, left, b, right, root}));
  EXPECT_EQ(topological_order(std::vector{b, root, b}), (std::vector{b, a, left, right, root}));
  EXPECT_TRUE(topological_order({}).empty());
}

TEST(TopologicalOrder, DeepGraphsDoNotOverflow) {
  Graph graph;
  Tensor x = graph.input("x", f32, {});
  for (int i = 0; i < 100000; ++i) x = join_of(graph, {x});
  EXPECT_EQ(topological_order(std::vector{x}).size(), 100001u);
  verify_graph(std::vector{x});
}

TEST(TopologicalOrder, RefusesTwoGraphs) {
  Graph one;
  Graph two;
  const std::vector roots = {one.scalar(1.0), two.scalar(1.0)};
  expect_has(error_of([&] { topological_order(roots); }, ErrorKind::kInvalidArgument),
             "another graph");
}

TEST(GraphText, PrintsOneNodePerLine) {
  Graph graph;
  const Tensor x = graph.input("x", u32, {2}, 10);
  const Tensor w = graph.parameter("w \"1\"\n", f32, {2}, Initializer::uniform(-0.5, 0.25));
  const Tensor s = graph.state("s", f32, {2}, Initializer::ones());
  const std::array<float, 2> numbers = {0.1f, -0.0f};
  const Tensor c = graph.constant(f32, {2}, std::as_bytes(std::span(numbers)));
  const Tensor joined = build_node(
      graph, kJoin, {w, s, c}, {0.5, std::vector<int64_t>{1, -2}, true, int64_t{7}}, Place::here());
  const std::string text = print_graph(std::vector<Output>{{"o", joined}, {"x", x}});
  const std::string expected =
      "%0 = parameter() {name = \"w \\\"1\\\"\\x0a\", dtype = f32, shape = [2], "
      "init = \"uniform(-0.5, 0.25)\", trainable} : f32[2]\n"
      "%1 = state() {name = \"s\", dtype = f32, shape = [2], init = \"ones\"} : f32[2]\n"
      "%2 = constant() {dtype = f32, shape = [2], data = [0.1, -0]} : f32[2]\n"
      "%3 = join(%0, %1, %2) {scale = 0.5, axes = [1, -2], exact, count = 7} : f32[2]\n"
      "%4 = input() {name = \"x\", dtype = u32, shape = [2], limit = 10} : u32[2]\n"
      "output \"o\" %3\n"
      "output \"x\" %4\n";
  EXPECT_EQ(text, expected);
  EXPECT_EQ(reprinted(text), text);
}

TEST(GraphText, NumbersRegionsByAppearance) {
  Graph graph;
  const Tensor x = graph.input("x", f32, {});
  std::vector<Tensor> parts;
  for (int i = 0; i < 2; ++i) {
    const Graph::RecomputeRegion region(graph);
    parts.push_back(join_of(graph, {x}, i));
  }
  const Tensor root = join_of(graph, {parts[1], parts[0]});
  const std::string text = print_graph(std::vector<Output>{{"y", root}});
  expect_has(text, "scale = 1, axes = [], count = 0} : f32[] recompute 1\n");
  expect_has(text, "scale = 0, axes = [], count = 0} : f32[] recompute 2\n");
  EXPECT_EQ(reprinted(text), text);
}

TEST(GraphText, ConstantsKeepEveryBit) {
  Graph graph;
  const auto kept = [&](DType dtype, const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    const Shape shape = {static_cast<int64_t>(values.size())};
    const Tensor constant = graph.constant(dtype, shape, bytes);
    const std::string text = print_graph(std::vector<Output>{{"c", constant}});
    const ParsedGraph parsed = parse_graph(text, find);
    EXPECT_EQ(*parsed.outputs[0].tensor.node().get<Bytes>("data"),
              std::vector<std::byte>(bytes.begin(), bytes.end()))
        << text;
    return text;
  };
  const float inf = std::numeric_limits<float>::infinity();
  kept(f32, std::vector<float>{0.1f, -0.0f, inf, -inf, 1e-45f, 3.4028235e38f, 1.17549435e-38f});
  expect_has(kept(f32, std::vector<uint32_t>{0x7fc00000, 0x7fc00001, 0xffc00000}), "nan:0x");
  kept(f64, std::vector<double>{0.1, 5e-324, 1.7976931348623157e308, -0.0});
  std::vector<uint16_t> halves;
  for (uint32_t bits = 0; bits < 65536; bits += 13) halves.push_back(static_cast<uint16_t>(bits));
  kept(f16, halves);
  kept(bf16, halves);
  kept(i64, std::vector<int64_t>{INT64_MIN, INT64_MAX, 9007199254740993});
  kept(u32, std::vector<uint32_t>{0, 4294967295u});
  kept(i8, std::vector<int8_t>{-128, 127});
  kept(boolean, std::vector<uint8_t>{0, 1, 1});
  expect_has(kept(f32, std::vector<float>(100, 1.5f)), "data = splat 1.5}");
  expect_has(kept(i32, std::vector<int32_t>{}), "data = []}");
}

TEST(GraphText, ErrorsNameLineAndColumn) {
  const std::string x =
      "%0 = input() {name = \"x\", dtype = f32, shape = [2], limit = 0} : f32[2]\n";
  const std::pair<std::string, std::string_view> cases[] = {
      {"hello", "Line 1, column 1 of the graph text: expected \"%\" instead of \"hello\"."},
      {x + "%2 = join(%0)", "Line 2, column 1 of the graph text: values are numbered in order"},
      {x + "%1 = jon(%0)", "Line 2, column 6 of the graph text: there is no op \"jon\"."},
      {x + "%1 = join(%1)", "Line 2, column 12 of the graph text: %1 has not been defined"},
      {x + "%1 = join(%0) : f32[2]", "expected \"{\" and the attribute scale"},
      {x + "%1 = join(%0) {scale = x, axes = [], count = 0} : f32[2]",
       "Line 2, column 24 of the graph text: expected a number"},
      {x + "%1 = join(%0) {scale = 1, axes = [], count = 0} : f32[3]", "the type must be f32[2]"},
      {x + "%1 = join(%0) {scale = 1, axes = [], count = 0} : f32[2] recompute 0",
       "the number of a region"},
      {x + "%1 = join(%0) {scale = 1, axes = [], count = 0} : f32[2] %0", "the end of the line"},
      {x + "output \"x %0", "expected \"\"\" instead of the end of the line"},
      {x + "output \"x\\q\" %0", "expected an escape"},
      {"%0 = constant() {dtype = u8, shape = [1], data = [256]} : u8[1]", "a value of u8"},
      {"%0 = constant() {dtype = f99, shape = [1], data = [1]} : f32[1]", "expected a dtype"},
      {"%0 = constant() {dtype = f32, shape = [99999999999], data = splat 1} : f32[1]",
       "too large"},
      {"%0 = constant() {dtype = f32, shape = [99999999999999999999], data = []} : f32[1]",
       "expected an integer"},
  };
  for (const auto& [text, expected] : cases) {
    expect_has(error_of([&, t = text] { parse_graph(t, find); }, ErrorKind::kInvalidArgument),
               expected);
  }
  expect_has(error_of(
                 [] {
                   parse_graph(
                       "%0 = constant() {dtype = f32, shape = [2], data = [1]} "
                       ": f32[2]",
                       find);
                 },
                 ErrorKind::kShape),
             "constant at graph text:1");
}

TEST(GraphText, TruncatedTextNeverCrashes) {
  Graph graph;
  const Tensor x = graph.input("x\\\"", f32, {2});
  const std::string text =
      print_graph(std::vector<Output>{{"y", join_of(graph, {x, x}, std::nan(""))}});
  for (size_t size = 0; size < text.size(); ++size) {
    try {
      parse_graph(std::string_view(text).substr(0, size), find);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << error.what();
    }
  }
}

TEST(VerifyGraph, FindsWhatWasChangedBehindTheRow) {
  Graph graph;
  const Tensor x = graph.input("x", f32, {2});
  Node node = join_of(graph, {x}).node();
  node.shape = {3};
  const Tensor wrong = graph.append(node);
  expect_has(error_of([&] { verify_graph(std::vector{wrong}); }, ErrorKind::kInternal),
             "on f32[2] is recorded as f32[3] but its shape rule gives f32[2]");
  node.shape = {2};
  node.attributes.pop_back();
  const Tensor short_one = graph.append(node);
  expect_has(error_of([&] { verify_graph(std::vector{short_one}); }, ErrorKind::kInternal),
             "3 attributes for 4 fields");
}

TEST(VerifyGraph, NodesAreCheckedWhenBuilt) {
  Graph graph;
  const Tensor x = graph.input("x", f32, {2});
  const Tensor y = graph.input("y", f32, {3});
  expect_has(error_of([&] { join_of(graph, {x, y}); }, ErrorKind::kShape), "on f32[2], f32[3]");
  expect_has(error_of([&] { join_of(graph, {}); }, ErrorKind::kShape),
             "takes at least 1 operands but got 0");
  expect_has(
      error_of([&] { build_node(graph, kAssign, {x}, {}, Place::here()); }, ErrorKind::kShape),
      "takes 2 operands but got 1");
  Graph other;
  expect_has(error_of([&] { join_of(other, {x}); }, ErrorKind::kInvalidArgument),
             "a tensor of another graph");
}

TEST(VerifyGraph, RefusesTwoNewValuesOfOneLeaf) {
  Graph graph;
  const Tensor s = graph.state("s", f32, {});
  const auto set = [&](Tensor value) {
    return build_node(graph, kAssign, {s, value}, {}, Place::here());
  };
  const std::vector<Tensor> roots = {set(graph.scalar(1.0)), set(graph.scalar(2.0))};
  verify_graph(std::vector{roots[0], roots[0]});
  expect_has(error_of([&] { verify_graph(roots); }, ErrorKind::kInvalidArgument),
             "\"s\" gets two new values");
}

TEST(Initializer, TextRoundTrips) {
  for (const char* text :
       {"zeros", "ones", "constant(0.5)", "uniform(-0.05, 0.05)", "normal(0, 1e-30)"}) {
    EXPECT_EQ(Initializer::parse(text).to_string(), text);
  }
  EXPECT_EQ(Initializer::parse("uniform( -1 ,2 )").to_string(), "uniform(-1, 2)");
  for (const char* text : {"", "zero", "zeros()", "zeros(1)", "ones(", "constant", "constant()",
                           "constant(1, 2)", "uniform(1)", "normal(1, x)", "normal(1, 2"}) {
    expect_has(error_of([&] { Initializer::parse(text); }, ErrorKind::kInvalidArgument),
               "is no initializer");
  }
}

}  // namespace
}  // namespace meganeura
