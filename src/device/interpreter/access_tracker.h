// Remembers who touched each word, to find data races and reads of what was never written.
#pragma once

#include <cstdint>
#include <vector>

namespace meganeura::device {

// Accesses of one epoch are unordered; epochs follow each other (a barrier starts the next one).
class AccessTracker {
 public:
  static constexpr uint32_t kNobody = 0;  // invocations count from 1
  static constexpr uint32_t kSeveral = ~0u;

  explicit AccessTracker(size_t words) : words_(words) {}

  // The invocation that the access races with, or kNobody.
  uint32_t read(size_t at, uint32_t invocation, uint32_t epoch) {
    Word& word = words_[at];
    if (word.read_epoch != epoch) {
      word.read_epoch = epoch;
      word.reader = invocation;
    } else if (word.reader != invocation) {
      word.reader = kSeveral;
    }
    return word.write_epoch == epoch && word.writer != invocation ? word.writer : kNobody;
  }
  uint32_t write(size_t at, uint32_t invocation, uint32_t epoch) {
    Word& word = words_[at];
    uint32_t writer = word.write_epoch == epoch ? word.writer : kNobody;
    uint32_t reader = word.read_epoch == epoch ? word.reader : kNobody;
    word.write_epoch = epoch;
    word.writer = invocation;
    if (writer != kNobody && writer != invocation) return writer;
    return reader != invocation ? reader : kNobody;
  }
  // Whether the word was written in `epoch` or later.
  bool written_since(size_t at, uint32_t epoch) const { return words_[at].write_epoch >= epoch; }

 private:
  struct Word {
    uint32_t writer = kNobody;
    uint32_t write_epoch = 0;
    uint32_t reader = kNobody;
    uint32_t read_epoch = 0;
  };
  std::vector<Word> words_;
};

}  // namespace meganeura::device
