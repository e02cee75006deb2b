// What a device can do, as facts; kernels and schedules decide by these and never by vendor.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace meganeura {

// Selects rows of the tile tables.
enum class DeviceClass : uint8_t { kCpu, kSmallGpu, kLargeGpu, kApple };
std::string_view to_string(DeviceClass device_class);

enum class BindingMode : uint8_t {
  kAddress,     // slots are 64-bit addresses in push constants (buffer device address)
  kDescriptor,  // slot i is storage buffer binding i of set 0
};

struct Capabilities {
  DeviceClass device_class = DeviceClass::kCpu;
  BindingMode binding = BindingMode::kAddress;
  uint32_t compute_units = 1;
  uint32_t subgroup_size = 8;
  bool subgroup_arithmetic = true;
  bool subgroup_shuffle = true;
  bool subgroup_ballot = true;
  bool subgroup_size_control = false;  // a kernel may require its subgroup size
  uint32_t max_workgroup_invocations = 128;
  std::array<uint32_t, 3> max_workgroup_size = {128, 128, 64};
  std::array<uint32_t, 3> max_workgroup_count = {65535, 65535, 65535};
  uint32_t shared_bytes = 16384;
  uint32_t push_constant_bytes = 128;
  uint64_t max_buffer_range = 1ull << 27;  // bytes one slot may reach
  uint64_t max_allocation_bytes = 1ull << 30;
  bool fused_fma = false;       // fma rounds once (device self-test)
  bool exact_division = false;  // f32 / is correctly rounded (device self-test)
  bool exact_sqrt = false;
  bool signed_zero_inf_nan_preserve = false;  // float control offered for f32
  bool denorm_preserve = false;
  bool rounding_rte = false;
};

// What a device of the class can be expected to do: fixed, so that what is compiled for it is the
// same on every machine. Nothing that only a self-test of a device shows is taken for granted.
Capabilities typical_capabilities(DeviceClass device_class);

}  // namespace meganeura
