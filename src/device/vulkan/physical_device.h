// Physical devices: what they are, whether they can be used, and what to enable.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"
#include "device/vulkan/instance.h"

namespace meganeura::device::vulkan {

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  DeviceInfo info;
  Capabilities capabilities;         // the self-tested facts are still false
  std::vector<std::string> missing;  // requirements of the floor that it lacks; empty: usable
  uint32_t queue_family = 0;
  uint32_t api_version = 0;
  uint64_t storage_alignment = 1;  // of descriptor offsets
  uint64_t max_storage_range = 0;  // of one descriptor
  uint32_t min_subgroup_size = 0;  // with subgroup size control
  uint32_t max_subgroup_size = 0;
  bool full_subgroups = false;  // pipelines may require that subgroups are full
  bool memory_budget = false;
  bool vulkan_memory_model = false;     // offered, with device scope
  std::vector<const char*> extensions;  // to enable
};

// Queries one device for the given way of binding.
PhysicalDevice describe(const Instance& instance, VkPhysicalDevice handle, BindingMode binding);

// All devices in the order of the loader.
std::vector<PhysicalDevice> describe_all(const Instance& instance, BindingMode binding);

// "the feature bufferDeviceAddress and timelineSemaphore": a sentence's part for errors.
std::string missing_text(const PhysicalDevice& device);

}  // namespace meganeura::device::vulkan
