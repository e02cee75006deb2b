// Offsets of temporaries in one arena, from their lifetimes over levels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace meganeura::memory {

// A temporary that is written first in level `first` and used last in level `last` (inclusive).
struct Lifetime {
  uint64_t bytes = 0;
  uint32_t first = 0;
  uint32_t last = 0;
};

struct Plan {
  std::vector<uint64_t> offsets;  // by temporary; multiples of kAlignment
  uint64_t bytes = 0;             // of the arena
  uint64_t live_peak = 0;         // largest sum of live bytes: no plan needs less
};

inline constexpr uint64_t kAlignment = 256;

// Largest first, each at the lowest offset free during its life. Memory is reused only across
// levels, so reuse adds no hazard. `reuse` false gives every temporary bytes of its own.
Plan plan_arena(std::span<const Lifetime> temporaries, bool reuse = true);

}  // namespace meganeura::memory
