// What a terminal can show, and text measured and coloured for it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace meganeura::cli {

struct Terminal {
  bool interactive = false;  // lines can be overwritten
  bool color = false;        // ANSI colours are welcome
  bool unicode = false;      // block characters come out right
  int columns = 80;

  // Asks the stream and the environment: NO_COLOR, TERM=dumb, COLUMNS, LC_ALL, LC_CTYPE, LANG.
  static Terminal of(std::FILE* stream);
};

enum class Color { kDim, kBold, kRed, kGreen, kYellow, kCyan };

// The text in that colour, or as it is where colours are not welcome.
std::string paint(const Terminal& terminal, Color color, std::string_view text);

// Columns that UTF-8 text takes: its code points, without ANSI colour sequences.
int display_width(std::string_view text);
// At most so many columns of the text, which must not hold colour sequences.
std::string clip(std::string_view text, int columns);
// The text with spaces on the left or the right up to so many columns.
std::string pad_left(std::string_view text, int columns);
std::string pad_right(std::string_view text, int columns);
// `fraction` (0 to 1, clamped) of so many columns as a bar; eighths of a column with unicode.
std::string bar(double fraction, int columns, bool unicode);

// 1234567 -> "1,234,567".
std::string format_count(int64_t value);
// 1536 -> "1.5 KiB"; below 1024 "512 B".
std::string format_bytes(uint64_t bytes);
// 0.00042 -> "420 us", 3.2 -> "3.20 s", 75 -> "1:15", 3700 -> "1:01:40"; "-" unless finite.
std::string format_seconds(double seconds);

}  // namespace meganeura::cli
