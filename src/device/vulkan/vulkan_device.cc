#include "device/vulkan/vulkan_device.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "device/vulkan/arithmetic_check.h"
#include "device/vulkan/memory.h"
#include "device/vulkan/recording.h"

namespace meganeura::device::vulkan {
namespace {

// Best first.
constexpr std::array kTypeOrder = {VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
                                   VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
                                   VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU,
                                   VK_PHYSICAL_DEVICE_TYPE_OTHER, VK_PHYSICAL_DEVICE_TYPE_CPU};

BindingMode binding_of(const OpenOptions& options) {
  return options.descriptors ? BindingMode::kDescriptor : BindingMode::kAddress;
}

std::shared_ptr<Instance> make_instance(const OpenOptions& options) {
  InstanceOptions instance;
  instance.validation = options.validation;
  instance.synchronization_validation = options.descriptors;
  instance.hook = options.hook;
  return std::make_shared<Instance>(std::move(instance));
}

std::filesystem::path cache_path(const std::filesystem::path& directory, const std::string& uuid) {
  if (directory.empty()) return {};
  return directory / cat("pipelines-", uuid, ".bin");
}

}  // namespace

VulkanDevice::VulkanDevice(std::shared_ptr<Instance> instance, PhysicalDevice physical,
                           const std::filesystem::path& cache_directory)
    : context_(std::make_shared<Context>(std::move(instance), std::move(physical))),
      pipelines_(context_, cache_path(cache_directory, context_->physical().info.uuid)),
      capabilities_(context_->physical().capabilities) {
  const ArithmeticFacts facts = check_arithmetic(*this);
  capabilities_.fused_fma = facts.fused_fma;
  capabilities_.exact_division = facts.exact_division;
  capabilities_.exact_sqrt = facts.exact_sqrt;
}

std::unique_ptr<Memory> VulkanDevice::allocate(uint64_t bytes, MemoryKind kind) {
  return std::make_unique<VulkanMemory>(std::make_shared<Buffer>(context_, bytes, kind));
}

std::vector<std::unique_ptr<Pipeline>> VulkanDevice::create_pipelines(
    std::span<const Module> modules) {
  std::vector<std::unique_ptr<Pipeline>> pipelines;
  for (std::shared_ptr<PipelineObject>& object : pipelines_.create(modules)) {
    pipelines.push_back(std::make_unique<VulkanPipeline>(std::move(object)));
  }
  return pipelines;
}

std::unique_ptr<Recording> VulkanDevice::record(std::span<const Command> commands) {
  return std::make_unique<VulkanRecording>(context_, commands);
}

uint64_t VulkanDevice::submit(std::span<Recording* const> recordings) {
  std::vector<VulkanRecording*> own;
  std::vector<VkCommandBuffer> buffers;
  for (Recording* recording : recordings) {
    auto* vulkan = dynamic_cast<VulkanRecording*>(recording);
    MG_CHECK(vulkan && &vulkan->context() == context_.get(),
             "A recording was submitted to a device that did not make it.");
    own.push_back(vulkan);
    buffers.push_back(vulkan->handle());
  }
  const uint64_t ticket = context_->queue().submit(buffers);
  for (VulkanRecording* recording : own) recording->submitted(ticket);
  return ticket;
}

void VulkanDevice::wait(uint64_t ticket) { context_->queue().wait(ticket); }

bool VulkanDevice::done(uint64_t ticket) { return context_->queue().done(ticket); }

std::vector<std::string> VulkanDevice::validation_messages() const {
  return context_->instance().messages();
}

std::vector<PhysicalDevice> list(const OpenOptions& options) {
  const std::shared_ptr<Instance> instance = make_instance(options);
  return describe_all(*instance, binding_of(options));
}

size_t best(const std::vector<PhysicalDevice>& devices) {
  for (VkPhysicalDeviceType type : kTypeOrder) {
    for (size_t i = 0; i < devices.size(); ++i) {
      if (devices[i].type == type && devices[i].missing.empty()) return i;
    }
  }
  std::string text = "No Vulkan device can be used.";
  if (devices.empty()) text += " The Vulkan loader found no device; install a Vulkan driver.";
  for (const PhysicalDevice& device : devices) {
    text += cat(" ", device.info.name, " lacks ", missing_text(device), ".");
  }
  throw Error(ErrorKind::kUnsupported, std::move(text));
}

std::shared_ptr<VulkanDevice> open(size_t index, const OpenOptions& options) {
  std::shared_ptr<Instance> instance = make_instance(options);
  const std::vector<VkPhysicalDevice> handles = instance->physical_devices();
  if (index >= handles.size()) {
    fail(ErrorKind::kUnsupported, "There is no Vulkan device ", index, "; the loader found ",
         handles.size(), ".");
  }
  PhysicalDevice physical = describe(*instance, handles[index], binding_of(options));
  if (!physical.missing.empty()) {
    fail(ErrorKind::kUnsupported, physical.info.name, " cannot be used: it lacks ",
         missing_text(physical), ".");
  }
  return std::make_shared<VulkanDevice>(std::move(instance), std::move(physical),
                                        options.cache_directory);
}

}  // namespace meganeura::device::vulkan
