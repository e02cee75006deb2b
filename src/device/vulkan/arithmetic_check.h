// Facts of f32 arithmetic that no Vulkan query tells.
#pragma once

#include "device/device.h"

namespace meganeura::device::vulkan {

struct ArithmeticFacts {
  bool fused_fma = false;       // fma rounds once
  bool exact_division = false;  // a / b is correctly rounded
  bool exact_sqrt = false;
};

// Runs a few thousand varied values through the device and compares with the host.
ArithmeticFacts check_arithmetic(Device& device);

}  // namespace meganeura::device::vulkan
