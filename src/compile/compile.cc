#include "meganeura/compile.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include "base/check.h"
#include "compile/lower.h"
#include "device/device.h"
#include "emit/spirv/disassemble.h"
#include "graph/node.h"

namespace meganeura {
namespace {

constexpr std::string_view kOptionalPasses[] = {"fuse", "merge", "reuse-memory"};
// Changes whenever the same graph may compile to another program.
constexpr std::string_view kCompilerVersion = "meganeura 0.1.0";

// Run-time arguments that a kernel may need beside its slots.
constexpr uint32_t kReservedParams = 8;

uint64_t hash_text(std::string_view text, uint64_t seed) {
  uint64_t hash = seed;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

// Runs passes by name: times them and keeps the text of their results where that is wanted.
class Pipeline {
 public:
  Pipeline(const CompileOptions& options, CompileReport& report)
      : options_(options), report_(report) {
    for (const std::string& name : options_.disable) {
      if (std::find(std::begin(kOptionalPasses), std::end(kOptionalPasses), name) !=
          std::end(kOptionalPasses)) {
        continue;
      }
      fail(ErrorKind::kInvalidArgument, "There is no optional pass \"", name,
           "\"; the ones that can be disabled are ", join(kOptionalPasses), ".");
    }
  }

  bool enabled(std::string_view name) const {
    return std::find(options_.disable.begin(), options_.disable.end(), name) ==
           options_.disable.end();
  }

  template <class Pass>
  auto run(std::string name, const Pass& pass) {
    const auto start = std::chrono::steady_clock::now();
    auto result = pass();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    report_.passes.push_back({std::move(name), took.count(), true});
    return result;
  }

  // `text` is called only when somebody wants it.
  template <class Text>
  void show(std::string_view stage, const Text& text) {
    if (!options_.keep_text && options_.dump.empty()) return;
    std::string content = text();
    if (!options_.dump.empty()) write(stage, content);
    if (options_.keep_text) report_.stages.push_back({std::string(stage), std::move(content)});
  }

 private:
  void write(std::string_view stage, const std::string& content) const {
    std::filesystem::create_directories(options_.dump);
    const std::filesystem::path path = options_.dump / cat(stage, ".txt");
    std::ofstream file(path, std::ios::binary);
    file << content;
    if (!file.flush())
      fail(ErrorKind::kFile, "The stage dump ", path.string(), " could not be written.");
  }

  const CompileOptions& options_;
  CompileReport& report_;
};

std::vector<Output> all_outputs(std::span<const SegmentOutputs> segments) {
  std::vector<Output> outputs;
  for (const SegmentOutputs& segment : segments) {
    outputs.insert(outputs.end(), segment.outputs.begin(), segment.outputs.end());
  }
  if (outputs.empty()) {
    fail(ErrorKind::kInvalidArgument,
         "There is nothing to compile: no segment has an output. Name at least one.");
  }
  for (const Output& output : outputs) {
    if (output.tensor && &output.tensor.graph() == &outputs[0].tensor.graph()) continue;
    fail(ErrorKind::kInvalidArgument, "The output \"", output.name,
         "\" is empty or belongs to another graph than the first output.");
  }
  return outputs;
}

std::string kernels_text(const compiler::Planned& planned) {
  std::string text;
  for (const kir::Kernel& kernel : planned.kernels) text += kir::to_string(kernel) + "\n";
  return text;
}

std::string spirv_text(const std::vector<Module>& modules) {
  std::string text;
  for (const Module& module : modules) {
    text += cat("; module ", module.name, "\n");
    if (module.code == CodeKind::kSpirv) text += disassemble_spirv(module.words) + "\n";
  }
  return text;
}

void fill_report(CompileReport& report, const Program& program, const compiler::Planned& planned,
                 uint64_t live_peak, uint64_t persistent) {
  report.modules = static_cast<uint32_t>(program.modules.size());
  for (const compiler::PlannedSegment& segment : planned.segments) {
    report.kernels += static_cast<uint32_t>(segment.dispatches.size());
    report.levels += segment.levels;
  }
  report.scratch_bytes = program.scratch_bytes;
  report.live_peak_bytes = live_peak;
  report.persistent_bytes = persistent;
}

}  // namespace

std::shared_ptr<const Program> compile(std::span<const SegmentOutputs> segments,
                                       const Device& device, const CompileOptions& options,
                                       CompileReport* report) {
  const device::Device& target = device.implementation();
  return compile(segments, target.capabilities(), target.code(), options, report);
}

std::shared_ptr<const Program> compile(std::span<const SegmentOutputs> segments,
                                       const Capabilities& capabilities, CodeKind code,
                                       const CompileOptions& options, CompileReport* report) {
  CompileReport local;
  CompileReport& out = report != nullptr ? *report : local;
  out = {};
  Pipeline pipeline(options, out);
  const std::vector<Output> outputs = all_outputs(segments);

  const std::string graph_text = pipeline.run("verify", [&] {
    for (const SegmentOutputs& segment : segments) {
      std::vector<Tensor> roots;
      for (const Output& output : segment.outputs) roots.push_back(output.tensor);
      if (options.verify) verify_graph(roots);
    }
    return print_graph(outputs);
  });
  pipeline.show("graph", [&] { return graph_text; });

  const schedule::Schedule scheduled = pipeline.run("schedule", [&] {
    schedule::ScheduleOptions schedule_options;
    schedule_options.fuse = pipeline.enabled("fuse");
    schedule_options.merge = pipeline.enabled("merge");
    schedule_options.contraction_epilogues = capabilities.device_class != DeviceClass::kCpu;
    schedule_options.max_slots = kernels::max_slots(capabilities, kReservedParams);
    std::vector<schedule::SegmentRoots> roots;
    for (const SegmentOutputs& segment : segments) {
      roots.push_back({segment.name, segment.outputs});
    }
    return schedule::make_schedule(roots, schedule_options);
  });
  pipeline.show("schedule", [&] { return schedule::to_string(scheduled); });

  compiler::Planned planned =
      pipeline.run("kernels", [&] { return compiler::plan_kernels(scheduled, capabilities); });
  pipeline.show("kernels", [&] { return kernels_text(planned); });

  pipeline.run("levels", [&] {
    compiler::plan_levels(planned);
    return 0;
  });
  compiler::Placement placement = pipeline.run("memory", [&] {
    return compiler::place_memory(scheduled, planned, pipeline.enabled("reuse-memory"));
  });
  const uint64_t live_peak = placement.live_peak_bytes;
  const uint64_t persistent = placement.persistent_bytes;

  std::vector<Module> modules =
      pipeline.run("emit", [&] { return compiler::emit_modules(planned, capabilities, code); });
  pipeline.show("spirv", [&] { return spirv_text(modules); });

  auto program = std::make_shared<Program>(pipeline.run("assemble", [&] {
    Program assembled =
        compiler::assemble(planned, std::move(placement), std::move(modules), capabilities, code);
    uint64_t hash = hash_text(kCompilerVersion, 14695981039346656037ull);
    hash = hash_text(graph_text, hash);
    assembled.source_hash = hash_text(join(options.disable), hash);
    if (options.verify) {
      verify_program(assembled);
      check_hazards(assembled);
    }
    return assembled;
  }));
  pipeline.show("program", [&] { return compiler::to_string(*program); });
  fill_report(out, *program, planned, live_peak, persistent);
  return program;
}

}  // namespace meganeura
