// The boundary between compiler and run time: a serialisable value that a run-time library without
// a compiler can load and run.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "kernel_ir/capabilities.h"
#include "meganeura/dtype.h"
#include "meganeura/shape.h"

namespace meganeura {

enum class TensorKind : uint8_t { kParameter, kState, kInput, kOutput, kConstant };

// Bytes inside a memory of the program. Persistent tensors (parameters and states) live in the
// ParameterStore and are addressed by tensor index; the rest lies in arenas.
struct Region {
  enum class Space : uint8_t { kTensor, kInputs, kOutputs, kConstants, kScratch };
  Space space = Space::kScratch;
  uint32_t tensor = 0;  // for kTensor: index into Program::tensors
  uint64_t offset = 0;  // bytes; multiple of 256 (kTensor: of 4)
  uint64_t bytes = 0;
  bool operator==(const Region&) const = default;
};

struct ProgramTensor {
  std::string name;
  TensorKind kind = TensorKind::kInput;
  DType dtype = DType::kF32;
  Shape shape;
  Region region;            // where it lies; for persistent ones {kTensor, own index, 0, bytes}
  std::string initializer;  // Initializer text, persistent tensors only
  bool trainable = false;
  int64_t limit = 0;  // integer inputs: values must be below; 0 unchecked
};

enum class CodeKind : uint32_t { kSpirv = 1, kKernelText = 2 };

struct Module {
  std::string name;
  CodeKind code = CodeKind::kSpirv;
  std::vector<uint32_t> words;  // SPIR-V words, or text bytes padded with zeros
  BindingMode binding = BindingMode::kAddress;
  uint32_t slots = 0;
  uint32_t params = 0;  // u32 arguments after the addresses in push constants
  std::array<uint32_t, 3> local_size = {1, 1, 1};
  uint32_t subgroup_size = 0;  // required; 0: any
  bool operator==(const Module&) const = default;
};

struct Binding {
  Region region;
  bool read = false;
  bool write = false;
  bool operator==(const Binding&) const = default;
};

struct Dispatch {
  uint32_t module = 0;
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::vector<Binding> bindings;  // one per slot
  std::vector<uint32_t> params;
  std::string label;  // "reduce sum → loss", for profiles and errors
};

// Independent dispatches; one memory barrier between levels.
struct Level {
  std::vector<Dispatch> dispatches;
};

// Recorded once, replayed; host points may stand between segments.
struct Segment {
  std::string name;
  std::vector<Level> levels;
};

struct Program {
  std::string target;         // "vulkan1.2" or "interpreter"
  Capabilities capabilities;  // what it was compiled for
  std::vector<ProgramTensor> tensors;
  std::vector<Module> modules;
  std::vector<Segment> segments;
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;
  uint64_t scratch_bytes = 0;
  std::vector<std::byte> constants;
  uint64_t source_hash = 0;  // of graph text, options and compiler version

  const ProgramTensor* find(std::string_view name) const;
};

// File format: magic, version, sections with lengths and a checksum each. load throws Error(kFile)
// before anything is used: every length, index, offset and enum is checked.
std::vector<std::byte> serialize(const Program& program);
Program deserialize(std::span<const std::byte> bytes);
void save_program(const Program& program, const std::filesystem::path& path);
Program load_program(const std::filesystem::path& path);

// Consistency of indices, regions, alignment and slot counts; Error(kInternal) otherwise.
void verify_program(const Program& program);

// Hazards: throws Error(kInternal) naming both dispatches when two dispatches of one level touch
// overlapping bytes and at least one writes.
void check_hazards(const Program& program);

}  // namespace meganeura
