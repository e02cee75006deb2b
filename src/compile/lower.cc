#include "compile/lower.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "emit/spirv/emit.h"
#include "graph/node.h"
#include "kernel_ir/text.h"
#include "schedule/levels.h"

namespace meganeura::compiler {
namespace {

uint64_t slot_bytes(const schedule::Buffer& buffer) {
  const uint64_t bytes = storage_bytes(buffer.shape, buffer.dtype);
  return std::max<uint64_t>((bytes + 3) / 4 * 4, 4);
}

uint64_t aligned(uint64_t bytes) {
  return (bytes + memory::kAlignment - 1) / memory::kAlignment * memory::kAlignment;
}

bool reads(const kir::Slot& slot) { return slot.access != kir::SlotAccess::kWrite; }
bool writes(const kir::Slot& slot) { return slot.access != kir::SlotAccess::kRead; }

// Numbers distinct kernels by their text.
class KernelTable {
 public:
  uint32_t add(const kir::Kernel& kernel) {
    auto [entry, fresh] =
        index_.try_emplace(kir::to_string(kernel), static_cast<uint32_t>(kernels_.size()));
    if (fresh) kernels_.push_back(kernel);
    return entry->second;
  }
  std::vector<kir::Kernel> take() { return std::move(kernels_); }

 private:
  std::map<std::string, uint32_t> index_;
  std::vector<kir::Kernel> kernels_;
};

std::optional<TensorKind> leaf_kind(const Node& node) {
  switch (node.row->lowering) {
    case Lowering::kInput:
      return TensorKind::kInput;
    case Lowering::kParameter:
      return TensorKind::kParameter;
    case Lowering::kState:
      return TensorKind::kState;
    default:
      return std::nullopt;
  }
}

class Placer {
 public:
  Placer(const schedule::Schedule& schedule, const Planned& planned)
      : schedule_(schedule), planned_(planned) {}

  Placement place(bool reuse) {
    out_.regions.resize(schedule_.buffers.size() + planned_.scratch_bytes.size());
    for (uint32_t i = 0; i < schedule_.buffers.size(); ++i) place_buffer(i);
    for (const PlannedSegment& segment : planned_.segments) place_temporaries(segment, reuse);
    return std::move(out_);
  }

 private:
  void place_buffer(uint32_t index) {
    const schedule::Buffer& buffer = schedule_.buffers[index];
    const uint64_t bytes = slot_bytes(buffer);
    switch (buffer.kind) {
      case schedule::BufferKind::kLeaf:
        place_leaf(index, bytes);
        break;
      case schedule::BufferKind::kOutput: {
        const Region region{Region::Space::kOutputs, 0, out_.output_bytes, bytes};
        out_.output_bytes += aligned(bytes);
        out_.regions[index] = region;
        add_tensor(buffer, TensorKind::kOutput, region);
        break;
      }
      case schedule::BufferKind::kConstant: {
        const Bytes& data = buffer.tensor.node().get<Bytes>("data");
        out_.regions[index] = {Region::Space::kConstants, 0, out_.constants.size(), bytes};
        out_.constants.insert(out_.constants.end(), data->begin(), data->end());
        out_.constants.resize(aligned(out_.constants.size()));
        break;
      }
      case schedule::BufferKind::kTemporary:
        break;
    }
  }

  void place_leaf(uint32_t index, uint64_t bytes) {
    const schedule::Buffer& buffer = schedule_.buffers[index];
    const Node& node = buffer.tensor.node();
    const auto kind = leaf_kind(node);
    MG_CHECK(kind.has_value(), "buffer of ", describe(node), " is no leaf");
    Region region{Region::Space::kTensor, static_cast<uint32_t>(out_.tensors.size()), 0, bytes};
    if (*kind == TensorKind::kInput) {
      region = {Region::Space::kInputs, 0, out_.input_bytes, bytes};
      out_.input_bytes += aligned(bytes);
    } else {
      out_.persistent_bytes += aligned(bytes);
    }
    out_.regions[index] = region;
    ProgramTensor& tensor = add_tensor(buffer, *kind, region);
    if (*kind == TensorKind::kInput) {
      tensor.limit = node.get<int64_t>("limit");
    } else {
      tensor.initializer = node.get<std::string>("init");
      tensor.trainable = *kind == TensorKind::kParameter && node.get<bool>("trainable");
    }
  }

