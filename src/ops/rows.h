// The table of ops.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/node.h"

namespace meganeura {

// Every row, leaves first, then family by family.
std::vector<const OpRow*> op_rows();

// The row of that name, or null.
const OpRow* find_op(std::string_view name);

namespace ops {

// The families.
std::span<const OpRow> pointwise_rows();
std::span<const OpRow> random_rows();
std::span<const OpRow> reduce_rows();
std::span<const OpRow> contract_rows();
std::span<const OpRow> layout_rows();
std::span<const OpRow> window_rows();
std::span<const OpRow> indexed_rows();
std::span<const OpRow> persistent_rows();

}  // namespace ops
}  // namespace meganeura
