#include "graph/values.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace meganeura {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Values, FloatsRoundHalfToEvenAndOverflowToInfinity) {
  EXPECT_EQ(as_stored(f16, 2049.0), 2048.0);
  EXPECT_EQ(as_stored(f16, 2051.0), 2052.0);
  EXPECT_EQ(as_stored(f16, 65519.0), 65504.0);
  EXPECT_EQ(as_stored(f16, 65520.0), kInf);
  EXPECT_EQ(as_stored(f16, -1e9), -kInf);
  EXPECT_EQ(as_stored(bf16, 257.0), 256.0);
  EXPECT_EQ(as_stored(bf16, 259.0), 260.0);
  EXPECT_EQ(as_stored(f32, 16777217.0), 16777216.0);
  EXPECT_EQ(as_stored(f32, 1e39), kInf);
  EXPECT_EQ(as_stored(f64, 0.1), 0.1);
  EXPECT_TRUE(std::isnan(as_stored(f16, kNan)));
}

TEST(Values, SubnormalsRoundOnTheirFixedGrid) {
  EXPECT_EQ(as_stored(f16, 0x1p-24), 0x1p-24);
  EXPECT_EQ(as_stored(f16, 0x1p-25), 0.0);
  EXPECT_EQ(as_stored(f16, 0x1.8p-24), 0x1p-23);
  EXPECT_EQ(as_stored(f16, -0x1.8p-25), -0x1p-24);
  EXPECT_EQ(as_stored(bf16, 0x1p-133), 0x1p-133);
  EXPECT_EQ(as_stored(bf16, 0x1p-135), 0.0);
}

TEST(Values, RoundingOnceDiffersFromRoundingThroughF32) {
  // Just above the tie between two f16 numbers, by less than f32 can tell.
  const double above_tie = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(as_stored(f16, above_tie), 1.0 + 0x1p-10);
  EXPECT_EQ(as_stored(f16, static_cast<float>(above_tie)), 1.0);
}

TEST(Values, IntegersTruncateAndWrapInTheirOwnWidth) {
  EXPECT_EQ(as_stored(i8, 128), -128);
  EXPECT_EQ(as_stored(i8, -129), 127);
  EXPECT_EQ(as_stored(u8, 300), 44);
  EXPECT_EQ(as_stored(u8, -1), 255);
  EXPECT_EQ(as_stored(i16, 40000), -25536);
  EXPECT_EQ(as_stored(u32, -1), 4294967295.0);
  EXPECT_EQ(as_stored(i32, 2147483648.0), -2147483648.0);
  EXPECT_EQ(as_stored(i32, -2.9), -2);
  EXPECT_EQ(as_stored(i32, kNan), 0);
  EXPECT_EQ(as_stored(boolean, 7), 1);
}

TEST(Values, BytesOfEveryDtypeReadBackTheStoredNumber) {
  const std::array<double, 9> samples = {0.0, 1.0, -1.0, 2.5, 100.0, -37.75, 65504.0, 3e-5, 300.0};
  for (DType dtype : {f32, f16, bf16, f64, i8, u8, i16, i32, u32, i64, boolean}) {
    const std::vector<double> back = decode_values(dtype, encode_values(dtype, samples));
    ASSERT_EQ(back.size(), samples.size());
    for (size_t i = 0; i < samples.size(); ++i) {
      EXPECT_EQ(back[i], as_stored(dtype, samples[i])) << info(dtype).name << " " << samples[i];
    }
  }
}

TEST(Values, HalfPatternsAreThoseOfTheStandard) {
  const std::array<double, 6> values = {1.0, -2.0, 65504.0, 0x1p-24, kInf, 1.0 / 3.0};
  const std::array<uint16_t, 6> f16_bits = {0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x3555};
  const std::array<uint16_t, 6> bf16_bits = {0x3f80, 0xc000, 0x4780, 0x3380, 0x7f80, 0x3eab};
  for (auto [dtype, expected] : {std::pair(f16, f16_bits), std::pair(bf16, bf16_bits)}) {
    const std::vector<std::byte> bytes = encode_values(dtype, values);
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + 2 * i, 2);
      EXPECT_EQ(bits, expected[i]) << info(dtype).name << " " << values[i];
    }
  }
}

TEST(Values, EveryHalfPatternRoundTrips) {
  for (DType dtype : {f16, bf16}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      std::array<std::byte, 2> bytes = {static_cast<std::byte>(bits & 0xff),
                                        static_cast<std::byte>(bits >> 8)};
      const std::vector<double> value = decode_values(dtype, bytes);
      if (std::isnan(value[0])) continue;
      const std::vector<std::byte> again = encode_values(dtype, value);
      ASSERT_EQ(again[0], bytes[0]) << bits;
      ASSERT_EQ(again[1], bytes[1]) << bits;
    }
  }
}

}  // namespace
}  // namespace meganeura
