// Emitted modules on the Vulkan device at hand: every op at its special values against exact
// evaluation, and control structures against the interpreter.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>

#include "base/format.h"
#include "device/interpreter/interpreter.h"
#include "device/vulkan/test_support.h"
#include "emit/spirv/emit.h"
#include "emit/spirv/op_kernels.h"
#include "scalar/evaluate.h"

namespace meganeura {
namespace {

using device::Command;
using device::Memory;
using device::MemoryKind;
using device::vulkan::VulkanDevice;
using kir::Kernel;
using kir::SlotAccess;
using scalar::Op;
using scalar::Type;
using spirv::OpCase;
using Words = std::vector<uint32_t>;

class EmitDevice : public testing::TestWithParam<BindingMode> {
 protected:
  void SetUp() override {
    device::vulkan::OpenOptions options;
    options.descriptors = GetParam() == BindingMode::kDescriptor;
    std::string why;
    device_ = device::vulkan::open_for_test(options, why);
    if (!device_) GTEST_SKIP() << "NOT TESTED, no Vulkan device: " << why;
  }

  // Runs the kernel over `groups` workgroups; written slots come back changed.
  void run(const Kernel& kernel, uint32_t groups, std::vector<Words>& slots,
           const Words& params = {}) {
    Module module;
    module.name = kernel.name;
    module.words = emit_spirv(kernel, device_->capabilities());
    module.binding = device_->capabilities().binding;
    module.slots = static_cast<uint32_t>(kernel.slots.size());
    module.params = kernel.params;
    module.local_size = kernel.local_size;
    const auto pipelines = device_->create_pipelines(std::span(&module, 1));
    std::vector<std::unique_ptr<Memory>> memories;
    Command dispatch;
    dispatch.kind = Command::Kind::kDispatch;
    dispatch.label = kernel.name;
    dispatch.pipeline = pipelines[0].get();
    dispatch.grid = {groups, 1, 1};
    dispatch.params = params;
    for (size_t i = 0; i < slots.size(); ++i) {
      const uint64_t bytes = 4 * slots[i].size();
      memories.push_back(device_->allocate(bytes, MemoryKind::kReadback));
      std::memcpy(memories.back()->mapped(), slots[i].data(), bytes);
      const SlotAccess access = kernel.slots[i].access;
      dispatch.bindings.push_back({{memories.back().get(), 0, bytes},
                                   access != SlotAccess::kWrite,
                                   access != SlotAccess::kRead});
    }
    const auto recording = device_->record(std::span(&dispatch, 1));
    device::Recording* recordings[] = {recording.get()};
    device_->wait(device_->submit(recordings));
    for (size_t i = 0; i < slots.size(); ++i) {
      std::memcpy(slots[i].data(), memories[i]->mapped(), 4 * slots[i].size());
    }
  }

  // The device and the interpreter leave equal bits in every slot.
  void expect_as_interpreted(std::string_view text, uint32_t groups,
                             const std::vector<Words>& slots, const Words& params = {}) {
    const Kernel kernel = kir::parse_kernel(text);
    kir::verify(kernel);
    std::vector<Words> expected = slots;
    std::vector<std::span<std::byte>> views;
    for (Words& slot : expected) views.push_back(std::as_writable_bytes(std::span(slot)));
    const Capabilities& can = device_->capabilities();
    device::run_kernel(kernel, {groups, 1, 1}, views, params,
                       {.subgroup_size = can.subgroup_size, .fused_fma = can.fused_fma});
    std::vector<Words> found = slots;
    run(kernel, groups, found, params);
    EXPECT_EQ(found, expected);
  }

  // Where the device's own instruction is not exact, lower_strict keeps kernels from using it.
  bool is_exact(const OpCase& c) const {
    const Capabilities& can = device_->capabilities();
    if (c.operands.back() != Type::kF32) return true;
    return (c.op != Op::kDiv || can.exact_division) && (c.op != Op::kSqrt || can.exact_sqrt);
  }

