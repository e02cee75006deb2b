// What everything made from one Vulkan device shares and keeps alive.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "device/vulkan/physical_device.h"
#include "device/vulkan/queue.h"

namespace meganeura::device::vulkan {

class Context {
 public:
  // Creates the logical device with exactly the features that this layer uses.
  Context(std::shared_ptr<Instance> instance, PhysicalDevice physical);
  // Waits for pending work first.
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Functions& vk() const { return functions_; }
  VkDevice device() const { return device_; }
  const Instance& instance() const { return *instance_; }
  const PhysicalDevice& physical() const { return physical_; }
  Queue& queue() { return *queue_; }

  // check_result that remembers a lost device.
  void check(VkResult result, std::string_view call, std::string_view purpose);
  // Throws Error(kDeviceLost) once the device was lost.
  void require_alive() const;
  bool lost() const { return lost_.load(std::memory_order_acquire); }

 private:
  void create_device();

  std::shared_ptr<Instance> instance_;
  PhysicalDevice physical_;
  Functions functions_;
  VkDevice device_ = VK_NULL_HANDLE;
  std::unique_ptr<Queue> queue_;
  std::atomic<bool> lost_ = false;
  mutable std::mutex mutex_;
  std::string lost_message_;
};

}  // namespace meganeura::device::vulkan
