#include <gtest/gtest.h>

#include "base/check.h"
#include "kernel_ir/builder.h"
#include "kernel_ir/opcode.h"

namespace meganeura::kir {
namespace {

// A body inside a kernel with a slot and a shared array of each kind.
std::string wrap(std::string_view body) {
  return cat(
      "kernel \"k\" local(64, 1, 1) subgroup(0) params(2) {\n"
      "slot 0 \"in\": f32 read\n"
      "slot 1 \"out\": f32 write\n"
      "slot 2 \"both\": u32 readwrite\n"
      "shared 0 \"tile\": f32[64]\n"
      "%1: u32 = builtin workgroup_x\n"
      "%2: u32 = builtin local_index\n"
      "%3: u32 = builtin lane\n"
      "%4: u32 = builtin subgroup\n"
      "%5: u32 = param 0\n"
      "%6: u32 = constant 1\n"
      "%7: f32 = constant 1\n"
      "%8: bool = arith lt %2 %5\n"   // differs within the workgroup
      "%9: bool = arith lt %1 %5\n"   // uniform
      "%10: bool = arith lt %4 %5\n"  // uniform within a subgroup
      "%11: u32x4 = compose %1 %2 %3 %4\n",
      body, "}\n");
}

std::string refusal(const Kernel& kernel) {
  try {
    verify(kernel);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    return error.what();
  }
  return "";
}

std::string refusal(std::string_view body) { return refusal(parse_kernel(wrap(body))); }

struct Rule {
  std::string_view body;
  std::string_view message;
};

class VerifyRule : public testing::TestWithParam<Rule> {};

TEST_P(VerifyRule, IsEnforced) {
  std::string message = refusal(GetParam().body);
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
  EXPECT_NE(message.find("Kernel \"k\""), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Types, VerifyRule,
    testing::Values(Rule{"%20: u32 = arith add %1 %7", "mixes types"},
                    Rule{"%20: f32 = arith add %1 %2", "The result is f32 where u32 is expected."},
                    Rule{"%20: u32 = arith add %1 %11", "their lanes must be equal"},
                    Rule{"%20: u32x4 = arith add %1 %2", "their lanes must be equal"},
                    Rule{"%20: u32 = arith add %1", "takes 2 operands"},
                    Rule{"%20: f32 = arith exp %7", "is not a primitive one"},
                    Rule{"%20: u32 = arith select %1 %1 %2", "bool condition"},
                    Rule{"%20: bool = arith bitcast %1", "bitcast to bool"},
                    Rule{"%20: u32 = arith argument", "takes 0 operands"},
                    Rule{"arith add %1 %2", "has 0 results where 1 are expected"},
                    Rule{"%20: bool = constant 0x00000002", "A bool constant has the bits 2"},
                    Rule{"%20: f32 = builtin lane", "The result is f32 where u32 is expected."},
                    Rule{"%20: i32 = param 0", "The result is i32 where u32 is expected."},
                    Rule{"%20: u32 = param 2", "Argument 2 is read but 2 are declared."},
                    Rule{"%20: u32 = extract 4 %11", "Lane 4 of u32x4 does not exist."},
                    Rule{"%20: f32 = extract 0 %11", "The result is f32 where u32 is expected."},
                    Rule{"%20: u32x2 = compose %1 %2 %3 %4", "A u32x2 is composed of 4 values."},
                    Rule{"%20: u32 = compose %1", "A u32 is composed of 1 values."},
                    Rule{"%20: u32x2 = compose %1 %7",
                         "The component is f32 where u32 is expected."}));

INSTANTIATE_TEST_SUITE_P(
    Memory, VerifyRule,
    testing::Values(Rule{"%20: f32 = load 3 %1", "Slot 3 does not exist."},
                    Rule{"%20: f32 = load 1 %1", "Slot \"out\" is write-only."},
                    Rule{"store 0 %1 %7", "Slot \"in\" is read-only."},
                    Rule{"%20: u32 = load 0 %1", "The result is u32 where f32 is expected."},
                    Rule{"store 1 %1 %1", "The stored value is u32 where f32 is expected."},
                    Rule{"store 1 %7 %7", "The index is f32 where u32 is expected."},
                    Rule{"store 1 %1", "has 1 operands where 2 are expected"},
                    Rule{"%20: f32 = load 0 %11", "The index is u32x4 where u32 is expected."},
                    Rule{"%20: f32 = shared_load 1 %1", "Shared array 1 does not exist."},
                    Rule{"%20: u32 = shared_load 0 %1", "The result is u32 where f32"},
                    Rule{"shared_store 0 %1 %1", "The stored value is u32 where f32"},
                    Rule{"shared_store 0 %7 %7", "The index is f32 where u32 is expected."}));

INSTANTIATE_TEST_SUITE_P(
    Structure, VerifyRule,
    testing::Values(
        Rule{"for %20: f32 in %6 to %5 step %6 { }", "The induction value is f32"},
        Rule{"for %20: u32 in %7 to %5 step %6 { }", "The begin is f32"},
        Rule{"for %20: u32 in %6 to %7 step %6 { }", "The end is f32"},
        Rule{"for %20: u32 in %6 to %5 step %7 { }", "The step is f32"},
        Rule{"%30: u32 = constant 0 for %20: u32 in %6 to %5 step %30 { }", "The step is 0."},
        Rule{"for %20: u32 in %6 to %5 step %2 { }", "The step of a loop differs"},
        Rule{"%40: u32 = for %20: u32 in %6 to %5 step %6 carry(%21: u32 = %1) { }",
             "The loop's yield has 0 values where 1 are expected."},
        Rule{"%40: u32 = for %20: u32 in %6 to %5 step %6 carry(%21: f32 = %1) { yield %21 }",
             "Value 0 of the carried parameters is f32 where u32 is expected."},
        Rule{"%40: u32 = for %20: u32 in %6 to %5 step %6 carry(%21: u32 = %1) { yield %7 }",
             "Value 0 of the loop's yield is f32 where u32 is expected."},
        Rule{"%40: f32 = for %20: u32 in %6 to %5 step %6 carry(%21: u32 = %1) { yield %21 }",
             "Value 0 of the loop's result is f32 where u32 is expected."},
        Rule{"for %20: u32 in %6 to %5 step %6 carry(%21: u32 = %1) { yield %21 }",
             "The loop's result has 0 values where 1 are expected."},
        Rule{"if %1 { } else { }", "The condition is u32 where bool is expected."},
        Rule{"%40: u32 = if %9 { yield %1 } else { }",
             "The second branch's yield has 0 values where 1 are expected."},
        Rule{"%40: u32 = if %9 { yield %1 } else { yield %7 }",
             "Value 0 of the second branch's yield is f32"},
        Rule{"if %9 { yield %1 } else { yield %1 }",
             "The first branch's yield has 1 values where 0 are expected."},
        Rule{"if %9 { %20: u32 = constant 5 } else { } store 2 %1 %20",
             "is used outside the block that defines it."},
        Rule{"for %20: u32 in %6 to %5 step %6 { } store 2 %1 %20",
             "is used outside the block that defines it."},
        Rule{"yield %1", "The kernel's body yields nothing."}));

INSTANTIATE_TEST_SUITE_P(
    Control, VerifyRule,
    testing::Values(
        Rule{"if %8 { barrier } else { }", "A barrier stands in control flow that differs"},
        Rule{"if %9 { } else { if %10 { } else { barrier } }", "A barrier stands in control flow"},
        Rule{"for %20: u32 in %6 to %2 step %6 { barrier }", "A barrier stands in control flow"},
        Rule{"for %20: u32 in %2 to %5 step %6 { barrier }", "A barrier stands in control flow"},
        Rule{"%20: u32 = load 2 %1 %21: bool = arith lt %20 %5 if %21 { barrier } else { }",
             "A barrier stands in control flow"},
        Rule{"%20: f32 = load 0 %2 %21: bool = arith lt %20 %7 if %21 { barrier } else { }",
             "A barrier stands in control flow"},
        Rule{"%20: f32 = shared_load 0 %1 %21: bool = arith lt %20 %7 if %21 { barrier } else { }",
             "A barrier stands in control flow"},
        // The carried value differs only from the second iteration on.
        Rule{"%40: u32 = for %20: u32 in %6 to %5 step %6 carry(%21: u32 = %1) {"
             "  %22: bool = arith lt %21 %5 if %22 { barrier } else { } yield %2 }",
             "A barrier stands in control flow"},
        // Two rounds of the loop until the difference arrives.
        Rule{"%40: u32, %41: u32 = for %20: u32 in %6 to %5 step %6"
             "  carry(%21: u32 = %1, %22: u32 = %1) {"
             "  %23: bool = arith lt %21 %5 if %23 { barrier } else { } yield %22 %2 }",
             "A barrier stands in control flow"},
        Rule{"%20: u32 = if %8 { yield %6 } else { yield %5 }"
             "%21: bool = arith lt %20 %5 if %21 { barrier } else { }",
             "A barrier stands in control flow"},
        Rule{"%40: u32 = for %20: u32 in %6 to %2 step %6 carry(%21: u32 = %1) { yield %20 }"
             "%42: bool = arith lt %40 %5 if %42 { barrier } else { }",
             "A barrier stands in control flow"},
        Rule{"if %8 { %20: u32 = subgroup_add %1 } else { }", "A subgroup operation stands"},
        Rule{"%20: u32 = subgroup_add %1 %21: bool = arith lt %20 %5 if %21 { barrier } else { }",
             "A barrier stands in control flow"},
        Rule{"for %20: u32 in %6 to %3 step %6 { %21: u32 = subgroup_shuffle_xor 1 %1 }",
             "A subgroup operation stands"},
        Rule{"%20: f32 = subgroup_add %7", "An f32 subgroup sum has no fixed order"},
        Rule{"%20: bool = subgroup_max %8", "Subgroup operations do not take bool."},
        Rule{"%20: f32 = subgroup_max %1", "The result is f32 where u32 is expected."},
        Rule{"%20: u32 = subgroup_broadcast 128 %1", "Lane 128 is outside a subgroup of 128."},
        Rule{"%20: u32 = subgroup_shuffle_xor 0 %1", "The mask 0 is outside 1 to 127."}));

TEST(Verify, AcceptsUniformControlFlow) {
  EXPECT_EQ(refusal("if %9 { barrier } else { barrier }"), "");
  EXPECT_EQ(refusal("for %20: u32 in %6 to %5 step %6 { barrier }"), "");
  EXPECT_EQ(refusal("for %20: u32 in %1 to %5 step %5 { barrier }"), "");
  EXPECT_EQ(refusal("if %10 { %20: u32 = subgroup_add %1 } else { }"), "");
  EXPECT_EQ(refusal("for %20: u32 in %4 to %5 step %6 { %21: u32 = subgroup_add %1 }"), "");
  EXPECT_EQ(refusal("%20: f32 = load 0 %1 %21: bool = arith lt %20 %7 if %21 { barrier } else { }"),
            "");
  EXPECT_EQ(refusal("%40: u32 = for %20: u32 in %6 to %5 step %6 carry(%21: u32 = %1) {"
                    "  %22: bool = arith lt %21 %5 if %22 { barrier } else { } yield %20 }"),
            "");
  EXPECT_EQ(refusal("%20: u32 = subgroup_broadcast 0 %2 %21: bool = arith lt %20 %5"
                    " if %21 { %22: u32 = subgroup_shuffle_xor 1 %2 } else { }"),
            "");
}

TEST(Verify, AcceptsAnEmptyKernel) { EXPECT_EQ(refusal(""), ""); }

TEST(Verify, ChecksTheHeader) {
  const Kernel good = parse_kernel(wrap(""));
  auto changed = [&](const std::function<void(Kernel&)>& change) {
    Kernel kernel = good;
    change(kernel);
    return refusal(kernel);
  };
  auto has = [](const std::string& message, std::string_view part) {
    return message.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(changed([](Kernel& k) { k.local_size = {0, 1, 1}; }), "A local size of 0"));
  EXPECT_TRUE(has(changed([](Kernel& k) { k.local_size = {64, 64, 2}; }), "larger than 4096"));
  EXPECT_TRUE(has(changed([](Kernel& k) { k.subgroup_size = 12; }), "A subgroup size of 12"));
  EXPECT_TRUE(has(changed([](Kernel& k) { k.subgroup_size = 256; }), "A subgroup size of 256"));
  EXPECT_TRUE(has(changed([](Kernel& k) { k.types[3].lanes = 3; }), "Value %3 has 3 lanes"));
  EXPECT_TRUE(has(changed([](Kernel& k) { k.slots[0].element = Type::kBool; }), "holds bool"));
  EXPECT_TRUE(has(changed([](Kernel& k) { k.shared[0].element = Type::kBool; }), "holds bool"));
  EXPECT_TRUE(has(changed([](Kernel& k) { k.shared[0].count = 0; }), "\"tile\" is empty"));
  EXPECT_TRUE(has(changed([](Kernel& k) { k.types.clear(); }), "type table"));
  EXPECT_TRUE(has(changed([](Kernel& k) { k.types.resize(3); }), "no entry in the type table"));
  EXPECT_TRUE(has(changed([](Kernel& k) { k.body.parameters = {Value{1}}; }), "block parameters"));
}

TEST(Verify, ChecksDefinitions) {
  const Kernel good = parse_kernel(wrap(""));
  Kernel twice = good;
  twice.body.body[1].results = twice.body.body[0].results;
  EXPECT_NE(refusal(twice).find("%1 is defined twice"), std::string::npos);
  Kernel early = good;
  std::swap(early.body.body[4], early.body.body[7]);
  EXPECT_NE(refusal(early).find("%5 is used before its definition"), std::string::npos);
  Kernel none = good;
  none.body.body[7].operands[0] = Value{};
  EXPECT_NE(refusal(none).find("%0 has no entry"), std::string::npos);
  Kernel unknown = good;
  unknown.body.body[0].opcode = static_cast<Opcode>(200);
  EXPECT_NE(refusal(unknown).find("opcode 200"), std::string::npos);
  Kernel builtin = good;
  builtin.body.body[0].immediates[0] = kBuiltinCount;
  EXPECT_NE(refusal(builtin).find("The builtin 7 does not exist."), std::string::npos);
}

TEST(Verify, RespectsTheRequiredSubgroupSize) {
  Kernel kernel = parse_kernel(wrap("%20: u32 = subgroup_shuffle_xor 8 %1"));
  EXPECT_EQ(refusal(kernel), "");
  kernel.subgroup_size = 8;
  EXPECT_NE(refusal(kernel).find("The mask 8 is outside 1 to 7."), std::string::npos);
}

TEST(Uniformity, FollowsValuesThroughLoops) {
  Kernel kernel =
      parse_kernel(wrap("%40: u32, %41: u32 = for %20: u32 in %6 to %5 step %6"
                        "  carry(%21: u32 = %1, %22: u32 = %1) { yield %20 %2 }"));
  std::vector<Uniformity> levels = analyze_uniformity(kernel);
  const Instruction& loop = kernel.body.body.back();
  EXPECT_EQ(levels[loop.results[0].id], Uniformity::kWorkgroup);
  EXPECT_EQ(levels[loop.results[1].id], Uniformity::kInvocation);
  EXPECT_EQ(levels[4], Uniformity::kSubgroup);
}

}  // namespace
}  // namespace meganeura::kir
