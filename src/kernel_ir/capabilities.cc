#include "kernel_ir/capabilities.h"

#include "base/check.h"

namespace meganeura {

std::string_view to_string(DeviceClass device_class) {
  constexpr std::array<std::string_view, 4> kNames = {"cpu", "small_gpu", "large_gpu", "apple"};
  auto index = static_cast<size_t>(device_class);
  MG_CHECK(index < kNames.size(), "The device class ", index, " does not exist.");
  return kNames[index];
}

Capabilities typical_capabilities(DeviceClass device_class) {
  struct Row {
    uint32_t compute_units;
    uint32_t subgroup_size;
    uint32_t workgroup_invocations;
    uint32_t shared_bytes;
  };
  // A processor with two cores under Mesa's llvmpipe; an integrated GPU; a data centre's GPU; a
  // laptop's Apple GPU.
  constexpr std::array<Row, 4> kRows = {
      {{2, 8, 1024, 32768}, {8, 32, 512, 32768}, {128, 32, 1024, 49152}, {10, 32, 1024, 32768}}};
  const auto index = static_cast<size_t>(device_class);
  MG_CHECK(index < kRows.size(), "The device class ", index, " does not exist.");
  const Row& row = kRows[index];
  Capabilities capabilities;
  capabilities.device_class = device_class;
  capabilities.compute_units = row.compute_units;
  capabilities.subgroup_size = row.subgroup_size;
  capabilities.max_workgroup_invocations = row.workgroup_invocations;
  capabilities.max_workgroup_size = {row.workgroup_invocations, row.workgroup_invocations, 64};
  capabilities.shared_bytes = row.shared_bytes;
  return capabilities;
}

}  // namespace meganeura
