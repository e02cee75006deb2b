#include "graph/values.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace meganeura {
namespace {

static_assert(std::numeric_limits<float>::is_iec559, "f32 conversions must round and overflow");

// An IEEE 754 binary format that is narrower than f32.
struct FloatFormat {
  int precision;     // bits of the significand with the hidden one
  int min_exponent;  // of the smallest normal number
  int max_exponent;  // of the largest finite number
};

constexpr FloatFormat kF16Format = {11, -14, 15};
constexpr FloatFormat kBF16Format = {8, -126, 127};

double round_float(double value, const FloatFormat& format) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  int exponent = std::ilogb(value);
  if (exponent < format.min_exponent) exponent = format.min_exponent;
  const int last_place = exponent - (format.precision - 1);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -last_place)), last_place);
  if (std::abs(rounded) >= std::ldexp(1.0, format.max_exponent + 1)) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return rounded;
}

double wrap_integer(double value, uint32_t bits, bool is_signed) {
  if (!std::isfinite(value)) return 0.0;
  const double modulus = std::ldexp(1.0, static_cast<int>(bits));
  double wrapped = std::fmod(std::trunc(value), modulus);
  if (wrapped < 0) wrapped += modulus;
  if (is_signed && wrapped >= modulus / 2) wrapped -= modulus;
  return wrapped == 0.0 ? 0.0 : wrapped;
}

// The upper half of the f32 that a bf16 widens to, or the f16 pattern, of an already rounded value.
uint16_t half_bits(DType dtype, double value) {
  const auto narrow = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &narrow, sizeof bits);
  if (dtype == DType::kBF16) {
    return static_cast<uint16_t>(std::isnan(value) ? (bits >> 16) | 0x40u : bits >> 16);
  }
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  if (std::isnan(value)) return sign | 0x7e00u;
  if (std::isinf(value)) return sign | 0x7c00u;
  if (value == 0.0) return sign;
  const double magnitude = std::abs(value);
  const int exponent = std::ilogb(magnitude);
  if (exponent < kF16Format.min_exponent) {
    return sign | static_cast<uint16_t>(std::ldexp(magnitude, 24));
  }
  const auto significand = static_cast<uint16_t>(std::ldexp(magnitude, 10 - exponent));
  return static_cast<uint16_t>(sign | ((exponent + 15) << 10) | (significand & 0x3ffu));
}

double half_value(DType dtype, uint16_t bits) {
  if (dtype == DType::kBF16) {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value = 0;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
  const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  if (exponent == 0x1f) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

template <class T>
void put(std::byte* out, double value) {
  const auto narrow = static_cast<T>(value);
  std::memcpy(out, &narrow, sizeof narrow);
}

template <class T>
double take(const std::byte* in) {
  T value{};
  std::memcpy(&value, in, sizeof value);
  return static_cast<double>(value);
}

int64_t to_i64(double value) {
  constexpr double kLimit = 9223372036854775808.0;
  if (value >= kLimit) return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(value);
}

void put_value(DType dtype, std::byte* out, double value) {
  switch (dtype) {
    case DType::kF32:
      return put<float>(out, value);
    case DType::kF64:
      return put<double>(out, value);
    case DType::kI8:
      return put<int8_t>(out, value);
    case DType::kBool:
    case DType::kU8:
      return put<uint8_t>(out, value);
    case DType::kI16:
      return put<int16_t>(out, value);
    case DType::kI32:
      return put<int32_t>(out, value);
    case DType::kU32:
      return put<uint32_t>(out, value);
    case DType::kF16:
    case DType::kBF16: {
      const uint16_t bits = half_bits(dtype, value);
      std::memcpy(out, &bits, sizeof bits);
      return;
    }
    case DType::kI64: {
      const int64_t wide = to_i64(value);
      std::memcpy(out, &wide, sizeof wide);
      return;
    }
  }
}

double take_value(DType dtype, const std::byte* in) {
  switch (dtype) {
    case DType::kF32:
      return take<float>(in);
    case DType::kF64:
      return take<double>(in);
    case DType::kI8:
      return take<int8_t>(in);
    case DType::kBool:
      return take<uint8_t>(in) != 0 ? 1.0 : 0.0;
    case DType::kU8:
      return take<uint8_t>(in);
    case DType::kI16:
      return take<int16_t>(in);
    case DType::kI32:
      return take<int32_t>(in);
    case DType::kU32:
      return take<uint32_t>(in);
    case DType::kI64:
      return take<int64_t>(in);
    case DType::kF16:
    case DType::kBF16: {
      uint16_t bits = 0;
      std::memcpy(&bits, in, sizeof bits);
      return half_value(dtype, bits);
    }
  }
  return 0.0;
}

size_t element_bytes(DType dtype) {
  const DTypeInfo& row = info(dtype);
  MG_CHECK(row.block_elements == 1, "values of the block dtype ", dtype, " have no own storage");
  return row.block_bytes;
}

}  // namespace

double as_stored(DType dtype, double value) {
  switch (dtype) {
    case DType::kF64:
      return value;
    case DType::kF32:
      return static_cast<double>(static_cast<float>(value));
    case DType::kF16:
      return round_float(value, kF16Format);
    case DType::kBF16:
      return round_float(value, kBF16Format);
    case DType::kBool:
      return value != 0.0 ? 1.0 : 0.0;
    default:
      return wrap_integer(value, info(dtype).bits, is_signed(dtype));
  }
}

std::vector<std::byte> encode_values(DType dtype, std::span<const double> values) {
  const size_t width = element_bytes(dtype);
  std::vector<std::byte> bytes(values.size() * width);
  for (size_t i = 0; i < values.size(); ++i) {
    put_value(dtype, bytes.data() + i * width, as_stored(dtype, values[i]));
  }
  return bytes;
}

std::vector<double> decode_values(DType dtype, std::span<const std::byte> bytes) {
  const size_t width = element_bytes(dtype);
  MG_CHECK(bytes.size() % width == 0, bytes.size(), " bytes are no whole number of ", dtype);
  std::vector<double> values(bytes.size() / width);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = take_value(dtype, bytes.data() + i * width);
  }
  return values;
}

}  // namespace meganeura
