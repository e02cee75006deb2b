// Element types of tensors, as one table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "meganeura/export.h"

namespace meganeura {

enum class DType : uint8_t { kF32, kF16, kBF16, kF64, kI8, kU8, kI16, kI32, kU32, kI64, kBool };

inline constexpr DType f32 = DType::kF32;
inline constexpr DType f16 = DType::kF16;
inline constexpr DType bf16 = DType::kBF16;
inline constexpr DType f64 = DType::kF64;
inline constexpr DType i8 = DType::kI8;
inline constexpr DType u8 = DType::kU8;
inline constexpr DType i16 = DType::kI16;
inline constexpr DType i32 = DType::kI32;
inline constexpr DType u32 = DType::kU32;
inline constexpr DType i64 = DType::kI64;
inline constexpr DType boolean = DType::kBool;

enum class NumberClass : uint8_t { kFloat, kSigned, kUnsigned, kBool };

struct DTypeInfo {
  DType dtype;
  std::string_view name;         // as graphs print it: "f32", "bool"
  std::string_view safetensors;  // as safetensors headers spell it: "F32", "BOOL"
  NumberClass number_class;
  uint32_t bits;            // of one element in storage
  uint32_t block_elements;  // elements stored together (1 for plain types)
  uint32_t block_bytes;     // bytes of such a block
  bool computable;          // kernels can compute with it (after widening to 32 bits)
};

// The row of a dtype.
MEGANEURA_API const DTypeInfo& info(DType dtype);
// The dtype with that graph name ("f32"), or nothing.
MEGANEURA_API std::optional<DType> dtype_from_name(std::string_view name);
// The dtype with that safetensors name ("F32"), or nothing.
MEGANEURA_API std::optional<DType> dtype_from_safetensors(std::string_view name);

inline bool is_float(DType dtype) { return info(dtype).number_class == NumberClass::kFloat; }
inline bool is_signed(DType dtype) { return info(dtype).number_class == NumberClass::kSigned; }
inline bool is_unsigned(DType dtype) { return info(dtype).number_class == NumberClass::kUnsigned; }
inline bool is_integer(DType dtype) { return is_signed(dtype) || is_unsigned(dtype); }

}  // namespace meganeura
