#include "kernels/archetypes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include "device/interpreter/interpreter.h"
#include "kernels/testing/spec_check.h"
#include "meganeura/error.h"

namespace meganeura::kernels {
namespace {

using scalar::Type;

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

Capabilities cpu() { return device::interpreter_capabilities(8, DeviceClass::kCpu); }
Capabilities gpu() { return device::interpreter_capabilities(32, DeviceClass::kLargeGpu); }

std::vector<std::byte> floats(const std::vector<float>& values) {
  std::vector<std::byte> bytes(slot_bytes(DType::kF32, static_cast<int64_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i) {
    write_element(bytes, DType::kF32, static_cast<int64_t>(i), values[i]);
  }
  return bytes;
}

PointwiseSpec copy_spec(int64_t count, DType from, DType to) {
  PointwiseSpec spec;
  spec.extents = {count};
  spec.inputs = {{0, from, {0, {1}}, {}, {}}};
  spec.outputs = {{1, to, {0, {1}}}};
  const Type type = scalar::compute_type(from);
  const scalar::Scalar value = convert(scalar::argument(0, type), scalar::compute_type(to));
  spec.body = scalar::linearize(std::array{value}, std::array{type});
  return spec;
}

ReductionSpec row_spec(Combine combine, int64_t rows, int64_t length) {
  ReductionSpec spec;
  spec.outer = {rows};
  spec.reduced = {length};
  spec.combine = combine;
  spec.inputs = {{0, DType::kF32, {0, {length, 1}}, {}, {}}};
  spec.prologue = scalar::identity(Type::kF32);
  const bool index = combine == Combine::kArgMax;
  spec.epilogue = scalar::identity(index ? Type::kU32 : Type::kF32);
  spec.outputs = {{1, index ? DType::kU32 : DType::kF32, {0, {1}}}};
  return spec;
}

ContractionSpec product_spec(int64_t m, int64_t n, int64_t k) {
  ContractionSpec spec;
  spec.m = {m};
  spec.n = {n};
  spec.k = {k};
  spec.a = {0, DType::kF32, {0, {k, 1}}, {}, {}};
  spec.b = {1, DType::kF32, {0, {n, 1}}, {}, {}};
  spec.epilogue = scalar::identity(Type::kF32);
  spec.outputs = {{2, DType::kF32, {0, {n, 1}}}};
  return spec;
}

std::vector<float> ramp(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 37) % 23) / 8 - 1);
  return values;
}

std::set<std::string> modules(const std::vector<KernelPlan>& plans) {
  std::set<std::string> texts;
  for (const KernelPlan& plan : plans) {
    for (const Stage& stage : plan.stages) texts.insert(to_string(stage.kernel));
  }
  return texts;
}

