// Conversions between f32 and the 16-bit storage formats, by bits: round to nearest even, overflow
// to infinity, denormals kept, NaN stays NaN (quiet, with its sign).
#pragma once

#include <cstdint>

namespace meganeura::scalar {

uint16_t f16_from_f32(float value);
float f32_from_f16(uint16_t bits);
uint16_t bf16_from_f32(float value);
float f32_from_bf16(uint16_t bits);

inline float round_f16(float value) { return f32_from_f16(f16_from_f32(value)); }
inline float round_bf16(float value) { return f32_from_bf16(bf16_from_f32(value)); }

}  // namespace meganeura::scalar
