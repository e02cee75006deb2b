// Gradient rules of elementwise ops.
#pragma once

#include "ops/rule.h"

namespace meganeura::ops {

Gradients add_gradient(const GradientContext& context);
Gradients sub_gradient(const GradientContext& context);
Gradients mul_gradient(const GradientContext& context);
Gradients div_gradient(const GradientContext& context);
Gradients rem_gradient(const GradientContext& context);
Gradients pow_gradient(const GradientContext& context);
Gradients minimum_gradient(const GradientContext& context);
Gradients maximum_gradient(const GradientContext& context);
Gradients neg_gradient(const GradientContext& context);
Gradients abs_gradient(const GradientContext& context);
Gradients exp_gradient(const GradientContext& context);
Gradients log_gradient(const GradientContext& context);
Gradients sqrt_gradient(const GradientContext& context);
Gradients rsqrt_gradient(const GradientContext& context);
Gradients sin_gradient(const GradientContext& context);
Gradients cos_gradient(const GradientContext& context);
Gradients tanh_gradient(const GradientContext& context);
Gradients erf_gradient(const GradientContext& context);
Gradients select_gradient(const GradientContext& context);
Gradients cast_gradient(const GradientContext& context);

}  // namespace meganeura::ops
