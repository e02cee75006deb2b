#include "cli/render_terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/platform_terminal.h"

namespace meganeura::cli {

namespace {

constexpr int kDefaultColumns = 80;

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool says_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = environment(name);
    if (value.empty()) continue;
    for (std::string_view spelling : {"UTF-8", "utf-8", "UTF8", "utf8"}) {
      if (value.find(spelling) != std::string_view::npos) return true;
    }
    return false;
  }
  return false;
}

int columns_of(std::FILE* stream) {
  if (const int columns = terminal_columns(stream); columns > 0) return columns;
  const std::string_view text = environment("COLUMNS");
  int columns = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), columns);
  return result.ec == std::errc() && columns > 0 ? columns : kDefaultColumns;
}

std::string_view code(Color color) {
  switch (color) {
    case Color::kDim:
      return "2";
    case Color::kBold:
      return "1";
    case Color::kRed:
      return "31";
    case Color::kGreen:
      return "32";
    case Color::kYellow:
      return "33";
    case Color::kCyan:
      return "36";
  }
  return "0";
}

// Whether the byte continues a UTF-8 character rather than starting one.
bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

Terminal Terminal::of(std::FILE* stream) {
  Terminal terminal;
  terminal.interactive = is_terminal(stream) && environment("TERM") != "dumb";
  terminal.color = terminal.interactive && environment("NO_COLOR").empty();
  terminal.unicode = says_utf8();
  terminal.columns = columns_of(stream);
  return terminal;
}

std::string paint(const Terminal& terminal, Color color, std::string_view text) {
  if (!terminal.color) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code(color), text);
}

int display_width(std::string_view text) {
  int width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size());
    } else if (!continues(text[i])) {
      ++width;
    }
  }
  return width;
}

std::string clip(std::string_view text, int columns) {
  size_t end = 0;
  for (int width = 0; end < text.size(); ++end) {
    if (!continues(text[end]) && ++width > columns) break;
  }
  return std::string(text.substr(0, end));
}

std::string pad_left(std::string_view text, int columns) {
  return std::string(static_cast<size_t>(std::max(0, columns - display_width(text))), ' ') +
         std::string(text);
}

std::string pad_right(std::string_view text, int columns) {
  return std::string(text) +
         std::string(static_cast<size_t>(std::max(0, columns - display_width(text))), ' ');
}

std::string bar(double fraction, int columns, bool unicode) {
  static constexpr std::array<std::string_view, 8> kEighths = {"",  "▏", "▎", "▍",
                                                               "▌", "▋", "▊", "▉"};
  fraction = fraction > 0.0 ? std::min(fraction, 1.0) : 0.0;
  const int steps = unicode ? 8 : 1;
  const int filled = static_cast<int>(std::lround(fraction * columns * steps));
  std::string out;
  for (int i = 0; i < filled / steps; ++i) out += unicode ? "█" : "#";
  if (unicode) out += kEighths[static_cast<size_t>(filled % steps)];
  return pad_right(out, columns);
}

std::string format_count(int64_t value) {
  std::string digits = fmt::format("{}", value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t place = digits.size(); place > first + 3;) {
    place -= 3;
    digits.insert(place, ",");
  }
  return digits;
}

std::string format_bytes(uint64_t bytes) {
  static constexpr std::array<std::string_view, 6> kUnits = {"KiB", "MiB", "GiB",
                                                             "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double amount = static_cast<double>(bytes) / 1024.0;
  size_t unit = 0;
  // 1023.95 would round to "1024.0".
  while (amount >= 1023.95 && unit + 1 < kUnits.size()) {
    amount /= 1024.0;
    ++unit;
  }
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0.0 || seconds > 1e9) return "-";
  if (seconds < 0.9995e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 59.995) return fmt::format("{:.2f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace meganeura::cli
