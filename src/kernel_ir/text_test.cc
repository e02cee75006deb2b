#include "kernel_ir/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "base/check.h"
#include "kernel_ir/builder.h"
#include "kernel_ir/capabilities.h"

namespace meganeura::kir {
namespace {

constexpr std::string_view kGolden =
    R"(kernel "golden \"one\"\x0a" local(8, 2, 1) subgroup(4) params(1) {
  slot 0 "x": f32 read
  slot 1 "count": i32 write
  slot 2 "y": u32 readwrite
  shared 0 "tile": f32[64]
  %1: u32 = builtin workgroup_x
  %2: u32 = builtin local_index
  %3: u32 = param 0
  %4: u32 = arith add %1 %2
  %5: f32x4 = load 0 %4
  %6: f32 = extract 2 %5
  %7: f32x2 = compose %6 %6
  shared_store 0 %2 %6
  barrier
  %8: f32 = shared_load 0 %2
  %9: f32 = subgroup_broadcast 3 %8
  %10: u32 = subgroup_add %2
  %11: u32 = subgroup_min %2
  %12: u32 = subgroup_max %2
  %13: f32 = subgroup_shuffle_xor 1 %9
  %14: f32 = constant 0.1
  %15: f32x4 = constant -0
  %16: f32 = constant 0x7fc00000
  %17: i32 = constant -2147483648
  %18: bool = constant true
  %19: u32 = constant 1
  %24: f32, %25: u32 = for %20: u32 in %19 to %3 step %19 carry(%21: f32 = %13, %22: u32 = %10) {
    %23: f32 = arith add %21 %14
    yield %23 %20
  }
  for %26: u32 in %19 to %3 step %19 {
    store 2 %26 %25
  }
  %27: bool = arith lt %2 %25
  %29: f32 = if %27 {
    yield %24
  } else {
    %28: f32 = arith neg %24
    yield %28
  }
  %30: i32 = arith convert %29
  if %18 {
    store 1 %2 %30
  } else {
  }
}
)";

TEST(KernelText, GoldenTextRoundTrips) {
  Kernel kernel = parse_kernel(kGolden);
  EXPECT_EQ(to_string(kernel), kGolden);
  EXPECT_NO_THROW(verify(kernel));
  EXPECT_EQ(kernel.name, "golden \"one\"\n");
}

TEST(KernelText, ParsingKeepsEveryField) {
  Kernel kernel = parse_kernel(kGolden);
  EXPECT_EQ(kernel.local_size, (std::array<uint32_t, 3>{8, 2, 1}));
  EXPECT_EQ(kernel.subgroup_size, 4u);
  EXPECT_EQ(kernel.params, 1u);
  ASSERT_EQ(kernel.slots.size(), 3u);
  EXPECT_EQ(kernel.slots[2].name, "y");
  EXPECT_EQ(kernel.slots[2].access, SlotAccess::kReadWrite);
  ASSERT_EQ(kernel.shared.size(), 1u);
  EXPECT_EQ(kernel.shared[0].count, 64u);
  EXPECT_EQ(kernel.types.size(), 31u);
}

TEST(KernelText, NumbersValuesInOrderOfDefinition) {
  std::string odd(kGolden);
  for (int i = 30; i > 0; --i) {
    std::string from = cat("%", i);
    for (size_t at = 0; (at = odd.find(from, at)) != std::string::npos;) {
      odd.replace(at, from.size(), cat("%", 1000 - i));
      at += 4;
    }
  }
  EXPECT_NE(odd, kGolden);
  EXPECT_EQ(to_string(parse_kernel(odd)), kGolden);
}

TEST(KernelText, LayoutDoesNotMatter) {
  std::string loose;
  for (char c : kGolden) {
    if (c == '\n')
      loose += " \r\n\t";
    else
      loose += c;
  }
  EXPECT_EQ(to_string(parse_kernel(loose)), kGolden);
}

TEST(KernelText, EveryF32ConstantKeepsItsBits) {
  Builder b("floats", {1, 1, 1});
  std::vector<uint32_t> bits;
  for (uint32_t i = 0; i < 2000; ++i) bits.push_back(i * 2147483u + i % 7);
  for (uint32_t special : {0u, 0x80000000u, 1u, 0x007fffffu, 0x7f7fffffu, 0x7f800000u, 0xff800000u,
                           0x7fc00001u, 0xffffffffu}) {
    bits.push_back(special);
  }
  for (uint32_t pattern : bits) b.constant(Type::kF32, pattern);
  Kernel kernel = b.finish();
  Kernel copy = parse_kernel(to_string(kernel));
  ASSERT_EQ(copy.body.body.size(), kernel.body.body.size());
  for (size_t i = 0; i < kernel.body.body.size(); ++i) {
    EXPECT_EQ(copy.body.body[i].immediates, kernel.body.body[i].immediates);
  }
}

TEST(KernelText, DescribesOneInstruction) {
  Kernel kernel = parse_kernel(kGolden);
  EXPECT_EQ(describe(kernel, kernel.body.body[3]), "%4: u32 = arith add %1 %2");
  Instruction broken;
  broken.opcode = Opcode::kFor;
  EXPECT_EQ(describe(kernel, broken), "for");
  broken.opcode = Opcode::kBuiltin;
  broken.immediates[0] = 99;
  broken.results = {Value{12345}};
  EXPECT_EQ(describe(kernel, broken), "%12345: ? = builtin ?");
}

struct Malformed {
  std::string_view from;
  std::string_view to;
  std::string_view message;
};

TEST(KernelText, SaysWhatItExpectedAndWhere) {
  const std::vector<Malformed> cases = {
      {"kernel ", "shader ", "Line 1 of the kernel text: expected 'kernel' but found 'shader'."},
      {"local(8, 2, 1)", "local(8, 2)", "Line 1 of the kernel text: expected ','"},
      {"local(8, 2, 1)", "local(8, 2, -1)", "an integer below 2^32 but found '-1'"},
      {"subgroup(4)", "subgroup(4294967296)", "an integer below 2^32 but found '4294967296'"},
      {"slot 1", "slot 2", "Line 3 of the kernel text: expected the number 1 of the slot"},
      {"\"count\"", "count", "expected a quoted name but found 'count'"},
      {"\"count\"", "\"co\\unt\"", "a quoted name with the escapes"},
      {": i32 write", ": i64 write", "a type (bool, i32, u32 or f32) but found 'i64'"},
      {": i32 write", ": i32 atomic", "read, write or readwrite but found 'atomic'"},
      {"f32[64]", "f32[64", "Line 6 of the kernel text: expected ']' but found '%'."},
      {"builtin workgroup_x", "builtin warp", "Line 6 of the kernel text: expected a builtin"},
      {"arith add", "arith plus", "Line 9 of the kernel text: expected an arithmetic op"},
      {"arith add %1 %2", "arith add %1 %99", "%99 is used before its definition."},
      {"%5: f32x4", "%4: f32x4", "%4 is defined a second time."},
      {"f32x4 = load", "f32x3 = load", "a type such as f32 or u32x4 but found 'f32x3'"},
      {"barrier", "fence", "expected an instruction but found 'fence'"},
      {"constant 0.1", "constant zero", "expected an f32 but found 'zero'"},
      {"constant 0x7fc00000", "constant 0x7fc0000000", "32 bits in hexadecimal"},
      {"constant true", "constant 1", "true or false but found '1'"},
      {"in %19 to %3 step", "in %19 until %3 step", "expected 'to' but found 'until'"},
      {"} else {\n    %28", "} otherwise {\n    %28", "expected 'else' but found 'otherwise'"},
  };
  for (const Malformed& example : cases) {
    std::string text(kGolden);
    size_t at = text.find(example.from);
    ASSERT_NE(at, std::string::npos) << example.from;
    text.replace(at, example.from.size(), example.to);
    try {
      parse_kernel(text);
      ADD_FAILURE() << "accepted: " << example.to;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_NE(std::string_view(error.what()).find(example.message), std::string_view::npos)
          << error.what();
    }
  }
}

TEST(KernelText, RefusesTruncatedAndTrailingText) {
  size_t refused = 0;
  for (size_t length = 0; length + 2 < kGolden.size(); ++length) {
    EXPECT_THROW(parse_kernel(kGolden.substr(0, length)), Error) << length;
    ++refused;
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_THROW(parse_kernel(std::string(kGolden) + "x"), Error);
}

TEST(KernelText, DamagedTextNeverDoesMoreThanThrow) {
  uint32_t state = 12345;
  auto random = [&](size_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
  };
  constexpr std::string_view kSigns = "%:=(){}[],0123456789-x\" \nabcdef";
  size_t accepted = 0;
  size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text(kGolden);
    for (size_t change = 0; change <= random(3); ++change) {
      text[random(text.size())] = kSigns[random(kSigns.size())];
    }
    try {
      Kernel kernel = parse_kernel(text);
      EXPECT_EQ(to_string(parse_kernel(to_string(kernel))), to_string(kernel));
      verify(kernel);
      ++accepted;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 0u);
  EXPECT_GT(refused, 1000u);
}

TEST(KernelText, RefusesEndlessNesting) {
  std::string text = "kernel \"deep\" local(1, 1, 1) subgroup(0) params(0) {\n";
  text += "%1: bool = constant true\n";
  for (int i = 0; i < 100000; ++i) text += "if %1 {\n";
  EXPECT_THROW(parse_kernel(text), Error);
}

TEST(KernelText, PacksIntoWordsAndBack) {
  for (std::string_view text : {"", "a", "ab", "abc", "abcd", "abcde"}) {
    std::vector<uint32_t> words = pack_text(text);
    EXPECT_EQ(words.size(), (text.size() + 3) / 4);
    EXPECT_EQ(unpack_text(words), text);
  }
  EXPECT_EQ(pack_text("abcde"), (std::vector<uint32_t>{0x64636261, 0x65}));
  EXPECT_EQ(unpack_text(pack_text("\xff\x80")), "\xff\x80");
}

TEST(KernelCensus, CountsInstructionsAndFeatures) {
  Census all = census(parse_kernel(kGolden));
  EXPECT_EQ(all.instructions, 31u);
  EXPECT_EQ(all.shared_bytes, 256u);
  EXPECT_TRUE(all.uses_barrier);
  EXPECT_TRUE(all.uses_subgroup_arithmetic);
  EXPECT_TRUE(all.uses_subgroup_shuffle);
  EXPECT_TRUE(all.uses_subgroup_ballot);
  Census none = census(
      parse_kernel("kernel \"n\" local(1, 1, 1) subgroup(0) params(0) { %1: u32 = constant 1 }"));
  EXPECT_EQ(none.instructions, 1u);
  EXPECT_EQ(none.shared_bytes, 0u);
  EXPECT_FALSE(none.uses_barrier || none.uses_subgroup_arithmetic || none.uses_subgroup_shuffle ||
               none.uses_subgroup_ballot);
}

TEST(KernelCapabilities, DeviceClassesHaveNames) {
  EXPECT_EQ(to_string(DeviceClass::kCpu), "cpu");
  EXPECT_EQ(to_string(DeviceClass::kSmallGpu), "small_gpu");
  EXPECT_EQ(to_string(DeviceClass::kLargeGpu), "large_gpu");
  EXPECT_EQ(to_string(DeviceClass::kApple), "apple");
}

}  // namespace
}  // namespace meganeura::kir