  // Whether the device may give `found`: the exact result, and where it does not promise to keep
  // denormals, also what comes of flushing the operands, the result or both.
  bool may_give(const OpCase& c, const Words& operands, uint32_t found) const {
    const Capabilities& can = device_->capabilities();
    const auto matches = [&](const Words& used) {
      const uint32_t exact =
          scalar::evaluate_primitive(c.op, c.operands.back(), c.result, used, can.fused_fma);
      if (spirv::same_result(c, exact, found)) return true;
      if (can.denorm_preserve || c.result != Type::kF32) return false;
      // A device may flush before it rounds, and so lose the least normal number too.
      const uint32_t magnitude = exact & 0x7fffffff;
      return magnitude <= 0x00800000 && spirv::same_result(c, exact & 0x80000000, found);
    };
    if (matches(operands)) return true;
    if (can.denorm_preserve) return false;
    Words zeros = operands;
    for (size_t i = 0; i < zeros.size(); ++i) {
      if (c.operands[i] == Type::kF32) zeros[i] = flushed(zeros[i]);
    }
    return matches(zeros);
  }

  static uint32_t flushed(uint32_t bits) {
    return (bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits;
  }

  std::shared_ptr<VulkanDevice> device_;
};

Words random_words(size_t count, uint32_t seed, uint32_t mask = ~0u) {
  std::mt19937 generator(seed);
  Words words(count);
  for (uint32_t& word : words) word = generator() & mask;
  return words;
}

Words random_floats(size_t count, uint32_t seed) {
  Words words = random_words(count, seed);
  for (uint32_t& word : words) {
    word = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(word)) * 0x1p-30f);
  }
  return words;
}

// Vectors where a slot is an address, scalars where it is a descriptor: each way once.
TEST_P(EmitDevice, EveryOpGivesTheExactResult) {
  const size_t lanes = GetParam() == BindingMode::kAddress ? 4 : 1;
  for (const OpCase& c : spirv::all_op_cases()) {
    if (!is_exact(c)) continue;
    SCOPED_TRACE(to_string(c));
    const std::vector<Words> inputs = spirv::op_inputs(c, 1000);
    const size_t count = inputs[0].size();
    std::vector<Words> slots = inputs;
    slots.emplace_back(count, 0xdeadbeef);
    run(spirv::op_kernel(c, static_cast<uint8_t>(lanes)), static_cast<uint32_t>(count / 8 / lanes),
        slots);
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) {
      Words operands;
      for (const Words& input : inputs) operands.push_back(input[i]);
      if (may_give(c, operands, slots.back()[i])) continue;
      if (++wrong > 5) continue;
      const uint32_t expected = scalar::evaluate_primitive(
          c.op, c.operands.back(), c.result, operands, device_->capabilities().fused_fma);
      ADD_FAILURE() << "of the bits " << join(operands) << " gives " << slots.back()[i]
                    << " instead of " << expected;
    }
    EXPECT_EQ(wrong, 0u) << "of " << count;
  }
}

TEST_P(EmitDevice, NestedLoopsAndBranchesFollowTheInterpreter) {
  constexpr std::string_view kText =
      R"(kernel "control" local(8, 1, 1) subgroup(0) params(2) {
  slot 0 "x": f32 read
  slot 1 "y": f32 readwrite
  %1: u32 = builtin workgroup_x
  %2: u32 = builtin local_index
  %3: u32 = constant 8
  %4: u32 = arith mul %1 %3
  %5: u32 = arith add %4 %2
  %6: u32 = param 0
  %7: u32 = param 1
  %8: f32 = constant 0
  %9: f32 = constant 1
  %10: u32 = constant 0
  %11: u32 = constant 1
  %12: u32 = constant 3
  %31: f32, %32: f32, %33: u32 = for %13: u32 in %2 to %6 step %7 carry(%14: f32 = %8, %15: f32 = %9, %16: u32 = %10) {
    %20: f32 = for %17: u32 in %10 to %13 step %11 carry(%18: f32 = %15) {
      %19: f32 = load 0 %17
      %21: f32 = arith fma %19 %18 %19
      yield %21
    }
    %22: u32 = arith and %13 %11
    %23: bool = arith eq %22 %10
    %27: f32 = if %23 {
      %24: f32 = arith add %20 %14
      yield %24
    } else {
      %25: bool = arith lt %13 %12
      %28: f32 = if %25 {
        yield %15
      } else {
        %26: f32 = arith sub %20 %14
        yield %26
      }
      yield %28
    }
    %29: u32 = arith add %16 %13
    yield %15 %27 %29
  }
  %34: bool = arith gt %33 %12
  if %34 {
    %35: f32 = arith convert %33
    %36: f32 = arith add %31 %35
    %37: f32 = arith sub %36 %32
    store 1 %5 %37
  } else {
  }
}
)";
  for (const uint32_t end : {0u, 1u, 5u, 23u}) {
    for (const uint32_t step : {1u, 3u}) {
      SCOPED_TRACE(cat(end, " by ", step));
      expect_as_interpreted(kText, 3, {random_floats(32, 1), random_floats(24, 2)}, {end, step});
    }
  }
}

