#include "memory/plan.h"

#include <gtest/gtest.h>

#include <random>

namespace meganeura::memory {
namespace {

bool conflict(const Lifetime& a, uint64_t at_a, const Lifetime& b, uint64_t at_b) {
  const bool together = a.first <= b.last && b.first <= a.last;
  return together && at_a < at_b + b.bytes && at_b < at_a + a.bytes;
}

TEST(Plan, KeepsTemporariesThatLiveTogetherApart) {
  const std::vector<Lifetime> lives = {{1000, 0, 2}, {1000, 1, 3}};
  const Plan plan = plan_arena(lives);
  EXPECT_FALSE(conflict(lives[0], plan.offsets[0], lives[1], plan.offsets[1]));
  EXPECT_EQ(plan.bytes, 2048u);
}

TEST(Plan, ReusesMemoryAcrossLevels) {
  const std::vector<Lifetime> lives = {{4096, 0, 1}, {4096, 2, 3}, {4096, 4, 4}};
  EXPECT_EQ(plan_arena(lives).bytes, 4096u);
  EXPECT_EQ(plan_arena(lives, false).bytes, 3 * 4096u);
}

TEST(Plan, DoesNotReuseWithinALevel) {
  // Written in the level in which the other is read last: a hazard without a barrier.
  const std::vector<Lifetime> lives = {{256, 0, 1}, {256, 1, 2}};
  EXPECT_EQ(plan_arena(lives).bytes, 512u);
}

TEST(Plan, RandomPlansNeverOverlapAndStayNearTheLivePeak) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> lives;
    for (int i = 0; i < 80; ++i) {
      const uint32_t first = random() % 40;
      lives.push_back({1 + random() % 100000, first, first + static_cast<uint32_t>(random() % 8)});
    }
    const Plan plan = plan_arena(lives);
    for (size_t i = 0; i < lives.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % kAlignment, 0u);
      EXPECT_LE(plan.offsets[i] + lives[i].bytes, plan.bytes);
      for (size_t j = 0; j < i; ++j) {
        EXPECT_FALSE(conflict(lives[i], plan.offsets[i], lives[j], plan.offsets[j]));
      }
    }
    EXPECT_GE(plan.bytes, plan.live_peak);
    EXPECT_LE(static_cast<double>(plan.bytes), 1.35 * static_cast<double>(plan.live_peak));
  }
}

TEST(Plan, OfNothingIsEmpty) { EXPECT_EQ(plan_arena({}).bytes, 0u); }

}  // namespace
}  // namespace meganeura::memory
