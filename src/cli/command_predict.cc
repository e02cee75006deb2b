#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.h"
#include "cli/render_digit.h"
#include "cli/render_image_file.h"
#include "cli/task.h"
#include "meganeura/error.h"

namespace meganeura::cli {
namespace {

constexpr int kSide = 28;

struct PredictOptions {
  CommonOptions common;
  std::string task;
  std::string checkpoint;
  std::string data;
  std::string image;
  std::vector<int64_t> indices;
};

struct Picture {
  std::string source;
  std::vector<uint8_t> pixels;
  std::optional<uint32_t> label;
};

std::vector<Picture> pictures(const PredictOptions& options, const Task& task) {
  std::vector<Picture> result;
  if (!options.image.empty()) {
    const GrayImage image = to_mnist_form(read_gray_image(options.image));
    result.push_back({options.image, image.pixels, std::nullopt});
  }
  if (options.indices.empty()) return result;
  const Dataset test = read_mnist(data_directory(task, options.data), Split::kTest);
  for (int64_t index : options.indices) {
    const auto pixels = test.image(index);
    result.push_back({fmt::format("test image {}", index),
                      {pixels.begin(), pixels.end()},
                      test.labels[static_cast<size_t>(index)]});
  }
  return result;
}

std::vector<float> normalized(std::span<const uint8_t> pixels) {
  std::vector<float> values;
  for (uint8_t pixel : pixels) values.push_back(static_cast<float>(pixel) / 255.0f);
  return values;
}

void run(const PredictOptions& options) {
  const Task& task = find_task(options.task);
  const std::vector<Picture> inputs = pictures(options, task);
  if (inputs.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "There is nothing to classify. Name a test image with --index or a picture file "
                "with --image.");
  }
  const ModelShape shape = ModelShape::from_checkpoint(options.checkpoint);
  const Device device = Device::open({.select = options.common.device});
  ParameterStore store(device);
  Evaluator evaluator(device, shape, store, 1);
  load_parameters(options.checkpoint, store);
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Picture& picture : inputs) {
    const std::vector<float> probabilities = evaluator.probabilities(normalized(picture.pixels));
    const auto best = static_cast<size_t>(
        std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin());
    if (options.common.json) {
      nlohmann::ordered_json row = {{"source", picture.source},
                                    {"class", best},
                                    {"name", task.class_names[best]},
                                    {"probabilities", probabilities}};
      if (picture.label) row["label"] = *picture.label;
      json.push_back(std::move(row));
      continue;
    }
    fmt::print("{}: {}\n", picture.source, task.class_names[best]);
    fmt::print("{}\n", draw_prediction(picture.pixels, kSide, kSide, probabilities, picture.label,
                                       Terminal::of(stdout)));
  }
  if (options.common.json) fmt::print("{}\n", json.dump(2));
}

}  // namespace

void add_predict_command(CLI::App& program) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* command =
      program.add_subcommand("predict", "Classify an image and draw it with its probabilities");
  command->add_option("task", options->task, "mnist or fashion-mnist")->required();
  command->add_option("--checkpoint", options->checkpoint, "A file that `train` wrote")->required();
  command->add_option("--index", options->indices, "Test images to classify, such as 0,7,12")
      ->delimiter(',');
  command->add_option("--image", options->image, "A PNG or JPEG file of one digit");
  command->add_option("--data", options->data, "Directory of IDX files");
  add_device_option(*command, options->common);
  add_json_option(*command, options->common);
  command->callback([options] { run(*options); });
}

}  // namespace meganeura::cli
