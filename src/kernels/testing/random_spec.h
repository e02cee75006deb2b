// For tests: random specs over random memory, the same for the same seed on every host.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "kernels/testing/spec_reference.h"

namespace meganeura::kernels {

struct RandomCase {
  KernelSpec spec;
  SlotMemory memory;
};

class SpecMaker {
 public:
  explicit SpecMaker(uint32_t seed) : random_(seed) {}

  RandomCase pointwise();
  RandomCase reduction();
  RandomCase contraction();
  RandomCase scatter_add();

  // In [low, high].
  int64_t pick(int64_t low, int64_t high);
  template <class T>
  T choose(std::initializer_list<T> items) {
    return *(items.begin() + pick(0, static_cast<int64_t>(items.size()) - 1));
  }

 private:
  using Extents = std::vector<int64_t>;

  Extents extents(int64_t max_rank, int64_t max_points);
  // A new slot of so many random elements.
  uint32_t slot(DType dtype, int64_t elements);
  uint32_t index_slot(DType dtype, int64_t elements, int64_t limit);
  // A dense walk over the extents, or with repeated, permuted, sliced or reversed dimensions;
  // `elements` is what the slot needs.
  Affine walk(const Extents& extents, bool broadcast, int64_t& elements);
  Input input(const Extents& extents, DType dtype, bool features);
  void add_guard(Input& input, const Extents& extents);
  Output output(const Extents& extents, DType dtype);
  // A body that mixes its arguments, with one output of every type.
  scalar::Body body(const std::vector<scalar::Type>& arguments,
                    const std::vector<scalar::Type>& outputs);
  std::vector<scalar::Type> argument_types(std::vector<scalar::Type> leading,
                                           const std::vector<Input>& inputs);
  std::vector<Input> extras(const Extents& extents);
  RandomCase done(KernelSpec spec);

  std::mt19937 random_;
  SlotMemory memory_;
};

}  // namespace meganeura::kernels
