// For tests: what the Khronos validator says of a module. Link mg_spirv_validate.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace meganeura {

struct SpirvVerdict {
  bool available = false;  // false: built without SPIRV-Tools, nothing was checked
  bool valid = false;
  std::string message;  // the validator's words, or why it is not available
};

// Checks for Vulkan 1.2.
SpirvVerdict validate_spirv(std::span<const uint32_t> words);
// The module as assembly text without a header; empty when SPIRV-Tools is not available.
std::string spirv_assembly(std::span<const uint32_t> words);

}  // namespace meganeura
