#include "base/check.h"
#include "meganeura/models.h"
#include "meganeura/ops.h"

namespace meganeura::models {

Mlp::Mlp(Graph& graph, const std::string& prefix, std::span<const int64_t> widths, Place place) {
  if (widths.size() < 2) {
    fail(ErrorKind::kInvalidArgument, "The perceptron \"", prefix, "\" has ", widths.size(),
         " widths; name at least those of its input and its output.");
  }
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    layers.emplace_back(graph, cat(prefix, ".", 2 * i), widths[i], widths[i + 1], true, place);
  }
}

Tensor Mlp::operator()(Operand x) const {
  Tensor value = flatten(x, 1);
  for (size_t i = 0; i < layers.size(); ++i) {
    value = layers[i](value);
    if (i + 1 < layers.size()) value = relu(value);
  }
  return value;
}

}  // namespace meganeura::models
