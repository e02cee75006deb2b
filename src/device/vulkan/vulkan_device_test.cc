#include "device/vulkan/vulkan_device.h"

#include <cmath>
#include <numeric>
#include <thread>

#include "device/vulkan/memory.h"
#include "device/vulkan/test_support.h"

namespace meganeura::device::vulkan {
namespace {

class VulkanDeviceTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string why;
    OpenOptions options;
    options.descriptors = GetParam();
    device_ = open_for_test(options, why);
    if (!device_) GTEST_SKIP() << "No usable Vulkan device: " << why;
  }
  std::shared_ptr<VulkanDevice> device_;
};

INSTANTIATE_TEST_SUITE_P(, VulkanDeviceTest, testing::Bool(), [](const auto& param) {
  return param.param ? "Descriptors" : "Addresses";
});

TEST_P(VulkanDeviceTest, ReportsWhatItIs) {
  const DeviceInfo& info = device_->info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_EQ(info.api.rfind("Vulkan 1.", 0), 0u);
  EXPECT_GT(info.memory_bytes, 0u);
  EXPECT_EQ(info.uuid.size(), 3 * 2 * VK_UUID_SIZE + 2);
  const Capabilities& caps = device_->capabilities();
  EXPECT_EQ(caps.binding, GetParam() ? BindingMode::kDescriptor : BindingMode::kAddress);
  EXPECT_EQ(info.software, caps.device_class == DeviceClass::kCpu);
  EXPECT_GE(caps.subgroup_size, 1u);
  EXPECT_GE(caps.max_workgroup_invocations, 128u);
  EXPECT_GE(caps.shared_bytes, 16384u);
  EXPECT_GE(caps.push_constant_bytes, 128u);
  EXPECT_GE(caps.max_buffer_range, 1ull << 27);
  EXPECT_EQ(device_->code(), CodeKind::kSpirv);
}

TEST_P(VulkanDeviceTest, CopiesOddSizesThroughDeviceMemory) {
  for (uint64_t bytes : {1u, 3u, 257u, 100003u}) {
    const auto upload = device_->allocate(bytes, MemoryKind::kUpload);
    const auto middle = device_->allocate(bytes, MemoryKind::kDevice);
    const auto readback = device_->allocate(bytes, MemoryKind::kReadback);
    EXPECT_EQ(upload->bytes(), bytes);
    for (uint64_t i = 0; i < bytes; ++i) upload->mapped()[i] = static_cast<std::byte>(i * 7 + 1);
    run(*device_,
        {copy(whole(*upload), whole(*middle)), Command{}, copy(whole(*middle), whole(*readback))});
    EXPECT_EQ(std::memcmp(upload->mapped(), readback->mapped(), bytes), 0) << bytes;
  }
}

TEST_P(VulkanDeviceTest, FillsOnlyTheDestination) {
  const auto memory = device_->allocate(64, MemoryKind::kReadback);
  run(*device_, {fill(whole(*memory), 0), Command{}, fill({memory.get(), 16, 8}, 0xdeadbeef)});
  std::array<uint32_t, 16> words;
  std::memcpy(words.data(), memory->mapped(), 64);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(words[i], i == 4 || i == 5 ? 0xdeadbeef : 0u) << i;
}

TEST_P(VulkanDeviceTest, EmptyWorkIsLegal) {
  const auto empty = device_->allocate(0, MemoryKind::kDevice);
  const auto other = device_->allocate(0, MemoryKind::kUpload);
  EXPECT_EQ(empty->bytes(), 0u);
  const Module module = triples_module();
  const auto pipelines = device_->create_pipelines({&module, 1});
  run(*device_,
      {copy(whole(*other), whole(*empty)), fill(whole(*empty), 1),
       dispatch(*pipelines[0], 0, {{whole(*other), true, false}, {whole(*empty), false, true}})});
  run(*device_, {});
  device_->wait(device_->submit({}));
  EXPECT_TRUE(device_->create_pipelines({}).empty());
}

TEST_P(VulkanDeviceTest, RunsAKernelThatBindsDescriptors) {
  const Module module = triples_module();
  const auto pipelines = device_->create_pipelines({&module, 1});
  constexpr size_t kTriples = 128;
  const uint64_t bytes = kTriples * 3 * sizeof(float);
  const auto source = device_->allocate(bytes, MemoryKind::kUpload);
  const auto result = device_->allocate(bytes, MemoryKind::kReadback);
  std::vector<float> values(kTriples * 3);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i + 1);
  std::memcpy(source->mapped(), values.data(), bytes);
  run(*device_,
      {dispatch(*pipelines[0], 2, {{whole(*source), true, false}, {whole(*result), false, true}})});
  const auto* out = reinterpret_cast<const float*>(result->mapped());
  for (size_t i = 0; i < kTriples; ++i) {
    const double a = values[3 * i], b = values[3 * i + 1], c = values[3 * i + 2];
    EXPECT_NEAR(out[3 * i], a * b + c, 1e-6 * (a * b + c));
    EXPECT_NEAR(out[3 * i + 1], a / b, 1e-6 * (a / b));
    EXPECT_NEAR(out[3 * i + 2], std::sqrt(a), 1e-6 * std::sqrt(a));
  }
}

