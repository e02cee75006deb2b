#include <gtest/gtest.h>

#include <map>

#include "base/format.h"
#include "kernels/testing/random_spec.h"
#include "kernels/testing/spec_check.h"

namespace meganeura::kernels {
namespace {

using Maker = RandomCase (SpecMaker::*)();

// Runs `count` random specs and returns how often each kind of tile ran.
std::map<std::string, int> check_random(const std::string& name, Maker maker, uint32_t count) {
  std::map<std::string, int> kinds;
  const std::vector<Capabilities> devices = test_capabilities();
  for (uint32_t seed = 1; seed <= count; ++seed) {
    SpecMaker random(seed);
    const RandomCase one = (random.*maker)();
    // Every spec runs on two of the devices, all devices run.
    const std::vector<Capabilities> some = {devices[seed % devices.size()],
                                            devices[(seed / 2 + 1) % devices.size()]};
    const std::string what = cat(name, " seed ", seed);
    for (const std::string& tile : check_candidates(what, one.spec, one.memory, some)) {
      ++kinds[tile.substr(0, tile.find(' ', tile.find(' ') + 1))];
    }
    if (::testing::Test::HasFailure()) break;
  }
  return kinds;
}

TEST(RandomSpecs, PointwiseCandidatesMatchTheReference) {
  auto kinds = check_random("pointwise", &SpecMaker::pointwise, 250);
  EXPECT_GT(kinds["pointwise v4"], 50);
  EXPECT_GT(kinds["pointwise v1"], 200);
}

TEST(RandomSpecs, ReductionCandidatesMatchTheReference) {
  auto kinds = check_random("reduction", &SpecMaker::reduction, 120);
  EXPECT_GT(kinds["reduce serial"], 100);
  EXPECT_GT(kinds["reduce subgroup"], 50);
  EXPECT_GT(kinds["reduce workgroup"], 50);
  EXPECT_GT(kinds["reduce parts"], 10);
}

TEST(RandomSpecs, ContractionCandidatesMatchTheReference) {
  auto kinds = check_random("contraction", &SpecMaker::contraction, 30);
  EXPECT_GT(kinds["contract naive"], 50);
  EXPECT_GT(kinds["contract subgroup"], 150);
  EXPECT_GT(kinds["contract tiled"], 100);
}

TEST(RandomSpecs, ScatterAddCandidatesMatchTheReference) {
  auto kinds = check_random("scatter", &SpecMaker::scatter_add, 80);
  EXPECT_GT(kinds["scatter serial"], 50);
  EXPECT_GT(kinds["scatter subgroup"], 30);
}

}  // namespace
}  // namespace meganeura::kernels
