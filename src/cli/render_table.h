// Tables of text.
#pragma once

#include <string>
#include <vector>

#include "cli/render_terminal.h"

namespace meganeura::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  std::string unit;  // stands below the title when any column has one
  Align align = Align::kRight;
};

// Collects rows, then prints them with columns as wide as they need to be.
class Table {
 public:
  explicit Table(std::vector<Column> columns);
  // Error(kInternal) unless there is one cell per column.
  void add_row(std::vector<std::string> cells);
  // A line between the rows so far and the next.
  void add_rule();
  // Lines that end with '\n' and have no spaces before it; clipped to the terminal's width.
  std::string to_text(const Terminal& terminal) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace meganeura::cli
