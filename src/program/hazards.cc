#include <algorithm>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "program/program.h"

namespace meganeura {
namespace {

// One binding of a level as an interval of a memory.
struct Access {
  std::tuple<Region::Space, uint32_t> memory;
  uint64_t begin = 0;
  uint64_t end = 0;
  size_t dispatch = 0;
  bool write = false;
};

std::vector<Access> accesses(const Level& level) {
  std::vector<Access> list;
  for (size_t i = 0; i < level.dispatches.size(); ++i) {
    for (const Binding& binding : level.dispatches[i].bindings) {
      const Region& region = binding.region;
      if (region.bytes == 0 || (!binding.read && !binding.write)) continue;
      const uint32_t tensor = region.space == Region::Space::kTensor ? region.tensor : 0;
      list.push_back(
          {{region.space, tensor}, region.offset, region.offset + region.bytes, i, binding.write});
    }
  }
  std::sort(list.begin(), list.end(), [](const Access& a, const Access& b) {
    return std::tie(a.memory, a.begin, a.end, a.dispatch, a.write) <
           std::tie(b.memory, b.begin, b.end, b.dispatch, b.write);
  });
  return list;
}

[[noreturn]] void report(const Segment& segment, size_t number, const Access& a, const Access& b) {
  const std::vector<Dispatch>& dispatches = segment.levels[number].dispatches;
  const auto [first, second] = std::minmax(a.dispatch, b.dispatch);
  fail(ErrorKind::kInternal, "Level ", number, " of segment \"", segment.name,
       "\" has a hazard: dispatch ", first, " (\"", dispatches[first].label, "\") and dispatch ",
       second, " (\"", dispatches[second].label, "\") touch the same bytes ",
       std::max(a.begin, b.begin), " to ", std::min(a.end, b.end),
       ", and at least one writes. They belong to different levels.");
}

void check_level(const Segment& segment, size_t number) {
  const std::vector<Access> list = accesses(segment.levels[number]);
  // next_write[i]: the first write at or after i. A read is compared with writes alone, so many
  // readers of one tensor cost no more than few.
  std::vector<size_t> next_write(list.size() + 1, list.size());
  for (size_t i = list.size(); i-- > 0;) next_write[i] = list[i].write ? i : next_write[i + 1];
  for (size_t i = 0; i < list.size(); ++i) {
    const Access& a = list[i];
    const auto following = [&](size_t j) { return a.write ? j : next_write[j]; };
    for (size_t j = following(i + 1); j < list.size(); j = following(j + 1)) {
      const Access& b = list[j];
      if (a.memory != b.memory || b.begin >= a.end) break;
      if (a.dispatch != b.dispatch) report(segment, number, a, b);
    }
  }
}

}  // namespace

void check_hazards(const Program& program) {
  for (const Segment& segment : program.segments) {
    for (size_t i = 0; i < segment.levels.size(); ++i) check_level(segment, i);
  }
}

}  // namespace meganeura
