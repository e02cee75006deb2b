#include "cli/render_digit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace meganeura::cli {

namespace {

constexpr int kBarColumns = 24;

// Characters from dark to bright.
constexpr std::array<std::string_view, 5> kShades = {" ", "░", "▒", "▓", "█"};
constexpr std::array<std::string_view, 10> kLetters = {" ", ".", ":", "-", "=",
                                                       "+", "*", "#", "%", "@"};

std::string_view shade(std::span<const std::string_view> shades, int level) {
  const size_t index = static_cast<size_t>(level) * shades.size() / 256;
  return shades[index];
}

std::vector<std::string> bars(std::span<const float> probabilities, std::optional<uint32_t> label,
                              const Terminal& terminal) {
  const auto best = std::max_element(probabilities.begin(), probabilities.end(),
                                     [](float a, float b) { return !(a >= b) && !std::isnan(b); });
  const auto winner = static_cast<size_t>(best - probabilities.begin());
  std::vector<std::string> lines;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const double p = probabilities[i];
    const std::string drawn = bar(std::isfinite(p) ? p : 0.0, kBarColumns, terminal.unicode);
    std::string line = fmt::format("{:2} {} {:>6.2f} %", i, drawn, p * 100.0);
    if (i == winner) line = paint(terminal, Color::kBold, line + "  <");
    if (label == i) line += paint(terminal, Color::kDim, i == winner ? " true" : "  true");
    lines.push_back(std::move(line));
  }
  if (!probabilities.empty()) {
    std::string verdict = fmt::format("predicted {}", winner);
    if (label) {
      const bool right = *label == winner;
      verdict += fmt::format(", true label {}: ", *label) +
                 paint(terminal, right ? Color::kGreen : Color::kRed, right ? "right" : "wrong");
    }
    lines.push_back("");
    lines.push_back(std::move(verdict));
  }
  return lines;
}

}  // namespace

std::vector<std::string> draw_image(std::span<const uint8_t> pixels, int width, int height,
                                    const Terminal& terminal) {
  MG_CHECK(width > 0 && height > 0 &&
               pixels.size() == static_cast<size_t>(width) * static_cast<size_t>(height),
           "An image of ", width, " x ", height, " pixels has ", pixels.size(), " bytes.");
  const auto pixel = [&](int x, int y) -> int {
    return y < height ? pixels[static_cast<size_t>(y) * static_cast<size_t>(width) +
                               static_cast<size_t>(x)]
                      : 0;
  };
  std::vector<std::string> lines;
  for (int y = 0; y < height; y += 2) {
    std::string line;
    for (int x = 0; x < width; ++x) {
      const int top = pixel(x, y);
      const int bottom = pixel(x, y + 1);
      if (terminal.color && terminal.unicode) {
        line += fmt::format("\x1b[38;2;{0};{0};{0};48;2;{1};{1};{1}m▀", top, bottom);
      } else if (terminal.unicode) {
        line += shade(kShades, (top + bottom) / 2);
      } else {
        line += shade(kLetters, (top + bottom) / 2);
      }
    }
    if (terminal.color && terminal.unicode) line += "\x1b[0m";
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string draw_prediction(std::span<const uint8_t> pixels, int width, int height,
                            std::span<const float> probabilities, std::optional<uint32_t> label,
                            const Terminal& terminal) {
  const std::vector<std::string> image = draw_image(pixels, width, height, terminal);
  const std::vector<std::string> text = bars(probabilities, label, terminal);
  int text_width = 0;
  for (const std::string& line : text) text_width = std::max(text_width, display_width(line));
  constexpr int kGap = 3;
  std::string out;
  if (width + kGap + text_width > terminal.columns) {
    for (const std::string& line : image) out += line + "\n";
    for (const std::string& line : text) out += line + "\n";
    return out;
  }
  for (size_t i = 0; i < std::max(image.size(), text.size()); ++i) {
    const std::string left = i < image.size() ? image[i] : "";
    const std::string right = i < text.size() ? text[i] : "";
    out += right.empty() ? left : pad_right(left, width + kGap) + right;
    out += '\n';
  }
  return out;
}

}  // namespace meganeura::cli
