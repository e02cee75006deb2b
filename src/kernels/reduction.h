// Building blocks of reductions that other archetypes use too.
#pragma once

#include <vector>

#include "kernels/archetype_list.h"
#include "kernels/kernel_writer.h"

namespace meganeura::kernels {

// What a reduction carries: the value, or for arg max an ordered key and an index.
using Accumulator = std::vector<kir::Value>;

// The algebra of one Combine over one type.
class Combiner {
 public:
  Combiner(Combine combine, scalar::Type type) : combine_(combine), type_(type) {}

  Accumulator identity(KernelWriter& w) const;
  // Of a value at a flat index.
  Accumulator single(KernelWriter& w, kir::Value value, kir::Value flat) const;
  Accumulator merge(KernelWriter& w, std::span<const kir::Value> a,
                    std::span<const kir::Value> b) const;
  // `a` where the condition holds, else the identity.
  Accumulator masked(KernelWriter& w, kir::Value condition, const Accumulator& a) const;
  // What the epilogue gets.
  kir::Value result(std::span<const kir::Value> accumulator) const { return accumulator.back(); }
  scalar::Type accumulator_type(size_t part) const;
  size_t parts() const { return combine_ == Combine::kArgMax ? 2 : 1; }

  // Merges `count` steps in order. Long f32 sums add blocks, so that errors grow with the root of
  // their length.
  using Step = std::function<Accumulator(kir::Value i)>;
  Accumulator accumulate(KernelWriter& w, uint32_t count, const Step& step) const;

 private:
  Combine combine_;
  scalar::Type type_;
};

// One invocation per output; works for every spec.
KernelPlan serial_reduction(const ReductionSpec& spec, const Capabilities& capabilities);

}  // namespace meganeura::kernels
