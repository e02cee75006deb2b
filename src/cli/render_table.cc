#include "cli/render_table.h"

#include <algorithm>

#include "base/check.h"

namespace meganeura::cli {

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  MG_CHECK(!columns_.empty(), "A table has no columns.");
}

void Table::add_row(std::vector<std::string> cells) {
  MG_CHECK(cells.size() == columns_.size(), "A row of ", cells.size(), " cells does not fit ",
           columns_.size(), " columns.");
  rows_.push_back(std::move(cells));
}

void Table::add_rule() { rows_.emplace_back(); }

std::string Table::to_text(const Terminal& terminal) const {
  std::vector<int> widths;
  bool has_units = false;
  for (const Column& column : columns_) {
    widths.push_back(std::max(display_width(column.title), display_width(column.unit)));
    has_units = has_units || !column.unit.empty();
  }
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }

  std::string out;
  const auto put = [&](std::string line, bool bold) {
    line = clip(line, std::max(1, terminal.columns));
    line.erase(line.find_last_not_of(' ') + 1);
    out += bold ? paint(terminal, Color::kBold, line) : line;
    out += '\n';
  };
  const auto put_cells = [&](auto cell_of, bool bold) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      if (i > 0) line += "  ";
      line += columns_[i].align == Align::kRight ? pad_left(cell, widths[i])
                                                 : pad_right(cell, widths[i]);
    }
    put(std::move(line), bold);
  };
  const auto put_rule = [&] {
    std::string line;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (i > 0) line += "  ";
      for (int column = 0; column < widths[i]; ++column) line += terminal.unicode ? "─" : "-";
    }
    put(std::move(line), false);
  };

  put_cells([&](size_t i) -> const std::string& { return columns_[i].title; }, true);
  if (has_units) put_cells([&](size_t i) -> const std::string& { return columns_[i].unit; }, false);
  put_rule();
  for (const auto& row : rows_) {
    if (row.empty()) {
      put_rule();
    } else {
      put_cells([&](size_t i) -> const std::string& { return row[i]; }, false);
    }
  }
  return out;
}

}  // namespace meganeura::cli
