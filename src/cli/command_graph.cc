#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/commands.h"
#include "cli/task.h"
#include "meganeura/autodiff.h"
#include "meganeura/compile.h"
#include "meganeura/error.h"
#include "program/program.h"

namespace meganeura::cli {
namespace {

constexpr const char* kStages[] = {"graph", "schedule", "kernels", "spirv", "program"};

const std::map<std::string, DeviceClass> kDeviceClasses = {
    {"cpu", DeviceClass::kCpu},
    {"small-gpu", DeviceClass::kSmallGpu},
    {"large-gpu", DeviceClass::kLargeGpu},
    {"apple", DeviceClass::kApple},
};

struct GraphOptions {
  CommonOptions common;
  std::string task;
  std::string stage = "graph";
  std::vector<int64_t> hidden = {128};
  int64_t batch = 64;
  bool forward_only = false;
  std::vector<std::string> disable;
  std::string dump;
  std::string device_class;
};

SegmentOutputs forward_outputs(const TrainingGraph& model) {
  return {"forward", {{"logits", model.logits}, {"loss", model.loss}}};
}

// Loss, gradients and a plain gradient-descent update: a training step at its smallest.
SegmentOutputs training_outputs(TrainingGraph& model) {
  const StepInputs inputs = step_inputs(model.graph);
  const std::vector<Tensor> parameters = trainable_parameters(model.loss);
  const std::vector<Tensor> gradients = grad(model.loss, parameters);
  const std::vector<Tensor> updates =
      apply(model.graph, SGD{}, parameters, gradients, inputs.learning_rate, inputs.updates);
  SegmentOutputs segment{"step", {{"loss", model.loss}}};
  for (size_t i = 0; i < updates.size(); ++i) {
    segment.outputs.push_back({fmt::format("update{}", i), updates[i]});
  }
  return segment;
}

void run(const GraphOptions& options) {
  const Task& task = find_task(options.task);
  ModelShape shape{std::string(task.name), {28 * 28}};
  shape.widths.insert(shape.widths.end(), options.hidden.begin(), options.hidden.end());
  shape.widths.push_back(static_cast<int64_t>(task.class_names.size()));
  TrainingGraph model(shape, options.batch);
  const SegmentOutputs segment =
      options.forward_only ? forward_outputs(model) : training_outputs(model);
  CompileOptions compile_options;
  compile_options.disable = options.disable;
  compile_options.dump = options.dump;
  compile_options.keep_text = true;
  CompileReport report;
  if (!options.device_class.empty()) {
    const Capabilities typical = typical_capabilities(kDeviceClasses.at(options.device_class));
    compile({&segment, 1}, typical, CodeKind::kSpirv, compile_options, &report);
  } else {
    const Device device = Device::open({.select = options.common.device});
    compile({&segment, 1}, device, compile_options, &report);
  }
  for (const StageText& stage : report.stages) {
    if (stage.stage == options.stage) fmt::print("{}", stage.text);
  }
}

}  // namespace

void add_graph_command(CLI::App& program) {
  auto options = std::make_shared<GraphOptions>();
  CLI::App* command = program.add_subcommand(
      "graph", "Print a model at any stage of compilation: graph, schedule, kernels, SPIR-V");
  command->add_option("task", options->task, "mnist or fashion-mnist")->required();
  command->add_option("--stage", options->stage, "graph, schedule, kernels, spirv or program")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kStages), std::end(kStages))))
      ->capture_default_str();
  command->add_option("--hidden", options->hidden, "Widths of the hidden layers")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--batch", options->batch, "Images per step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--forward", options->forward_only, "Without gradients and update");
  command->add_option("--disable", options->disable,
                      "Optional passes to leave out: fuse, merge, reuse-memory");
  command->add_option("--dump", options->dump, "Also write every stage to this directory");
  std::vector<std::string> device_classes;
  for (const auto& [name, device_class] : kDeviceClasses) device_classes.push_back(name);
  command
      ->add_option("--device-class", options->device_class,
                   "Compile for a typical device of this class, which need not be present")
      ->check(CLI::IsMember(device_classes));
  add_device_option(*command, options->common);
  command->callback([options] { run(*options); });
}

}  // namespace meganeura::cli
