// Integer cost model: estimated nanoseconds, enough to rank tiles of one spec.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel_ir/capabilities.h"

namespace meganeura::kernels {

// One row per device class, in picoseconds.
struct CostRow {
  int64_t dispatch;     // a dispatch and its barrier
  int64_t group;        // starting a workgroup on one unit
  int64_t load;         // one load instruction of a subgroup that is not contiguous
  int64_t packed_load;  // one that is
  int64_t operation;    // one arithmetic instruction of a subgroup
  int64_t barrier;      // a workgroup barrier
  int64_t resident;     // subgroups that one unit overlaps
};

inline const CostRow& cost_row(DeviceClass device_class) {
  static constexpr CostRow kRows[] = {
      {20'000'000, 300'000, 56'000, 56'000, 600, 1'200'000, 1},  // kCpu
      {5'000'000, 500'000, 16'000, 2'000, 500, 40'000, 8},       // kSmallGpu
      {2'000'000, 300'000, 8'000, 1'000, 250, 20'000, 16},       // kLargeGpu
      {5'000'000, 500'000, 12'000, 2'000, 400, 40'000, 8},       // kApple
  };
  return kRows[static_cast<size_t>(device_class)];
}

// What a stage does, per workgroup; `loads` and `operations` count subgroup instructions.
struct Work {
  int64_t groups = 1;
  int64_t subgroups = 1;  // of one workgroup
  int64_t loads = 0;      // by each subgroup
  int64_t packed_loads = 0;
  int64_t operations = 0;
  int64_t barriers = 0;
};

inline int64_t estimate_ns(const Work& work, const Capabilities& capabilities) {
  const CostRow& row = cost_row(capabilities.device_class);
  const int64_t each = work.loads * row.load + work.packed_loads * row.packed_load +
                       work.operations * row.operation + work.barriers * row.barrier;
  // Subgroups that share a unit hide each other's latency up to `resident` of them.
  const int64_t units = std::max<int64_t>(1, capabilities.compute_units);
  const int64_t subgroups = work.groups * work.subgroups;
  const int64_t lanes = units * row.resident;
  const int64_t waves = (subgroups + lanes - 1) / lanes;
  const int64_t starts = (work.groups + units - 1) / units * row.group;
  return (row.dispatch + waves * each + starts) / 1000;
}

}  // namespace meganeura::kernels
