// String building without iostreams.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "meganeura/dtype.h"
#include "meganeura/shape.h"

namespace meganeura {

inline void append_to(std::string& out, std::string_view text) { out += text; }
inline void append_to(std::string& out, const char* text) { out += text; }
inline void append_to(std::string& out, const std::string& text) { out += text; }
inline void append_to(std::string& out, char c) { out += c; }
inline void append_to(std::string& out, bool value) { out += value ? "true" : "false"; }
inline void append_to(std::string& out, DType dtype) { out += info(dtype).name; }
inline void append_to(std::string& out, const Shape& shape) { out += shape.to_string(); }

// Integers in decimal; floating-point numbers in the shortest form that reads back the same.
template <class T>
requires(std::is_arithmetic_v<T> && !std::same_as<T, char> &&
         !std::same_as<T, bool>) void append_to(std::string& out, T value) {
  std::array<char, 64> buffer;
  auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out.append(buffer.data(), result.ptr);
}

// Concatenates the parts: cat("axis ", 3, " of ", shape).
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  (append_to(out, parts), ...);
  return out;
}

// "a, b, c" of any range whose elements append_to accepts.
template <class Range>
std::string join(const Range& range, std::string_view separator = ", ") {
  std::string out;
  bool first = true;
  for (const auto& item : range) {
    if (!first) out += separator;
    first = false;
    append_to(out, item);
  }
  return out;
}

}  // namespace meganeura
