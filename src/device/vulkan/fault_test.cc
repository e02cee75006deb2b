// Vulkan failures, injected through the function table.
#include <atomic>
#include <thread>

#include "device/vulkan/test_support.h"
#include "device/vulkan/vulkan_device.h"

namespace meganeura::device::vulkan {
namespace {

// What the wrapped entry points do; one scenario at a time.
struct Script {
  std::string_view entry;           // fails this entry point …
  VkResult result = VK_SUCCESS;     // … with this result
  std::atomic<int> countdown = -1;  // the call that fails, counted over all entry points if ≥ 0
  std::atomic<int> calls = 0;       // of `entry`
  std::atomic<int> created = 0;     // objects alive
};
Script script;

VkResult verdict(std::string_view name) {
  if (name == script.entry) {
    ++script.calls;
    if (script.result != VK_SUCCESS) return script.result;
  }
  if (script.countdown >= 0 && script.countdown-- == 0) return VK_ERROR_OUT_OF_HOST_MEMORY;
  return VK_SUCCESS;
}

// Replaces one entry point that returns a VkResult. `Name` is a type with a static name.
template <class Name, class... Arguments>
struct Wrapped {
  static inline VkResult(VKAPI_PTR* real)(Arguments...) = nullptr;
  static VKAPI_ATTR VkResult VKAPI_CALL call(Arguments... arguments) {
    if (const VkResult result = verdict(Name::name); result != VK_SUCCESS) return result;
    const VkResult result = real(arguments...);
    if (result == VK_SUCCESS && Name::creates) ++script.created;
    return result;
  }
  static void install(VkResult(VKAPI_PTR*& entry)(Arguments...)) {
    if (!entry || entry == &call) return;
    real = entry;
    entry = &call;
  }
};

template <class Name, class... Arguments>
void install(VkResult(VKAPI_PTR*& entry)(Arguments...)) {
  Wrapped<Name, Arguments...>::install(entry);
}

// Counts destructions; every one of them takes owner, handle, allocator.
template <class Owner, class Handle>
struct Destroyer {
  static inline void(VKAPI_PTR* real)(Owner, Handle, const VkAllocationCallbacks*) = nullptr;
  static VKAPI_ATTR void VKAPI_CALL call(Owner owner, Handle handle,
                                         const VkAllocationCallbacks* allocator) {
    if (handle) --script.created;
    real(owner, handle, allocator);
  }
};

template <class Owner, class Handle>
void install_destroyer(void(VKAPI_PTR*& entry)(Owner, Handle, const VkAllocationCallbacks*)) {
  using Replacement = Destroyer<Owner, Handle>;
  if (!entry || entry == &Replacement::call) return;
  Replacement::real = entry;
  entry = &Replacement::call;
}

#define MG_FAULTED(X)                \
  X(CreateInstance, false)           \
  X(EnumeratePhysicalDevices, false) \
  X(CreateDevice, false)             \
  X(QueueSubmit, false)              \
  X(AllocateMemory, true)            \
  X(MapMemory, false)                \
  X(CreateBuffer, true)              \
  X(BindBufferMemory, false)         \
  X(CreateShaderModule, true)        \
  X(CreateDescriptorSetLayout, true) \
  X(CreateDescriptorPool, true)      \
  X(AllocateDescriptorSets, false)   \
  X(CreatePipelineLayout, true)      \
  X(CreatePipelineCache, true)       \
  X(CreateComputePipelines, true)    \
  X(CreateCommandPool, true)         \
  X(AllocateCommandBuffers, false)   \
  X(BeginCommandBuffer, false)       \
  X(EndCommandBuffer, false)         \
  X(CreateSemaphore, true)           \
  X(WaitSemaphores, false)

#define MG_NAME(entry, makes)                        \
  struct entry##Name {                               \
    static constexpr std::string_view name = #entry; \
    static constexpr bool creates = makes;           \
  };
MG_FAULTED(MG_NAME)
#undef MG_NAME

void hook(Functions& functions) {
#define MG_INSTALL(entry, makes) install<entry##Name>(functions.entry);
  MG_FAULTED(MG_INSTALL)
#undef MG_INSTALL
  install_destroyer(functions.FreeMemory);
  install_destroyer(functions.DestroyBuffer);
  install_destroyer(functions.DestroyShaderModule);
  install_destroyer(functions.DestroyDescriptorSetLayout);
  install_destroyer(functions.DestroyDescriptorPool);
  install_destroyer(functions.DestroyPipelineLayout);
  install_destroyer(functions.DestroyPipelineCache);
  install_destroyer(functions.DestroyPipeline);
  install_destroyer(functions.DestroyCommandPool);
  install_destroyer(functions.DestroySemaphore);
}

class FaultTest : public testing::Test {
 protected:
  void SetUp() override {
    script.entry = {};
    script.result = VK_SUCCESS;
    script.countdown = -1;
    script.calls = 0;
    script.created = 0;
    std::string why;
    device_ = open_for_test(options(), why);
    if (!device_) GTEST_SKIP() << "No usable Vulkan device: " << why;
  }
  void TearDown() override {
    script.result = VK_SUCCESS;
    device_.reset();
    EXPECT_EQ(script.created, 0) << "Vulkan objects leaked.";
  }
  static OpenOptions options() {
    OpenOptions options;
    options.hook = hook;
    return options;
  }
  static void fail_with(std::string_view entry, VkResult result) {
    script.entry = entry;
    script.result = result;
    script.calls = 0;
  }
  std::shared_ptr<VulkanDevice> device_;
};

TEST_F(FaultTest, ALostDeviceOnSubmissionIsStickyAndSafeToDestroy) {
  auto memory = device_->allocate(1 << 20, MemoryKind::kDevice);
  const std::vector<Command> commands = {fill(whole(*memory), 1)};
  auto recording = device_->record(commands);
  Recording* recordings[] = {recording.get()};
  const uint64_t pending = device_->submit(recordings);
  fail_with("QueueSubmit", VK_ERROR_DEVICE_LOST);
  const Error first = error_of([&] { device_->submit(recordings); });
  EXPECT_EQ(first.kind(), ErrorKind::kDeviceLost);
  EXPECT_TRUE(mentions(first, device_->info().name)) << first.what();
  EXPECT_TRUE(mentions(first, "vkQueueSubmit")) << first.what();

  script.result = VK_SUCCESS;  // the driver would work again, the device stays lost
  const Module module = triples_module();
  const std::function<void()> uses[] = {
      [&] { device_->submit(recordings); }, [&] { device_->wait(pending); },
      [&] { device_->done(pending); },      [&] { device_->allocate(16, MemoryKind::kUpload); },
      [&] { device_->record(commands); },   [&] { device_->create_pipelines({&module, 1}); },
  };
  for (const auto& use : uses) {
    const Error later = error_of(use);
    EXPECT_EQ(later.kind(), ErrorKind::kDeviceLost);
    EXPECT_STREQ(later.what(), first.what());
  }
  EXPECT_EQ(script.calls, 1) << "Nothing more may be submitted.";
}

TEST_F(FaultTest, ALostDeviceOnWaitingIsStickyAndSafeToDestroy) {
  auto memory = device_->allocate(1 << 20, MemoryKind::kDevice);
  const std::vector<Command> commands = {fill(whole(*memory), 1)};
  auto recording = device_->record(commands);
  Recording* recordings[] = {recording.get()};
  const uint64_t ticket = device_->submit(recordings);
  fail_with("WaitSemaphores", VK_ERROR_DEVICE_LOST);
  EXPECT_EQ(error_of([&] { device_->wait(ticket); }).kind(), ErrorKind::kDeviceLost);
  script.result = VK_SUCCESS;
  EXPECT_EQ(error_of([&] { device_->wait(ticket); }).kind(), ErrorKind::kDeviceLost);
  EXPECT_EQ(script.calls, 1);
}

TEST_F(FaultTest, ALossIsNoticedByTheDestructorsOfPendingWork) {
  auto memory = device_->allocate(1 << 20, MemoryKind::kDevice);
  const std::vector<Command> commands = {fill(whole(*memory), 1)};
  auto recording = device_->record(commands);
  Recording* recordings[] = {recording.get()};
  device_->submit(recordings);
  fail_with("WaitSemaphores", VK_ERROR_DEVICE_LOST);
  recording.reset();
  memory.reset();
  EXPECT_EQ(error_of([&] { device_->submit({}); }).kind(), ErrorKind::kDeviceLost);
}

TEST_F(FaultTest, AWaitThatTimesOutGoesOn) {
  fail_with("WaitSemaphores", VK_TIMEOUT);
  const uint64_t ticket = device_->submit({});
  std::jthread waiter([&] { device_->wait(ticket); });
  while (script.calls < 3) std::this_thread::yield();
  script.result = VK_SUCCESS;
}

TEST_F(FaultTest, OutOfMemoryNamesTheSizeAndTheHeap) {
  for (VkResult result : {VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_OUT_OF_HOST_MEMORY}) {
    fail_with("AllocateMemory", result);
    const Error error = error_of([&] { device_->allocate(123456, MemoryKind::kDevice); });
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
    EXPECT_TRUE(mentions(error, "123456 bytes of device memory")) << error.what();
    EXPECT_TRUE(mentions(error, "MiB")) << error.what();
  }
  script.result = VK_SUCCESS;
  EXPECT_NE(device_->allocate(123456, MemoryKind::kDevice), nullptr);
}

TEST_F(FaultTest, AFailedPipelineNamesItsKernelAndIsNotRemembered) {
  Module module = triples_module();
  module.params = 3;
  fail_with("CreateComputePipelines", VK_ERROR_UNKNOWN);
  const Error error = error_of([&] { device_->create_pipelines({&module, 1}); });
  EXPECT_TRUE(mentions(error, "triples")) << error.what();
  EXPECT_TRUE(mentions(error, "VK_ERROR_UNKNOWN")) << error.what();
  script.result = VK_SUCCESS;
  EXPECT_EQ(device_->create_pipelines({&module, 1}).size(), 1u);
}

TEST_F(FaultTest, ALoaderWithoutADriverIsUnsupported) {
  fail_with("CreateInstance", VK_ERROR_INCOMPATIBLE_DRIVER);
  const Error error = error_of([] { list(options()); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_TRUE(mentions(error, "found no driver")) << error.what();
}

// Opens a device and runs one copy and one kernel.
void small_life(const OpenOptions& options) {
  const auto device = open(0, options);
  const Module module = triples_module();
  const auto pipelines = device->create_pipelines({&module, 1});
  const auto a = device->allocate(768, MemoryKind::kUpload);
  const auto b = device->allocate(768, MemoryKind::kReadback);
  std::memset(a->mapped(), 0, 768);
  run(*device, {dispatch(*pipelines[0], 1, {{whole(*a), true, false}, {whole(*b), false, true}})});
}

TEST_F(FaultTest, AnyFailingCallIsAnErrorAndLeaksNothing) {
  device_.reset();
  int failures = 0;
  bool finished = false;
  for (int call = 0; call < 200 && !finished; ++call) {
    script.countdown = call;
    try {
      small_life(options());
      finished = script.countdown >= 0;  // no call was left to fail
    } catch (const Error& error) {
      ++failures;
      EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory) << error.what();
    }
    script.countdown = -1;
    ASSERT_EQ(script.created, 0) << "Vulkan objects leaked after failing call " << call;
  }
  EXPECT_TRUE(finished);
  EXPECT_GT(failures, 30);
}

}  // namespace
}  // namespace meganeura::device::vulkan
