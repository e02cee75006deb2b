// Rows of the leaves.
#pragma once

#include "graph/node.h"

namespace meganeura {

// The row with that lowering, kInput to kConstant.
const OpRow& leaf_row(Lowering lowering);

// Error(kInvalidArgument) unless the parameter holds floats.
void check_trainable(const Node& node);

}  // namespace meganeura
