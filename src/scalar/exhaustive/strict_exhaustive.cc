// Every f32 argument of every strict function of one argument. Takes minutes; not in the suite.
#include <gtest/gtest.h>

#include <cstdio>
#include <iterator>
#include <string>
#include <thread>

#include "scalar/strict.h"
#include "scalar/strict_measure.h"

namespace meganeura::scalar {
namespace {

class StrictExhaustive : public testing::TestWithParam<int> {};

// The case is a template parameter so that the compiler can inline and vectorise its function.
template <int kIndex>
Measured walk(uint64_t begin, uint64_t end) {
  constexpr UnaryCase kCase = kUnaryCases[kIndex];
  return measure(
      begin, end, 1, [](float x) { return kCase.function(x); }, kCase.reference);
}

using Walk = Measured (*)(uint64_t begin, uint64_t end);
constexpr Walk kWalks[] = {walk<0>, walk<1>, walk<2>, walk<3>, walk<4>, walk<5>, walk<6>};
static_assert(std::size(kWalks) == std::size(kUnaryCases));

TEST_P(StrictExhaustive, EveryArgumentIsWithinTheBound) {
  const Walk walk_range = kWalks[GetParam()];
  Measured upper;
  std::thread other([&] { upper = walk_range(uint64_t{1} << 31, uint64_t{1} << 32); });
  Measured measured = walk_range(0, uint64_t{1} << 31);
  other.join();
  measured.merge(upper);
  const Op op = kUnaryCases[GetParam()].op;
  std::printf("%s: at most %.4f ulp, at bits 0x%08x\n", std::string(info(op).name).c_str(),
              measured.max_ulp, measured.worst);
  EXPECT_EQ(measured.wrong, 0u) << "one of them at bits " << std::hex << measured.wrong_at;
  EXPECT_LE(measured.max_ulp, strict_max_ulp(op)) << "at bits " << std::hex << measured.worst;
}

INSTANTIATE_TEST_SUITE_P(Functions, StrictExhaustive,
                         testing::Range(0, static_cast<int>(std::size(kUnaryCases))),
                         [](const testing::TestParamInfo<int>& instance) {
                           return std::string(scalar::info(kUnaryCases[instance.param].op).name);
                         });

}  // namespace
}  // namespace meganeura::scalar
