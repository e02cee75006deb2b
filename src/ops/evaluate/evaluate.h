// The f64 reference of any graph: what a correct device computes, and how far it may be off.
//
// Evaluation switches on Lowering alone; an op needs nothing here beyond its row.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "meganeura/graph.h"
#include "scalar/evaluate.h"

namespace meganeura {

// A dense row-major value; integers exactly, bool as 0 or 1.
struct ReferenceTensor {
  Shape shape;
  DType dtype = DType::kF32;
  std::vector<double> values;
};

// Values of leaves by name. Inputs must be there; parameters and states that are not take what
// their initializer draws with seed 0.
using LeafValues = std::map<std::string, ReferenceTensor>;

// The values of the roots. Ideal mode computes floats in f64 and never rounds them; typed mode
// rounds f16, bf16 and f32 after every node. Integers wrap in their own width in both.
// Error(kInvalidArgument) for a missing input, an unknown name or a value beyond an input's limit,
// Error(kShape) for a leaf of another shape or dtype, Error(kUnsupported) for dtypes without
// arithmetic.
std::vector<ReferenceTensor> evaluate(std::span<const Tensor> roots, const LeafValues& leaves,
                                      scalar::Mode mode);

// An ideal value and how far an f32 device may be from it, element by element; infinite where a
// discontinuity or an overflow could go either way.
struct BoundedTensor {
  ReferenceTensor reference;
  std::vector<double> errors;
};

// As evaluate() in ideal mode on leaves rounded to their dtypes, with running error bounds of a
// strict f32 evaluation: sums of n terms in any order add (n + 2)·2^-24·Σ|terms|, elementwise
// bodies what scalar::evaluate_f64_bounds says, f16 and bf16 storage half a unit in the last place.
std::vector<BoundedTensor> evaluate_bounds(std::span<const Tensor> roots, const LeafValues& leaves);

struct BoundsReport {
  int64_t elements = 0;
  int64_t excluded = 0;  // infinite bound: either outcome is right
  int64_t outside = 0;   // beyond the bound
  double worst = 0.0;    // largest |difference| / bound of an element with a finite bound
  std::string first;     // a sentence about the first element outside

  // Nothing outside and at most one element in a hundred excluded.
  bool acceptable() const { return outside == 0 && excluded * 100 <= elements; }
};

// Compares a device's values with a bounded reference. NaN must meet NaN and infinity the same
// infinity. Error(kShape) when the counts differ.
BoundsReport compare_within_bounds(const BoundedTensor& expected, std::span<const double> actual);

}  // namespace meganeura
