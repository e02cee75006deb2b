#include "device/vulkan/loader.h"

#include <array>

#include "base/check.h"

namespace meganeura::device::vulkan {
namespace {

constexpr std::array kLoaderNames = {
#if defined(_WIN32)
    "vulkan-1.dll",
#elif defined(__APPLE__)
    "libvulkan.1.dylib",
    "libMoltenVK.dylib",
#else
    "libvulkan.so.1",
    "libvulkan.so",
#endif
};

struct ResultName {
  VkResult result;
  std::string_view name;
};

constexpr ResultName kResultNames[] = {
    {VK_SUCCESS, "VK_SUCCESS"},
    {VK_NOT_READY, "VK_NOT_READY"},
    {VK_TIMEOUT, "VK_TIMEOUT"},
    {VK_INCOMPLETE, "VK_INCOMPLETE"},
    {VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
    {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED"},
    {VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST"},
    {VK_ERROR_MEMORY_MAP_FAILED, "VK_ERROR_MEMORY_MAP_FAILED"},
    {VK_ERROR_LAYER_NOT_PRESENT, "VK_ERROR_LAYER_NOT_PRESENT"},
    {VK_ERROR_EXTENSION_NOT_PRESENT, "VK_ERROR_EXTENSION_NOT_PRESENT"},
    {VK_ERROR_FEATURE_NOT_PRESENT, "VK_ERROR_FEATURE_NOT_PRESENT"},
    {VK_ERROR_INCOMPATIBLE_DRIVER, "VK_ERROR_INCOMPATIBLE_DRIVER"},
    {VK_ERROR_TOO_MANY_OBJECTS, "VK_ERROR_TOO_MANY_OBJECTS"},
    {VK_ERROR_FRAGMENTED_POOL, "VK_ERROR_FRAGMENTED_POOL"},
    {VK_ERROR_OUT_OF_POOL_MEMORY, "VK_ERROR_OUT_OF_POOL_MEMORY"},
    {VK_ERROR_INVALID_SHADER_NV, "VK_ERROR_INVALID_SHADER_NV"},
    {VK_ERROR_UNKNOWN, "VK_ERROR_UNKNOWN"},
};

ErrorKind kind_of(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_MEMORY_MAP_FAILED:
    case VK_ERROR_TOO_MANY_OBJECTS:
      return ErrorKind::kOutOfMemory;
    case VK_ERROR_DEVICE_LOST:
      return ErrorKind::kDeviceLost;
    case VK_ERROR_INCOMPATIBLE_DRIVER:
    case VK_ERROR_LAYER_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
    case VK_ERROR_INITIALIZATION_FAILED:
      return ErrorKind::kUnsupported;
    default:
      return ErrorKind::kInternal;
  }
}

[[noreturn]] void missing_entry(std::string_view name) {
  fail(ErrorKind::kUnsupported, "The Vulkan driver has no entry point vk", name,
       ", which Vulkan 1.2 requires. Update the Vulkan loader and driver.");
}

}  // namespace

std::string_view to_string(VkResult result) {
  for (const ResultName& row : kResultNames) {
    if (row.result == result) return row.name;
  }
  return "an unknown VkResult";
}

void check_result(VkResult result, std::string_view call, std::string_view purpose) {
  if (result >= 0) [[likely]]
    return;
  fail(kind_of(result), "Vulkan's ", call, " failed with ", to_string(result), " (",
       static_cast<int>(result), ") while ", purpose, ".");
}

Loader open_loader() {
  std::string why;
  Loader loader;
  loader.library = SharedLibrary::open(kLoaderNames, why);
  if (!loader.library) {
    fail(ErrorKind::kUnsupported, "No Vulkan loader was found (", why,
         "). Install the Vulkan loader and a driver for this machine; mesa's lavapipe runs on any "
         "CPU.");
  }
  Functions& functions = loader.functions;
  functions.GetInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(loader.library->symbol("vkGetInstanceProcAddr"));
  if (!functions.GetInstanceProcAddr) missing_entry("GetInstanceProcAddr");
  functions.EnumerateInstanceVersion = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(
      functions.GetInstanceProcAddr(nullptr, "vkEnumerateInstanceVersion"));
#define MG_VULKAN_LOAD(name)                                                              \
  functions.name =                                                                        \
      reinterpret_cast<PFN_vk##name>(functions.GetInstanceProcAddr(nullptr, "vk" #name)); \
  if (!functions.name) missing_entry(#name);
  MG_VULKAN_GLOBAL(MG_VULKAN_LOAD)
#undef MG_VULKAN_LOAD
  return loader;
}

void load_instance_functions(Functions& functions, VkInstance instance) {
#define MG_VULKAN_LOAD(name)                                                               \
  functions.name =                                                                         \
      reinterpret_cast<PFN_vk##name>(functions.GetInstanceProcAddr(instance, "vk" #name)); \
  if (!functions.name) missing_entry(#name);
  MG_VULKAN_INSTANCE(MG_VULKAN_LOAD)
#undef MG_VULKAN_LOAD
  functions.CreateDebugUtilsMessengerEXT = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      functions.GetInstanceProcAddr(instance, "vkCreateDebugUtilsMessengerEXT"));
  functions.DestroyDebugUtilsMessengerEXT = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
      functions.GetInstanceProcAddr(instance, "vkDestroyDebugUtilsMessengerEXT"));
}

void load_device_functions(Functions& functions, VkDevice device) {
#define MG_VULKAN_LOAD(name)                                                           \
  functions.name =                                                                     \
      reinterpret_cast<PFN_vk##name>(functions.GetDeviceProcAddr(device, "vk" #name)); \
  if (!functions.name) missing_entry(#name);
  MG_VULKAN_DEVICE(MG_VULKAN_LOAD)
#undef MG_VULKAN_LOAD
}

}  // namespace meganeura::device::vulkan
