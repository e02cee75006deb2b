#include <gtest/gtest.h>

#include "base/check.h"
#include "device/device.h"

namespace meganeura::device {
namespace {

class FakeMemory : public Memory {
 public:
  uint64_t bytes() const override { return 4096; }
  std::byte* mapped() override { return nullptr; }
};

enum Use { kRead, kWrite, kBoth };

BoundSpan bound(Memory& memory, uint64_t offset, uint64_t bytes, Use use) {
  return {{&memory, offset, bytes}, use != kWrite, use != kRead};
}

Command dispatch(std::string label, std::vector<BoundSpan> bindings) {
  Command command;
  command.kind = Command::Kind::kDispatch;
  command.label = std::move(label);
  command.bindings = std::move(bindings);
  return command;
}

Command copy(Span source, Span destination) {
  Command command;
  command.kind = Command::Kind::kCopy;
  command.label = "upload";
  command.source = source;
  command.destination = destination;
  return command;
}

Command fill(Span destination) {
  Command command;
  command.kind = Command::Kind::kFill;
  command.label = "clear";
  command.destination = destination;
  return command;
}

std::string hazard(const std::vector<Command>& commands) {
  try {
    check_commands(commands);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    return error.what();
  }
  return "";
}

TEST(CheckCommands, AcceptsIndependentCommands) {
  FakeMemory a;
  FakeMemory b;
  EXPECT_EQ(hazard({}), "");
  EXPECT_EQ(hazard({dispatch("p", {bound(a, 0, 256, kRead), bound(b, 0, 256, kWrite)}),
                    dispatch("q", {bound(a, 0, 256, kRead), bound(b, 256, 256, kWrite)}),
                    dispatch("r", {bound(a, 128, 512, kRead)})}),
            "");
}

TEST(CheckCommands, AcceptsAliasesWithinOneDispatch) {
  FakeMemory a;
  EXPECT_EQ(hazard({dispatch("in place", {bound(a, 0, 64, kRead), bound(a, 0, 64, kWrite)})}), "");
}

TEST(CheckCommands, NamesBothCommandsOfEveryKindOfHazard) {
  FakeMemory a;
  for (auto [first, second] :
       {std::pair(kWrite, kRead), std::pair(kRead, kWrite), std::pair(kWrite, kWrite),
        std::pair(kBoth, kRead), std::pair(kBoth, kBoth)}) {
    std::string message = hazard({dispatch("producer", {bound(a, 0, 64, first)}),
                                  dispatch("consumer", {bound(a, 60, 64, second)})});
    EXPECT_NE(message.find("dispatch \"producer\" (command 0)"), std::string::npos) << message;
    EXPECT_NE(message.find("dispatch \"consumer\" (command 1)"), std::string::npos) << message;
  }
  EXPECT_EQ(
      hazard({dispatch("p", {bound(a, 0, 64, kWrite)}), dispatch("q", {bound(a, 64, 64, kWrite)})}),
      "");
}

TEST(CheckCommands, CopiesAndFillsCount) {
  FakeMemory a;
  FakeMemory b;
  Command upload = copy({&a, 0, 64}, {&b, 0, 64});
  Command use = dispatch("use", {bound(b, 32, 64, kRead)});
  Command clear = fill({&a, 60, 4});
  EXPECT_NE(hazard({upload, use}).find("copy \"upload\""), std::string::npos);
  EXPECT_NE(hazard({upload, clear}).find("fill \"clear\""), std::string::npos);
  EXPECT_NE(hazard({clear, clear}), "");
  EXPECT_EQ(hazard({upload, Command{}, use, clear}), "");
  EXPECT_NE(hazard({copy({&a, 0, 64}, {&a, 32, 64})}).find("overlapping"), std::string::npos);
  EXPECT_EQ(hazard({copy({&a, 0, 64}, {&a, 64, 64})}), "");
}

TEST(CheckCommands, EmptySpansTouchNothing) {
  FakeMemory a;
  EXPECT_EQ(hazard({dispatch("p", {bound(a, 0, 0, kWrite)}), fill({nullptr, 0, 0}),
                    dispatch("q", {bound(a, 0, 0, kWrite)})}),
            "");
  EXPECT_NE(hazard({fill({nullptr, 0, 4})}).find("lacks a memory"), std::string::npos);
}

TEST(CheckCommands, FindsHazardsHiddenBehindLongSpans) {
  FakeMemory a;
  // The second dispatch's own long read reaches further than the first one's write.
  EXPECT_NE(hazard({dispatch("writer", {bound(a, 100, 50, kWrite)}),
                    dispatch("reader", {bound(a, 0, 100, kRead), bound(a, 140, 4, kRead)})}),
            "");
  EXPECT_NE(hazard({dispatch("p", {bound(a, 0, 40, kRead)}),
                    dispatch("q", {bound(a, 0, 1000, kRead), bound(a, 30, 4, kWrite)})}),
            "");
  EXPECT_EQ(hazard({dispatch("p", {bound(a, 0, 30, kRead)}),
                    dispatch("q", {bound(a, 0, 1000, kRead), bound(a, 30, 4, kWrite)})}),
            "");
}

// Against the definition, pair by pair, over many small recordings.
TEST(CheckCommands, AgreesWithTheDefinition) {
  FakeMemory memories[2];
  uint32_t state = 7;
  auto random = [&](uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 10) % below;
  };
  int hazards = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<Command> commands;
    for (uint32_t i = 0; i < 2 + random(4); ++i) {
      std::vector<BoundSpan> bindings;
      for (uint32_t j = 0; j < 1 + random(3); ++j) {
        bindings.push_back(
            bound(memories[random(2)], random(40), random(8), random(3) == 0 ? kWrite : kRead));
      }
      commands.push_back(dispatch("d", bindings));
      if (random(5) == 0) commands.push_back(Command{});
    }
    bool expected = false;
    for (size_t i = 0; i < commands.size(); ++i) {
      for (size_t j = i + 1; j < commands.size(); ++j) {
        if (commands[j].kind == Command::Kind::kBarrier) break;
        for (const BoundSpan& x : commands[i].bindings) {
          for (const BoundSpan& y : commands[j].bindings) {
            expected = expected || (x.span.memory == y.span.memory && (x.write || y.write) &&
                                    x.span.bytes > 0 && y.span.bytes > 0 &&
                                    x.span.offset < y.span.offset + y.span.bytes &&
                                    y.span.offset < x.span.offset + x.span.bytes);
          }
        }
      }
    }
    hazards += expected ? 1 : 0;
    ASSERT_EQ(!hazard(commands).empty(), expected) << "round " << round;
  }
  EXPECT_GT(hazards, 500);
  EXPECT_LT(hazards, 3500);
}

