#include "meganeura/dtype.h"

#include <algorithm>
#include <array>

namespace meganeura {
namespace {

constexpr std::array<DTypeInfo, 11> kDTypes = {{
    {DType::kF32, "f32", "F32", NumberClass::kFloat, 32, 1, 4, true},
    {DType::kF16, "f16", "F16", NumberClass::kFloat, 16, 1, 2, true},
    {DType::kBF16, "bf16", "BF16", NumberClass::kFloat, 16, 1, 2, true},
    {DType::kF64, "f64", "F64", NumberClass::kFloat, 64, 1, 8, false},
    {DType::kI8, "i8", "I8", NumberClass::kSigned, 8, 1, 1, true},
    {DType::kU8, "u8", "U8", NumberClass::kUnsigned, 8, 1, 1, true},
    {DType::kI16, "i16", "I16", NumberClass::kSigned, 16, 1, 2, true},
    {DType::kI32, "i32", "I32", NumberClass::kSigned, 32, 1, 4, true},
    {DType::kU32, "u32", "U32", NumberClass::kUnsigned, 32, 1, 4, true},
    {DType::kI64, "i64", "I64", NumberClass::kSigned, 64, 1, 8, false},
    {DType::kBool, "bool", "BOOL", NumberClass::kBool, 8, 1, 1, true},
}};

template <auto Member>
std::optional<DType> find_by(std::string_view name) {
  auto row = std::find_if(kDTypes.begin(), kDTypes.end(),
                          [&](const DTypeInfo& r) { return r.*Member == name; });
  if (row == kDTypes.end()) return std::nullopt;
  return row->dtype;
}

}  // namespace

const DTypeInfo& info(DType dtype) { return kDTypes.at(static_cast<size_t>(dtype)); }

std::optional<DType> dtype_from_name(std::string_view name) {
  return find_by<&DTypeInfo::name>(name);
}

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  return find_by<&DTypeInfo::safetensors>(name);
}

}  // namespace meganeura
