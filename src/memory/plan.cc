#include "memory/plan.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace meganeura::memory {
namespace {

uint64_t aligned(uint64_t bytes) {
  return (std::max<uint64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

bool overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

uint64_t live_peak(std::span<const Lifetime> temporaries) {
  std::map<uint32_t, int64_t> change;
  for (const Lifetime& life : temporaries) {
    const auto bytes = static_cast<int64_t>(aligned(life.bytes));
    change[life.first] += bytes;
    change[life.last + 1] -= bytes;
  }
  int64_t live = 0;
  int64_t peak = 0;
  for (const auto& [level, bytes] : change) {
    live += bytes;
    peak = std::max(peak, live);
  }
  return static_cast<uint64_t>(peak);
}

}  // namespace

Plan plan_arena(std::span<const Lifetime> temporaries, bool reuse) {
  Plan plan;
  plan.offsets.resize(temporaries.size());
  plan.live_peak = live_peak(temporaries);
  std::vector<size_t> order(temporaries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return aligned(temporaries[a].bytes) > aligned(temporaries[b].bytes);
  });
  std::vector<size_t> placed;  // by offset
  for (size_t index : order) {
    const uint64_t bytes = aligned(temporaries[index].bytes);
    uint64_t offset = 0;
    for (size_t other : placed) {
      if (reuse && !overlap(temporaries[index], temporaries[other])) continue;
      if (offset + bytes <= plan.offsets[other]) break;
      offset = std::max(offset, plan.offsets[other] + aligned(temporaries[other].bytes));
    }
    plan.offsets[index] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    const auto at =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [&](uint64_t value, size_t other) { return value < plan.offsets[other]; });
    placed.insert(at, index);
  }
  return plan;
}

}  // namespace meganeura::memory
