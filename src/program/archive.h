// Little-endian bytes from values and back, for the program's file format. Writer and Reader have
// the same members, so one list of fields drives both directions.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "meganeura/shape.h"

namespace meganeura::archive {

uint64_t checksum(std::span<const std::byte> bytes);

class Writer {
 public:
  template <std::integral T>
  void number(const T& value) {
    auto bits = static_cast<std::make_unsigned_t<T>>(value);
    for (size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::byte>(bits & 0xff));
      bits = static_cast<std::make_unsigned_t<T>>(uint64_t{bits} >> 8);
    }
  }
  void boolean(const bool& value) { number(static_cast<uint8_t>(value)); }
  // An enumerator up to and including `last`.
  template <class E>
  void enumerator(const E& value, E) {
    number(static_cast<uint32_t>(value));
  }
  void text(const std::string& value);
  void shape(const Shape& value);
  void words(const std::vector<uint32_t>& value);
  template <class T, class Fields>
  void list(const std::vector<T>& values, const Fields& fields) {
    number(static_cast<uint64_t>(values.size()));
    for (const T& value : values) fields(*this, value);
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Throws Error(kFile) where the bytes end early or hold an impossible value; never allocates more
// than in proportion to the bytes given.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  template <std::integral T>
  void number(T& value) {
    uint64_t bits = 0;
    const std::span<const std::byte> taken = take(sizeof(T));
    for (size_t i = 0; i < sizeof(T); ++i) bits |= std::to_integer<uint64_t>(taken[i]) << (8 * i);
    value = static_cast<T>(bits);
  }
  void boolean(bool& value);
  template <class E>
  void enumerator(E& value, E last) {
    uint32_t bits = 0;
    number(bits);
    if (bits > static_cast<uint32_t>(last)) refuse(cat("an enumerator of ", bits));
    value = static_cast<E>(bits);
  }
  void text(std::string& value);
  void shape(Shape& value);
  void words(std::vector<uint32_t>& value);
  template <class T, class Fields>
  void list(std::vector<T>& values, const Fields& fields) {
    const uint64_t count = length(1);
    values.clear();
    for (uint64_t i = 0; i < count; ++i) fields(*this, values.emplace_back());
  }
  // Every byte must have been read.
  void finish() const;

 private:
  std::span<const std::byte> take(uint64_t count);
  // A count of things of at least `each` bytes that the rest can hold.
  uint64_t length(uint64_t each);
  [[noreturn]] void refuse(const std::string& found) const;

  std::span<const std::byte> bytes_;
  std::string_view what_;
};

}  // namespace meganeura::archive
