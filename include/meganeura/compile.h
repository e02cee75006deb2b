// Graph to program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "meganeura/device.h"
#include "meganeura/export.h"
#include "meganeura/graph.h"

namespace meganeura {

struct Capabilities;
enum class CodeKind : uint32_t;
struct Program;

// Outputs computed by one segment. assign() tensors among them update persistent tensors.
struct SegmentOutputs {
  std::string name;
  std::vector<Output> outputs;
};

struct CompileOptions {
  // Optional passes to leave out: "fuse", "merge", "reuse-memory". Error(kInvalidArgument) naming
  // the known ones for any other name.
  std::vector<std::string> disable;
  std::filesystem::path dump;  // directory for the text of every stage; empty: none
  bool keep_text = false;      // put the same text into the report
  bool verify = true;          // run the verifiers after every pass
};

struct PassTime {
  std::string name;
  double milliseconds = 0;
  bool changed = true;
};

// A stage of compilation as text: "graph", "schedule", "kernels", "spirv", "program".
struct StageText {
  std::string stage;
  std::string text;
};

struct CompileReport {
  std::vector<StageText> stages;  // with keep_text only
  std::vector<PassTime> passes;
  uint32_t kernels = 0;
  uint32_t modules = 0;
  uint32_t levels = 0;
  uint64_t scratch_bytes = 0;
  uint64_t live_peak_bytes = 0;  // lower bound for scratch
  uint64_t persistent_bytes = 0;
};

// Throws Error naming what cannot be compiled. Deterministic.
MEGANEURA_API std::shared_ptr<const Program> compile(std::span<const SegmentOutputs> segments,
                                                     const Device& device,
                                                     const CompileOptions& options = {},
                                                     CompileReport* report = nullptr);

// The same for a device that need not be present: its capabilities and the code it runs.
MEGANEURA_API std::shared_ptr<const Program> compile(std::span<const SegmentOutputs> segments,
                                                     const Capabilities& capabilities,
                                                     CodeKind code,
                                                     const CompileOptions& options = {},
                                                     CompileReport* report = nullptr);

}  // namespace meganeura
