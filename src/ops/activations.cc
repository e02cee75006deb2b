// Activations and normalisations, built from primitives.
#include <cmath>
#include <numbers>

#include "ops/rule.h"

namespace meganeura {

using ops::Composite;

namespace {

Tensor zeros(Tensor like) { return ops::filled(like, 0.0); }

void check_floats(std::string_view op, const Operand& x) {
  if (is_float(x.tensor.dtype())) return;
  ops::refuse(op, x.place, "takes floats, not ", x.tensor.dtype(), ". Convert with cast.");
}

// x - max(x), where the maximum counts as a constant: the result does not depend on it.
Tensor shifted(Tensor x, int64_t axis) { return x - stop_gradient(max(x, {axis}, true)); }

}  // namespace

// The comparison is false for NaN, which therefore stays.
Tensor relu(Operand x) {
  const Composite scope("relu", x);
  const Tensor zero = zeros(x.tensor);
  return select(less_equal(x, zero), zero, x);
}

Tensor leaky_relu(Operand x, double slope) {
  const Composite scope("leaky_relu", x);
  check_floats("leaky_relu", x);
  return select(less_equal(x, zeros(x.tensor)), x * slope, x);
}

// exp never sees a positive number, and the derivative at 0 comes from one branch.
Tensor sigmoid(Operand x) {
  const Composite scope("sigmoid", x);
  check_floats("sigmoid", x);
  const Tensor positive = greater_equal(x, zeros(x.tensor));
  const Tensor decay = exp(select(positive, neg(x), x));
  return select(positive, ops::filled(x.tensor, 1.0), decay) / (decay + 1.0);
}

Tensor silu(Operand x) {
  const Composite scope("silu", x);
  return x * sigmoid(x);
}

Tensor gelu(Operand x, GeluForm form) {
  const Composite scope("gelu", x);
  check_floats("gelu", x);
  if (form == GeluForm::kErf) return x * 0.5 * (erf(x * (1.0 / std::numbers::sqrt2)) + 1.0);
  const Tensor inner = x + x * x * x * 0.044715;
  return x * 0.5 * (tanh(inner * std::sqrt(2.0 / std::numbers::pi)) + 1.0);
}

Tensor softplus(Operand x) {
  const Composite scope("softplus", x);
  check_floats("softplus", x);
  const Tensor positive = greater_equal(x, zeros(x.tensor));
  const Tensor decay = exp(select(positive, neg(x), x));
  return select(positive, x, zeros(x.tensor)) + log(decay + 1.0);
}

Tensor softmax(Operand x, int64_t axis) {
  const Composite scope("softmax", x);
  check_floats("softmax", x);
  const int64_t at = ops::axis_of("softmax", x, axis);
  if (x.tensor.shape().elements() == 0) return x.tensor;
  const Tensor weights = exp(shifted(ops::widened(x.tensor), at));
  return cast(weights / sum(weights, {at}, true), x.tensor.dtype());
}

Tensor log_softmax(Operand x, int64_t axis) {
  const Composite scope("log_softmax", x);
  check_floats("log_softmax", x);
  const int64_t at = ops::axis_of("log_softmax", x, axis);
  if (x.tensor.shape().elements() == 0) return x.tensor;
  const Tensor below = shifted(ops::widened(x.tensor), at);
  return cast(below - log(sum(exp(below), {at}, true)), x.tensor.dtype());
}

namespace {

// Checks that the weight spans the last axes of x, and returns these axes.
ops::Ints normalized_axes(std::string_view op, const Operand& x, Tensor weight) {
  check_floats(op, x);
  ops::require(op, Operand(weight, x.place.file, x.place.line));
  const Shape& shape = x.tensor.shape();
  const int first = shape.rank() - weight.rank();
  bool fits = weight.rank() > 0 && first >= 0 && weight.dtype() == x.tensor.dtype();
  for (int axis = 0; fits && axis < weight.rank(); ++axis) {
    fits = weight.shape()[axis] == shape[first + axis];
  }
  if (!fits) {
    ops::refuse(op, x.place, "scales ", x.tensor.dtype(), shape, " by ", weight.dtype(),
                weight.shape(), ". The weight has the extents of the last axes, and the dtype.");
  }
  ops::Ints axes = ops::counting(weight.rank());
  for (int64_t& axis : axes) axis += first;
  return axes;
}

}  // namespace

Tensor layer_norm(Operand x, Tensor weight, Tensor bias, double epsilon) {
  const Composite scope("layer_norm", x);
  const ops::Ints axes = normalized_axes("layer_norm", x, weight);
  if (bias && (bias.shape() != weight.shape() || bias.dtype() != weight.dtype())) {
    ops::refuse("layer_norm", x.place, "adds the bias ", bias.dtype(), bias.shape(),
                " beside the weight ", weight.dtype(), weight.shape(), ". They must be alike.");
  }
  const Tensor wide = ops::widened(x.tensor);
  const Tensor centred = wide - mean(wide, axes, true);
  const Tensor scale = rsqrt(mean(centred * centred, axes, true) + epsilon);
  const Tensor scaled = centred * scale * ops::widened(weight);
  return cast(bias ? scaled + ops::widened(bias) : scaled, x.tensor.dtype());
}

Tensor rms_norm(Operand x, Tensor weight, double epsilon) {
  const Composite scope("rms_norm", x);
  const ops::Ints axes = normalized_axes("rms_norm", x, weight);
  const Tensor wide = ops::widened(x.tensor);
  const Tensor scale = rsqrt(mean(wide * wide, axes, true) + epsilon);
  return cast(wide * scale * ops::widened(weight), x.tensor.dtype());
}

Tensor dropout(Operand x, double probability, Operand seed, Operand step, int64_t stream) {
  const Composite scope("dropout", x);
  check_floats("dropout", x);
  if (!(probability >= 0.0 && probability <= 1.0)) {
    fail(ErrorKind::kInvalidArgument, "The op dropout at ", to_string(x.place),
         " has the probability ", probability, ". Use a number from 0 to 1.");
  }
  if (probability == 0.0) return x.tensor;
  const Tensor draw = random_uniform(seed, step, x.tensor.shape(), stream);
  const Tensor kept = greater_equal(draw, ops::filled(draw, probability));
  const double scale = probability == 1.0 ? 0.0 : 1.0 / (1.0 - probability);
  return select(kept, x * scale, zeros(x.tensor));
}

}  // namespace meganeura
