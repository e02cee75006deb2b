#include "scalar/half.h"

#include <bit>
#include <cmath>

namespace meganeura::scalar {

uint16_t f16_from_f32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  uint32_t result;
  if (magnitude > 0x7f800000) {
    result = 0x7e00 | ((magnitude >> 13) & 0x1ff);
  } else if (magnitude >= 0x47800000) {  // 2^16 and more
    result = 0x7c00;
  } else if (magnitude < 0x38800000) {  // below 2^-14: counts of 2^-24
    const float units = std::bit_cast<float>(magnitude) * 0x1p24f;
    result = static_cast<uint32_t>(std::nearbyint(units));
  } else {
    const uint32_t odd = (magnitude >> 13) & 1;
    result = (magnitude - 0x38000000 + 0xfff + odd) >> 13;
  }
  return static_cast<uint16_t>(sign | result);
}

float f32_from_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  uint32_t result;
  if (magnitude < 0x400) {
    result = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  } else {
    result = (magnitude << 13) + (magnitude < 0x7c00 ? 0x38000000 : 0x70000000);
  }
  return std::bit_cast<float>(sign | result);
}

uint16_t bf16_from_f32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  const uint32_t odd = (bits >> 16) & 1;
  return static_cast<uint16_t>((bits + 0x7fff + odd) >> 16);
}

float f32_from_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace meganeura::scalar