TEST_P(VulkanDeviceTest, ReplaysRecordingsInSubmissionOrder) {
  const auto a = device_->allocate(4096, MemoryKind::kDevice);
  const auto b = device_->allocate(4096, MemoryKind::kReadback);
  const std::vector<Command> first = {fill(whole(*a), 1)};
  const std::vector<Command> second = {copy(whole(*a), whole(*b))};
  const std::vector<Command> third = {fill(whole(*a), 3)};
  const auto one = device_->record(first);
  const auto two = device_->record(second);
  const auto three = device_->record(third);
  Recording* order[] = {one.get(), three.get(), one.get(), two.get(), three.get()};
  uint64_t ticket = 0;
  for (int i = 0; i < 20; ++i) {
    const uint64_t next = device_->submit(order);
    EXPECT_GT(next, ticket);
    ticket = next;
  }
  device_->wait(ticket);
  EXPECT_TRUE(device_->done(ticket));
  EXPECT_TRUE(device_->done(1));
  uint32_t word = 0;
  std::memcpy(&word, b->mapped() + 4092, 4);
  EXPECT_EQ(word, 1u);
}

TEST_P(VulkanDeviceTest, RefusesTicketsItNeverGave) {
  const uint64_t ticket = device_->submit({});
  EXPECT_EQ(error_of([&] { device_->wait(ticket + 1); }).kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([&] { device_->done(ticket + 1); }).kind(), ErrorKind::kInvalidArgument);
  device_->wait(ticket);
}

TEST_P(VulkanDeviceTest, NamesSizeAndLimitOfAnAllocationThatIsTooLarge) {
  const uint64_t limit = device_->capabilities().max_allocation_bytes;
  const Error error = error_of([&] { device_->allocate(limit + 1, MemoryKind::kDevice); });
  EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
  EXPECT_TRUE(mentions(error, std::to_string(limit + 1))) << error.what();
  EXPECT_TRUE(mentions(error, std::to_string(limit))) << error.what();
}

