#include "meganeura/nn.h"

#include <cmath>

#include "base/check.h"
#include "meganeura/ops.h"

namespace meganeura::nn {
namespace {

// Applies an operand's place to what a layer builds.
Operand with_place(Tensor tensor, const Operand& call) {
  return Operand(tensor, call.place.file, call.place.line);
}

}  // namespace

Linear::Linear(Graph& graph, const std::string& prefix, int64_t in, int64_t out, bool with_bias,
               Place place) {
  const double bound = in > 0 ? 1.0 / std::sqrt(static_cast<double>(in)) : 1.0;
  const Initializer initializer = Initializer::uniform(-bound, bound);
  weight = graph.parameter(prefix + ".weight", f32, {out, in}, initializer, true, place);
  if (with_bias) bias = graph.parameter(prefix + ".bias", f32, {out}, initializer, true, place);
}

Tensor Linear::operator()(Operand x) const { return linear(x, with_place(weight, x), bias); }

Embedding::Embedding(Graph& graph, const std::string& prefix, int64_t count, int64_t width,
                     Place place)
    : weight(graph.parameter(prefix + ".weight", f32, {count, width}, Initializer::normal(0, 1),
                             true, place)) {}

Tensor Embedding::operator()(Operand indices) const {
  return embedding(with_place(weight, indices), indices);
}

LayerNorm::LayerNorm(Graph& graph, const std::string& prefix, const Shape& shape, double epsilon_,
                     Place place)
    : weight(graph.parameter(prefix + ".weight", f32, shape, Initializer::ones(), true, place)),
      bias(graph.parameter(prefix + ".bias", f32, shape, Initializer::zeros(), true, place)),
      epsilon(epsilon_) {}

Tensor LayerNorm::operator()(Operand x) const { return layer_norm(x, weight, bias, epsilon); }

RMSNorm::RMSNorm(Graph& graph, const std::string& prefix, const Shape& shape, double epsilon_,
                 Place place)
    : weight(graph.parameter(prefix + ".weight", f32, shape, Initializer::ones(), true, place)),
      epsilon(epsilon_) {}

Tensor RMSNorm::operator()(Operand x) const { return rms_norm(x, weight, epsilon); }

Dropout::Dropout(double probability_, int64_t stream_)
    : probability(probability_), stream(stream_) {
  if (probability >= 0.0 && probability < 1.0) return;
  fail(ErrorKind::kInvalidArgument, "A dropout probability of ", probability,
       " is impossible; it must lie in [0, 1).");
}

Tensor Dropout::operator()(Operand x, const Randomness& randomness) const {
  if (static_cast<bool>(randomness.seed) != static_cast<bool>(randomness.step)) {
    fail(ErrorKind::kInvalidArgument,
         "Dropout got a seed without a step, or a step without a seed. Give both for training and "
         "neither for evaluation.");
  }
  if (!randomness.seed || probability == 0.0) return x.tensor;
  return dropout(x, probability, with_place(randomness.seed, x), with_place(randomness.step, x),
                 stream);
}

}  // namespace meganeura::nn
