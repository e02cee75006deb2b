// Clipping and accumulation.
#include "base/check.h"
#include "graph/node.h"
#include "meganeura/ops.h"
#include "meganeura/optim.h"
#include "optim/states.h"

namespace meganeura {
namespace {

Tensor widened(Tensor x) { return x.dtype() == f32 ? x : cast(x, f32); }
Tensor narrowed(Tensor x, DType dtype) { return dtype == f32 ? x : cast(x, dtype); }

}  // namespace

ClippedGradients clip_global_norm(std::span<const Tensor> gradients, double max_norm, Place place) {
  if (!(max_norm > 0.0)) {
    fail(ErrorKind::kInvalidArgument, "The clipping at ", to_string(place),
         " got the largest norm ", max_norm, "; it must be above 0.");
  }
  if (gradients.empty()) {
    fail(ErrorKind::kInvalidArgument, "The clipping at ", to_string(place),
         " got no gradients. Give at least one tensor.");
  }
  const PlaceScope scope(gradients[0].graph(), place);
  Tensor squares;
  for (Tensor gradient : gradients) {
    const Tensor wide = widened(gradient);
    const Tensor part = sum(wide * wide);
    squares = squares ? squares + part : part;
  }
  ClippedGradients result;
  result.norm = sqrt(squares);
  const Tensor ratio = max_norm / (result.norm + 1e-6);
  const Tensor scale = minimum(ratio, ratio.graph().scalar(1.0));
  for (Tensor gradient : gradients) {
    result.gradients.push_back(narrowed(widened(gradient) * scale, gradient.dtype()));
  }
  return result;
}

GradientAccumulation accumulate_gradients(Graph& graph, std::span<const Tensor> parameters,
                                          std::span<const Tensor> gradients, int64_t count,
                                          Place place) {
  if (count < 1) {
    fail(ErrorKind::kInvalidArgument, "The accumulation at ", to_string(place), " got the count ",
         count, "; an update needs the gradients of at least one run.");
  }
  check_pairs(graph, parameters, gradients, place);
  const PlaceScope scope(graph, place);
  GradientAccumulation result;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor total = slot_state(graph, parameters[i], "accumulator", place);
    const Tensor zeros = broadcast_to(graph.scalar(0.0), total.shape());
    const Tensor average = total / static_cast<double>(count);
    result.accumulate.push_back(assign(total, total + widened(gradients[i])));
    result.gradients.push_back(narrowed(average, gradients[i].dtype()));
    result.reset.push_back(assign(total, zeros));
  }
  return result;
}

}  // namespace meganeura
