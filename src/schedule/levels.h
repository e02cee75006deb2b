// Levels: groups of dispatches without hazards among them; one barrier stands between levels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace meganeura::schedule {

// What one dispatch touches, as indices of memories that do not overlap.
struct Touches {
  std::vector<uint32_t> reads;
  std::vector<uint32_t> writes;
};

// The earliest level of every dispatch of a sequential program: after the last write of what it
// reads, and after the last read and write of what it writes.
std::vector<uint32_t> assign_levels(std::span<const Touches> dispatches);

}  // namespace meganeura::schedule
