#include "kernel_ir/capabilities.h"

#include "base/check.h"

namespace meganeura {

std::string_view to_string(DeviceClass device_class) {
  constexpr std::array<std::string_view, 4> kNames = {"cpu", "small_gpu", "large_gpu", "apple"};
  auto index = static_cast<size_t>(device_class);
  MG_CHECK(index < kNames.size(), "The device class ", index, " does not exist.");
  return kNames[index];
}

}  // namespace meganeura
