#include "device/vulkan/context.h"

#include <utility>

#include "base/check.h"

namespace meganeura::device::vulkan {

Context::Context(std::shared_ptr<Instance> instance, PhysicalDevice physical)
    : instance_(std::move(instance)),
      physical_(std::move(physical)),
      functions_(instance_->functions()) {
  create_device();
  try {
    load_device_functions(functions_, device_);
    instance_->apply_hook(functions_);
    queue_ = std::make_unique<Queue>(*this);
  } catch (...) {
    if (functions_.DestroyDevice) functions_.DestroyDevice(device_, nullptr);
    throw;
  }
}

Context::~Context() {
  queue_->settle_all();
  queue_.reset();
  functions_.DestroyDevice(device_, nullptr);
}

void Context::create_device() {
  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = physical_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;

  const Capabilities& capabilities = physical_.capabilities;
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
  subgroup.subgroupSizeControl = VK_TRUE;
  subgroup.computeFullSubgroups = physical_.full_subgroups;
  VkPhysicalDeviceVulkan12Features v12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  v12.timelineSemaphore = VK_TRUE;
  v12.bufferDeviceAddress = capabilities.binding == BindingMode::kAddress;
  v12.vulkanMemoryModel = physical_.vulkan_memory_model;
  v12.vulkanMemoryModelDeviceScope = physical_.vulkan_memory_model;
  if (capabilities.subgroup_size_control) v12.pNext = &subgroup;
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  features.pNext = &v12;

  VkDeviceCreateInfo create{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  create.pNext = &features;
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  create.enabledExtensionCount = static_cast<uint32_t>(physical_.extensions.size());
  create.ppEnabledExtensionNames = physical_.extensions.data();
  check_result(functions_.CreateDevice(physical_.handle, &create, nullptr, &device_),
               "vkCreateDevice", cat("opening ", physical_.info.name));
}

void Context::check(VkResult result, std::string_view call, std::string_view purpose) {
  if (result == VK_ERROR_DEVICE_LOST) [[unlikely]] {
    std::lock_guard lock(mutex_);
    if (lost_message_.empty()) {
      lost_message_ =
          cat("The device ", physical_.info.name, " was lost while ", purpose, " (Vulkan's ", call,
              " returned VK_ERROR_DEVICE_LOST). Nothing made from "
              "it can be used any more: open the device again and reload the values.");
    }
    lost_.store(true, std::memory_order_release);
    fail(ErrorKind::kDeviceLost, lost_message_);
  }
  check_result(result, call, purpose);
}

void Context::require_alive() const {
  if (!lost()) [[likely]]
    return;
  std::lock_guard lock(mutex_);
  fail(ErrorKind::kDeviceLost, lost_message_);
}

}  // namespace meganeura::device::vulkan
