#include "device/vulkan/memory.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"

namespace meganeura::device::vulkan {
namespace {

// Whole words for fills and kernels; never empty, for Vulkan has no empty buffers.
constexpr uint64_t kGranularity = 16;

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kVisible =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
// Types with other properties need features that this layer does not enable.
constexpr VkMemoryPropertyFlags kKnown = kLocal | kVisible | kCached;

struct Wish {
  VkMemoryPropertyFlags required;
  VkMemoryPropertyFlags avoided;
};

struct KindRow {
  std::string_view name;
  bool mapped;
  std::array<Wish, 3> wishes;  // best first
};

constexpr KindRow kKinds[] = {
    {"device", false, {{{kLocal, kVisible}, {kLocal, 0}, {0, 0}}}},
    {"upload", true, {{{kVisible, kLocal | kCached}, {kVisible, kLocal}, {kVisible, 0}}}},
    {"readback", true, {{{kVisible | kCached, kLocal}, {kVisible | kCached, 0}, {kVisible, 0}}}},
};

// Indices of the memory types that serve the kind, best first.
std::vector<uint32_t> candidates(const VkPhysicalDeviceMemoryProperties& properties,
                                 uint32_t type_bits, const KindRow& row) {
  std::vector<uint32_t> types;
  for (const Wish& wish : row.wishes) {
    for (uint32_t i = 0; i < properties.memoryTypeCount; ++i) {
      const VkMemoryPropertyFlags flags = properties.memoryTypes[i].propertyFlags;
      const bool fits = (type_bits >> i & 1) && (flags & wish.required) == wish.required &&
                        !(flags & wish.avoided) && !(flags & ~kKnown);
      if (fits && std::ranges::find(types, i) == types.end()) types.push_back(i);
    }
  }
  return types;
}

std::string heap_text(const VkPhysicalDeviceMemoryProperties& properties,
                      const VkPhysicalDeviceMemoryBudgetPropertiesEXT* budget, uint32_t type) {
  const uint32_t heap = properties.memoryTypes[type].heapIndex;
  std::string text = cat("its heap holds ", properties.memoryHeaps[heap].size >> 20, " MiB");
  if (budget) {
    text += cat(", of which ", budget->heapUsage[heap] >> 20, " MiB are used and ",
                budget->heapBudget[heap] >> 20, " MiB are this program's budget");
  }
  return text;
}

}  // namespace

Buffer::Buffer(std::shared_ptr<Context> context, uint64_t bytes, MemoryKind kind)
    : context_(std::move(context)), bytes_(bytes), capacity_(0) {
  context_->require_alive();
  const uint64_t limit = context_->physical().capabilities.max_allocation_bytes;
  if (bytes > limit) {
    fail(ErrorKind::kOutOfMemory, "An allocation of ", bytes,
         " bytes exceeds the largest one that ", context_->physical().info.name, " allows, ", limit,
         " bytes. Use smaller batches or tensors.");
  }
  capacity_ = std::max(kGranularity, (bytes + kGranularity - 1) / kGranularity * kGranularity);
  try {
    create_buffer();
    allocate(kind);
  } catch (...) {
    destroy();
    throw;
  }
}

Buffer::~Buffer() {
  context_->queue().settle_all();
  destroy();
}

void Buffer::destroy() {
  const Functions& vk = context_->vk();
  vk.DestroyBuffer(context_->device(), buffer_, nullptr);
  vk.FreeMemory(context_->device(), memory_, nullptr);
}

void Buffer::create_buffer() {
  VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  create.size = capacity_;
  create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (context_->physical().capabilities.binding == BindingMode::kAddress) {
    create.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  }
  context_->check(context_->vk().CreateBuffer(context_->device(), &create, nullptr, &buffer_),
                  "vkCreateBuffer", cat("creating a buffer of ", bytes_, " bytes"));
}

void Buffer::allocate(MemoryKind kind) {
  const Functions& vk = context_->vk();
  const KindRow& row = kKinds[static_cast<size_t>(kind)];
  const bool addressed = context_->physical().capabilities.binding == BindingMode::kAddress;
  VkMemoryRequirements requirements{};
  vk.GetBufferMemoryRequirements(context_->device(), buffer_, &requirements);

  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 memory{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  const bool has_budget = context_->physical().memory_budget;
  if (has_budget) memory.pNext = &budget;
  vk.GetPhysicalDeviceMemoryProperties2(context_->physical().handle, &memory);

  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryDedicatedAllocateInfo dedicated{VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO};
  dedicated.buffer = buffer_;
  if (addressed) dedicated.pNext = &flags;
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.pNext = &dedicated;
  allocate.allocationSize = requirements.size;

  const std::vector<uint32_t> types =
      candidates(memory.memoryProperties, requirements.memoryTypeBits, row);
  if (types.empty()) {
    fail(ErrorKind::kUnsupported, context_->physical().info.name, " has no memory type for ",
         row.name, " buffers.");
  }
  VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  for (uint32_t type : types) {
    allocate.memoryTypeIndex = type;
    result = vk.AllocateMemory(context_->device(), &allocate, nullptr, &memory_);
    if (result != VK_ERROR_OUT_OF_DEVICE_MEMORY && result != VK_ERROR_OUT_OF_HOST_MEMORY) break;
    memory_ = VK_NULL_HANDLE;
  }
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY) {
    fail(ErrorKind::kOutOfMemory, "Allocating ", bytes_, " bytes of ", row.name, " memory on ",
         context_->physical().info.name, " failed with ", to_string(result), "; ",
         heap_text(memory.memoryProperties, has_budget ? &budget : nullptr, types.front()),
         ". Use smaller batches or free other memory.");
  }
  const std::string purpose = cat("allocating ", bytes_, " bytes of ", row.name, " memory");
  context_->check(result, "vkAllocateMemory", purpose);
  context_->check(vk.BindBufferMemory(context_->device(), buffer_, memory_, 0),
                  "vkBindBufferMemory", purpose);
  if (row.mapped) {
    void* data = nullptr;
    context_->check(vk.MapMemory(context_->device(), memory_, 0, VK_WHOLE_SIZE, 0, &data),
                    "vkMapMemory", purpose);
    mapped_ = static_cast<std::byte*>(data);
  }
  if (addressed) {
    VkBufferDeviceAddressInfo address{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
    address.buffer = buffer_;
    address_ = vk.GetBufferDeviceAddress(context_->device(), &address);
  }
}

}  // namespace meganeura::device::vulkan
