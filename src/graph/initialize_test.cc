#include "graph/initialize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph/values.h"
#include "meganeura/error.h"

namespace meganeura {
namespace {

using Words = std::array<uint32_t, 4>;

// The known-answer vectors published with Random123.
TEST(Philox, MatchesThePublishedVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Fnv1a, MatchesThePublishedVectors) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

TEST(Initialize, ConstantKindsFillTheTensor) {
  EXPECT_EQ(initial_value("w", {2}, f32, Initializer::zeros(), 0), (std::vector<double>{0, 0}));
  EXPECT_EQ(initial_value("w", {2}, i32, Initializer::ones(), 0), (std::vector<double>{1, 1}));
  EXPECT_EQ(initial_value("w", {}, f16, Initializer::constant(0.1), 0),
            (std::vector<double>{as_stored(f16, 0.1)}));
}

TEST(Initialize, DrawsDependOnNameAndSeedAlone) {
  const Initializer uniform = Initializer::uniform(-1, 1);
  const auto first = initial_value("a", {5, 7}, f32, uniform, 3);
  EXPECT_EQ(first, initial_value("a", {35}, f32, uniform, 3));
  EXPECT_NE(first, initial_value("b", {35}, f32, uniform, 3));
  EXPECT_NE(first, initial_value("a", {35}, f32, uniform, 4));
  EXPECT_NE(first, initial_value("a", {35}, f32, uniform, uint64_t{3} << 32));
}

TEST(Initialize, AShorterTensorIsAPrefixOfALongerOne) {
  for (const Initializer& initializer : {Initializer::uniform(0, 1), Initializer::normal(0, 1)}) {
    const auto longer = initial_value("a", {8}, f32, initializer, 0);
    const auto shorter = initial_value("a", {5}, f32, initializer, 0);
    EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
  }
}

struct Moments {
  double mean = 0, variance = 0, low = 1e300, high = -1e300;
};

Moments moments(const std::vector<double>& values) {
  Moments m;
  for (double v : values) {
    m.mean += v;
    m.low = std::min(m.low, v);
    m.high = std::max(m.high, v);
  }
  m.mean /= static_cast<double>(values.size());
  for (double v : values) m.variance += (v - m.mean) * (v - m.mean);
  m.variance /= static_cast<double>(values.size());
  return m;
}

// Tolerances are five standard errors of 40,000 draws.
TEST(Initialize, UniformNumbersFillTheirRange) {
  const Moments m = moments(initial_value("w", {40000}, f32, Initializer::uniform(-2, 4), 1));
  EXPECT_GE(m.low, -2.0);
  EXPECT_LE(m.high, 4.0);
  EXPECT_LT(m.low, -1.99);
  EXPECT_GT(m.high, 3.99);
  EXPECT_NEAR(m.mean, 1.0, 5 * std::sqrt(3.0 / 40000));
  EXPECT_NEAR(m.variance, 3.0, 0.06);
}

TEST(Initialize, NormalNumbersHaveTheirMoments) {
  const auto values = initial_value("w", {40000}, f32, Initializer::normal(1, 2), 1);
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 1.0, 5 * 2.0 / 200);
  EXPECT_NEAR(m.variance, 4.0, 5 * 4.0 * std::sqrt(2.0 / 40000));
  int64_t within = 0;
  for (double v : values) within += std::abs(v - 1) < 2 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(within) / 40000, 0.6827, 5 * std::sqrt(0.22 / 40000));
}

TEST(Initialize, BytesHoldTheValues) {
  const Initializer normal = Initializer::normal(0, 1);
  for (DType dtype : {f32, f16, bf16}) {
    EXPECT_EQ(decode_values(dtype, initial_bytes("w", {33}, dtype, normal, 9)),
              initial_value("w", {33}, dtype, normal, 9));
  }
  EXPECT_TRUE(initial_bytes("w", {0, 4}, f32, normal, 9).empty());
}

TEST(Initialize, RefusesWhatTheDtypeCannotHold) {
  EXPECT_THROW(initial_value("w", {2}, i32, Initializer::uniform(0, 1), 0), Error);
  EXPECT_THROW(initial_value("w", {2}, u8, Initializer::constant(300), 0), Error);
  EXPECT_THROW(initial_value("w", {2}, i32, Initializer::constant(0.5), 0), Error);
  EXPECT_THROW(initial_value("w", {2}, f32, Initializer::uniform(1, 0), 0), Error);
  EXPECT_THROW(initial_value("w", {2}, f32, Initializer::normal(0, -1), 0), Error);
}

}  // namespace
}  // namespace meganeura
