#include "ops/pointwise_gradients.h"

#include <numbers>

namespace meganeura::ops {
namespace {

// The gradients of two operands; each rule runs only when somebody wants its result.
template <class A, class B>
Gradients pair(const GradientContext& c, A a, B b) {
  Gradients gradients(2);
  if (c.needed[0]) gradients[0] = a();
  if (c.needed[1]) gradients[1] = b();
  return gradients;
}

// The cotangent to a where `first` holds, to b elsewhere.
Gradients split(const GradientContext& c, Tensor first) {
  const Tensor zero = filled(c.cotangent, 0.0);
  return pair(
      c, [&] { return select(first, c.cotangent, zero); },
      [&] { return select(first, zero, c.cotangent); });
}

Tensor is_nan(Tensor x) { return not_equal(x, x); }

}  // namespace

Gradients add_gradient(const GradientContext& c) { return {c.cotangent, c.cotangent}; }

Gradients sub_gradient(const GradientContext& c) {
  return pair(
      c, [&] { return c.cotangent; }, [&] { return neg(c.cotangent); });
}

Gradients mul_gradient(const GradientContext& c) {
  return pair(
      c, [&] { return c.cotangent * c.operands[1]; }, [&] { return c.cotangent * c.operands[0]; });
}

Gradients div_gradient(const GradientContext& c) {
  return pair(
      c, [&] { return c.cotangent / c.operands[1]; },
      [&] { return neg(c.cotangent * c.output / c.operands[1]); });
}

// a - rem(a, b) is a multiple of b, so that its quotient rounds to the exact integer.
Gradients rem_gradient(const GradientContext& c) {
  return pair(
      c, [&] { return c.cotangent; },
      [&] { return neg(c.cotangent * round((c.operands[0] - c.output) / c.operands[1])); });
}

// d/da = b·a^(b-1), 0 for b = 0; d/db = a^b·log a, 0 for a = 0 and b >= 0.
Gradients pow_gradient(const GradientContext& c) {
  const Tensor a = c.operands[0];
  const Tensor b = c.operands[1];
  const Tensor zero = filled(c.cotangent, 0.0);
  return pair(
      c,
      [&] {
        const Tensor slope = b * pow(a, b - 1.0);
        return select(equal(b, zero), zero, c.cotangent * slope);
      },
      [&] {
        const Tensor at_zero = bit_and(equal(a, zero), greater_equal(b, zero));
        return select(at_zero, zero, c.cotangent * (c.output * log(a)));
      });
}

Gradients minimum_gradient(const GradientContext& c) {
  return split(c, bit_or(less_equal(c.operands[0], c.operands[1]), is_nan(c.operands[0])));
}

Gradients maximum_gradient(const GradientContext& c) {
  return split(c, bit_or(greater_equal(c.operands[0], c.operands[1]), is_nan(c.operands[0])));
}

Gradients neg_gradient(const GradientContext& c) { return {neg(c.cotangent)}; }

Gradients abs_gradient(const GradientContext& c) {
  const Tensor zero = filled(c.cotangent, 0.0);
  const Tensor signed_cotangent = select(less(c.operands[0], zero), neg(c.cotangent), c.cotangent);
  return {select(equal(c.operands[0], zero), zero, signed_cotangent)};
}

Gradients exp_gradient(const GradientContext& c) { return {c.cotangent * c.output}; }

Gradients log_gradient(const GradientContext& c) { return {c.cotangent / c.operands[0]}; }

Gradients sqrt_gradient(const GradientContext& c) { return {c.cotangent * 0.5 / c.output}; }

Gradients rsqrt_gradient(const GradientContext& c) {
  return {c.cotangent * -0.5 * (c.output / c.operands[0])};
}

Gradients sin_gradient(const GradientContext& c) { return {c.cotangent * cos(c.operands[0])}; }

Gradients cos_gradient(const GradientContext& c) { return {neg(c.cotangent * sin(c.operands[0]))}; }

Gradients tanh_gradient(const GradientContext& c) {
  return {c.cotangent * (1.0 - c.output * c.output)};
}

Gradients erf_gradient(const GradientContext& c) {
  const Tensor x = c.operands[0];
  return {c.cotangent * (exp(neg(x * x)) * (2.0 * std::numbers::inv_sqrtpi))};
}

Gradients select_gradient(const GradientContext& c) {
  const Tensor zero = filled(c.cotangent, 0.0);
  Gradients gradients(3);
  if (c.needed[1]) gradients[1] = select(c.operands[0], c.cotangent, zero);
  if (c.needed[2]) gradients[2] = select(c.operands[0], zero, c.cotangent);
  return gradients;
}

Gradients cast_gradient(const GradientContext& c) {
  if (!is_float(c.node.dtype) || !c.needed[0]) return {Tensor()};
  return {cast(c.cotangent, c.operands[0].dtype())};
}

}  // namespace meganeura::ops
