#include "ops/rows.h"

#include <map>

#include "meganeura/ops.h"

namespace meganeura {

std::vector<const OpRow*> op_rows() {
  std::vector<const OpRow*> rows;
  for (const std::span<const OpRow> family :
       {leaf_rows(), ops::pointwise_rows(), ops::random_rows(), ops::reduce_rows(),
        ops::contract_rows(), ops::layout_rows(), ops::window_rows(), ops::indexed_rows(),
        ops::persistent_rows()}) {
    for (const OpRow& row : family) rows.push_back(&row);
  }
  return rows;
}

const OpRow* find_op(std::string_view name) {
  static const std::map<std::string_view, const OpRow*> index = [] {
    std::map<std::string_view, const OpRow*> by_name;
    for (const OpRow* row : op_rows()) by_name.emplace(row->name, row);
    return by_name;
  }();
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

GraphAndOutputs parse_graph(std::string_view text) {
  ParsedGraph parsed = parse_graph(text, find_op);
  return {std::move(parsed.graph), std::move(parsed.outputs)};
}

}  // namespace meganeura
