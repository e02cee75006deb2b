#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/task.h"

namespace meganeura::cli {
namespace {

constexpr int64_t kBatch = 250;

struct EvalOptions {
  CommonOptions common;
  std::string task;
  std::string checkpoint;
  std::string data;
};

void run(const EvalOptions& options) {
  const Task& task = find_task(options.task);
  const ModelShape shape = ModelShape::from_checkpoint(options.checkpoint);
  const auto test =
      std::make_shared<const Dataset>(read_mnist(data_directory(task, options.data), Split::kTest));
  const Device device = Device::open({.select = options.common.device});
  ParameterStore store(device);
  Evaluator evaluator(device, shape, store, kBatch);
  load_parameters(options.checkpoint, store);
  const Evaluator::Result result = evaluator.evaluate(test);
  if (options.common.json) {
    const nlohmann::ordered_json json = {{"task", task.name},
                                         {"device", device.name()},
                                         {"checkpoint", options.checkpoint},
                                         {"test_images", result.images},
                                         {"test_correct", result.correct},
                                         {"test_accuracy", result.accuracy()},
                                         {"test_loss", result.loss}};
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print("{}: {} of {} test images right ({:.2f} %), mean loss {:.4f}, on {}\n", task.title,
             result.correct, result.images, 100.0 * result.accuracy(), result.loss, device.name());
}

}  // namespace

void add_eval_command(CLI::App& program) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command =
      program.add_subcommand("eval", "Measure a checkpoint on the test images it never saw");
  command->add_option("task", options->task, "mnist or fashion-mnist")->required();
  command->add_option("--checkpoint", options->checkpoint, "A file that `train` wrote")->required();
  command->add_option("--data", options->data, "Directory of IDX files");
  add_device_option(*command, options->common);
  add_json_option(*command, options->common);
  command->callback([options] { run(*options); });
}

}  // namespace meganeura::cli