  ProgramTensor& add_tensor(const schedule::Buffer& buffer, TensorKind kind, Region region) {
    for (const ProgramTensor& tensor : out_.tensors) {
      if (tensor.name != buffer.name) continue;
      fail(ErrorKind::kInvalidArgument, "The name \"", buffer.name,
           "\" stands for two tensors of the program. Give every output a name of its own that no "
           "input, parameter or state has.");
    }
    ProgramTensor tensor;
    tensor.name = buffer.name;
    tensor.kind = kind;
    tensor.dtype = buffer.dtype;
    tensor.shape = buffer.shape;
    tensor.region = region;
    out_.tensors.push_back(std::move(tensor));
    return out_.tensors.back();
  }

  void place_temporaries(const PlannedSegment& segment, bool reuse) {
    std::map<uint32_t, memory::Lifetime> lives;
    for (const PlannedDispatch& dispatch : segment.dispatches) {
      for (uint32_t memory : dispatch.memories) {
        const uint64_t bytes = temporary_bytes(memory);
        if (bytes == 0) continue;
        auto [life, fresh] =
            lives.try_emplace(memory, memory::Lifetime{bytes, dispatch.level, dispatch.level});
        life->second.first = std::min(life->second.first, dispatch.level);
        life->second.last = std::max(life->second.last, dispatch.level);
      }
    }
    std::vector<memory::Lifetime> list;
    for (const auto& [memory, life] : lives) list.push_back(life);
    const memory::Plan plan = memory::plan_arena(list, reuse);
    size_t next = 0;
    for (const auto& [memory, life] : lives) {
      out_.regions[memory] = {Region::Space::kScratch, 0, plan.offsets[next++], life.bytes};
    }
    out_.scratch_bytes = std::max(out_.scratch_bytes, plan.bytes);
    out_.live_peak_bytes = std::max(out_.live_peak_bytes, plan.live_peak);
  }

  uint64_t temporary_bytes(uint32_t memory) const {
    if (memory >= schedule_.buffers.size()) {
      return planned_.scratch_bytes[memory - schedule_.buffers.size()];
    }
    const schedule::Buffer& buffer = schedule_.buffers[memory];
    return buffer.kind == schedule::BufferKind::kTemporary ? slot_bytes(buffer) : 0;
  }

