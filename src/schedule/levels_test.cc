#include "schedule/levels.h"

#include <gtest/gtest.h>

namespace meganeura::schedule {
namespace {

using Levels = std::vector<uint32_t>;

TEST(Levels, LeavesIndependentDispatchesTogether) {
  const std::vector<Touches> dispatches = {{{0}, {1}}, {{0}, {2}}, {{}, {3}}};
  EXPECT_EQ(assign_levels(dispatches), (Levels{0, 0, 0}));
}

TEST(Levels, SeparatesWriteThenRead) {
  const std::vector<Touches> dispatches = {{{}, {1}}, {{1}, {2}}, {{2}, {3}}, {{1}, {4}}};
  EXPECT_EQ(assign_levels(dispatches), (Levels{0, 1, 2, 1}));
}

TEST(Levels, SeparatesReadThenWriteAndWriteThenWrite) {
  const std::vector<Touches> dispatches = {{{1}, {2}}, {{}, {1}}, {{}, {1}}};
  EXPECT_EQ(assign_levels(dispatches), (Levels{0, 1, 2}));
}

TEST(Levels, UpdatesInPlaceWithoutHazardToThemselves) {
  const std::vector<Touches> dispatches = {{{1}, {1}}, {{1}, {1}}};
  EXPECT_EQ(assign_levels(dispatches), (Levels{0, 1}));
}

}  // namespace
}  // namespace meganeura::schedule
