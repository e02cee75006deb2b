// What a spec reads and writes, by slot.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/spec.h"

namespace meganeura::schedule {

struct SlotUse {
  std::vector<bool> reads;
  std::vector<bool> writes;
};
SlotUse slot_use(const kernels::KernelSpec& spec);

// Whether the kernel reads the slot at another place than it writes it: then it must not run in
// place.
bool reads_elsewhere(const kernels::KernelSpec& spec, uint32_t slot);

}  // namespace meganeura::schedule
