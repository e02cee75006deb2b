// For tests: what a spec means, point by point in f64, with bounds on what an f32 kernel may do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/spec.h"

namespace meganeura::kernels {

// The bytes of every slot of a spec.
using SlotMemory = std::vector<std::vector<std::byte>>;

struct ExpectedElement {
  uint32_t slot = 0;
  DType dtype = DType::kF32;
  int64_t index = 0;  // element of the slot
  double value = 0;
  double bound = 0;  // absolute; infinite where the value is not decided
};

// Every element that the spec writes. Reads the spec as written, never its canonical form.
std::vector<ExpectedElement> evaluate_spec(const KernelSpec& spec, const SlotMemory& memory);

// The value of one element.
double read_element(const std::vector<std::byte>& bytes, DType dtype, int64_t index);
void write_element(std::vector<std::byte>& bytes, DType dtype, int64_t index, double value);
// Bytes of so many elements, padded to whole words.
size_t slot_bytes(DType dtype, int64_t elements);

}  // namespace meganeura::kernels
