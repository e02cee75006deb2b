// What the interpreter refuses while it runs.
#include <gtest/gtest.h>

#include "base/check.h"
#include "device/interpreter/interpreter.h"

namespace meganeura::device {
namespace {

// Eight invocations, three slots, a shared array of eight words.
std::string wrap(std::string_view body) {
  return cat(
      "kernel \"k\" local(8, 1, 1) subgroup(0) params(1) {\n"
      "slot 0 \"in\": u32 read\n"
      "slot 1 \"out\": u32 write\n"
      "slot 2 \"both\": u32 readwrite\n"
      "shared 0 \"tile\": u32[8]\n"
      "%1: u32 = builtin local_index\n"
      "%2: u32 = builtin workgroup_x\n"
      "%3: u32 = param 0\n"
      "%4: u32 = constant 0\n"
      "%5: u32 = constant 1\n"
      "%6: u32 = constant 8\n"
      "%7: u32 = arith mul %2 %6\n"
      "%8: u32 = arith add %7 %1\n"   // global index
      "%9: bool = arith eq %1 %4\n",  // first invocation
      body, "}\n");
}

// The message of the fault, or nothing. Every slot holds `words` words.
std::string fault(std::string_view body, uint32_t groups = 1, uint32_t param = 0, size_t words = 16,
                  const RunOptions& options = {}) {
  std::vector<uint32_t> in(words), out(words), both(words);
  std::array<std::span<std::byte>, 3> slots = {std::as_writable_bytes(std::span(in)),
                                               std::as_writable_bytes(std::span(out)),
                                               std::as_writable_bytes(std::span(both))};
  try {
    run_kernel(kir::parse_kernel(wrap(body)), {groups, 1, 1}, slots, std::array{param}, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    return error.what();
  }
  return "";
}

#define EXPECT_FAULT(message, part)                                         \
  do {                                                                      \
    std::string text = message;                                             \
    EXPECT_NE(text.find(part), std::string::npos) << "the fault: " << text; \
  } while (false)

TEST(InterpreterFaults, AccessesOutOfBoundsNameEverything) {
  std::string message = fault("%20: u32 = arith add %1 %3 %21: u32 = load 0 %20", 1, 9);
  EXPECT_EQ(message,
            "Kernel \"k\", \"%11: u32 = load 0 %10\": Index 16 is outside \"in\" of 16 elements. "
            "(Invocation 7 of workgroup (0, 0, 0).)");
  EXPECT_EQ(fault("%20: u32 = arith add %1 %3 %21: u32 = load 0 %20", 1, 8), "");
  EXPECT_FAULT(fault("store 1 %8 %1", 3), "Index 16 is outside \"out\"");
  EXPECT_FAULT(fault("store 1 %8 %1", 3), "workgroup (2, 0, 0)");
  EXPECT_FAULT(fault("%20: u32 = arith add %1 %5 shared_store 0 %20 %1"),
               "Index 8 is outside \"tile\" of 8 elements.");
  EXPECT_FAULT(
      fault("shared_store 0 %1 %1 %20: u32 = arith sub %1 %5 %21: u32 = shared_load 0 %20"),
      "Index 4294967295 is outside \"tile\"");
}

TEST(InterpreterFaults, VectorAccessesMustFitAndBeAligned) {
  constexpr std::string_view kLoad = "%20: u32x4 = load 0 %3";
  EXPECT_EQ(fault(kLoad, 1, 12), "");
  EXPECT_FAULT(fault(kLoad, 1, 16), "Index 16 with 4 lanes is outside");
  EXPECT_FAULT(fault(kLoad, 1, 4294967292), "is outside");
  EXPECT_FAULT(fault(kLoad, 1, 2), "Index 2 into \"in\" is no multiple of the 4 lanes.");
  EXPECT_FAULT(fault("%20: u32x2 = compose %1 %1 store 1 %1 %20"), "no multiple of the 2 lanes");
  EXPECT_FAULT(fault("%20: u32x4 = load 0 %4", 1, 0, 3), "Index 0 with 4 lanes is outside");
}

TEST(InterpreterFaults, InactiveInvocationsTouchNothing) {
  EXPECT_EQ(fault("if %9 { %20: u32 = arith mul %1 %3 store 1 %20 %1 } else { }", 1, 1000), "");
  EXPECT_EQ(fault("%20: bool = arith lt %8 %3 if %20 { store 1 %8 %1 } else { }", 5, 16), "");
}

TEST(InterpreterFaults, SharedMemoryMustBeWrittenFirst) {
  EXPECT_FAULT(fault("%20: u32 = shared_load 0 %1"), "read before this workgroup wrote it");
  EXPECT_EQ(fault("shared_store 0 %1 %1 %20: u32 = shared_load 0 %1"), "");
  // What another workgroup wrote does not count.
  EXPECT_FAULT(fault("%20: bool = arith eq %2 %4 if %20 { shared_store 0 %1 %1 } else { }"
                     "%21: u32 = shared_load 0 %1",
                     2),
               "read before this workgroup wrote it");
}

TEST(InterpreterFaults, SharedRacesAreFound) {
  constexpr std::string_view kNeighbour = "%20: u32 = arith add %1 %5 %21: u32 = arith rem %20 %6 ";
  // Reading a neighbour's word needs a barrier.
  EXPECT_FAULT(fault(cat(kNeighbour, "shared_store 0 %1 %1 %22: u32 = shared_load 0 %21")),
               "Data race on element 1 of \"tile\" with invocation 1");
  EXPECT_EQ(fault(cat(kNeighbour, "shared_store 0 %1 %1 barrier %22: u32 = shared_load 0 %21")),
            "");
  // Overwriting what a neighbour reads needs one too.
  EXPECT_FAULT(fault(cat(kNeighbour, "shared_store 0 %1 %1 barrier %22: u32 = shared_load 0 %21 ",
                         "shared_store 0 %1 %22")),
               "Data race");
  EXPECT_EQ(fault(cat(kNeighbour, "shared_store 0 %1 %1 barrier %22: u32 = shared_load 0 %21 ",
                      "barrier shared_store 0 %1 %22")),
            "");
  // Two writers of one word race whatever they write; many readers do not.
  EXPECT_FAULT(fault("shared_store 0 %4 %5"), "Data race on element 0 of \"tile\"");
  EXPECT_EQ(fault("if %9 { shared_store 0 %4 %5 } else { } barrier %20: u32 = shared_load 0 %4"),
            "");
  EXPECT_FAULT(fault("if %9 { shared_store 0 %4 %5 } else { } barrier %20: u32 = shared_load 0 %4 "
                     "if %9 { shared_store 0 %4 %20 } else { }"),
               "with several invocations");
}

TEST(InterpreterFaults, SlotRacesAreFound) {
  EXPECT_EQ(fault("store 1 %8 %1", 2), "");
  EXPECT_FAULT(fault("store 1 %4 %5"), "Data race on element 0 of \"out\" with invocation 0");
  EXPECT_FAULT(fault("store 1 %1 %5", 2),
               "Data race on element 0 of \"out\" with invocation 0 of workgroup number 0");
  // Rewriting one's own element is no race, nor is reading it back.
  EXPECT_EQ(fault("store 2 %8 %1 %20: u32 = load 2 %8 store 2 %8 %20", 2), "");
  // A barrier does not order slots.
  EXPECT_FAULT(fault("%20: u32 = arith add %1 %5 %21: u32 = arith rem %20 %6 "
                     "store 2 %1 %1 barrier %22: u32 = load 2 %21"),
               "Data race on element 1 of \"both\"");
  EXPECT_FAULT(fault("%20: u32 = load 2 %4 if %9 { store 2 %4 %5 } else { }"),
               "with several invocations");
}

TEST(InterpreterFaults, RacesThroughAliasedSlotsAreFound) {
  auto run = [](std::string_view body, size_t out_at) -> std::string {
    std::vector<uint32_t> data(32);
    std::array<std::span<std::byte>, 3> slots = {
        std::as_writable_bytes(std::span(data).first(8)),
        std::as_writable_bytes(std::span(data).subspan(out_at, 8)),
        std::as_writable_bytes(std::span(data).last(8))};
    try {
      run_kernel(kir::parse_kernel(wrap(body)), {1, 1, 1}, slots, std::array{0u});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  constexpr std::string_view kSame = "%20: u32 = load 0 %1 store 1 %1 %20";
  EXPECT_EQ(run(kSame, 0), "");  // in place: each invocation its own element
  EXPECT_EQ(run(kSame, 8), "");
  EXPECT_FAULT(run(kSame, 1), "Data race on element");
}

TEST(InterpreterFaults, LoopsMustEnd) {
  EXPECT_FAULT(fault("for %20: u32 in %4 to %6 step %3 { }", 1, 0), "The step is 0");
  EXPECT_EQ(fault("for %20: u32 in %4 to %6 step %3 { }", 1, 3), "");
  EXPECT_FAULT(fault("%30: u32 = constant 4294967295 %31: u32 = constant 2147483648"
                     " for %20: u32 in %4 to %30 step %31 { }"),
               "The induction value leaves 32 bits.");
}

TEST(InterpreterFaults, ShufflesReadOnlyLanesThatExecute) {
  constexpr std::string_view kFar = "%20: u32 = subgroup_shuffle_xor 4 %1";
  EXPECT_EQ(fault(kFar, 1, 0, 16, {.subgroup_size = 8}), "");
  EXPECT_FAULT(fault(kFar, 1, 0, 16, {.subgroup_size = 4}), "Lane 4 of the subgroup of 4");
  EXPECT_FAULT(fault("%20: u32 = subgroup_shuffle_xor 8 %1", 1, 0, 16, {.subgroup_size = 16}),
               "does not exist or does not execute this");
  EXPECT_FAULT(fault("%20: u32 = subgroup_broadcast 9 %1", 1, 0, 16, {.subgroup_size = 16}),
               "Lane 9");
}

TEST(InterpreterFaults, BindingsMustFitTheKernel) {
  kir::Kernel kernel = kir::parse_kernel(wrap(""));
  std::vector<uint32_t> data(16);
  std::span<std::byte> bytes = std::as_writable_bytes(std::span(data));
  std::array<std::span<std::byte>, 3> good = {bytes, bytes.first(0), bytes.first(3)};
  EXPECT_NO_THROW(run_kernel(kernel, {1, 1, 1}, good, std::array{0u}));
  EXPECT_THROW(run_kernel(kernel, {1, 1, 1}, std::span(good).first(2), std::array{0u}), Error);
  EXPECT_THROW(run_kernel(kernel, {1, 1, 1}, good, {}), Error);
  EXPECT_THROW(run_kernel(kernel, {1, 1, 1}, good, std::array{0u}, {.subgroup_size = 3}), Error);
  EXPECT_THROW(run_kernel(kernel, {65535, 65535, 1}, good, std::array{0u}), Error);
  std::array<std::span<std::byte>, 3> skewed = {bytes.subspan(1), bytes, bytes};
  EXPECT_THROW(run_kernel(kernel, {1, 1, 1}, skewed, std::array{0u}), Error);
}

TEST(InterpreterFaults, RefusesKernelsThatDoNotVerify) {
  EXPECT_FAULT(fault("store 0 %1 %1"), "read-only");
  EXPECT_FAULT(fault("if %9 { barrier } else { }"), "barrier");
}

}  // namespace
}  // namespace meganeura::device
