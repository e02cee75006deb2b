#include "cli/render_table.h"

#include <gtest/gtest.h>

#include "meganeura/error.h"

namespace meganeura::cli {
namespace {

Table kernels() {
  Table table({{"kernel", "", Align::kLeft}, {"time", "ms"}, {"rate", "GFLOP/s"}});
  table.add_row({"matmul", "1.25", "830"});
  table.add_row({"größe", "10.00", "7"});
  table.add_rule();
  table.add_row({"sum", "11.25", ""});
  return table;
}

TEST(Table, AlignsColumnsByWhatIsSeen) {
  EXPECT_EQ(kernels().to_text(Terminal{}),
            "kernel   time     rate\n"
            "           ms  GFLOP/s\n"
            "------  -----  -------\n"
            "matmul   1.25      830\n"
            "größe   10.00        7\n"
            "------  -----  -------\n"
            "sum     11.25\n");
}

TEST(Table, HasNoUnitLineWithoutUnits) {
  Table table({{"a", "", Align::kLeft}, {"b"}});
  table.add_row({"1", "22"});
  EXPECT_EQ(table.to_text(Terminal{.unicode = true}), "a   b\n─  ──\n1  22\n");
}

TEST(Table, StaysWithinTheTerminal) {
  EXPECT_EQ(kernels().to_text(Terminal{.columns = 10}),
            "kernel   t\n\n------  --\nmatmul   1\ngröße   10\n------  --\nsum     11\n");
}

TEST(Table, PaintsTitlesOnly) {
  Table table({{"a"}});
  table.add_row({"1"});
  EXPECT_EQ(table.to_text(Terminal{.color = true}), "\x1b[1ma\x1b[0m\n-\n1\n");
}

TEST(Table, RefusesRowsOfAnotherWidth) {
  Table table({{"a"}, {"b"}});
  EXPECT_THROW(table.add_row({"1"}), Error);
  EXPECT_THROW(Table({}), Error);
}

}  // namespace
}  // namespace meganeura::cli
