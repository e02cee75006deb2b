// Layers: plain structs of parameters, named and initialised as PyTorch does it.
//
// A layer declares its parameters in the graph once; applying it any number of times (training and
// evaluation, several batch sizes) shares them. `prefix` is the layer's name: "hidden" gives
// "hidden.weight" and "hidden.bias".
#pragma once

#include <cstdint>
#include <string>

#include "meganeura/graph.h"

namespace meganeura::nn {

// x [.., in] → [.., out]: x · weightᵀ + bias. weight [out, in] and bias [out] are drawn from
// uniform(−1/√in, 1/√in), or uniform(−1, 1) for in = 0, where the weight is empty.
struct MEGANEURA_API Linear {
  Linear(Graph& graph, const std::string& prefix, int64_t in, int64_t out, bool with_bias = true,
         Place place = Place::here());
  Tensor operator()(Operand x) const;

  Tensor weight;
  Tensor bias;  // empty without a bias
};

// indices [..] → [.., width]: rows of weight [count, width], drawn from normal(0, 1).
struct MEGANEURA_API Embedding {
  Embedding(Graph& graph, const std::string& prefix, int64_t count, int64_t width,
            Place place = Place::here());
  Tensor operator()(Operand indices) const;

  Tensor weight;
};

// Over the last axes, whose shape is that of weight (ones) and bias (zeros).
struct MEGANEURA_API LayerNorm {
  LayerNorm(Graph& graph, const std::string& prefix, const Shape& shape, double epsilon = 1e-5,
            Place place = Place::here());
  Tensor operator()(Operand x) const;

  Tensor weight;
  Tensor bias;
  double epsilon;
};

// x / √(mean(x²) + epsilon) · weight over the last axes; weight starts as ones.
struct MEGANEURA_API RMSNorm {
  RMSNorm(Graph& graph, const std::string& prefix, const Shape& shape, double epsilon = 1e-5,
          Place place = Place::here());
  Tensor operator()(Operand x) const;

  Tensor weight;
  double epsilon;
};

// What makes random layers differ from run to run: u32 tensors of rank 0. Empty ones mean
// evaluation.
struct Randomness {
  Tensor seed;
  Tensor step;
};

// Zeroes elements with `probability` and scales the others by 1 / (1 − probability); in evaluation
// it returns x. Every dropout of a graph needs a stream of its own. Error(kInvalidArgument) for a
// probability outside [0, 1).
struct MEGANEURA_API Dropout {
  Dropout(double probability, int64_t stream);
  Tensor operator()(Operand x, const Randomness& randomness) const;

  double probability;
  int64_t stream;
};

}  // namespace meganeura::nn
