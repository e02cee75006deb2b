#include "device/vulkan/instance.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace meganeura::device::vulkan {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";
constexpr const char* kPortabilityExtension = "VK_KHR_portability_enumeration";

bool has_layer(const Functions& vk, std::string_view name) {
  uint32_t count = 0;
  check_result(vk.EnumerateInstanceLayerProperties(&count, nullptr),
               "vkEnumerateInstanceLayerProperties", "listing layers");
  std::vector<VkLayerProperties> layers(count);
  check_result(vk.EnumerateInstanceLayerProperties(&count, layers.data()),
               "vkEnumerateInstanceLayerProperties", "listing layers");
  return std::ranges::any_of(layers, [&](const auto& layer) { return name == layer.layerName; });
}

bool has_extension(const Functions& vk, const char* layer, std::string_view name) {
  uint32_t count = 0;
  check_result(vk.EnumerateInstanceExtensionProperties(layer, &count, nullptr),
               "vkEnumerateInstanceExtensionProperties", "listing instance extensions");
  std::vector<VkExtensionProperties> extensions(count);
  check_result(vk.EnumerateInstanceExtensionProperties(layer, &count, extensions.data()),
               "vkEnumerateInstanceExtensionProperties", "listing instance extensions");
  return std::ranges::any_of(
      extensions, [&](const auto& extension) { return name == extension.extensionName; });
}

}  // namespace

std::string version_text(uint32_t version) {
  return cat(VK_API_VERSION_MAJOR(version), ".", VK_API_VERSION_MINOR(version), ".",
             VK_API_VERSION_PATCH(version));
}

Instance::Instance(FunctionHook hook)
    : loader_(open_loader()), functions_(loader_.functions), hook_(std::move(hook)) {
  apply_hook(functions_);
}

Instance::Instance(InstanceOptions options) : Instance(std::move(options.hook)) {
  uint32_t offered = VK_API_VERSION_1_0;
  if (functions_.EnumerateInstanceVersion) {
    check_result(functions_.EnumerateInstanceVersion(&offered), "vkEnumerateInstanceVersion",
                 "asking the loader's version");
  }
  if (offered < VK_API_VERSION_1_2) {
    fail(ErrorKind::kUnsupported, "The Vulkan loader offers version ", version_text(offered),
         ", and Vulkan 1.2 is needed. Update the Vulkan loader.");
  }
  api_version_ = offered >= VK_API_VERSION_1_3 ? VK_API_VERSION_1_3 : VK_API_VERSION_1_2;
  create(options.validation, options.synchronization_validation);
}

void Instance::create(bool validation, bool synchronization_validation) {
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pEngineName = "meganeura";
  application.apiVersion = api_version_;
  VkInstanceCreateInfo create{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  create.pApplicationInfo = &application;

  std::vector<const char*> extensions;
  std::vector<const char*> layers;
  if (has_extension(functions_, nullptr, kPortabilityExtension)) {
    extensions.push_back(kPortabilityExtension);
    create.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
  VkDebugUtilsMessengerCreateInfoEXT messenger{
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  VkValidationFeaturesEXT features{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  const VkValidationFeatureEnableEXT synchronization =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  if (validation) {
    if (!has_layer(functions_, kValidationLayer)) {
      fail(ErrorKind::kUnsupported, "Validation was asked for, but the layer ", kValidationLayer,
           " is not installed. Install the Vulkan validation layers or switch validation off.");
    }
    layers.push_back(kValidationLayer);
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messenger.pfnUserCallback = &Instance::on_message;
    messenger.pUserData = this;
    create.pNext = &messenger;
    if (synchronization_validation &&
        has_extension(functions_, kValidationLayer, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME)) {
      extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
      features.enabledValidationFeatureCount = 1;
      features.pEnabledValidationFeatures = &synchronization;
      features.pNext = &messenger;
      create.pNext = &features;
    }
  }
  create.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  create.ppEnabledExtensionNames = extensions.data();
  create.enabledLayerCount = static_cast<uint32_t>(layers.size());
  create.ppEnabledLayerNames = layers.data();
  const VkResult result = functions_.CreateInstance(&create, nullptr, &handle_);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    fail(ErrorKind::kUnsupported,
         "The Vulkan loader found no driver. Install the Vulkan driver of this machine's GPU; "
         "mesa's lavapipe runs on any CPU.");
  }
  check_result(result, "vkCreateInstance", "opening Vulkan");

  load_instance_functions(functions_, handle_);
  apply_hook(functions_);
  if (validation && functions_.CreateDebugUtilsMessengerEXT) {
    check_result(functions_.CreateDebugUtilsMessengerEXT(handle_, &messenger, nullptr, &messenger_),
                 "vkCreateDebugUtilsMessengerEXT", "listening to the validation layer");
  }
}

Instance::~Instance() {
  if (messenger_) functions_.DestroyDebugUtilsMessengerEXT(handle_, messenger_, nullptr);
  if (handle_ && functions_.DestroyInstance) functions_.DestroyInstance(handle_, nullptr);
}

std::vector<VkPhysicalDevice> Instance::physical_devices() const {
  uint32_t count = 0;
  check_result(functions_.EnumeratePhysicalDevices(handle_, &count, nullptr),
               "vkEnumeratePhysicalDevices", "listing devices");
  std::vector<VkPhysicalDevice> devices(count);
  check_result(functions_.EnumeratePhysicalDevices(handle_, &count, devices.data()),
               "vkEnumeratePhysicalDevices", "listing devices");
  devices.resize(count);
  return devices;
}

void Instance::apply_hook(Functions& functions) const {
  if (hook_) hook_(functions);
}

std::vector<std::string> Instance::messages() const {
  std::lock_guard lock(mutex_);
  return messages_;
}

void Instance::add_message(std::string message) {
  std::lock_guard lock(mutex_);
  messages_.push_back(std::move(message));
}

VkBool32 Instance::on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                              VkDebugUtilsMessageTypeFlagsEXT /*types*/,
                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* self) {
  const char* level =
      severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT ? "error: " : "warning: ";
  static_cast<Instance*>(self)->add_message(cat(level, data->pMessage ? data->pMessage : ""));
  return VK_FALSE;
}

}  // namespace meganeura::device::vulkan
