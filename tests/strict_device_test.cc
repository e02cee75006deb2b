// The strict functions on a Vulkan device give the bits that the processor computes.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device/vulkan/vulkan_device.h"
#include "emit/spirv/emit.h"
#include "kernel_ir/builder.h"
#include "meganeura/error.h"
#include "scalar/evaluate.h"
#include "scalar/strict.h"

namespace meganeura {
namespace {

using device::MemoryKind;
using scalar::Op;

constexpr uint32_t kCount = 1 << 15;
constexpr uint64_t kBytes = uint64_t{kCount} * sizeof(uint32_t);

std::shared_ptr<device::vulkan::VulkanDevice> open_best() {
  for (const bool descriptors : {false, true}) {
    const device::vulkan::OpenOptions options{.descriptors = descriptors};
    try {
      return device::vulkan::open(device::vulkan::best(device::vulkan::list(options)), options);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) throw;
    }
  }
  return nullptr;
}

// All pairs of special values, then pairs of any bits and of ordinary numbers by turns.
std::array<std::vector<uint32_t>, 2> arguments() {
  constexpr uint32_t kSpecial[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                   0xff800001, 1,          0x80000001, 0x007fffff, 0x00800000,
                                   0x3f800000, 0xbf800000, 0x7f7fffff, 0x40400000, 0xc0000000};
  std::array<std::vector<uint32_t>, 2> lists;
  for (uint32_t a : kSpecial) {
    for (uint32_t b : kSpecial) {
      lists[0].push_back(a);
      lists[1].push_back(b);
    }
  }
  uint64_t state = 5;
  const auto next = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 32);
  };
  const auto ordinary = [&] {
    const float value = static_cast<float>(next()) * 0x1p-27f - 16.0f;
    return std::bit_cast<uint32_t>(value);
  };
  while (lists[0].size() < kCount) {
    const size_t turn = lists[0].size() % 4;
    lists[0].push_back(turn < 2 ? next() : ordinary());
    lists[1].push_back(turn % 2 == 0 ? next() : ordinary());
  }
  return lists;
}

Module module_of(const scalar::Body& body, const Capabilities& capabilities) {
  kir::Builder builder("strict", {64, 1, 1});
  const uint32_t first = builder.slot("first", scalar::Type::kF32, kir::SlotAccess::kRead);
  const uint32_t second = builder.slot("second", scalar::Type::kF32, kir::SlotAccess::kRead);
  const uint32_t result = builder.slot("result", scalar::Type::kF32, kir::SlotAccess::kWrite);
  const kir::Value group = builder.builtin(kir::Builtin::kWorkgroupX);
  const kir::Value lane = builder.builtin(kir::Builtin::kLocalIndex);
  const kir::Value begin = builder.mul(group, builder.u32(64));
  const kir::Value index = builder.add(begin, lane);
  std::vector<kir::Value> values = {builder.load(first, index)};
  if (body.arguments.size() > 1) values.push_back(builder.load(second, index));
  builder.store(result, index, builder.inline_body(body, values)[0]);
  Module module;
  module.name = "strict";
  module.words = emit_spirv(builder.finish(), capabilities);
  module.binding = capabilities.binding;
  module.slots = 3;
  module.local_size = {64, 1, 1};
  return module;
}

scalar::Lane flushed(scalar::Lane bits) {
  return (bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits;
}

// Whether a device may give `found`: the processor's bits, and where it does not promise to keep
// denormals, also what comes of flushing the arguments, the result or both.
bool may_give(const scalar::Body& body, std::array<scalar::Lane, 2> lanes, scalar::Lane found,
              const Capabilities& capabilities) {
  for (const bool flush_arguments : {false, true}) {
    if (flush_arguments) {
      for (scalar::Lane& lane : lanes) lane = flushed(lane);
    }
    scalar::Lane exact = 0;
    scalar::evaluate_lanes(body, std::span(lanes).first(body.arguments.size()),
                           std::span(&exact, 1), capabilities.fused_fma);
    if (exact == found) return true;
    if (std::isnan(std::bit_cast<float>(exact)) && std::isnan(std::bit_cast<float>(found))) {
      return true;
    }
    if (capabilities.denorm_preserve) return false;
    // A flushed term of the sum, or a flushed result, is less than the least normal number.
    if (std::abs(double{std::bit_cast<float>(exact)} - std::bit_cast<float>(found)) < 0x1p-126) {
      return true;
    }
  }
  return false;
}

class StrictDevice : public testing::TestWithParam<Op> {};

TEST_P(StrictDevice, GivesTheBitsOfTheProcessor) {
  const auto vulkan = open_best();
  if (vulkan == nullptr) GTEST_SKIP() << "NOT TESTED, no Vulkan device";
  const Capabilities& capabilities = vulkan->capabilities();
  const std::vector<scalar::Type> types(scalar::info(GetParam()).arity, scalar::Type::kF32);
  std::vector<scalar::Scalar> operands;
  for (uint32_t i = 0; i < types.size(); ++i) operands.push_back(scalar::argument(i, types[i]));
  const scalar::Scalar outputs[] = {scalar::make(GetParam(), operands)};
  const scalar::Body body = scalar::lower_strict(scalar::linearize(outputs, types),
                                                 {.fused_fma = capabilities.fused_fma,
                                                  .exact_division = capabilities.exact_division,
                                                  .exact_sqrt = capabilities.exact_sqrt});

  const auto inputs = arguments();
  std::array<std::unique_ptr<device::Memory>, 2> uploads;
  for (size_t i = 0; i < 2; ++i) {
    uploads[i] = vulkan->allocate(kBytes, MemoryKind::kUpload);
    std::memcpy(uploads[i]->mapped(), inputs[i].data(), kBytes);
  }
  const auto readback = vulkan->allocate(kBytes, MemoryKind::kReadback);
  const Module module = module_of(body, capabilities);
  const auto pipelines = vulkan->create_pipelines(std::span(&module, 1));
  device::Command dispatch;
  dispatch.kind = device::Command::Kind::kDispatch;
  dispatch.pipeline = pipelines[0].get();
  dispatch.grid = {kCount / 64, 1, 1};
  dispatch.label = "strict";
  dispatch.bindings = {{{uploads[0].get(), 0, kBytes}, true, false},
                       {{uploads[1].get(), 0, kBytes}, true, false},
                       {{readback.get(), 0, kBytes}, false, true}};
  const auto recording = vulkan->record(std::span(&dispatch, 1));
  device::Recording* const recordings[] = {recording.get()};
  vulkan->wait(vulkan->submit(recordings));

  std::vector<uint32_t> found(kCount);
  std::memcpy(found.data(), readback->mapped(), kBytes);
  for (uint32_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(may_give(body, {inputs[0][i], inputs[1][i]}, found[i], capabilities))
        << std::hex << "of bits " << inputs[0][i] << " and " << inputs[1][i] << " the device made "
        << found[i] << ", which the processor does not.";
  }
}

// rsqrt rests on the built-in division and square root, whose last bits a device may own.
INSTANTIATE_TEST_SUITE_P(Functions, StrictDevice,
                         testing::Values(Op::kExp, Op::kLog, Op::kSin, Op::kCos, Op::kTanh,
                                         Op::kErf, Op::kPow),
                         [](const testing::TestParamInfo<Op>& instance) {
                           return std::string(scalar::info(instance.param).name);
                         });

}  // namespace
}  // namespace meganeura
