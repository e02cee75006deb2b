// Command buffers recorded once and replayed.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "device/vulkan/memory.h"
#include "device/vulkan/pipeline.h"

namespace meganeura::device::vulkan {

class VulkanRecording final : public Recording {
 public:
  // Checks hazards, limits and ranges first. Keeps pipelines and memory of the commands alive.
  VulkanRecording(std::shared_ptr<Context> context, std::span<const Command> commands);
  // Waits for the last submission of this recording.
  ~VulkanRecording() override;

  VkCommandBuffer handle() const { return buffer_; }
  const Context& context() const { return *context_; }
  void submitted(uint64_t ticket) { last_ticket_ = ticket; }

 private:
  void create_pool(std::span<const Command> commands);
  void record(std::span<const Command> commands);
  void record_dispatch(const Command& command);
  void push_addresses(const Command& command, const Layout& layout);
  void bind_descriptors(const Command& command, const Layout& layout);
  void check_dispatch(const Command& command, const Layout& layout) const;
  VkBuffer buffer_of(const Span& span, const Command& command);

  std::shared_ptr<Context> context_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
  VkCommandBuffer buffer_ = VK_NULL_HANDLE;
  std::atomic<uint64_t> last_ticket_ = 0;
  std::vector<std::shared_ptr<Buffer>> memory_;
  std::vector<std::shared_ptr<PipelineObject>> pipelines_;
};

}  // namespace meganeura::device::vulkan
