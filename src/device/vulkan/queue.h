// The compute queue and its timeline of tickets.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include "device/vulkan/vulkan.h"

namespace meganeura::device::vulkan {

class Context;

// Thread-safe. Ticket n is done once the timeline semaphore has reached n.
class Queue {
 public:
  explicit Queue(Context& context);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Submits in order after everything before; returns the ticket.
  uint64_t submit(std::span<const VkCommandBuffer> buffers);
  // Error(kInvalidArgument) for a ticket that was never handed out.
  void wait(uint64_t ticket);
  bool done(uint64_t ticket);
  uint64_t last_ticket() const;

  // For destructors: returns when the work is done or can no longer run; never throws.
  void settle(uint64_t ticket) noexcept;
  void settle_all() noexcept { settle(last_ticket()); }

 private:
  void require_known(uint64_t ticket) const;

  Context& context_;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  mutable std::mutex mutex_;
  uint64_t last_ = 0;
};

}  // namespace meganeura::device::vulkan
