// Device memory: one buffer with its own allocation.
#pragma once

#include <memory>

#include "device/device.h"
#include "device/vulkan/context.h"

namespace meganeura::device::vulkan {

// The Vulkan objects, shared by the Memory and the recordings that use it.
class Buffer {
 public:
  // Error(kOutOfMemory) naming size, kind and what the heap has left.
  Buffer(std::shared_ptr<Context> context, uint64_t bytes, MemoryKind kind);
  // Waits for everything submitted before.
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  VkBuffer handle() const { return buffer_; }
  uint64_t address() const { return address_; }  // 0 without buffer addresses
  uint64_t bytes() const { return bytes_; }      // as asked for
  uint64_t capacity() const { return capacity_; }
  std::byte* mapped() const { return mapped_; }
  const Context& context() const { return *context_; }

 private:
  void create_buffer();
  void allocate(MemoryKind kind);
  void destroy();

  std::shared_ptr<Context> context_;
  uint64_t bytes_;
  uint64_t capacity_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  uint64_t address_ = 0;
  std::byte* mapped_ = nullptr;
};

class VulkanMemory final : public Memory {
 public:
  explicit VulkanMemory(std::shared_ptr<Buffer> buffer) : buffer_(std::move(buffer)) {}
  uint64_t bytes() const override { return buffer_->bytes(); }
  std::byte* mapped() override { return buffer_->mapped(); }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }

 private:
  std::shared_ptr<Buffer> buffer_;
};

}  // namespace meganeura::device::vulkan
