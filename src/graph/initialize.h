// First values of parameters and states, drawn on the host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "meganeura/graph.h"

namespace meganeura {

// Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// FNV-1a, 64 bits.
uint64_t fnv1a(std::string_view text);

// The first value of the leaf `name`, row-major, each element as the dtype stores it: a function of
// the arguments alone. Philox with key `seed` and counter (block, FNV-1a of the name). Uniform
// numbers have 53 random bits before they round to the dtype; normal ones are Box and Muller's.
// Error(kInvalidArgument) when the initializer makes no sense for the dtype or its range is empty.
std::vector<double> initial_value(std::string_view name, const Shape& shape, DType dtype,
                                  const Initializer& initializer, uint64_t seed);

// The same as dense storage.
std::vector<std::byte> initial_bytes(std::string_view name, const Shape& shape, DType dtype,
                                     const Initializer& initializer, uint64_t seed);

}  // namespace meganeura
