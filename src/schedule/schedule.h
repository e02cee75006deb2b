// Graph to kernel specs: which values get a buffer, what is fused into which kernel, in which
// sequential order kernels may run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernel_ir/capabilities.h"
#include "kernels/spec.h"
#include "meganeura/graph.h"

namespace meganeura::schedule {

enum class BufferKind : uint8_t {
  kLeaf,       // an input, parameter or state: the memory of that tensor
  kConstant,   // bytes known now
  kOutput,     // a named result of a segment
  kTemporary,  // planned into scratch; lives inside one segment
};

struct Buffer {
  BufferKind kind = BufferKind::kTemporary;
  DType dtype = DType::kF32;
  Shape shape;
  std::string name;  // of the leaf or output; "" otherwise
  Tensor tensor;     // the node it holds first
};

// A kernel to build: slot i of the spec is buffers[i].
struct ScheduledKernel {
  kernels::KernelSpec spec;
  std::vector<uint32_t> buffers;
  std::string label;
};

// Kernels in an order in which running them one after the other is right; hazards between them
// follow from what they read and write.
struct SegmentSchedule {
  std::string name;
  std::vector<ScheduledKernel> kernels;
};

struct Schedule {
  std::vector<Buffer> buffers;
  std::vector<SegmentSchedule> segments;
};

struct SegmentRoots {
  std::string name;
  std::vector<Output> outputs;
};

struct ScheduleOptions {
  bool fuse = true;  // inline elementwise producers and epilogues
  // Epilogues of contractions: less traffic, but a module per epilogue, which costs where modules
  // take long to compile.
  bool contraction_epilogues = true;
  bool merge = true;        // merge elementwise kernels that hand values on in place
  uint32_t max_slots = 12;  // per kernel
};

// Throws Error(kUnsupported) naming node and place for what no kernel can do.
Schedule make_schedule(std::span<const SegmentRoots> segments, const ScheduleOptions& options);

// Text of buffers and kernels, for dumps.
std::string to_string(const Schedule& schedule);

}  // namespace meganeura::schedule
