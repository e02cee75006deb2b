// What the forms of a contraction share.
#pragma once

#include <string>
#include <vector>

#include "kernels/archetype_list.h"
#include "kernels/kernel_writer.h"

namespace meganeura::kernels {

// A contraction ready for a form: both operands iterate over batch, their free group, then k.
struct Contraction {
  ContractionSpec spec;
  Input a;                // over batch + m + k
  Input b;                // over batch + n + k
  scalar::Body epilogue;  // lowered
  uint32_t batch = 1;
  uint32_t m = 1;
  uint32_t n = 1;
  uint32_t k = 0;

  std::vector<int64_t> output_extents() const;
  std::vector<const Input*> inputs() const;
  std::vector<const Output*> outputs() const { return pointers(spec.outputs); }
};
Contraction make_contraction(const ContractionSpec& spec, const Capabilities& capabilities);
// The same work with the roles of a and b exchanged: rows become columns.
ContractionSpec transposed(const ContractionSpec& spec);

// One invocation per output: the oracle, legal for every spec.
KernelPlan naive_contraction(const Contraction& work, const Capabilities& capabilities);
// A subgroup keeps a block of outputs in registers, lanes along n; neither barriers nor sharing.
std::vector<KernelPlan> subgroup_contractions(const Contraction& work,
                                              const Capabilities& capabilities);
// Workgroups stage blocks of both operands in shared memory.
std::vector<KernelPlan> tiled_contractions(const Contraction& work,
                                           const Capabilities& capabilities);

// The flat index of a dimension group times its strides.
kir::Value group_offset(KernelWriter& w, kir::Value flat, std::span<const int64_t> extents,
                        std::span<const int64_t> strides);

// The strides of one group inside an access over several.
std::span<const int64_t> strides_of(const Affine& access, size_t first, size_t count);

// The spec's extras and outputs at (batch, m, n), in steps: batch, then row, then column.
class Epilogue {
 public:
  Epilogue(KernelWriter& w, const Contraction& work, kir::Value batch);
  struct Row {
    std::vector<Cursor> extras;
    std::vector<kir::Value> outputs;  // addresses so far
  };
  Row row(kir::Value m) const;
  void store(const Row& row, kir::Value n, kir::Value accumulator) const;

 private:
  KernelWriter* w_;
  const Contraction* work_;
  Row batch_;
};

}  // namespace meganeura::kernels
