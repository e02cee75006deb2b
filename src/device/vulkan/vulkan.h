// The Vulkan entry points that this layer calls, as one table filled at run time.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <string_view>

namespace meganeura::device::vulkan {

// Resolved before an instance exists.
#define MG_VULKAN_GLOBAL(X)               \
  X(CreateInstance)                       \
  X(EnumerateInstanceExtensionProperties) \
  X(EnumerateInstanceLayerProperties)

// Resolved from the instance.
#define MG_VULKAN_INSTANCE(X)               \
  X(DestroyInstance)                        \
  X(EnumeratePhysicalDevices)               \
  X(EnumerateDeviceExtensionProperties)     \
  X(GetPhysicalDeviceProperties)            \
  X(GetPhysicalDeviceProperties2)           \
  X(GetPhysicalDeviceFeatures2)             \
  X(GetPhysicalDeviceMemoryProperties2)     \
  X(GetPhysicalDeviceQueueFamilyProperties) \
  X(CreateDevice)                           \
  X(GetDeviceProcAddr)

// Resolved from the device.
#define MG_VULKAN_DEVICE(X)      \
  X(DestroyDevice)               \
  X(DeviceWaitIdle)              \
  X(GetDeviceQueue)              \
  X(QueueSubmit)                 \
  X(AllocateMemory)              \
  X(FreeMemory)                  \
  X(MapMemory)                   \
  X(CreateBuffer)                \
  X(DestroyBuffer)               \
  X(GetBufferMemoryRequirements) \
  X(BindBufferMemory)            \
  X(GetBufferDeviceAddress)      \
  X(CreateShaderModule)          \
  X(DestroyShaderModule)         \
  X(CreateDescriptorSetLayout)   \
  X(DestroyDescriptorSetLayout)  \
  X(CreateDescriptorPool)        \
  X(DestroyDescriptorPool)       \
  X(AllocateDescriptorSets)      \
  X(UpdateDescriptorSets)        \
  X(CreatePipelineLayout)        \
  X(DestroyPipelineLayout)       \
  X(CreatePipelineCache)         \
  X(DestroyPipelineCache)        \
  X(GetPipelineCacheData)        \
  X(CreateComputePipelines)      \
  X(DestroyPipeline)             \
  X(CreateCommandPool)           \
  X(DestroyCommandPool)          \
  X(AllocateCommandBuffers)      \
  X(BeginCommandBuffer)          \
  X(EndCommandBuffer)            \
  X(CmdBindPipeline)             \
  X(CmdBindDescriptorSets)       \
  X(CmdPushConstants)            \
  X(CmdDispatch)                 \
  X(CmdCopyBuffer)               \
  X(CmdFillBuffer)               \
  X(CmdPipelineBarrier)          \
  X(CreateSemaphore)             \
  X(DestroySemaphore)            \
  X(WaitSemaphores)              \
  X(GetSemaphoreCounterValue)

// Every call of this layer goes through such a table, so that tests can replace entries.
struct Functions {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
  PFN_vkEnumerateInstanceVersion EnumerateInstanceVersion = nullptr;            // 1.1 loaders
  PFN_vkCreateDebugUtilsMessengerEXT CreateDebugUtilsMessengerEXT = nullptr;    // validation
  PFN_vkDestroyDebugUtilsMessengerEXT DestroyDebugUtilsMessengerEXT = nullptr;  // validation
#define MG_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;
  MG_VULKAN_GLOBAL(MG_VULKAN_MEMBER)
  MG_VULKAN_INSTANCE(MG_VULKAN_MEMBER)
  MG_VULKAN_DEVICE(MG_VULKAN_MEMBER)
#undef MG_VULKAN_MEMBER
};

// "VK_ERROR_DEVICE_LOST"; the number for results that this layer does not know.
std::string_view to_string(VkResult result);

}  // namespace meganeura::device::vulkan
