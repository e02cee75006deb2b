#include "emit/spirv/validate.h"

#ifdef MEGANEURA_HAVE_SPIRV_TOOLS
#include <spirv-tools/libspirv.hpp>
#endif

namespace meganeura {

#ifdef MEGANEURA_HAVE_SPIRV_TOOLS

SpirvVerdict validate_spirv(std::span<const uint32_t> words) {
  SpirvVerdict verdict{.available = true};
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  tools.SetMessageConsumer(
      [&](spv_message_level_t, const char*, const spv_position_t& position, const char* message) {
        verdict.message += "word " + std::to_string(position.index) + ": " + message + "\n";
      });
  verdict.valid = tools.Validate(words.data(), words.size());
  return verdict;
}

std::string spirv_assembly(std::span<const uint32_t> words) {
  std::string text;
  const spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  const bool readable =
      tools.Disassemble(words.data(), words.size(), &text, SPV_BINARY_TO_TEXT_OPTION_NO_HEADER);
  return readable ? text : "not a SPIR-V module";
}

#else

SpirvVerdict validate_spirv(std::span<const uint32_t>) {
  return {.message = "SPIRV-Tools was not found when this was built; nothing was validated."};
}

std::string spirv_assembly(std::span<const uint32_t>) { return {}; }

#endif

}  // namespace meganeura
