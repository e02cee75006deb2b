// Builds the spec of one kernel: a root value, and the reduction or contraction it may end.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/spec.h"
#include "meganeura/graph.h"
#include "schedule/expand.h"

namespace meganeura::schedule {

struct BuiltSpec {
  kernels::KernelSpec spec;
  std::vector<uint32_t> buffers;    // by slot
  std::set<uint32_t> tensors_read;  // whose buffers the kernel reads
  std::string label;
};

// What one kernel writes where.
struct Root {
  Tensor tensor;
  uint32_t buffer = 0;
  bool copy = false;  // the tensor has a buffer already; copy it
};

// The kernel that computes the root into its buffer; `anchor` is the heavy op inside it, if any.
// `buffer_of` maps tensors to buffers. Throws NeedsBuffer for a value that must be computed first.
BuiltSpec build_spec(const Root& root, std::optional<Tensor> anchor,
                     const std::map<uint32_t, uint32_t>& buffer_of);

}  // namespace meganeura::schedule