// Kernel text changes only on purpose: run with MEGANEURA_UPDATE_GOLDEN=1 to accept it.
void expect_golden(const std::string& name, const KernelPlan& plan) {
  const std::filesystem::path path =
      std::filesystem::path(MEGANEURA_SOURCE_DIR) / "src/kernels/testing/golden" / (name + ".txt");
  std::string text;
  for (const Stage& stage : plan.stages) text += to_string(stage.kernel);
  if (std::getenv("MEGANEURA_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  const std::string want((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text, want) << path;
}

KernelPlan with_tile(const KernelSpec& spec, const Capabilities& device, const std::string& tile) {
  for (KernelPlan& plan : candidates(spec, device)) {
    if (plan.tile == tile) return plan;
  }
  ADD_FAILURE() << "no tile " << tile;
  return {};
}

ScatterAddSpec scatter_spec() {
  ScatterAddSpec spec;
  spec.rows = 5;
  spec.positions = 7;
  spec.inner = {3};
  spec.has_base = false;
  spec.index = {0, DType::kU32, {0, {1}}, {}, {}};
  spec.updates = {1, DType::kF32, {0, {3, 1}}, {}, {}};
  spec.output = {2, DType::kF32, {0, {3, 1}}};
  return spec;
}

TEST(Golden, KernelsOfEveryArchetype) {
  expect_golden("pointwise",
                with_tile(copy_spec(6, DType::kF32, DType::kF16), cpu(), "pointwise v4 l64"));
  expect_golden("reduction",
                with_tile(row_spec(Combine::kSum, 3, 20), cpu(), "reduce subgroup l64"));
  expect_golden("contraction", with_tile(product_spec(3, 5, 7), cpu(), "contract naive l64"));
  expect_golden("scatter_add", with_tile(scatter_spec(), cpu(), "scatter serial l64"));
}

TEST(Candidates, EmptySpacesNeedNoStage) {
  for (const KernelSpec& spec :
       {KernelSpec(copy_spec(0, DType::kF32, DType::kF32)),
        KernelSpec(row_spec(Combine::kSum, 0, 5)), KernelSpec(product_spec(0, 3, 4))}) {
    const std::vector<KernelPlan> plans = candidates(spec, cpu());
    ASSERT_EQ(plans.size(), 1u);
    EXPECT_TRUE(plans[0].stages.empty());
  }
}

TEST(Candidates, EmptySumsAreZero) {
  const SlotMemory sums = {{}, floats({7, 7, 7})};
  check_candidates("empty sum", row_spec(Combine::kSum, 3, 0), sums, test_capabilities());
  const SlotMemory products = {{}, {}, floats(std::vector<float>(6, 7))};
  check_candidates("empty product", product_spec(2, 3, 0), products, test_capabilities());
}

TEST(Candidates, ComeCheapestFirstAndBuildTakesTheFirst) {
  for (const Capabilities& device : test_capabilities()) {
    const std::vector<KernelPlan> plans = candidates(product_spec(64, 128, 784), device);
    ASSERT_GE(plans.size(), 3u);
    for (size_t i = 1; i < plans.size(); ++i) EXPECT_LE(plans[i - 1].cost, plans[i].cost);
    EXPECT_EQ(build(product_spec(64, 128, 784), device).tile, plans[0].tile);
    EXPECT_EQ(plans[0].tile.find("naive"), std::string::npos);
  }
}

TEST(Candidates, AreTheSameTextEveryTime) {
  const KernelSpec spec = product_spec(33, 65, 17);
  EXPECT_EQ(modules(candidates(spec, gpu())), modules(candidates(spec, gpu())));
}

TEST(Candidates, ShapesShareModulesOnTheCpu) {
  std::set<std::string> texts;
  for (int64_t m : {16, 64, 100}) {
    for (int64_t n : {10, 128}) {
      for (const std::string& text : modules({build(product_spec(m, n, 7 * m), cpu())})) {
        texts.insert(text);
      }
    }
  }
  EXPECT_LE(texts.size(), 6u);
  const auto flat = [](int64_t n) {
    return to_string(build(copy_spec(n, DType::kF32, DType::kF32), cpu()).stages[0].kernel);
  };
  EXPECT_EQ(flat(4000), flat(8000));
}

TEST(Candidates, NamePushConstantsWhenSlotsDoNotFit) {
  PointwiseSpec spec;
  spec.extents = {8};
  std::vector<Type> types;
  scalar::Scalar sum = scalar::constant_f32(0);
  for (uint32_t i = 0; i < 20; ++i) {
    spec.inputs.push_back({i, DType::kF32, {0, {1}}, {}, {}});
    types.push_back(Type::kF32);
    sum = sum + scalar::argument(i, Type::kF32);
  }
  spec.body = scalar::linearize(std::array{sum}, types);
  spec.outputs = {{20, DType::kF32, {0, {1}}}};
  Capabilities device = cpu();
  device.binding = BindingMode::kAddress;
  device.push_constant_bytes = 128;
  try {
    candidates(spec, device);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("21 slots"), std::string::npos) << error.what();
  }
  EXPECT_EQ(max_slots(device, 0), 16u);
  EXPECT_EQ(max_slots(device, 3), 14u);
  EXPECT_EQ(max_slots(device, 40), 0u);
}

TEST(Candidates, RefuseScatteredNarrowOutputs) {
  PointwiseSpec spec = copy_spec(6, DType::kF32, DType::kF16);
  spec.outputs[0].access.strides[0] = 2;
  EXPECT_THROW(candidates(spec, cpu()), Error);
  spec.outputs[0].access = {2, {1}};
  EXPECT_THROW(candidates(spec, cpu()), Error);
}

TEST(Candidates, RespectTheGridOfTheDevice) {
  Capabilities device = gpu();
  device.max_workgroup_count = {3, 1, 1};
  const SlotMemory copy = {floats(ramp(3000)), floats(std::vector<float>(3000, 0))};
  check_candidates("copy", copy_spec(3000, DType::kF32, DType::kF32), copy, {device});
  const SlotMemory rows = {floats(ramp(50 * 40)), floats(std::vector<float>(50, 0))};
  check_candidates("rows", row_spec(Combine::kSum, 50, 40), rows, {device});
  const SlotMemory product = {floats(ramp(70 * 9)), floats(ramp(9 * 130)),
                              floats(std::vector<float>(70 * 130, 0))};
  check_candidates("product", product_spec(70, 130, 9), product, {device});
}

TEST(Pointwise, PadsTheLastWordOfNarrowOutputsWithZeros) {
  for (const Capabilities& device : {cpu(), gpu()}) {
    for (const KernelPlan& plan : candidates(copy_spec(6, DType::kF32, DType::kU8), device)) {
      SlotMemory memory = {floats({1, 2, 3, 4, 5, 6}), std::vector<std::byte>(8, std::byte{0xff})};
      std::vector<std::span<std::byte>> slots = {memory[0], memory[1]};
      device::run_kernel(plan.stages[0].kernel, plan.stages[0].grid, slots, plan.stages[0].params);
      const std::vector<std::byte> want = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                                           std::byte{5}, std::byte{6}, std::byte{0}, std::byte{0}};
      EXPECT_EQ(memory[1], want) << plan.tile;
    }
  }
}

