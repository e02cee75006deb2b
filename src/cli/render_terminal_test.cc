#include "cli/render_terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

namespace meganeura::cli {
namespace {

TEST(Terminal, PaintsOnlyWhereColoursAreWelcome) {
  Terminal terminal;
  EXPECT_EQ(paint(terminal, Color::kRed, "x"), "x");
  terminal.color = true;
  EXPECT_EQ(paint(terminal, Color::kRed, "x"), "\x1b[31mx\x1b[0m");
}

TEST(Terminal, AFileGetsPlainText) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const Terminal terminal = Terminal::of(file);
  EXPECT_FALSE(terminal.interactive);
  EXPECT_FALSE(terminal.color);
  EXPECT_GT(terminal.columns, 0);
  std::fclose(file);
}

TEST(Terminal, ReadsColumnsAndEncodingFromTheEnvironment) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  setenv("COLUMNS", "123", 1);
  setenv("LC_ALL", "de_DE.UTF-8", 1);
  EXPECT_EQ(Terminal::of(file).columns, 123);
  EXPECT_TRUE(Terminal::of(file).unicode);
  setenv("COLUMNS", "-5", 1);
  setenv("LC_ALL", "C", 1);
  EXPECT_EQ(Terminal::of(file).columns, 80);
  EXPECT_FALSE(Terminal::of(file).unicode);
  unsetenv("COLUMNS");
  unsetenv("LC_ALL");
  std::fclose(file);
}

TEST(DisplayWidth, CountsCharactersWithoutColours) {
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("█é"), 2);
  EXPECT_EQ(display_width("\x1b[38;2;1;1;1m▀\x1b[0m"), 1);
  EXPECT_EQ(display_width("\x1b[31"), 0);
}

TEST(Clip, NeverSplitsACharacter) {
  EXPECT_EQ(clip("éab", 2), "éa");
  EXPECT_EQ(clip("█████", 3), "███");
  EXPECT_EQ(clip("ab", 5), "ab");
  EXPECT_EQ(clip("ab", 0), "");
}

TEST(Pad, CountsColumnsNotBytes) {
  EXPECT_EQ(pad_left("é", 3), "  é");
  EXPECT_EQ(pad_right("█", 2), "█ ");
  EXPECT_EQ(pad_right("long", 2), "long");
}

TEST(Bar, FillsItsShare) {
  EXPECT_EQ(bar(0.5, 4, false), "##  ");
  EXPECT_EQ(bar(0.0, 3, true), "   ");
  EXPECT_EQ(bar(1.0, 3, true), "███");
  EXPECT_EQ(bar(0.5, 3, true), "█▌ ");
  EXPECT_EQ(bar(7.0, 2, false), "##");
  EXPECT_EQ(bar(-1.0, 2, false), "  ");
  EXPECT_EQ(bar(std::numeric_limits<double>::quiet_NaN(), 2, false), "  ");
}

TEST(Format, Counts) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_count(-100), "-100");
  EXPECT_EQ(format_count(INT64_MIN), "-9,223,372,036,854,775,808");
}

TEST(Format, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(1048575), "1.0 MiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16.0 EiB");
}

TEST(Format, Seconds) {
  EXPECT_EQ(format_seconds(0.00042), "420 us");
  EXPECT_EQ(format_seconds(0.0123), "12.3 ms");
  EXPECT_EQ(format_seconds(3.2), "3.20 s");
  EXPECT_EQ(format_seconds(59.999), "1:00");
  EXPECT_EQ(format_seconds(75), "1:15");
  EXPECT_EQ(format_seconds(3599.7), "1:00:00");
  EXPECT_EQ(format_seconds(3700), "1:01:40");
  EXPECT_EQ(format_seconds(-1), "-");
  EXPECT_EQ(format_seconds(std::numeric_limits<double>::infinity()), "-");
}

}  // namespace
}  // namespace meganeura::cli
