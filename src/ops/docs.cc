#include "ops/docs.h"

#include "base/format.h"
#include "ops/rows.h"

namespace meganeura {
namespace {

constexpr std::string_view kTypes[] = {"bool", "int", "float", "string", "ints", "dtype", "data"};

std::string operands_text(const OpRow& row) {
  if (row.max_operands < 0) return cat(row.min_operands, " or more");
  if (row.min_operands == row.max_operands) return cat(row.min_operands);
  return cat(row.min_operands, " to ", row.max_operands);
}

std::string attributes_text(const OpRow& row) {
  std::vector<std::string> parts;
  for (const AttributeField& field : row.fields) {
    parts.push_back(cat("`", field.name, "`: ", kTypes[static_cast<size_t>(field.type)]));
  }
  return join(parts);
}

std::string_view gradient_text(const OpRow& row) {
  switch (row.differentiability) {
    case Differentiability::kRule:
      return "rule";
    case Differentiability::kZero:
      return "zero";
    case Differentiability::kMissing:
      return "none";
  }
  return "";
}

}  // namespace

std::string ops_markdown() {
  std::string out =
      "# Ops\n\n"
      "Gradient: *rule*, *zero* (constant almost everywhere, or a leaf), or *none* (an error on "
      "the "
      "way from a loss to what is differentiated).\n\n"
      "| Op | Operands | Attributes | Gradient | Meaning |\n"
      "|---|---|---|---|---|\n";
  for (const OpRow* row : op_rows()) {
    out += cat("| `", row->name, "` | ", operands_text(*row), " | ", attributes_text(*row), " | ",
               gradient_text(*row), " | ", row->doc, " |\n");
  }
  return out;
}

}  // namespace meganeura
