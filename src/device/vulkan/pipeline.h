// Compute pipelines: layouts, creation in parallel, sharing of equal ones, the cache on disk.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/device.h"
#include "device/vulkan/context.h"

namespace meganeura::device::vulkan {

// Descriptor set layout (descriptor binding only) and pipeline layout of a module's signature.
struct Layout {
  explicit Layout(std::shared_ptr<Context> context) : context(std::move(context)) {}
  ~Layout();
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  std::shared_ptr<Context> context;
  BindingMode binding = BindingMode::kAddress;
  uint32_t slots = 0;
  uint32_t params = 0;
  VkDescriptorSetLayout set = VK_NULL_HANDLE;
  VkPipelineLayout pipeline = VK_NULL_HANDLE;

  uint32_t push_bytes() const;
};

// One VkPipeline, shared by all modules of equal content.
struct PipelineObject {
  explicit PipelineObject(std::shared_ptr<Layout> layout) : layout(std::move(layout)) {}
  ~PipelineObject();
  PipelineObject(const PipelineObject&) = delete;
  PipelineObject& operator=(const PipelineObject&) = delete;

  std::shared_ptr<Layout> layout;
  VkPipeline handle = VK_NULL_HANDLE;
};

class VulkanPipeline final : public Pipeline {
 public:
  explicit VulkanPipeline(std::shared_ptr<PipelineObject> object) : object_(std::move(object)) {}
  const std::shared_ptr<PipelineObject>& object() const { return object_; }

 private:
  std::shared_ptr<PipelineObject> object_;
};

// Thread-safe.
class PipelineFactory {
 public:
  // `cache_path` may be empty: no cache on disk.
  PipelineFactory(std::shared_ptr<Context> context, std::filesystem::path cache_path);
  // Saves the cache when it has grown.
  ~PipelineFactory();
  PipelineFactory(const PipelineFactory&) = delete;
  PipelineFactory& operator=(const PipelineFactory&) = delete;

  // One per module, in their order. Error(kUnsupported) naming the module and the limit that it
  // exceeds.
  std::vector<std::shared_ptr<PipelineObject>> create(std::span<const Module> modules);

 private:
  using LayoutKey = std::array<uint32_t, 3>;  // binding, slots, params

  void check_module(const Module& module) const;
  std::shared_ptr<Layout> layout(const Module& module);
  void build(const Module& module, PipelineObject& object) const;
  std::vector<std::byte> cache_data() const;

  std::shared_ptr<Context> context_;
  std::filesystem::path cache_path_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  size_t loaded_bytes_ = 0;
  std::mutex mutex_;
  std::map<LayoutKey, std::shared_ptr<Layout>> layouts_;
  std::map<std::vector<uint32_t>, std::weak_ptr<PipelineObject>> pipelines_;  // by content
};

}  // namespace meganeura::device::vulkan
