// The passes between schedule and program.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernel_ir/capabilities.h"
#include "kernels/archetypes.h"
#include "memory/plan.h"
#include "program/program.h"
#include "schedule/schedule.h"

namespace meganeura::compiler {

// One dispatch before memory is known. Memories are numbered: the schedule's buffers first, then
// the scratch of multi-stage kernels.
struct PlannedDispatch {
  uint32_t kernel = 0;             // into PlannedSegments::kernels
  std::vector<uint32_t> memories;  // by slot
  std::array<uint32_t, 3> grid{};
  std::vector<uint32_t> params;
  std::string label;
  uint32_t level = 0;
};

struct PlannedSegment {
  std::string name;
  std::vector<PlannedDispatch> dispatches;
  uint32_t levels = 0;
};

struct Planned {
  std::vector<kir::Kernel> kernels;     // distinct ones
  std::vector<uint64_t> scratch_bytes;  // of memory buffers.size() + i
  std::vector<PlannedSegment> segments;
};

// Chooses an archetype and tile for every scheduled kernel; equal kernels become one.
Planned plan_kernels(const schedule::Schedule& schedule, const Capabilities& capabilities);

// Fills in the levels.
void plan_levels(Planned& planned);

// Where every memory lies, and what the arenas need.
struct Placement {
  std::vector<Region> regions;  // by memory
  std::vector<ProgramTensor> tensors;
  std::vector<std::byte> constants;
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;
  uint64_t scratch_bytes = 0;
  uint64_t live_peak_bytes = 0;
  uint64_t persistent_bytes = 0;
};
Placement place_memory(const schedule::Schedule& schedule, const Planned& planned, bool reuse);

// Kernels as modules of the kind of code the device runs.
std::vector<Module> emit_modules(const Planned& planned, const Capabilities& capabilities,
                                 CodeKind code);

// Everything together.
Program assemble(const Planned& planned, Placement placement, std::vector<Module> modules,
                 const Capabilities& capabilities, CodeKind code);

// Segments, levels, dispatches and memory as text.
std::string to_string(const Program& program);

}  // namespace meganeura::compiler
