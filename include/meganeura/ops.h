// Builders of ops. Primitives append one node; composites append several.
//
// Elementwise operands broadcast as in NumPy; dtypes must match (use cast). Negative axes count
// from the end. Errors are Error(kShape) naming op, shapes and the caller's place.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "meganeura/graph.h"

namespace meganeura {

// ---- Elementwise primitives ------------------------------------------------------------------
MEGANEURA_API Tensor add(Operand a, Operand b);
MEGANEURA_API Tensor sub(Operand a, Operand b);
MEGANEURA_API Tensor mul(Operand a, Operand b);
MEGANEURA_API Tensor div(Operand a, Operand b);
MEGANEURA_API Tensor rem(Operand a, Operand b);  // f32: C fmod; integers: sign of the dividend
MEGANEURA_API Tensor pow(Operand a, Operand b);
MEGANEURA_API Tensor minimum(Operand a, Operand b);  // NaN propagates; ties: gradient to a
MEGANEURA_API Tensor maximum(Operand a, Operand b);
MEGANEURA_API Tensor neg(Operand x);
MEGANEURA_API Tensor abs(Operand x);  // gradient 0 at 0
MEGANEURA_API Tensor exp(Operand x);
MEGANEURA_API Tensor log(Operand x);
MEGANEURA_API Tensor sqrt(Operand x);
MEGANEURA_API Tensor rsqrt(Operand x);
MEGANEURA_API Tensor sin(Operand x);
MEGANEURA_API Tensor cos(Operand x);
MEGANEURA_API Tensor tanh(Operand x);
MEGANEURA_API Tensor erf(Operand x);
MEGANEURA_API Tensor floor(Operand x);
MEGANEURA_API Tensor ceil(Operand x);
MEGANEURA_API Tensor round(Operand x);               // half to even
MEGANEURA_API Tensor bit_and(Operand a, Operand b);  // integers and bool
MEGANEURA_API Tensor bit_or(Operand a, Operand b);
MEGANEURA_API Tensor bit_xor(Operand a, Operand b);
MEGANEURA_API Tensor bit_not(Operand x);
MEGANEURA_API Tensor shift_left(Operand a, Operand b);
MEGANEURA_API Tensor shift_right(Operand a, Operand b);
MEGANEURA_API Tensor equal(Operand a, Operand b);  // comparisons give bool
MEGANEURA_API Tensor not_equal(Operand a, Operand b);
MEGANEURA_API Tensor less(Operand a, Operand b);
MEGANEURA_API Tensor less_equal(Operand a, Operand b);
MEGANEURA_API Tensor greater(Operand a, Operand b);
MEGANEURA_API Tensor greater_equal(Operand a, Operand b);
// where(condition, a, b): the gradient of the branch not taken is 0 even where it is undefined.
MEGANEURA_API Tensor select(Operand condition, Operand a, Operand b);
MEGANEURA_API Tensor cast(Operand x, DType dtype);     // float to integer truncates and saturates
MEGANEURA_API Tensor bitcast(Operand x, DType dtype);  // between f32, i32 and u32
MEGANEURA_API Tensor stop_gradient(Operand x);

inline Tensor operator+(Operand a, Operand b) { return add(a, b); }
inline Tensor operator-(Operand a, Operand b) { return sub(a, b); }
inline Tensor operator*(Operand a, Operand b) { return mul(a, b); }
inline Tensor operator/(Operand a, Operand b) { return div(a, b); }
inline Tensor operator-(Operand x) { return neg(x); }
// A number beside a tensor is a rank-0 constant of the tensor's dtype.
MEGANEURA_API Tensor operator+(Operand a, double b);
MEGANEURA_API Tensor operator-(Operand a, double b);
MEGANEURA_API Tensor operator*(Operand a, double b);
MEGANEURA_API Tensor operator/(Operand a, double b);
MEGANEURA_API Tensor operator+(double a, Operand b);
MEGANEURA_API Tensor operator-(double a, Operand b);
MEGANEURA_API Tensor operator*(double a, Operand b);
MEGANEURA_API Tensor operator/(double a, Operand b);

// ---- Reductions ------------------------------------------------------------------------------
// Over `axes` (all when empty); `keep` leaves extents of 1. Empty sums are 0; the maximum, minimum
// or arg max over an empty axis is an Error(kShape). NaN propagates through max and min.
MEGANEURA_API Tensor sum(Operand x, std::vector<int64_t> axes = {}, bool keep = false);
MEGANEURA_API Tensor max(Operand x, std::vector<int64_t> axes = {}, bool keep = false);
MEGANEURA_API Tensor min(Operand x, std::vector<int64_t> axes = {}, bool keep = false);
MEGANEURA_API Tensor mean(Operand x, std::vector<int64_t> axes = {}, bool keep = false);
// Biased (divided by n), two-pass.
MEGANEURA_API Tensor variance(Operand x, std::vector<int64_t> axes = {}, bool keep = false);
// u32 index of the first maximum, row-major over `axes` in ascending order. A NaN counts as larger
// than every number.
MEGANEURA_API Tensor arg_max(Operand x, std::vector<int64_t> axes = {}, bool keep = false);

// ---- Contraction -----------------------------------------------------------------------------
// out[batch…, a_free…, b_free…] = Σ a·b over pairs of contracted axes; batch axes are paired too.
// Operands f32, or f16/bf16 (accumulated in f32). An empty sum is 0.
MEGANEURA_API Tensor contract(Operand a, Operand b, std::vector<int64_t> a_batch,
                              std::vector<int64_t> b_batch, std::vector<int64_t> a_contract,
                              std::vector<int64_t> b_contract);
// NumPy matmul: [.., M, K] · [.., K, N]; leading axes broadcast; rank-1 operands as in NumPy.
MEGANEURA_API Tensor matmul(Operand a, Operand b);

// ---- Views and windows -----------------------------------------------------------------------
MEGANEURA_API Tensor reshape(Operand x, std::vector<int64_t> extents);  // one extent may be -1
MEGANEURA_API Tensor flatten(Operand x, int64_t first_axis = 0);
MEGANEURA_API Tensor permute(Operand x, std::vector<int64_t> order);
MEGANEURA_API Tensor transpose(Operand x, int64_t a = -2, int64_t b = -1);
MEGANEURA_API Tensor broadcast_to(Operand x, const Shape& shape);
MEGANEURA_API Tensor unsqueeze(Operand x, int64_t axis);
MEGANEURA_API Tensor squeeze(Operand x, int64_t axis);
// Per axis [starts, ends) with step ≥ 1; ends are clipped, negative positions count from the end.
MEGANEURA_API Tensor slice(Operand x, std::vector<int64_t> starts, std::vector<int64_t> ends,
                           std::vector<int64_t> steps = {});
// Adds `low[i]` and `high[i]` elements of `value` before and after each axis.
MEGANEURA_API Tensor pad(Operand x, std::vector<int64_t> low, std::vector<int64_t> high,
                         double value = 0.0);
MEGANEURA_API Tensor concat(std::span<const Tensor> parts, int64_t axis,
                            Place place = Place::here());
// `starts`: i32 or u32 [rank], read on the device and clamped so that the window fits.
MEGANEURA_API Tensor dynamic_slice(Operand x, Operand starts, std::vector<int64_t> extents);
MEGANEURA_API Tensor dynamic_update_slice(Operand x, Operand update, Operand starts);

// ---- Indexed ---------------------------------------------------------------------------------
// out[…, i…, …] = x[…, indices[i…], …] along `axis`; indices u32 or i32, clamped into the axis.
MEGANEURA_API Tensor gather(Operand x, Operand indices, int64_t axis = 0);
// x with updates[i…, …] added to x[indices[i…], …] along axis 0, in index order (deterministic);
// indices outside the axis are dropped. updates: indices.shape + x.shape[1:].
MEGANEURA_API Tensor scatter_add(Operand x, Operand indices, Operand updates);
// 0, 1, … along `axis`, the same along the others; dtype u32, i32 or f32.
MEGANEURA_API Tensor iota(Graph& graph, const Shape& shape, int64_t axis, DType dtype = u32,
                          Place place = Place::here());
// u32 bits of Philox4x32-10 with key (seed, stream) and counter (element, step, 0, 0), word 0.
// seed and step: u32 rank 0. Different streams never merge.
MEGANEURA_API Tensor random_bits(Operand seed, Operand step, const Shape& shape, int64_t stream);
// f32 in [0, 1): (bits >> 8)·2^-24.
MEGANEURA_API Tensor random_uniform(Operand seed, Operand step, const Shape& shape, int64_t stream);
// Standard normal by Box and Muller from streams 2·stream and 2·stream + 1 of a second key.
MEGANEURA_API Tensor random_normal(Operand seed, Operand step, const Shape& shape, int64_t stream);

// ---- Persistent values -----------------------------------------------------------------------
// The new value of a parameter or state (same shape and dtype); make it an output of the program.
// Other reads of the leaf see the old value.
MEGANEURA_API Tensor assign(Operand leaf, Operand value);

// ---- Activations -----------------------------------------------------------------------------
MEGANEURA_API Tensor relu(Operand x);  // NaN stays NaN; gradient 0 at 0
MEGANEURA_API Tensor leaky_relu(Operand x, double slope = 0.01);
MEGANEURA_API Tensor sigmoid(Operand x);
MEGANEURA_API Tensor silu(Operand x);
enum class GeluForm : uint8_t { kErf, kTanh };
MEGANEURA_API Tensor gelu(Operand x, GeluForm form = GeluForm::kErf);
MEGANEURA_API Tensor softplus(Operand x);
MEGANEURA_API Tensor softmax(Operand x, int64_t axis = -1);
MEGANEURA_API Tensor log_softmax(Operand x, int64_t axis = -1);

// ---- Losses ----------------------------------------------------------------------------------
enum class Reduction : uint8_t { kMean, kSum, kNone };
struct CrossEntropyOptions {
  Reduction reduction = Reduction::kMean;  // kMean divides by the weights of the rows that count
  std::optional<int64_t> ignore_index;
  Tensor weights;  // f32 [C] or empty
  double label_smoothing = 0.0;
};
// logits [N, C] (or [C]); labels u32/i32 [N] class indices, or f32 [N, C] probabilities. As
// PyTorch's cross_entropy. Index labels that are inputs are checked when they are set.
MEGANEURA_API Tensor cross_entropy(Operand logits, Operand labels,
                                   const CrossEntropyOptions& options = {});
MEGANEURA_API Tensor mse_loss(Operand x, Operand target, Reduction reduction = Reduction::kMean);
MEGANEURA_API Tensor l1_loss(Operand x, Operand target, Reduction reduction = Reduction::kMean);
// max(x, 0) − x·t + log(1 + exp(−|x|)).
MEGANEURA_API Tensor bce_with_logits(Operand x, Operand target,
                                     Reduction reduction = Reduction::kMean);

// ---- Layers as functions ---------------------------------------------------------------------
// x [.., in] · weight [out, in]ᵀ + bias [out]; an empty bias is left out.
MEGANEURA_API Tensor linear(Operand x, Operand weight, Tensor bias = {});
// table [V, D], indices [..] → [.., D]. Index inputs are checked when they are set.
MEGANEURA_API Tensor embedding(Operand table, Operand indices);
// Over the last `weight.rank` axes.
MEGANEURA_API Tensor layer_norm(Operand x, Tensor weight, Tensor bias, double epsilon = 1e-5);
MEGANEURA_API Tensor rms_norm(Operand x, Tensor weight, double epsilon = 1e-5);
// Training-mode dropout: zero with `probability`, else x / (1 − probability). Leave it out of
// evaluation graphs.
MEGANEURA_API Tensor dropout(Operand x, double probability, Operand seed, Operand step,
                             int64_t stream);

// ---- Text ------------------------------------------------------------------------------------
// Reads what print_graph wrote into a new graph and its outputs.
struct GraphAndOutputs {
  Graph graph;
  std::vector<Output> outputs;
};
MEGANEURA_API GraphAndOutputs parse_graph(std::string_view text);

}  // namespace meganeura
