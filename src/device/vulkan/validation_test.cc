// Kernels that the emitter made, in both binding modes, under the validation layer.
#include <numeric>

#include "device/vulkan/test_support.h"
#include "emit/spirv/emit.h"
#include "kernel_ir/builder.h"

namespace meganeura::device::vulkan {
namespace {

constexpr uint32_t kLocalSize = 64;

// data[i] = data[i]·factor + offset[i] for i < count; count and factor are arguments.
kir::Kernel scale_kernel() {
  kir::Builder b("scale", {kLocalSize, 1, 1});
  const uint32_t data = b.slot("data", kir::Type::kU32, kir::SlotAccess::kReadWrite);
  const uint32_t offset = b.slot("offset", kir::Type::kU32, kir::SlotAccess::kRead);
  const kir::Value count = b.read_param(b.param());
  const kir::Value factor = b.read_param(b.param());
  const kir::Value group = b.builtin(kir::Builtin::kWorkgroupX);
  const kir::Value base = b.mul(group, b.u32(kLocalSize));
  const kir::Value i = b.add(base, b.builtin(kir::Builtin::kLocalIndex));
  b.if_then(b.less(i, count), [&] {
    const kir::Value old = b.load(data, i);
    const kir::Value scaled = b.mul(old, factor);
    const kir::Value sum = b.add(scaled, b.load(offset, i));
    b.store(data, i, sum);
  });
  return b.finish();
}

Module scale_module(const Device& device) {
  const kir::Kernel kernel = scale_kernel();
  Module module;
  module.name = kernel.name;
  module.words = emit_spirv(kernel, device.capabilities());
  module.binding = device.capabilities().binding;
  module.slots = 2;
  module.params = 2;
  module.local_size = kernel.local_size;
  return module;
}

// data[i] becomes (i·3 + i)·3 + i: two dependent dispatches between copies.
std::vector<uint32_t> run_scale(Device& device, uint32_t count) {
  const Module module = scale_module(device);
  const auto pipelines = device.create_pipelines({&module, 1});
  const uint64_t bytes = count * sizeof(uint32_t);
  const auto upload = device.allocate(bytes, MemoryKind::kUpload);
  const auto data = device.allocate(bytes, MemoryKind::kDevice);
  const auto offset = device.allocate(bytes, MemoryKind::kDevice);
  const auto readback = device.allocate(bytes, MemoryKind::kReadback);
  std::vector<uint32_t> values(count);
  std::iota(values.begin(), values.end(), 0u);
  std::memcpy(upload->mapped(), values.data(), bytes);
  const Command scale =
      dispatch(*pipelines[0], (count + kLocalSize - 1) / kLocalSize,
               {{whole(*data), true, true}, {whole(*offset), true, false}}, {count, 3});
  const std::vector<Command> in = {copy(whole(*upload), whole(*data)),
                                   copy(whole(*upload), whole(*offset))};
  const std::vector<Command> work = {scale, Command{}, scale};
  const std::vector<Command> out = {copy(whole(*data), whole(*readback))};
  const auto first = device.record(in);
  const auto second = device.record(work);
  const auto third = device.record(out);
  Recording* recordings[] = {first.get(), second.get(), third.get()};
  device.wait(device.submit(recordings));
  std::memcpy(values.data(), readback->mapped(), bytes);
  return values;
}

class ValidationTest : public testing::TestWithParam<bool> {
 protected:
  static OpenOptions options() {
    OpenOptions options;
    options.validation = true;
    options.descriptors = GetParam();
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(, ValidationTest, testing::Bool(), [](const auto& param) {
  return param.param ? "Descriptors" : "Addresses";
});

TEST_P(ValidationTest, EmittedKernelsRunRightAndClean) {
  std::string why;
  const auto device = open_for_test(options(), why);
  if (!device) GTEST_SKIP() << "No usable Vulkan device with validation: " << why;
  for (uint32_t count : {1u, 63u, 1000u, 4097u}) {
    const std::vector<uint32_t> values = run_scale(*device, count);
    for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(values[i], i * 13) << count;
  }
  Module sized = scale_module(*device);
  sized.subgroup_size = device->capabilities().subgroup_size;
  device->create_pipelines({&sized, 1});
  for (const std::string& message : device->validation_messages()) ADD_FAILURE() << message;
}

PFN_vkCmdPipelineBarrier real_barrier = nullptr;
int barriers_until_dropped = 0;

VKAPI_ATTR void VKAPI_CALL drop_one_barrier(VkCommandBuffer buffer, VkPipelineStageFlags from,
                                            VkPipelineStageFlags to, VkDependencyFlags flags,
                                            uint32_t memory_count, const VkMemoryBarrier* memory,
                                            uint32_t buffer_count,
                                            const VkBufferMemoryBarrier* buffers,
                                            uint32_t image_count,
                                            const VkImageMemoryBarrier* images) {
  if (barriers_until_dropped-- == 0) return;
  real_barrier(buffer, from, to, flags, memory_count, memory, buffer_count, buffers, image_count,
               images);
}

TEST(Validation, SynchronizationValidationCatchesADroppedBarrier) {
  OpenOptions options;
  options.validation = true;
  options.descriptors = true;
  options.hook = [](Functions& functions) {
    if (!functions.CmdPipelineBarrier || functions.CmdPipelineBarrier == drop_one_barrier) return;
    real_barrier = functions.CmdPipelineBarrier;
    functions.CmdPipelineBarrier = drop_one_barrier;
  };
  barriers_until_dropped = -1;
  std::string why;
  const auto device = open_for_test(options, why);
  if (!device) GTEST_SKIP() << "No usable Vulkan device with validation: " << why;
  EXPECT_TRUE(device->validation_messages().empty());
  const auto memory = device->allocate(64, MemoryKind::kDevice);
  constexpr int kBetweenFills = 1;  // the first one begins the recording
  barriers_until_dropped = kBetweenFills;
  run(*device, {fill(whole(*memory), 1), Command{}, fill(whole(*memory), 2)});
  ASSERT_FALSE(device->validation_messages().empty());
  EXPECT_NE(device->validation_messages()[0].find("SYNC-HAZARD"), std::string::npos)
      << device->validation_messages()[0];
}

}  // namespace
}  // namespace meganeura::device::vulkan
