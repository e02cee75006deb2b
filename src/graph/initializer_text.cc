#include "base/check.h"
#include "graph/elements_text.h"
#include "meganeura/graph.h"

namespace meganeura {
namespace {

struct KindRow {
  Initializer::Kind kind;
  std::string_view name;
  int numbers;  // in parentheses after the name
};

constexpr KindRow kKinds[] = {
    {Initializer::Kind::kZeros, "zeros", 0},       {Initializer::Kind::kOnes, "ones", 0},
    {Initializer::Kind::kConstant, "constant", 1}, {Initializer::Kind::kUniform, "uniform", 2},
    {Initializer::Kind::kNormal, "normal", 2},
};

[[noreturn]] void refuse(std::string_view text) {
  fail(ErrorKind::kInvalidArgument, "\"", text,
       "\" is no initializer. Write zeros, ones, constant(c), uniform(low, high) or "
       "normal(mean, deviation).");
}

std::string_view trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string Initializer::to_string() const {
  const KindRow& row = kKinds[static_cast<size_t>(kind)];
  if (row.numbers == 0) return std::string(row.name);
  return row.numbers == 1 ? cat(row.name, "(", a, ")") : cat(row.name, "(", a, ", ", b, ")");
}

Initializer Initializer::parse(std::string_view text) {
  const size_t open = text.find('(');
  const std::string_view name = text.substr(0, open);
  for (const KindRow& row : kKinds) {
    if (row.name != name) continue;
    Initializer result{row.kind, 0.0, 0.0};
    if ((open != std::string_view::npos) != (row.numbers > 0)) refuse(text);
    if (row.numbers == 0) return result;
    if (!text.ends_with(')')) refuse(text);
    const std::string_view inner = text.substr(open + 1, text.size() - open - 2);
    const size_t comma = inner.find(',');
    if ((comma != std::string_view::npos) != (row.numbers == 2)) refuse(text);
    const auto first = number_from_text(trim(inner.substr(0, comma)));
    const auto second =
        row.numbers == 2 ? number_from_text(trim(inner.substr(comma + 1))) : std::optional(0.0);
    if (!first || !second) refuse(text);
    result.a = *first;
    result.b = *second;
    return result;
  }
  refuse(text);
}

}  // namespace meganeura