TEST(CheckCommands, RemovingAnyOneBarrierOfAChainIsCaught) {
  FakeMemory a;
  std::vector<Command> chain = {copy({&a, 0, 256}, {&a, 256, 256})};
  for (uint64_t i = 1; i < 6; ++i) {
    chain.push_back(Command{});
    chain.push_back(
        dispatch("step", {bound(a, 256 * i, 256, kRead), bound(a, 256 * (i + 1), 256, kWrite)}));
    chain.push_back(dispatch("beside", {bound(a, 256 * i, 256, kRead)}));
  }
  ASSERT_EQ(hazard(chain), "");
  int removed = 0;
  for (size_t i = 0; i < chain.size(); ++i) {
    if (chain[i].kind != Command::Kind::kBarrier) continue;
    std::vector<Command> broken = chain;
    broken.erase(broken.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_NE(hazard(broken), "") << "without the barrier at " << i;
    ++removed;
  }
  EXPECT_EQ(removed, 5);
}

TEST(CheckCommands, ManyReadersOfOneTensorAreCheap) {
  FakeMemory a;
  std::vector<Command> commands(20000, dispatch("reader", {bound(a, 0, 256, kRead)}));
  EXPECT_EQ(hazard(commands), "");
}

}  // namespace
}  // namespace meganeura::device
