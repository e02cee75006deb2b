// Opening Vulkan devices.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/vulkan/physical_device.h"
#include "device/vulkan/pipeline.h"

namespace meganeura::device::vulkan {

struct OpenOptions {
  bool validation = false;
  bool descriptors = false;
  std::filesystem::path cache_directory;  // of pipelines; empty: none on disk
  FunctionHook hook;                      // replaces Vulkan entry points, for tests
};

class VulkanDevice final : public Device {
 public:
  VulkanDevice(std::shared_ptr<Instance> instance, PhysicalDevice physical,
               const std::filesystem::path& cache_directory);

  const DeviceInfo& info() const override { return context_->physical().info; }
  const Capabilities& capabilities() const override { return capabilities_; }
  CodeKind code() const override { return CodeKind::kSpirv; }
  std::unique_ptr<Memory> allocate(uint64_t bytes, MemoryKind kind) override;
  std::vector<std::unique_ptr<Pipeline>> create_pipelines(std::span<const Module> modules) override;
  std::unique_ptr<Recording> record(std::span<const Command> commands) override;
  uint64_t submit(std::span<Recording* const> recordings) override;
  void wait(uint64_t ticket) override;
  bool done(uint64_t ticket) override;

  // What the validation layer said since the device was opened; empty without validation.
  std::vector<std::string> validation_messages() const;

 private:
  std::shared_ptr<Context> context_;
  PipelineFactory pipelines_;
  Capabilities capabilities_;
};

// Every device that the loader knows, usable or not, in its order. Error(kUnsupported) when there
// is no loader or driver.
std::vector<PhysicalDevice> list(const OpenOptions& options = {});

// The index into list() of the best usable device: discrete before integrated before virtual
// before software. Error(kUnsupported) naming what each one lacks.
size_t best(const std::vector<PhysicalDevice>& devices);

// Opens the device of that index. Error(kUnsupported) naming what it lacks.
std::shared_ptr<VulkanDevice> open(size_t index, const OpenOptions& options = {});

}  // namespace meganeura::device::vulkan
