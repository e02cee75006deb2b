// Small gray images in the terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/render_terminal.h"

namespace meganeura::cli {

// One line per two rows of pixels, each `width` columns wide: half blocks in 24-bit gray where
// colours are welcome, else shaded blocks or characters. 0 is black, 255 white.
std::vector<std::string> draw_image(std::span<const uint8_t> pixels, int width, int height,
                                    const Terminal& terminal);

// The image beside one bar per class, the likeliest marked, and whether it is the true `label`.
// Without room for both, the bars stand below. Probabilities that are not finite show no bar.
std::string draw_prediction(std::span<const uint8_t> pixels, int width, int height,
                            std::span<const float> probabilities, std::optional<uint32_t> label,
                            const Terminal& terminal);

}  // namespace meganeura::cli
