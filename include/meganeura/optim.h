// Optimizers, schedules, clipping and gradient accumulation as graph builders.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "meganeura/graph.h"

namespace meganeura {

// Update rules and defaults are those of torch.optim. `lr` is what a schedule starts from; the
// rate of a step is an input of the graph.
struct SGD {
  double lr = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;  // added to the gradient
  bool nesterov = false;      // needs momentum and no dampening
};

struct Adam {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;      // added to √v̂, after the bias correction
  double weight_decay = 0.0;  // added to the gradient
};

struct AdamW {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;  // decoupled: the parameter shrinks by lr·weight_decay
};

using Optimizer = std::variant<SGD, Adam, AdamW>;

// The `lr` of any optimizer.
MEGANEURA_API double base_learning_rate(const Optimizer& optimizer);

// Parameters treated differently. The first group that matches a parameter's name and shape counts.
struct ParameterGroup {
  std::function<bool(std::string_view name, const Shape& shape)> matches;
  double lr_multiplier = 1.0;
  std::optional<double> weight_decay;  // instead of the optimizer's
};

// No weight decay on tensors of rank 0 and 1: biases and the weights of norms.
MEGANEURA_API ParameterGroup no_decay_on_vectors();

// One update of every parameter: `assign` tensors to be made outputs, first of the parameters in
// their order, then of the moments. Moments are f32 states named "<parameter>.<slot>" with the
// slots of PyTorch: momentum_buffer; exp_avg, exp_avg_sq. `learning_rate`: f32 of rank 0. `step`:
// u32 of rank 0, the updates done before this one (0 the first time). Arithmetic is f32; f16 and
// bf16 parameters are widened and rounded back. Error(kInvalidArgument) for hyperparameters out of
// range, Error(kShape) when a gradient does not fit its parameter.
MEGANEURA_API std::vector<Tensor> apply(Graph& graph, const Optimizer& optimizer,
                                        std::span<const Tensor> parameters,
                                        std::span<const Tensor> gradients, Tensor learning_rate,
                                        Tensor step, std::span<const ParameterGroup> groups = {},
                                        Place place = Place::here());

// 1 − beta^(step + 1), f32 of rank 0, by −expm1(x) = 2u/(1 + u) with u = tanh(−x/2): nothing
// cancels. Relative error ≤ 1e-6 for step < 2^24 where tanh is within 4 ulp. beta in [0, 1).
MEGANEURA_API Tensor bias_correction(Operand step, double beta);

// ---- Clipping --------------------------------------------------------------------------------
struct ClippedGradients {
  std::vector<Tensor> gradients;
  Tensor norm;  // before clipping; f32 of rank 0
};
// Scales all gradients by min(1, max_norm / (norm + 1e-6)), norm = √Σ g² over all elements of all
// tensors. As PyTorch's clip_grad_norm_: an infinite norm gives zeros (NaN where the gradient is
// infinite), a NaN norm gives NaN everywhere. Error(kInvalidArgument) unless max_norm > 0.
MEGANEURA_API ClippedGradients clip_global_norm(std::span<const Tensor> gradients, double max_norm,
                                                Place place = Place::here());

// ---- Accumulation ----------------------------------------------------------------------------
// Two programs over one set of f32 states "<parameter>.accumulator": run `accumulate` `count`
// times, then one with apply() on `gradients` together with `reset`.
struct GradientAccumulation {
  std::vector<Tensor> accumulate;  // assigns accumulator + gradient
  std::vector<Tensor> gradients;   // accumulator / count, in the gradient's dtype
  std::vector<Tensor> reset;       // assigns zeros
};
MEGANEURA_API GradientAccumulation accumulate_gradients(Graph& graph,
                                                        std::span<const Tensor> parameters,
                                                        std::span<const Tensor> gradients,
                                                        int64_t count, Place place = Place::here());

// ---- Schedules -------------------------------------------------------------------------------
// The learning rate of the update that follows `step` others, computed on the host in f64.
using Schedule = std::function<double(uint64_t step)>;

MEGANEURA_API Schedule constant_schedule(double lr);
// lr · factor^⌊step / every⌋. Error(kInvalidArgument) for every = 0.
MEGANEURA_API Schedule step_schedule(double lr, uint64_t every, double factor);
// lr · step / warmup before `warmup`; then half a cosine from lr to `minimum` at `total`, where it
// stays. Error(kInvalidArgument) unless warmup <= total.
MEGANEURA_API Schedule cosine_schedule(double lr, uint64_t warmup, uint64_t total,
                                       double minimum = 0.0);

}  // namespace meganeura
