#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "device/device.h"

namespace meganeura::device {
namespace {

// Bytes [begin, end) of the memory that was named `memory`-th, as one command touches them.
struct Access {
  size_t memory;
  uint64_t begin;
  uint64_t end;
  bool write;
  size_t command;
};

// The furthest-reaching access seen, and the furthest-reaching one of any other command.
class Furthest {
 public:
  void add(const Access& access) {
    if (!first_ || access.end > first_->end) {
      if (first_ && first_->command != access.command) second_ = first_;
      first_ = access;
    } else if (access.command != first_->command && (!second_ || access.end > second_->end)) {
      second_ = access;
    }
  }
  // An access of another command that reaches beyond where this one begins.
  const Access* over(const Access& access) const {
    const auto& other = first_ && first_->command == access.command ? second_ : first_;
    return other && other->end > access.begin ? &*other : nullptr;
  }

 private:
  std::optional<Access> first_;
  std::optional<Access> second_;
};

std::string describe(std::span<const Command> commands, size_t index) {
  const Command& command = commands[index];
  std::string_view kind = command.kind == Command::Kind::kDispatch ? "dispatch"
                          : command.kind == Command::Kind::kCopy   ? "copy"
                                                                   : "fill";
  return cat(kind, " \"", command.label, "\" (command ", index, ")");
}

// Finds overlapping accesses among commands that no barrier separates.
class HazardFinder {
 public:
  explicit HazardFinder(std::span<const Command> commands) : commands_(commands) {}

  void run() {
    for (size_t i = 0; i < commands_.size(); ++i) {
      const Command& command = commands_[i];
      switch (command.kind) {
        case Command::Kind::kBarrier:
          finish_group();
          break;
        case Command::Kind::kDispatch:
          for (const BoundSpan& bound : command.bindings) {
            if (bound.read || bound.write) add(bound.span, bound.write, i);
          }
          break;
        case Command::Kind::kCopy:
          add(command.source, false, i);
          add(command.destination, true, i);
          check_copy(command, i);
          break;
        case Command::Kind::kFill:
          add(command.destination, true, i);
          break;
      }
    }
    finish_group();
  }

 private:
  void add(const Span& span, bool write, size_t command) {
    if (span.bytes == 0) return;
    MG_CHECK(span.memory != nullptr, "The ", describe(commands_, command), " lacks a memory.");
    size_t memory = memories_.try_emplace(span.memory, memories_.size()).first->second;
    accesses_.push_back({memory, span.offset, span.offset + span.bytes, write, command});
  }

  void check_copy(const Command& command, size_t index) const {
    const Span& from = command.source;
    const Span& to = command.destination;
    bool overlap = from.memory == to.memory && from.offset < to.offset + to.bytes &&
                   to.offset < from.offset + from.bytes;
    MG_CHECK(!overlap || from.bytes == 0 || to.bytes == 0, "The ", describe(commands_, index),
             " copies between overlapping bytes of one memory.");
  }

  void finish_group() {
    std::stable_sort(accesses_.begin(), accesses_.end(), [](const Access& a, const Access& b) {
      return std::pair(a.memory, a.begin) < std::pair(b.memory, b.begin);
    });
    Furthest any;
    Furthest writes;
    for (size_t i = 0; i < accesses_.size(); ++i) {
      const Access& access = accesses_[i];
      if (i > 0 && accesses_[i - 1].memory != access.memory) any = writes = Furthest();
      const Access* other = access.write ? any.over(access) : writes.over(access);
      if (other != nullptr) report(*other, access);
      any.add(access);
      if (access.write) writes.add(access);
    }
    accesses_.clear();
  }

  [[noreturn]] void report(Access first, Access second) const {
    if (first.command > second.command) std::swap(first, second);
    fail(ErrorKind::kInternal, "No barrier stands between the ", describe(commands_, first.command),
         ", which ", first.write ? "writes" : "reads", " bytes ", first.begin, " to ", first.end,
         " of a memory, and the ", describe(commands_, second.command), ", which ",
         second.write ? "writes" : "reads", " bytes ", second.begin, " to ", second.end, " of it.");
  }

  std::span<const Command> commands_;
  std::unordered_map<const Memory*, size_t> memories_;  // numbered in order of appearance
  std::vector<Access> accesses_;                        // since the last barrier
};

}  // namespace

void check_commands(std::span<const Command> commands) { HazardFinder(commands).run(); }

}  // namespace meganeura::device
