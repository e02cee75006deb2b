#include "device/vulkan/queue.h"

#include "base/check.h"
#include "device/vulkan/context.h"

namespace meganeura::device::vulkan {
namespace {

// Waits are sliced so that a loss noticed by another thread ends them.
constexpr uint64_t kWaitSliceNanoseconds = 1'000'000'000;

}  // namespace

Queue::Queue(Context& context) : context_(context) {
  const Functions& vk = context_.vk();
  vk.GetDeviceQueue(context_.device(), context_.physical().queue_family, 0, &queue_);
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo create{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  create.pNext = &type;
  context_.check(vk.CreateSemaphore(context_.device(), &create, nullptr, &timeline_),
                 "vkCreateSemaphore", "opening the queue");
}

Queue::~Queue() { context_.vk().DestroySemaphore(context_.device(), timeline_, nullptr); }

uint64_t Queue::submit(std::span<const VkCommandBuffer> buffers) {
  std::lock_guard lock(mutex_);
  context_.require_alive();
  const uint64_t ticket = last_ + 1;
  VkTimelineSemaphoreSubmitInfo timeline{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &ticket;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.pNext = &timeline;
  info.commandBufferCount = static_cast<uint32_t>(buffers.size());
  info.pCommandBuffers = buffers.data();
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  context_.check(context_.vk().QueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit",
                 "submitting work");
  last_ = ticket;
  return ticket;
}

uint64_t Queue::last_ticket() const {
  std::lock_guard lock(mutex_);
  return last_;
}

void Queue::require_known(uint64_t ticket) const {
  const uint64_t last = last_ticket();
  if (ticket > last) {
    fail(ErrorKind::kInvalidArgument, "Ticket ", ticket,
         " was never handed out by this device; the last one is ", last, ".");
  }
}

void Queue::wait(uint64_t ticket) {
  require_known(ticket);
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &ticket;
  while (true) {
    context_.require_alive();
    const VkResult result =
        context_.vk().WaitSemaphores(context_.device(), &info, kWaitSliceNanoseconds);
    context_.check(result, "vkWaitSemaphores", "waiting for submitted work");
    if (result == VK_SUCCESS) return;
  }
}

bool Queue::done(uint64_t ticket) {
  require_known(ticket);
  context_.require_alive();
  uint64_t value = 0;
  context_.check(context_.vk().GetSemaphoreCounterValue(context_.device(), timeline_, &value),
                 "vkGetSemaphoreCounterValue", "asking for submitted work");
  return value >= ticket;
}

void Queue::settle(uint64_t ticket) noexcept {
  if (ticket == 0) return;
  try {
    wait(ticket);
    return;
  } catch (const std::exception&) {
    // Lost, or the wait itself failed: fall through to the one call that ends pending work.
  }
  std::lock_guard lock(mutex_);
  context_.vk().DeviceWaitIdle(context_.device());
}

}  // namespace meganeura::device::vulkan