TEST_P(VulkanDeviceTest, RefusesAGridBeyondTheLimit) {
  const Module module = triples_module();
  const auto pipelines = device_->create_pipelines({&module, 1});
  const auto a = device_->allocate(64, MemoryKind::kDevice);
  const auto b = device_->allocate(64, MemoryKind::kDevice);
  const uint32_t limit = device_->capabilities().max_workgroup_count[0];
  if (limit == UINT32_MAX) GTEST_SKIP() << "This device has no limit.";
  const std::vector<Command> commands = {
      dispatch(*pipelines[0], limit + 1, {{whole(*a), true, false}, {whole(*b), false, true}})};
  const Error error = error_of([&] { device_->record(commands); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_TRUE(mentions(error, "test dispatch")) << error.what();
}

TEST_P(VulkanDeviceTest, RefusesSpansOutsideMemoryAndForeignObjects) {
  const Module module = triples_module();
  const auto pipelines = device_->create_pipelines({&module, 1});
  const auto a = device_->allocate(64, MemoryKind::kDevice);
  const auto b = device_->allocate(64, MemoryKind::kDevice);
  EXPECT_EQ(error_of([&] {
              run(*device_, {copy({a.get(), 32, 64}, whole(*b))});
            }).kind(),
            ErrorKind::kInternal);
  EXPECT_EQ(error_of([&] {
              run(*device_, {fill({a.get(), 2, 4}, 0)});
            }).kind(),
            ErrorKind::kInternal);
  EXPECT_EQ(error_of([&] {
              run(*device_, {dispatch(*pipelines[0], 1, {{whole(*a), true, false}})});
            }).kind(),
            ErrorKind::kInternal);
  std::string why;
  OpenOptions options;
  options.descriptors = GetParam();
  const auto other = open_for_test(options, why);
  ASSERT_TRUE(other) << why;
  EXPECT_EQ(error_of([&] { run(*other, {fill(whole(*a), 0)}); }).kind(), ErrorKind::kInternal);
  const auto recording = device_->record({});
  Recording* recordings[] = {recording.get()};
  EXPECT_EQ(error_of([&] { other->submit(recordings); }).kind(), ErrorKind::kInternal);
}

TEST_P(VulkanDeviceTest, SharesPipelinesOfEqualContent) {
  Module renamed = triples_module();
  renamed.name = "the same under another name";
  Module other = triples_module();
  other.params = 1;
  const std::vector<Module> modules = {triples_module(), other, renamed};
  const auto first = device_->create_pipelines(modules);
  const auto again = device_->create_pipelines(modules);
  auto object = [](const std::unique_ptr<Pipeline>& pipeline) {
    return static_cast<const VulkanPipeline&>(*pipeline).object();
  };
  EXPECT_EQ(object(first[0]), object(first[2]));
  EXPECT_NE(object(first[0]), object(first[1]));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(object(first[i]), object(again[i])) << i;
}

TEST_P(VulkanDeviceTest, RefusesModulesBeyondItsLimits) {
  const Capabilities& caps = device_->capabilities();
  const auto refusal = [&](const std::function<void(Module&)>& change) {
    Module module = triples_module();
    change(module);
    const Error error = error_of([&] { device_->create_pipelines({&module, 1}); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << error.what();
    EXPECT_TRUE(mentions(error, "triples")) << error.what();
    return error;
  };
  refusal([&](Module& m) { m.local_size[0] = caps.max_workgroup_size[0] + 1; });
  refusal([&](Module& m) { m.local_size[1] = 0; });
  refusal([&](Module& m) { m.local_size = {caps.max_workgroup_invocations, 2, 1}; });
  refusal([&](Module& m) { m.subgroup_size = 3; });
  refusal([&](Module& m) { m.subgroup_size = 1u << 20; });
  refusal([&](Module& m) { m.params = caps.push_constant_bytes / 4 + 1; });
  refusal([&](Module& m) { m.code = CodeKind::kKernelText; });
  refusal([&](Module& m) { m.words[0] = 0; });
  if (GetParam()) refusal([&](Module& m) { m.binding = BindingMode::kAddress; });
}

TEST_P(VulkanDeviceTest, AcceptsItsOwnSubgroupSizeAsRequired) {
  Module module = triples_module();
  module.subgroup_size = device_->capabilities().subgroup_size;
  EXPECT_EQ(device_->create_pipelines({&module, 1}).size(), 1u);
}

TEST_P(VulkanDeviceTest, ObjectsMayOutliveTheDeviceAndPendingWork) {
  const auto memory = device_->allocate(1 << 22, MemoryKind::kDevice);
  const Module module = triples_module();
  const auto pipelines = device_->create_pipelines({&module, 1});
  const std::vector<Command> commands = {fill(whole(*memory), 1)};
  auto recording = device_->record(commands);
  Recording* recordings[] = {recording.get()};
  for (int i = 0; i < 8; ++i) device_->submit(recordings);
  device_.reset();
  recording.reset();
}

TEST_P(VulkanDeviceTest, ServesSeveralThreads) {
  constexpr int kThreads = 4;
  std::vector<uint32_t> seen(kThreads, 0);
  {
    std::vector<std::jthread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const Module module = triples_module();
        const auto pipelines = device_->create_pipelines({&module, 1});
        const auto memory = device_->allocate(1024, MemoryKind::kReadback);
        for (int i = 0; i < 10; ++i) run(*device_, {fill(whole(*memory), t + 1)});
        std::memcpy(&seen[t], memory->mapped() + 1020, 4);
      });
    }
  }
  for (uint32_t t = 0; t < kThreads; ++t) EXPECT_EQ(seen[t], t + 1);
}

TEST(VulkanDevice, RefusesAnIndexThatDoesNotExist) {
  std::string why;
  if (!open_for_test({}, why)) GTEST_SKIP() << "No usable Vulkan device: " << why;
  const Error error = error_of([] { open(1000); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_TRUE(mentions(error, "1000"));
}

TEST(VulkanDevice, PrefersDiscreteOverSoftwareAndNamesWhatUnusableDevicesLack) {
  std::vector<PhysicalDevice> devices(3);
  devices[0].type = VK_PHYSICAL_DEVICE_TYPE_CPU;
  devices[1].type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  devices[2].type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  EXPECT_EQ(best(devices), 2u);
  devices[2].missing = {"the feature timelineSemaphore"};
  EXPECT_EQ(best(devices), 1u);
  devices[1].missing = {"Vulkan 1.2", "a queue with compute support"};
  EXPECT_EQ(best(devices), 0u);
  devices[0].missing = {"basic subgroup operations"};
  const Error error = error_of([&] { best(devices); });
  EXPECT_TRUE(mentions(error, "timelineSemaphore")) << error.what();
  EXPECT_TRUE(mentions(error, "Vulkan 1.2, a queue with compute support")) << error.what();
  EXPECT_EQ(error_of([] { best({}); }).kind(), ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace meganeura::device::vulkan