TEST_P(EmitDevice, SharedMemoryAndBarriersFollowTheInterpreter) {
  constexpr std::string_view kText =
      R"(kernel "tree" local(64, 1, 1) subgroup(0) params(0) {
  slot 0 "x": f32 read
  slot 1 "y": f32 write
  shared 0 "tile": f32[256]
  %1: u32 = builtin workgroup_x
  %2: u32 = builtin local_index
  %3: u32 = constant 256
  %4: u32 = constant 4
  %5: u32 = arith mul %1 %3
  %6: u32 = arith mul %2 %4
  %7: u32 = arith add %5 %6
  %8: f32x4 = load 0 %7
  shared_store 0 %6 %8
  barrier
  %9: u32 = constant 0
  %10: u32 = constant 7
  %11: u32 = constant 1
  %12: u32 = constant 64
  for %13: u32 in %9 to %10 step %11 {
    %14: u32 = arith shr %12 %13
    %15: bool = arith lt %2 %14
    %16: u32 = arith add %2 %14
    if %15 {
      %17: f32 = shared_load 0 %2
      %18: f32 = shared_load 0 %16
      %19: f32 = arith add %17 %18
      shared_store 0 %2 %19
    } else {
    }
    barrier
  }
  %20: u32 = constant 255
  %21: u32 = arith sub %20 %6
  %22: u32 = constant 3
  %23: u32 = arith sub %21 %22
  %24: f32x4 = shared_load 0 %23
  store 1 %7 %24
}
)";
  expect_as_interpreted(kText, 5, {random_floats(1280, 3), Words(1280, 0)});
}

TEST_P(EmitDevice, SubgroupOperationsFollowTheInterpreter) {
  constexpr std::string_view kText =
      R"(kernel "subgroup" local(32, 1, 1) subgroup(0) params(0) {
  slot 0 "x": f32 read
  slot 1 "n": u32 read
  slot 2 "s": i32 read
  slot 3 "f": f32 write
  slot 4 "u": u32 write
  %1: u32 = builtin subgroup
  %2: u32 = builtin lane
  %3: u32 = builtin subgroup_size
  %4: u32 = arith mul %1 %3
  %5: u32 = arith add %4 %2
  %6: f32 = load 0 %5
  %7: u32 = load 1 %5
  %8: i32 = load 2 %5
  %9: f32 = subgroup_max %6
  %10: f32 = subgroup_min %6
  %11: f32 = subgroup_shuffle_xor 2 %6
  %12: f32 = subgroup_broadcast 3 %6
  %13: u32 = subgroup_add %7
  %14: u32 = subgroup_max %7
  %15: i32 = subgroup_min %8
  %16: i32 = subgroup_max %8
  %17: i32 = subgroup_add %8
  %18: u32 = constant 32
  %19: u32 = constant 64
  %20: u32 = constant 96
  %21: u32 = arith add %5 %18
  %22: u32 = arith add %5 %19
  %23: u32 = arith add %5 %20
  store 3 %5 %9
  store 3 %21 %10
  store 3 %22 %11
  store 3 %23 %12
  %24: u32 = arith bitcast %15
  %25: u32 = arith bitcast %16
  %26: u32 = arith bitcast %17
  %27: u32 = arith add %26 %14
  store 4 %5 %13
  store 4 %21 %24
  store 4 %22 %25
  store 4 %23 %27
}
)";
  Words x = random_floats(32, 4);
  expect_as_interpreted(
      kText, 1, {x, random_words(32, 5), random_words(32, 6), Words(128, 0), Words(128, 0)});
  x[5] = 0x7fc00000;  // NaN in one subgroup, infinities in another
  x[31] = 0x7f800000;
  x[30] = 0xff800000;
  expect_as_interpreted(
      kText, 1, {x, random_words(32, 5), random_words(32, 6), Words(128, 0), Words(128, 0)});
}

INSTANTIATE_TEST_SUITE_P(Modes, EmitDevice,
                         testing::Values(BindingMode::kAddress, BindingMode::kDescriptor),
                         [](const testing::TestParamInfo<BindingMode>& info) {
                           return info.param == BindingMode::kAddress ? "Address" : "Descriptor";
                         });

}  // namespace
}  // namespace meganeura
