// The image classification tasks that the command line trains and runs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meganeura/data.h"
#include "meganeura/device.h"
#include "meganeura/models.h"
#include "meganeura/session.h"
#include "meganeura/trainer.h"

namespace meganeura::cli {

struct Task {
  std::string_view name;
  std::string_view title;
  std::vector<std::filesystem::path> directories;  // where its files may lie, best first
  std::string_view remedy;                         // how to get them
  std::vector<std::string_view> class_names;
};

// Error(kInvalidArgument) listing the tasks for an unknown name.
const Task& find_task(std::string_view name);
std::vector<std::string> task_names();

// The directory that holds the task's data: `chosen` if not empty, else the first of the task's
// that exists. Error(kFile) saying how to get the data.
std::filesystem::path data_directory(const Task& task, const std::filesystem::path& chosen);

// A classifier as the checkpoint's metadata describes it.
struct ModelShape {
  std::string task;
  std::vector<int64_t> widths;  // of the perceptron's layers, input and output included

  std::vector<std::pair<std::string, std::string>> to_metadata() const;
  // Error(kFile) when the checkpoint was not written by `meganeura train`.
  static ModelShape from_checkpoint(const std::filesystem::path& path);
};

// The training graph: loss over a batch of normalised images.
struct TrainingGraph {
  TrainingGraph(const ModelShape& shape, int64_t batch);
  Graph graph;
  Tensor image;
  Tensor label;
  models::Mlp model;
  Tensor logits;
  Tensor loss;
  Tensor correct;  // u32 count in the batch
};

// Class probabilities, arg max and loss per image, sharing parameters with training.
class Evaluator {
 public:
  Evaluator(const Device& device, const ModelShape& shape, ParameterStore& store, int64_t batch);

  struct Result {
    int64_t images = 0;
    int64_t correct = 0;
    double loss = 0.0;  // mean
    double accuracy() const {
      return images == 0 ? 0.0 : static_cast<double>(correct) / static_cast<double>(images);
    }
  };
  // Every image of the data set once; padding rows of the last batch do not count.
  Result evaluate(const std::shared_ptr<const Dataset>& dataset);
  // Class probabilities of one image of normalised pixels.
  std::vector<float> probabilities(std::span<const float> pixels);

 private:
  int64_t batch_;
  int64_t pixels_;
  int64_t classes_;
  std::shared_ptr<const Program> program_;
  std::unique_ptr<Session> session_;
};

}  // namespace meganeura::cli
