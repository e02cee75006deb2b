#include "device/interpreter/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "meganeura/error.h"
#include "scalar/evaluate.h"

namespace meganeura::device {
namespace {

using scalar::Op;
using scalar::Type;

constexpr std::array<uint32_t, 22> kSpecial = {
    0,          1,          2,          31,         32,         33,         0x7fffffff, 0x80000000,
    0x80000001, 0xffffffff, 0xfffffffe, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000,
    0x7f800001, 0x00000001, 0x807fffff, 0x7f7fffff, 0x4f000000, 0xcf000000};

std::vector<uint32_t> operands(Type type, uint32_t seed) {
  std::vector<uint32_t> values;
  for (uint32_t special : kSpecial) {
    for (size_t repeat = 0; repeat < kSpecial.size(); ++repeat) values.push_back(special);
  }
  if (seed % 2 == 1) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = kSpecial[i % kSpecial.size()];
  }
  uint32_t state = seed;
  for (int i = 0; i < 500; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(i % 2 == 0 ? state : std::bit_cast<uint32_t>((state >> 8) / 65536.0f));
  }
  if (type == Type::kBool) {
    for (uint32_t& value : values) value &= 1;
  }
  return values;
}

bool same(Type type, uint32_t a, uint32_t b) {
  if (a == b) return true;
  return type == Type::kF32 && std::isnan(std::bit_cast<float>(a)) &&
         std::isnan(std::bit_cast<float>(b));
}

TEST(EvaluateLanes, EqualsThePrimitiveEvaluation) {
  constexpr std::array kTypes = {Type::kBool, Type::kI32, Type::kU32, Type::kF32};
  int compared = 0;
  int fast = 0;
  for (int code = static_cast<int>(Op::kAdd); code <= static_cast<int>(Op::kUnpackF16); ++code) {
    Op op = static_cast<Op>(code);
    size_t arity = scalar::info(op).arity;
    for (Type type : kTypes) {
      for (Type wanted : kTypes) {
        std::vector<Type> types(arity, type);
        if (op == Op::kSelect) types[0] = Type::kBool;
        Type result = type;
        try {
          result = scalar::result_type(op, types, wanted);
        } catch (const Error&) {
          continue;
        }
        std::array<std::vector<uint32_t>, 3> values;
        for (size_t i = 0; i < 3; ++i) {
          values[i] = operands(i < arity ? types[i] : type, static_cast<uint32_t>(i) + 4);
        }
        size_t count = values[0].size();
        for (bool fused : {true, false}) {
          std::vector<uint32_t> out(count);
          evaluate_lanes(op, types[0], result, fused, out.data(), values[0].data(),
                         values[1].data(), values[2].data(), count);
          for (size_t i = 0; i < count; ++i) {
            std::array<uint32_t, 3> lanes = {values[0][i], values[1][i], values[2][i]};
            uint32_t expected =
                scalar::evaluate_primitive(op, types[0], result, {lanes.data(), arity}, fused);
            ASSERT_TRUE(same(result, out[i], expected))
                << scalar::info(op).name << " on " << scalar::to_string(type) << ": " << lanes[0]
                << ", " << lanes[1] << ", " << lanes[2] << " gave " << out[i] << " for "
                << expected;
          }
          fast += has_fast_loop(op, types[0], result, fused) ? 1 : 0;
        }
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 200);
  EXPECT_GT(fast, 100);
}

}  // namespace
}  // namespace meganeura::device
