// What reader and writer of safetensors agree on.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace meganeura::safetensors {

static_assert(std::endian::native == std::endian::little,
              "tensors are copied as they are in memory, and files are little-endian");

// The header's length stands before it as a little-endian u64.
inline constexpr size_t kLengthBytes = 8;
// The format's own limit; it keeps a damaged length from costing memory.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;
// Headers are padded with spaces so that the data starts aligned.
inline constexpr size_t kAlignment = 8;
inline constexpr std::string_view kMetadataKey = "__metadata__";

}  // namespace meganeura::safetensors
