#include "graph/elements_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/format.h"
#include "graph/values.h"

namespace meganeura {
namespace {

constexpr std::string_view kNanBits = "nan:0x";

template <class T>
std::optional<T> parse_whole(std::string_view text, int base = 10) {
  T value{};
  std::from_chars_result result{};
  if constexpr (std::is_floating_point_v<T>) {
    result = std::from_chars(text.data(), text.data() + text.size(), value);
  } else {
    result = std::from_chars(text.data(), text.data() + text.size(), value, base);
  }
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

uint64_t bits_of(std::span<const std::byte> bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  return bits;
}

void append_bits(uint64_t bits, size_t width, std::vector<std::byte>& out) {
  const auto* first = reinterpret_cast<const std::byte*>(&bits);
  out.insert(out.end(), first, first + width);
}

std::string nan_text(DType dtype, std::span<const std::byte> bytes) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::byte> usual = encode_values(dtype, std::span(&nan, 1));
  if (std::equal(usual.begin(), usual.end(), bytes.begin())) return "nan";
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, bits_of(bytes), 16).ptr;
  return cat(kNanBits, std::string_view(digits, static_cast<size_t>(end - digits)));
}

bool append_nan_bits(DType dtype, std::string_view digits, std::vector<std::byte>& out) {
  const auto bits = parse_whole<uint64_t>(digits, 16);
  const uint32_t width = info(dtype).bits;
  if (!bits || (width < 64 && (*bits >> width) != 0)) return false;
  append_bits(*bits, width / 8, out);
  const auto bytes = std::span(out).last(width / 8);
  return std::isnan(decode_values(dtype, bytes)[0]);
}

// By way of f64, which holds every number that the text of a narrower float spells.
bool append_float(DType dtype, std::string_view text, std::vector<std::byte>& out) {
  const auto value = number_from_text(text);
  if (!value) return false;
  if (std::isfinite(*value) && !std::isfinite(as_stored(dtype, *value))) return false;
  const std::vector<std::byte> bytes = encode_values(dtype, std::span(&*value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
  return true;
}

bool append_integer(DType dtype, std::string_view text, std::vector<std::byte>& out) {
  const auto value = parse_whole<int64_t>(text);
  if (!value) return false;
  const uint32_t bits = info(dtype).bits;
  if (dtype == DType::kBool && (*value < 0 || *value > 1)) return false;
  if (dtype != DType::kI64 &&
      as_stored(dtype, static_cast<double>(*value)) != static_cast<double>(*value)) {
    return false;
  }
  append_bits(static_cast<uint64_t>(*value), bits / 8, out);
  return true;
}

}  // namespace

std::optional<double> number_from_text(std::string_view text) { return parse_whole<double>(text); }

std::string element_text(DType dtype, std::span<const std::byte> bytes) {
  if (dtype == DType::kI64) return cat(static_cast<int64_t>(bits_of(bytes)));
  const double value = decode_values(dtype, bytes)[0];
  if (!is_float(dtype)) return cat(static_cast<int64_t>(value));
  if (std::isnan(value)) return nan_text(dtype, bytes);
  return dtype == DType::kF64 ? cat(value) : cat(static_cast<float>(value));
}

bool append_element(DType dtype, std::string_view text, std::vector<std::byte>& out) {
  if (!is_float(dtype)) return append_integer(dtype, text, out);
  if (text.starts_with(kNanBits)) {
    return append_nan_bits(dtype, text.substr(kNanBits.size()), out);
  }
  return append_float(dtype, text, out);
}

}  // namespace meganeura
