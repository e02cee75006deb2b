#include "schedule/levels.h"

#include <algorithm>
#include <map>

namespace meganeura::schedule {

std::vector<uint32_t> assign_levels(std::span<const Touches> dispatches) {
  struct Next {
    uint32_t read = 0;   // earliest level that may read
    uint32_t write = 0;  // earliest level that may write
  };
  std::map<uint32_t, Next> memories;
  std::vector<uint32_t> levels;
  for (const Touches& dispatch : dispatches) {
    uint32_t level = 0;
    for (uint32_t memory : dispatch.reads) level = std::max(level, memories[memory].read);
    for (uint32_t memory : dispatch.writes) level = std::max(level, memories[memory].write);
    for (uint32_t memory : dispatch.reads) {
      memories[memory].write = std::max(memories[memory].write, level + 1);
    }
    for (uint32_t memory : dispatch.writes) memories[memory] = {level + 1, level + 1};
    levels.push_back(level);
  }
  return levels;
}

}  // namespace meganeura::schedule