TEST(Reduction, ExtremaAndArgMaxHandleNanTiesAndInfinities) {
  const std::vector<float> rows = {1,     3,     3,     2,      //
                                   -kInf, -kInf, -kInf, -kInf,  //
                                   1,     kNan,  5,     kNan,   //
                                   -0.0f, 0,     -1,    0};
  const std::vector<uint32_t> want = {1, 0, 1, 0};
  for (const Capabilities& device : test_capabilities()) {
    for (const KernelPlan& plan : candidates(row_spec(Combine::kArgMax, 4, 4), device)) {
      SlotMemory memory = {floats(rows), floats({9, 9, 9, 9})};
      std::vector<std::span<std::byte>> slots = {memory[0], memory[1]};
      device::run_kernel(plan.stages[0].kernel, plan.stages[0].grid, slots, plan.stages[0].params,
                         {.subgroup_size = device.subgroup_size});
      for (int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(read_element(memory[1], DType::kU32, i), want[static_cast<size_t>(i)])
            << plan.tile << " row " << i;
      }
    }
  }
  for (Combine combine : {Combine::kMax, Combine::kMin, Combine::kSum}) {
    const SlotMemory memory = {floats(rows), floats({9, 9, 9, 9})};
    check_candidates("extrema", row_spec(combine, 4, 4), memory, test_capabilities());
  }
}

TEST(Reduction, LongSumsStayAccurate) {
  // 0.1 a hundred thousand times: a plain running sum is off by about 1 %.
  const int64_t count = 100000;
  for (const Capabilities& device : {cpu(), gpu()}) {
    const SlotMemory memory = {floats(std::vector<float>(count, 0.1f)), floats({0})};
    check_candidates("long sum", row_spec(Combine::kSum, 1, count), memory, {device});
  }
}

TEST(Contraction, OddSizesAndLayoutsMatchTheReference) {
  for (int64_t m : {1, 17, 33}) {
    for (int64_t n : {1, 15, 65}) {
      for (int layout = 0; layout < 4; ++layout) {
        const int64_t k = 19;
        ContractionSpec spec = product_spec(m, n, k);
        if (layout & 1) spec.a.access.strides = {1, m};
        if (layout & 2) spec.b.access.strides = {1, k};
        const SlotMemory memory = {floats(ramp(m * k)), floats(ramp(k * n)),
                                   floats(std::vector<float>(static_cast<size_t>(m * n), 0))};
        const auto devices = test_capabilities();
        check_candidates("product", spec, memory, {devices[static_cast<size_t>(layout)]});
      }
    }
  }
}

TEST(Contraction, SplitsLongSumsOverTheDevice) {
  Capabilities device = gpu();
  device.compute_units = 16;
  const SlotMemory memory = {floats(ramp(20 * 500)), floats(ramp(500 * 24)),
                             floats(std::vector<float>(20 * 24, 0))};
  const std::vector<std::string> tiles =
      check_candidates("split", product_spec(20, 24, 500), memory, {device});
  const auto splits = std::count_if(tiles.begin(), tiles.end(), [](const std::string& tile) {
    return tile.find("split") != std::string::npos;
  });
  EXPECT_GE(splits, 1);
}

}  // namespace
}  // namespace meganeura::kernels
