// The Vulkan loader, opened at run time.
#pragma once

#include <functional>
#include <memory>

#include "base/platform_library.h"
#include "device/vulkan/vulkan.h"

namespace meganeura::device::vulkan {

// Changes a freshly resolved table; called after each stage of resolution (tests inject faults).
using FunctionHook = std::function<void(Functions&)>;

// The open loader and the entry points that need no instance.
struct Loader {
  std::shared_ptr<SharedLibrary> library;
  Functions functions;
};

// Error(kUnsupported) saying what was tried when the system has no Vulkan loader.
Loader open_loader();

// Fill the stage's entries; Error(kUnsupported) naming the first that is missing.
void load_instance_functions(Functions& functions, VkInstance instance);
void load_device_functions(Functions& functions, VkDevice device);

// Throws the Error that a failed result stands for: kOutOfMemory, kDeviceLost, kUnsupported or
// kInternal, naming the call and what it was for. Does nothing for results that are no errors.
void check_result(VkResult result, std::string_view call, std::string_view purpose);

}  // namespace meganeura::device::vulkan
