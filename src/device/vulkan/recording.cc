#include "device/vulkan/recording.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace meganeura::device::vulkan {
namespace {

constexpr VkPipelineStageFlags kWorkStages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kWorkWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kWorkReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;
constexpr uint64_t kWordBytes = 4;

bool is_empty(const Command& command) {
  switch (command.kind) {
    case Command::Kind::kDispatch:
      return std::ranges::find(command.grid, 0u) != command.grid.end();
    case Command::Kind::kCopy:
    case Command::Kind::kFill:
      return command.destination.bytes == 0;
    case Command::Kind::kBarrier:
      return false;
  }
  return false;
}

const PipelineObject& pipeline_of(const Command& command) {
  const auto* pipeline = dynamic_cast<const VulkanPipeline*>(command.pipeline);
  MG_CHECK(pipeline, "The dispatch ", command.label, " has no Vulkan pipeline.");
  return *pipeline->object();
}

void barrier(const Functions& vk, VkCommandBuffer buffer, VkPipelineStageFlags to,
             VkAccessFlags reads_and_writes) {
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = kWorkWrites;
  memory.dstAccessMask = reads_and_writes;
  vk.CmdPipelineBarrier(buffer, kWorkStages, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

}  // namespace

VulkanRecording::VulkanRecording(std::shared_ptr<Context> context,
                                 std::span<const Command> commands)
    : context_(std::move(context)) {
  context_->require_alive();
  check_commands(commands);
  const Functions& vk = context_->vk();
  try {
    create_pool(commands);
    record(commands);
  } catch (...) {
    vk.DestroyCommandPool(context_->device(), pool_, nullptr);
    vk.DestroyDescriptorPool(context_->device(), descriptors_, nullptr);
    throw;
  }
}

VulkanRecording::~VulkanRecording() {
  context_->queue().settle(last_ticket_);
  const Functions& vk = context_->vk();
  vk.DestroyCommandPool(context_->device(), pool_, nullptr);
  vk.DestroyDescriptorPool(context_->device(), descriptors_, nullptr);
}

void VulkanRecording::create_pool(std::span<const Command> commands) {
  const Functions& vk = context_->vk();
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = context_->physical().queue_family;
  context_->check(vk.CreateCommandPool(context_->device(), &pool, nullptr, &pool_),
                  "vkCreateCommandPool", "recording commands");
  VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = pool_;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  context_->check(vk.AllocateCommandBuffers(context_->device(), &allocate, &buffer_),
                  "vkAllocateCommandBuffers", "recording commands");

  uint32_t sets = 0;
  VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 0};
  for (const Command& command : commands) {
    if (command.kind != Command::Kind::kDispatch || is_empty(command)) continue;
    const Layout& layout = *pipeline_of(command).layout;
    if (layout.binding != BindingMode::kDescriptor) continue;
    ++sets;
    size.descriptorCount += layout.slots;
  }
  if (sets == 0) return;
  size.descriptorCount = std::max(1u, size.descriptorCount);
  VkDescriptorPoolCreateInfo descriptors{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  descriptors.maxSets = sets;
  descriptors.poolSizeCount = 1;
  descriptors.pPoolSizes = &size;
  context_->check(vk.CreateDescriptorPool(context_->device(), &descriptors, nullptr, &descriptors_),
                  "vkCreateDescriptorPool", "recording commands");
}

void VulkanRecording::record(std::span<const Command> commands) {
  const Functions& vk = context_->vk();
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  context_->check(vk.BeginCommandBuffer(buffer_, &begin), "vkBeginCommandBuffer",
                  "recording commands");
  barrier(vk, buffer_, kWorkStages, kWorkReads | kWorkWrites);
  for (const Command& command : commands) {
    if (is_empty(command)) continue;
    switch (command.kind) {
      case Command::Kind::kDispatch:
        record_dispatch(command);
        break;
      case Command::Kind::kCopy: {
        const VkBufferCopy region{command.source.offset, command.destination.offset,
                                  command.destination.bytes};
        MG_CHECK(command.source.bytes == command.destination.bytes, "A copy from ",
                 command.source.bytes, " bytes to ", command.destination.bytes, " bytes.");
        const VkBuffer source = buffer_of(command.source, command);
        const VkBuffer destination = buffer_of(command.destination, command);
        vk.CmdCopyBuffer(buffer_, source, destination, 1, &region);
        break;
      }
      case Command::Kind::kFill:
        MG_CHECK(command.destination.offset % kWordBytes == 0 &&
                     command.destination.bytes % kWordBytes == 0,
                 "A fill of ", command.destination.bytes, " bytes at ", command.destination.offset,
                 " is not made of whole words.");
        vk.CmdFillBuffer(buffer_, buffer_of(command.destination, command),
                         command.destination.offset, command.destination.bytes, command.pattern);
        break;
      case Command::Kind::kBarrier:
        barrier(vk, buffer_, kWorkStages, kWorkReads | kWorkWrites);
        break;
    }
  }
  barrier(vk, buffer_, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  context_->check(vk.EndCommandBuffer(buffer_), "vkEndCommandBuffer", "recording commands");
}

VkBuffer VulkanRecording::buffer_of(const Span& span, const Command& command) {
  const auto* memory = dynamic_cast<const VulkanMemory*>(span.memory);
  MG_CHECK(memory && &memory->buffer()->context() == context_.get(), "The command ", command.label,
           " uses memory of another device.");
  const Buffer& buffer = *memory->buffer();
  MG_CHECK(span.offset <= buffer.bytes() && span.bytes <= buffer.bytes() - span.offset,
           "The command ", command.label, " reaches ", span.bytes, " bytes from ", span.offset,
           " in a memory of ", buffer.bytes(), " bytes.");
  const auto held = [&](const auto& other) { return other.get() == &buffer; };
  if (std::ranges::none_of(memory_, held)) memory_.push_back(memory->buffer());
  return buffer.handle();
}

void VulkanRecording::check_dispatch(const Command& command, const Layout& layout) const {
  const Capabilities& caps = context_->physical().capabilities;
  MG_CHECK(command.bindings.size() == layout.slots && command.params.size() == layout.params,
           "The dispatch ", command.label, " has ", command.bindings.size(), " bindings and ",
           command.params.size(), " arguments for a kernel of ", layout.slots, " and ",
           layout.params, ".");
  for (size_t axis = 0; axis < 3; ++axis) {
    if (command.grid[axis] > caps.max_workgroup_count[axis]) {
      fail(ErrorKind::kUnsupported, "The dispatch ", command.label, " has ", command.grid[axis],
           " workgroups along axis ", axis, ", and ", context_->physical().info.name, " allows ",
           caps.max_workgroup_count[axis], ". Compile the program for this device.");
    }
  }
}

void VulkanRecording::record_dispatch(const Command& command) {
  const Functions& vk = context_->vk();
  const auto* pipeline = static_cast<const VulkanPipeline*>(command.pipeline);
  const PipelineObject& object = pipeline_of(command);
  const Layout& layout = *object.layout;
  MG_CHECK(layout.context == context_, "The dispatch ", command.label,
           " uses a pipeline of another device.");
  check_dispatch(command, layout);
  const auto held = [&](const auto& other) { return other.get() == &object; };
  if (std::ranges::none_of(pipelines_, held)) pipelines_.push_back(pipeline->object());

  vk.CmdBindPipeline(buffer_, VK_PIPELINE_BIND_POINT_COMPUTE, object.handle);
  if (layout.binding == BindingMode::kDescriptor) {
    bind_descriptors(command, layout);
  } else {
    push_addresses(command, layout);
  }
  vk.CmdDispatch(buffer_, command.grid[0], command.grid[1], command.grid[2]);
}

void VulkanRecording::push_addresses(const Command& command, const Layout& layout) {
  std::vector<std::byte> constants(layout.push_bytes());
  std::byte* out = constants.data();
  for (const BoundSpan& bound : command.bindings) {
    buffer_of(bound.span, command);
    MG_CHECK(bound.span.offset % kWordBytes == 0, "The dispatch ", command.label,
             " binds an address that is not aligned to words.");
    const auto* memory = static_cast<const VulkanMemory*>(bound.span.memory);
    const uint64_t address = memory->buffer()->address() + bound.span.offset;
    std::memcpy(out, &address, sizeof(address));
    out += sizeof(address);
  }
  if (!command.params.empty()) {
    std::memcpy(out, command.params.data(), command.params.size() * sizeof(uint32_t));
  }
  if (constants.empty()) return;
  context_->vk().CmdPushConstants(buffer_, layout.pipeline, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                  layout.push_bytes(), constants.data());
}

void VulkanRecording::bind_descriptors(const Command& command, const Layout& layout) {
  const Functions& vk = context_->vk();
  const PhysicalDevice& physical = context_->physical();
  VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocate.descriptorPool = descriptors_;
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &layout.set;
  VkDescriptorSet set = VK_NULL_HANDLE;
  context_->check(vk.AllocateDescriptorSets(context_->device(), &allocate, &set),
                  "vkAllocateDescriptorSets", "recording commands");
  std::vector<VkDescriptorBufferInfo> buffers(layout.slots);
  std::vector<VkWriteDescriptorSet> writes(layout.slots);
  for (uint32_t i = 0; i < layout.slots; ++i) {
    const Span& span = command.bindings[i].span;
    buffers[i].buffer = buffer_of(span, command);
    buffers[i].offset = span.offset;
    // Kernels address whole words, and a descriptor is never empty.
    const uint64_t capacity = static_cast<const VulkanMemory*>(span.memory)->buffer()->capacity();
    const uint64_t words = std::max<uint64_t>(1, (span.bytes + kWordBytes - 1) / kWordBytes);
    if (span.bytes == 0) buffers[i].offset = 0;
    buffers[i].range = std::min(words * kWordBytes, capacity - buffers[i].offset);
    if (buffers[i].offset % physical.storage_alignment != 0 ||
        buffers[i].range > physical.max_storage_range) {
      fail(ErrorKind::kUnsupported, "The dispatch ", command.label, " binds ", span.bytes,
           " bytes at offset ", span.offset, " to slot ", i, ", and descriptors of ",
           physical.info.name, " reach ", physical.max_storage_range, " bytes from multiples of ",
           physical.storage_alignment, ". Open the device without descriptors.");
    }
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = set;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &buffers[i];
  }
  vk.UpdateDescriptorSets(context_->device(), layout.slots, writes.data(), 0, nullptr);
  vk.CmdBindDescriptorSets(buffer_, VK_PIPELINE_BIND_POINT_COMPUTE, layout.pipeline, 0, 1, &set, 0,
                           nullptr);
  if (layout.push_bytes() > 0) {
    vk.CmdPushConstants(buffer_, layout.pipeline, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        layout.push_bytes(), command.params.data());
  }
}

}  // namespace meganeura::device::vulkan
