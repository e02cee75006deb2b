#include "device/vulkan/physical_device.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <thread>

#include "base/check.h"

namespace meganeura::device::vulkan {
namespace {

// Compute units to assume where no extension tells: enough groups to fill a typical device.
constexpr uint32_t kGuessedLargeUnits = 48;
constexpr uint32_t kGuessedSmallUnits = 12;
// An integrated GPU with as many units is scheduled like a discrete one.
constexpr uint32_t kLargeUnits = 20;

// Structures that vkGetPhysicalDeviceProperties2 and its kin fill, chained as far as offered.
struct Queries {
  VkPhysicalDeviceProperties2 base{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceVulkan11Properties v11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES};
  VkPhysicalDeviceVulkan12Properties v12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
  VkPhysicalDeviceSubgroupSizeControlProperties subgroup_control{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
  VkPhysicalDeviceMaintenance4Properties maintenance4{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nv{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  VkPhysicalDeviceShaderCorePropertiesAMD amd{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};

  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan12Features features12{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_features{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};

  bool has_control = false;
  bool has_maintenance4 = false;
  bool has_nv = false;
  bool has_amd = false;
};

template <class Structure>
void chain(void**& tail, Structure& next) {
  *tail = &next;
  tail = &next.pNext;
}

class ExtensionList {
 public:
  ExtensionList(const Functions& vk, VkPhysicalDevice device) {
    uint32_t count = 0;
    check_result(vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr),
                 "vkEnumerateDeviceExtensionProperties", "listing device extensions");
    extensions_.resize(count);
    check_result(vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, extensions_.data()),
                 "vkEnumerateDeviceExtensionProperties", "listing device extensions");
    extensions_.resize(count);
  }
  bool has(std::string_view name) const {
    return std::ranges::any_of(extensions_,
                               [&](const auto& row) { return name == row.extensionName; });
  }

 private:
  std::vector<VkExtensionProperties> extensions_;
};

void query(const Functions& vk, VkPhysicalDevice handle, const ExtensionList& extensions,
           uint32_t api_version, Queries& queries) {
  const bool v13 = api_version >= VK_API_VERSION_1_3;
  queries.has_control = v13 || extensions.has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  queries.has_maintenance4 = v13;
  queries.has_nv = extensions.has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME);
  queries.has_amd = extensions.has(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME);
  void** tail = &queries.base.pNext;
  chain(tail, queries.v11);
  chain(tail, queries.v12);
  if (queries.has_control) chain(tail, queries.subgroup_control);
  if (queries.has_maintenance4) chain(tail, queries.maintenance4);
  if (queries.has_nv) chain(tail, queries.nv);
  if (queries.has_amd) chain(tail, queries.amd);
  vk.GetPhysicalDeviceProperties2(handle, &queries.base);
  tail = &queries.features.pNext;
  chain(tail, queries.features12);
  if (queries.has_control) chain(tail, queries.subgroup_features);
  vk.GetPhysicalDeviceFeatures2(handle, &queries.features);
}

std::optional<uint32_t> compute_family(const Functions& vk, VkPhysicalDevice handle) {
  uint32_t count = 0;
  vk.GetPhysicalDeviceQueueFamilyProperties(handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk.GetPhysicalDeviceQueueFamilyProperties(handle, &count, families.data());
  for (uint32_t i = 0; i < count; ++i) {
    if (families[i].queueCount > 0 && (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) return i;
  }
  return std::nullopt;
}

uint32_t compute_units(const Queries& queries, VkPhysicalDeviceType type) {
  if (type == VK_PHYSICAL_DEVICE_TYPE_CPU) {
    return std::max(1u, std::thread::hardware_concurrency());
  }
  if (queries.has_nv && queries.nv.shaderSMCount > 0) return queries.nv.shaderSMCount;
  if (queries.has_amd) {
    const uint32_t units = queries.amd.shaderEngineCount * queries.amd.shaderArraysPerEngineCount *
                           queries.amd.computeUnitsPerShaderArray;
    if (units > 0) return units;
  }
  return type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ? kGuessedLargeUnits : kGuessedSmallUnits;
}

DeviceClass device_class(VkPhysicalDeviceType type, VkDriverId driver, uint32_t units) {
  if (type == VK_PHYSICAL_DEVICE_TYPE_CPU) return DeviceClass::kCpu;
  if (driver == VK_DRIVER_ID_MOLTENVK) return DeviceClass::kApple;
  if (type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU || units >= kLargeUnits) {
    return DeviceClass::kLargeGpu;
  }
  return DeviceClass::kSmallGpu;
}

void fill_capabilities(const Queries& queries, BindingMode binding, uint64_t heap,
                       PhysicalDevice& device) {
  const VkPhysicalDeviceLimits& limits = queries.base.properties.limits;
  Capabilities& caps = device.capabilities;
  caps.binding = binding;
  caps.compute_units = compute_units(queries, device.type);
  caps.device_class = device_class(device.type, queries.v12.driverID, caps.compute_units);
  caps.subgroup_size = queries.v11.subgroupSize;
  const VkSubgroupFeatureFlags operations = queries.v11.subgroupSupportedOperations;
  caps.subgroup_arithmetic = operations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  caps.subgroup_shuffle = operations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  caps.subgroup_ballot = operations & VK_SUBGROUP_FEATURE_BALLOT_BIT;
  caps.subgroup_size_control =
      queries.has_control && queries.subgroup_features.subgroupSizeControl &&
      (queries.subgroup_control.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT);
  if (caps.subgroup_size_control) {
    device.min_subgroup_size = queries.subgroup_control.minSubgroupSize;
    device.max_subgroup_size = queries.subgroup_control.maxSubgroupSize;
    device.full_subgroups = queries.subgroup_features.computeFullSubgroups;
  }
  caps.max_workgroup_invocations = limits.maxComputeWorkGroupInvocations;
  for (size_t axis = 0; axis < 3; ++axis) {
    caps.max_workgroup_size[axis] = limits.maxComputeWorkGroupSize[axis];
    caps.max_workgroup_count[axis] = limits.maxComputeWorkGroupCount[axis];
  }
  caps.shared_bytes = limits.maxComputeSharedMemorySize;
  caps.push_constant_bytes = limits.maxPushConstantsSize;
  caps.max_allocation_bytes = std::min<uint64_t>(queries.v11.maxMemoryAllocationSize, heap);
  if (queries.has_maintenance4) {
    caps.max_allocation_bytes =
        std::min<uint64_t>(caps.max_allocation_bytes, queries.maintenance4.maxBufferSize);
  }
  device.max_storage_range = limits.maxStorageBufferRange;
  device.storage_alignment = limits.minStorageBufferOffsetAlignment;
  caps.max_buffer_range =
      binding == BindingMode::kDescriptor
          ? std::min<uint64_t>(device.max_storage_range, caps.max_allocation_bytes)
          : caps.max_allocation_bytes;
  caps.signed_zero_inf_nan_preserve = queries.v12.shaderSignedZeroInfNanPreserveFloat32;
  caps.denorm_preserve = queries.v12.shaderDenormPreserveFloat32;
  caps.rounding_rte = queries.v12.shaderRoundingModeRTEFloat32;
}

// SwiftShader has addresses, and crashes while it compiles a load of a vector through one.
bool addresses_usable(const Queries& queries) {
  return queries.features12.bufferDeviceAddress &&
         queries.v12.driverID != VK_DRIVER_ID_GOOGLE_SWIFTSHADER;
}

void fill_missing(const Queries& queries, BindingMode binding, PhysicalDevice& device) {
  auto require = [&](bool present, std::string_view what) {
    if (!present) device.missing.emplace_back(what);
  };
  require(queries.v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT,
          "subgroup operations in compute shaders");
  require(queries.v11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_BASIC_BIT,
          "basic subgroup operations");
  require(queries.features12.timelineSemaphore, "the feature timelineSemaphore");
  if (binding == BindingMode::kAddress) {
    require(addresses_usable(queries),
            "a working feature bufferDeviceAddress (descriptors would do without it)");
  }
}

std::string hex(const uint8_t* bytes, size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 15];
  }
  return out;
}

void fill_details(const Queries& queries, PhysicalDevice& device) {
  const Capabilities& caps = device.capabilities;
  auto& details = device.info.details;
  auto detail = [&](std::string_view name, std::string value) {
    details.emplace_back(name, std::move(value));
  };
  detail("class", std::string(to_string(caps.device_class)));
  detail("compute units", cat(caps.compute_units));
  detail("memory", cat(device.info.memory_bytes >> 20, " MiB"));
  detail("largest allocation", cat(caps.max_allocation_bytes >> 20, " MiB"));
  detail("storage buffer range", cat(device.max_storage_range >> 20, " MiB"));
  detail("subgroup size", caps.subgroup_size_control
                              ? cat(caps.subgroup_size, " (", device.min_subgroup_size, " to ",
                                    device.max_subgroup_size, ")")
                              : cat(caps.subgroup_size));
  std::vector<std::string_view> operations;
  if (caps.subgroup_arithmetic) operations.push_back("arithmetic");
  if (caps.subgroup_shuffle) operations.push_back("shuffle");
  if (caps.subgroup_ballot) operations.push_back("ballot");
  detail("subgroup operations", operations.empty() ? "basic" : join(operations));
  detail("workgroup invocations", cat(caps.max_workgroup_invocations));
  detail("shared memory", cat(caps.shared_bytes >> 10, " KiB"));
  detail("push constants", cat(caps.push_constant_bytes, " bytes"));
  detail("buffer addresses", addresses_usable(queries) ? "yes" : "no: descriptors instead");
  std::vector<std::string_view> controls;
  if (caps.signed_zero_inf_nan_preserve) controls.push_back("signed zero, infinity, NaN");
  if (caps.denorm_preserve) controls.push_back("denormals");
  if (caps.rounding_rte) controls.push_back("round to nearest even");
  detail("f32 controls", controls.empty() ? "none" : join(controls, "; "));
}

uint64_t largest_device_heap(const Functions& vk, VkPhysicalDevice handle) {
  VkPhysicalDeviceMemoryProperties2 memory{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  vk.GetPhysicalDeviceMemoryProperties2(handle, &memory);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = memory.memoryProperties.memoryHeaps[i];
    if (heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) bytes = std::max(bytes, heap.size);
  }
  return bytes;
}

}  // namespace

PhysicalDevice describe(const Instance& instance, VkPhysicalDevice handle, BindingMode binding) {
  const Functions& vk = instance.functions();
  PhysicalDevice device;
  device.handle = handle;
  VkPhysicalDeviceProperties properties{};
  vk.GetPhysicalDeviceProperties(handle, &properties);
  device.type = properties.deviceType;
  device.info.name = properties.deviceName;
  device.info.api = cat("Vulkan ", version_text(properties.apiVersion));
  device.info.software = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  device.api_version = std::min(properties.apiVersion, instance.api_version());
  if (properties.apiVersion < VK_API_VERSION_1_2) {
    device.missing.push_back(
        cat("Vulkan 1.2 (the driver offers ", version_text(properties.apiVersion), ")"));
    return device;
  }

  const ExtensionList extensions(vk, handle);
  Queries queries;
  query(vk, handle, extensions, device.api_version, queries);
  device.info.driver = cat(queries.v12.driverName, " ", queries.v12.driverInfo);
  device.info.uuid =
      cat(hex(queries.v11.deviceUUID, VK_UUID_SIZE), "-", hex(queries.v11.driverUUID, VK_UUID_SIZE),
          "-", hex(properties.pipelineCacheUUID, VK_UUID_SIZE));
  device.info.memory_bytes = largest_device_heap(vk, handle);
  device.memory_budget = extensions.has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  device.vulkan_memory_model =
      queries.features12.vulkanMemoryModel && queries.features12.vulkanMemoryModelDeviceScope;
  fill_capabilities(queries, binding, device.info.memory_bytes, device);
  fill_missing(queries, binding, device);
  if (const auto family = compute_family(vk, handle)) {
    device.queue_family = *family;
  } else {
    device.missing.emplace_back("a queue with compute support");
  }
  for (const char* name : {"VK_KHR_portability_subset", VK_EXT_MEMORY_BUDGET_EXTENSION_NAME}) {
    if (extensions.has(name)) device.extensions.push_back(name);
  }
  if (device.capabilities.subgroup_size_control && device.api_version < VK_API_VERSION_1_3) {
    device.extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  }
  fill_details(queries, device);
  return device;
}

std::vector<PhysicalDevice> describe_all(const Instance& instance, BindingMode binding) {
  std::vector<PhysicalDevice> devices;
  for (VkPhysicalDevice handle : instance.physical_devices()) {
    devices.push_back(describe(instance, handle, binding));
  }
  return devices;
}

std::string missing_text(const PhysicalDevice& device) { return join(device.missing); }

}  // namespace meganeura::device::vulkan
