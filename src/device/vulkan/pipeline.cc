#include "device/vulkan/pipeline.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "base/check.h"
#include "device/vulkan/cache_file.h"

namespace meganeura::device::vulkan {
namespace {

constexpr uint32_t kSpirvMagic = 0x07230203;
constexpr uint32_t kAddressBytes = 8;
constexpr uint32_t kParamBytes = 4;

uint32_t push_constant_bytes(BindingMode binding, uint32_t slots, uint32_t params) {
  return params * kParamBytes + (binding == BindingMode::kAddress ? slots * kAddressBytes : 0);
}

// Everything that decides how a module behaves; its name does not.
std::vector<uint32_t> content_key(const Module& module) {
  std::vector<uint32_t> key = {static_cast<uint32_t>(module.binding), module.slots, module.params,
                               module.local_size[0], module.subgroup_size};
  key.insert(key.end(), module.words.begin(), module.words.end());
  return key;
}

// Runs task(i) for every i below count on all cores; rethrows the failure of the lowest i.
template <class Task>
void parallel_for(size_t count, const Task& task) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        task(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    const size_t threads =
        std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
    for (size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace

Layout::~Layout() {
  const Functions& vk = context->vk();
  vk.DestroyPipelineLayout(context->device(), pipeline, nullptr);
  vk.DestroyDescriptorSetLayout(context->device(), set, nullptr);
}

uint32_t Layout::push_bytes() const { return push_constant_bytes(binding, slots, params); }

PipelineObject::~PipelineObject() {
  Context& context = *layout->context;
  if (handle) context.queue().settle_all();
  context.vk().DestroyPipeline(context.device(), handle, nullptr);
}

PipelineFactory::PipelineFactory(std::shared_ptr<Context> context, std::filesystem::path cache_path)
    : context_(std::move(context)), cache_path_(std::move(cache_path)) {
  std::vector<std::byte> data;
  if (!cache_path_.empty()) data = load_cache_file(cache_path_, context_->physical().info.uuid);
  VkPipelineCacheCreateInfo create{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  create.initialDataSize = data.size();
  create.pInitialData = data.data();
  context_->check(context_->vk().CreatePipelineCache(context_->device(), &create, nullptr, &cache_),
                  "vkCreatePipelineCache", "opening the pipeline cache");
  loaded_bytes_ = data.size();
}

PipelineFactory::~PipelineFactory() {
  if (!cache_path_.empty() && !context_->lost()) {
    const std::vector<std::byte> data = cache_data();
    if (data.size() > loaded_bytes_) {
      save_cache_file(cache_path_, context_->physical().info.uuid, data);
    }
  }
  context_->vk().DestroyPipelineCache(context_->device(), cache_, nullptr);
}

std::vector<std::byte> PipelineFactory::cache_data() const {
  const Functions& vk = context_->vk();
  size_t bytes = 0;
  if (vk.GetPipelineCacheData(context_->device(), cache_, &bytes, nullptr) != VK_SUCCESS) return {};
  std::vector<std::byte> data(bytes);
  if (vk.GetPipelineCacheData(context_->device(), cache_, &bytes, data.data()) != VK_SUCCESS) {
    return {};
  }
  data.resize(bytes);
  return data;
}

void PipelineFactory::check_module(const Module& module) const {
  const Capabilities& caps = context_->physical().capabilities;
  const PhysicalDevice& physical = context_->physical();
  auto refuse = [&](const auto&... why) {
    fail(ErrorKind::kUnsupported, "The kernel ", module.name, " cannot run on ", physical.info.name,
         ": ", why...);
  };
  if (module.code != CodeKind::kSpirv || module.words.size() < 5 ||
      module.words[0] != kSpirvMagic) {
    refuse("its code is not SPIR-V. Compile the program for this device.");
  }
  if (module.binding == BindingMode::kAddress && caps.binding != BindingMode::kAddress) {
    refuse("it binds addresses, and the device was opened for descriptors.");
  }
  uint64_t invocations = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    invocations *= module.local_size[axis];
    if (module.local_size[axis] == 0 || module.local_size[axis] > caps.max_workgroup_size[axis]) {
      refuse("its workgroup has ", module.local_size[axis], " invocations along axis ", axis,
             ", and the device allows 1 to ", caps.max_workgroup_size[axis], ".");
    }
  }
  if (invocations > caps.max_workgroup_invocations) {
    refuse("its workgroup has ", invocations, " invocations, and the device allows ",
           caps.max_workgroup_invocations, ".");
  }
  const uint32_t bytes = push_constant_bytes(module.binding, module.slots, module.params);
  if (bytes > caps.push_constant_bytes) {
    refuse("its ", module.slots, " slots and ", module.params, " arguments take ", bytes,
           " bytes of push constants, and the device has ", caps.push_constant_bytes, ".");
  }
  const uint32_t size = module.subgroup_size;
  if (size == 0 || (!caps.subgroup_size_control && size == caps.subgroup_size)) return;
  if (!caps.subgroup_size_control) {
    refuse("it requires subgroups of ", size, ", and the device's are of ", caps.subgroup_size,
           ".");
  }
  if (size < physical.min_subgroup_size || size > physical.max_subgroup_size ||
      (size & (size - 1)) != 0) {
    refuse("it requires subgroups of ", size, ", and the device offers powers of two from ",
           physical.min_subgroup_size, " to ", physical.max_subgroup_size, ".");
  }
}

std::shared_ptr<Layout> PipelineFactory::layout(const Module& module) {
  const LayoutKey key = {static_cast<uint32_t>(module.binding), module.slots, module.params};
  if (const auto found = layouts_.find(key); found != layouts_.end()) return found->second;
  const Functions& vk = context_->vk();
  auto layout = std::make_shared<Layout>(context_);
  layout->binding = module.binding;
  layout->slots = module.slots;
  layout->params = module.params;

  VkPipelineLayoutCreateInfo create{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  if (module.binding == BindingMode::kDescriptor) {
    std::vector<VkDescriptorSetLayoutBinding> bindings(module.slots);
    for (uint32_t i = 0; i < module.slots; ++i) {
      bindings[i].binding = i;
      bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      bindings[i].descriptorCount = 1;
      bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.bindingCount = module.slots;
    set.pBindings = bindings.data();
    context_->check(vk.CreateDescriptorSetLayout(context_->device(), &set, nullptr, &layout->set),
                    "vkCreateDescriptorSetLayout", "creating a pipeline layout");
    create.setLayoutCount = 1;
    create.pSetLayouts = &layout->set;
  }
  VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, layout->push_bytes()};
  if (range.size > 0) {
    create.pushConstantRangeCount = 1;
    create.pPushConstantRanges = &range;
  }
  context_->check(vk.CreatePipelineLayout(context_->device(), &create, nullptr, &layout->pipeline),
                  "vkCreatePipelineLayout", "creating a pipeline layout");
  layouts_.emplace(key, layout);
  return layout;
}

void PipelineFactory::build(const Module& module, PipelineObject& object) const {
  const Functions& vk = context_->vk();
  const std::string purpose = cat("compiling the kernel ", module.name);
  VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  code.codeSize = module.words.size() * sizeof(uint32_t);
  code.pCode = module.words.data();
  VkShaderModule shader = VK_NULL_HANDLE;
  context_->check(vk.CreateShaderModule(context_->device(), &code, nullptr, &shader),
                  "vkCreateShaderModule", purpose);

  const PhysicalDevice& physical = context_->physical();
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  subgroup.requiredSubgroupSize = module.subgroup_size;
  VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  create.layout = object.layout->pipeline;
  create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create.stage.module = shader;
  create.stage.pName = "main";
  if (module.subgroup_size != 0 && physical.capabilities.subgroup_size_control) {
    create.stage.pNext = &subgroup;
    if (physical.full_subgroups && module.local_size[0] % module.subgroup_size == 0) {
      create.stage.flags |= VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
  }
  const VkResult result =
      vk.CreateComputePipelines(context_->device(), cache_, 1, &create, nullptr, &object.handle);
  vk.DestroyShaderModule(context_->device(), shader, nullptr);
  context_->check(result, "vkCreateComputePipelines", purpose);
}

std::vector<std::shared_ptr<PipelineObject>> PipelineFactory::create(
    std::span<const Module> modules) {
  context_->require_alive();
  std::vector<std::shared_ptr<PipelineObject>> pipelines;
  std::vector<size_t> fresh;  // indices of modules that are first of their content
  std::map<std::vector<uint32_t>, std::shared_ptr<PipelineObject>> pending;
  {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < modules.size(); ++i) {
      check_module(modules[i]);
      std::vector<uint32_t> key = content_key(modules[i]);
      std::shared_ptr<PipelineObject> object;
      if (const auto found = pipelines_.find(key); found != pipelines_.end()) {
        object = found->second.lock();
      }
      if (!object) {
        std::shared_ptr<PipelineObject>& slot = pending[std::move(key)];
        if (!slot) {
          slot = std::make_shared<PipelineObject>(layout(modules[i]));
          fresh.push_back(i);
        }
        object = slot;
      }
      pipelines.push_back(std::move(object));
    }
  }
  parallel_for(fresh.size(), [&](size_t i) { build(modules[fresh[i]], *pipelines[fresh[i]]); });

  std::lock_guard lock(mutex_);
  std::erase_if(pipelines_, [](const auto& entry) { return entry.second.expired(); });
  for (auto& [key, object] : pending) pipelines_[key] = object;
  return pipelines;
}

}  // namespace meganeura::device::vulkan
