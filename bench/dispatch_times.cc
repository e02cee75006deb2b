// Times every dispatch of the MNIST training step alone: recorded once, run many times, minimum.
//
// usage: mg_dispatch_times [DEVICE] [HIDDEN,…]      e.g. mg_dispatch_times llvmpipe 256,128
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "cli/task.h"
#include "device/device.h"
#include "meganeura/autodiff.h"
#include "meganeura/compile.h"
#include "meganeura/trainer.h"
#include "program/program.h"

namespace mg = meganeura;

namespace {

constexpr int kRuns = 15;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// One memory per space and persistent tensor; contents do not matter for time.
class Memories {
 public:
  Memories(mg::device::Device& device, const mg::Program& program)
      : device_(device), program_(program) {}

  mg::device::Span span(const mg::Region& region) {
    const bool tensor = region.space == mg::Region::Space::kTensor;
    const auto key = std::pair(static_cast<int>(region.space), tensor ? region.tensor : 0);
    auto& memory = memories_[key];
    if (!memory) memory = device_.allocate(size_of(region), mg::device::MemoryKind::kDevice);
    return {memory.get(), region.offset, region.bytes};
  }

 private:
  uint64_t size_of(const mg::Region& region) const {
    switch (region.space) {
      case mg::Region::Space::kInputs:
        return program_.input_bytes;
      case mg::Region::Space::kOutputs:
        return program_.output_bytes;
      case mg::Region::Space::kConstants:
        return program_.constants.size();
      case mg::Region::Space::kScratch:
        return program_.scratch_bytes;
      case mg::Region::Space::kTensor:
        return (region.bytes + 255) / 256 * 256;
    }
    return region.bytes;
  }

  mg::device::Device& device_;
  const mg::Program& program_;
  std::map<std::pair<int, uint32_t>, std::unique_ptr<mg::device::Memory>> memories_;
};

}  // namespace

int main(int argc, char** argv) try {
  const mg::Device device = mg::Device::open({.select = argc > 1 ? argv[1] : ""});
  mg::device::Device& implementation = device.implementation();
  mg::cli::ModelShape shape{"mnist", {784, 256, 128, 10}};
  mg::cli::TrainingGraph model(shape, 64);
  mg::Trainer trainer(device, model.loss, {.optimizer = mg::AdamW{}});
  const mg::Program& program = trainer.program();
  const auto pipelines = implementation.create_pipelines(program.modules);
  Memories memories(implementation, program);
  double total = 0.0;
  for (const mg::Segment& segment : program.segments) {
    for (size_t level = 0; level < segment.levels.size(); ++level) {
      for (const mg::Dispatch& dispatch : segment.levels[level].dispatches) {
        mg::device::Command command;
        command.kind = mg::device::Command::Kind::kDispatch;
        command.pipeline = pipelines[dispatch.module].get();
        command.grid = dispatch.grid;
        command.params = dispatch.params;
        for (const mg::Binding& binding : dispatch.bindings) {
          command.bindings.push_back({memories.span(binding.region), binding.read, binding.write});
        }
        const auto recording = implementation.record(std::span(&command, 1));
        double best = 1e9;
        double first = 0.0;
        for (int run = 0; run < kRuns; ++run) {
          const double start = seconds_now();
          mg::device::Recording* const one = recording.get();
          implementation.wait(implementation.submit(std::span(&one, 1)));
          const double took = seconds_now() - start;
          if (run == 0) first = took;
          best = std::min(best, took);
        }
        total += best;
        std::printf("%3zu %9.1f us  first %7.1f ms  %s\n", level, 1e6 * best, 1e3 * first,
                    dispatch.label.c_str());
      }
    }
  }
  std::printf("sum %9.1f us\n", 1e6 * total);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
