// A Vulkan instance with, on request, the validation layer.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/vulkan/loader.h"

namespace meganeura::device::vulkan {

struct InstanceOptions {
  bool validation = false;
  bool synchronization_validation = false;  // only together with `validation`
  FunctionHook hook;
};

class Instance {
 public:
  // Error(kUnsupported) naming what is missing: loader, Vulkan 1.2, the validation layer.
  explicit Instance(InstanceOptions options);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  VkInstance handle() const { return handle_; }
  const Functions& functions() const { return functions_; }
  uint32_t api_version() const { return api_version_; }
  std::vector<VkPhysicalDevice> physical_devices() const;
  void apply_hook(Functions& functions) const;

  // What the validation layer said so far, warnings and errors in order.
  std::vector<std::string> messages() const;

 private:
  explicit Instance(FunctionHook hook);
  void create(bool validation, bool synchronization_validation);
  void add_message(std::string message);
  static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                   VkDebugUtilsMessageTypeFlagsEXT types,
                                                   const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                   void* self);

  Loader loader_;
  Functions functions_;
  FunctionHook hook_;
  uint32_t api_version_ = VK_API_VERSION_1_2;
  VkInstance handle_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
};

// "1.3.230".
std::string version_text(uint32_t version);

}  // namespace meganeura::device::vulkan