  const schedule::Schedule& schedule_;
  const Planned& planned_;
  Placement out_;
};

}  // namespace

Planned plan_kernels(const schedule::Schedule& schedule, const Capabilities& capabilities) {
  Planned planned;
  KernelTable table;
  std::map<std::string, kernels::KernelPlan> plans;
  for (const schedule::SegmentSchedule& segment : schedule.segments) {
    PlannedSegment& out = planned.segments.emplace_back();
    out.name = segment.name;
    for (const schedule::ScheduledKernel& kernel : segment.kernels) {
      const kernels::KernelSpec spec = kernels::canonicalize(kernel.spec);
      auto [entry, fresh] = plans.try_emplace(kernels::to_string(spec));
      if (fresh) entry->second = kernels::build(spec, capabilities);
      const kernels::KernelPlan& plan = entry->second;
      uint32_t scratch = 0;
      if (plan.scratch_bytes > 0) {
        scratch = static_cast<uint32_t>(schedule.buffers.size() + planned.scratch_bytes.size());
        planned.scratch_bytes.push_back((plan.scratch_bytes + 3) / 4 * 4);
      }
      for (const kernels::Stage& stage : plan.stages) {
        PlannedDispatch dispatch;
        dispatch.kernel = table.add(stage.kernel);
        for (uint32_t slot : stage.slots) {
          dispatch.memories.push_back(slot == kernels::Stage::kScratch ? scratch
                                                                       : kernel.buffers.at(slot));
        }
        dispatch.grid = stage.grid;
        dispatch.params = stage.params;
        dispatch.label = cat(kernel.label, " (", plan.tile, ")");
        out.dispatches.push_back(std::move(dispatch));
      }
    }
  }
  planned.kernels = table.take();
  return planned;
}

void plan_levels(Planned& planned) {
  for (PlannedSegment& segment : planned.segments) {
    std::vector<schedule::Touches> touches;
    for (const PlannedDispatch& dispatch : segment.dispatches) {
      const kir::Kernel& kernel = planned.kernels[dispatch.kernel];
      MG_CHECK(kernel.slots.size() == dispatch.memories.size(), "kernel ", kernel.name, " has ",
               kernel.slots.size(), " slots but ", dispatch.memories.size(), " memories");
      schedule::Touches touched;
      for (size_t slot = 0; slot < kernel.slots.size(); ++slot) {
        if (reads(kernel.slots[slot])) touched.reads.push_back(dispatch.memories[slot]);
        if (writes(kernel.slots[slot])) touched.writes.push_back(dispatch.memories[slot]);
      }
      touches.push_back(std::move(touched));
    }
    const std::vector<uint32_t> levels = schedule::assign_levels(touches);
    segment.levels = 0;
    for (size_t i = 0; i < levels.size(); ++i) {
      segment.dispatches[i].level = levels[i];
      segment.levels = std::max(segment.levels, levels[i] + 1);
    }
  }
}

Placement place_memory(const schedule::Schedule& schedule, const Planned& planned, bool reuse) {
  return Placer(schedule, planned).place(reuse);
}

std::vector<Module> emit_modules(const Planned& planned, const Capabilities& capabilities,
                                 CodeKind code) {
  std::vector<Module> modules;
  for (const kir::Kernel& kernel : planned.kernels) {
    Module module;
    module.name = kernel.name;
    module.code = code;
    module.words = code == CodeKind::kSpirv ? emit_spirv(kernel, capabilities)
                                            : kir::pack_text(kir::to_string(kernel));
    module.binding = capabilities.binding;
    module.slots = static_cast<uint32_t>(kernel.slots.size());
    module.params = kernel.params;
    module.local_size = kernel.local_size;
    module.subgroup_size = kernel.subgroup_size;
    modules.push_back(std::move(module));
  }
  return modules;
}

Program assemble(const Planned& planned, Placement placement, std::vector<Module> modules,
                 const Capabilities& capabilities, CodeKind code) {
  Program program;
  program.target = code == CodeKind::kSpirv ? "vulkan1.2" : "interpreter";
  program.capabilities = capabilities;
  program.tensors = std::move(placement.tensors);
  program.modules = std::move(modules);
  program.input_bytes = placement.input_bytes;
  program.output_bytes = placement.output_bytes;
  program.scratch_bytes = placement.scratch_bytes;
  program.constants = std::move(placement.constants);
  for (const PlannedSegment& planned_segment : planned.segments) {
    Segment segment;
    segment.name = planned_segment.name;
    segment.levels.resize(planned_segment.levels);
    for (const PlannedDispatch& from : planned_segment.dispatches) {
      const kir::Kernel& kernel = planned.kernels[from.kernel];
      Dispatch dispatch;
      dispatch.module = from.kernel;
      dispatch.grid = from.grid;
      dispatch.params = from.params;
      dispatch.label = from.label;
      for (size_t slot = 0; slot < from.memories.size(); ++slot) {
        dispatch.bindings.push_back({placement.regions[from.memories[slot]],
                                     reads(kernel.slots[slot]), writes(kernel.slots[slot])});
      }
      segment.levels[from.level].dispatches.push_back(std::move(dispatch));
    }
    program.segments.push_back(std::move(segment));
  }
  return program;
}

std::string to_string(const Program& program) {
  static constexpr std::string_view kSpaces[] = {"tensor", "inputs", "outputs", "constants",
                                                 "scratch"};
  static constexpr std::string_view kKinds[] = {"parameter", "state", "input", "output",
                                                "constant"};
  std::string out = cat("target ", program.target, ", inputs ", program.input_bytes, " B, outputs ",
                        program.output_bytes, " B, constants ", program.constants.size(),
                        " B, scratch ", program.scratch_bytes, " B\n");
  for (const ProgramTensor& tensor : program.tensors) {
    out += cat(kKinds[static_cast<size_t>(tensor.kind)], " ", tensor.name, ": ", tensor.dtype,
               tensor.shape, "\n");
  }
  for (const Segment& segment : program.segments) {
    out += cat("segment ", segment.name, "\n");
    for (size_t level = 0; level < segment.levels.size(); ++level) {
      out += cat("  level ", level, "\n");
      for (const Dispatch& dispatch : segment.levels[level].dispatches) {
        out += cat("    ", dispatch.label, ": module ", dispatch.module, " grid ",
                   join(dispatch.grid, "x"));
        for (const Binding& binding : dispatch.bindings) {
          const Region& region = binding.region;
          const bool named = region.space == Region::Space::kTensor;
          out += cat(" ", binding.read ? "r" : "", binding.write ? "w" : "", ":",
                     named ? program.tensors[region.tensor].name
                           : cat(kSpaces[static_cast<size_t>(region.space)], "+", region.offset));
        }
        out += "\n";
      }
    }
  }
  return out;
}

}  // namespace meganeura::compiler
