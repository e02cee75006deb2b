#include "cli/task.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "meganeura/ops.h"
#include "meganeura/safetensors.h"

namespace meganeura::cli {
namespace {

constexpr int64_t kSide = 28;

const std::vector<Task>& tasks() {
  static const std::vector<Task> all = {
      {"mnist",
       "MNIST handwritten digits",
       {"data/mnist-full", "data/mnist"},
       "Run from the repository's root, where data/mnist holds 12,000 + 2,000 images, name a "
       "directory with --data, or fetch all 70,000 with scripts/fetch_mnist.sh.",
       {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}},
      {"fashion-mnist",
       "Fashion-MNIST articles of clothing",
       {"/usr/share/datasets/fashion-mnist"},
       "Install Debian's package dataset-fashion-mnist, or name a directory with --data.",
       {"t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag",
        "ankle boot"}},
  };
  return all;
}

std::vector<int64_t> parse_widths(std::string_view text, std::string_view file) {
  std::vector<int64_t> widths;
  while (!text.empty()) {
    int64_t width = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), width);
    if (code != std::errc() || width <= 0) {
      fail(ErrorKind::kFile, "The layer widths in the metadata of ", file,
           " are damaged; train the model again.");
    }
    widths.push_back(width);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.starts_with(",")) text.remove_prefix(1);
  }
  return widths;
}

}  // namespace

const Task& find_task(std::string_view name) {
  for (const Task& task : tasks()) {
    if (task.name == name) return task;
  }
  fail(ErrorKind::kInvalidArgument, "There is no task \"", name, "\"; the tasks are ",
       join(task_names()), ".");
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const Task& task : tasks()) names.emplace_back(task.name);
  return names;
}

std::filesystem::path data_directory(const Task& task, const std::filesystem::path& chosen) {
  if (!chosen.empty()) return chosen;
  for (const std::filesystem::path& directory : task.directories) {
    if (std::filesystem::is_directory(directory)) return directory;
  }
  fail(ErrorKind::kFile, "There is no data for ", task.title, " here. ", task.remedy);
}

std::vector<std::pair<std::string, std::string>> ModelShape::to_metadata() const {
  return {{"task", task}, {"widths", join(widths, ",")}};
}

ModelShape ModelShape::from_checkpoint(const std::filesystem::path& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const Metadata& metadata = file.metadata();
  const auto task = metadata.find("extra.task");
  const auto widths = metadata.find("extra.widths");
  if (task == metadata.end() || widths == metadata.end()) {
    fail(ErrorKind::kFile, "The file ", path.string(),
         " does not say which model it holds. Use a checkpoint written by `meganeura train`.");
  }
  return {task->second, parse_widths(widths->second, path.string())};
}

TrainingGraph::TrainingGraph(const ModelShape& shape, int64_t batch)
    : image(graph.input("image", f32, Shape{batch, 1, kSide, kSide})),
      label(graph.input("label", u32, Shape{batch})),
      model(graph, "layers", shape.widths),
      logits(model(image)),
      loss(cross_entropy(logits, label)),
      correct(sum(cast(equal(arg_max(logits, {1}), label), u32))) {}

Evaluator::Evaluator(const Device& device, const ModelShape& shape, ParameterStore& store,
                     int64_t batch)
    : batch_(batch), pixels_(shape.widths.front()), classes_(shape.widths.back()) {
  Graph graph;
  const Tensor image = graph.input("image", f32, Shape{batch, 1, kSide, kSide});
  const Tensor label = graph.input("label", u32, Shape{batch});
  const models::Mlp model(graph, "layers", shape.widths);
  const Tensor logits = model(image);
  const Tensor losses = cross_entropy(logits, label, {.reduction = Reduction::kNone});
  const SegmentOutputs segment{
      "evaluate",
      {{"probability", softmax(logits, 1)}, {"class", arg_max(logits, {1})}, {"losses", losses}}};
  program_ = compile({&segment, 1}, device);
  session_ = std::make_unique<Session>(device, *program_, store);
}

Evaluator::Result Evaluator::evaluate(const std::shared_ptr<const Dataset>& dataset) {
  DataLoader loader(dataset, {.batch_size = batch_, .shuffle = false});
  Result result;
  bool last = false;
  while (!last) {
    const Batch batch = loader.next();
    last = batch.last_of_epoch;
    session_->set("image", {batch.images.data(), f32, Shape{batch_, 1, kSide, kSide}});
    session_->set("label", {batch.labels.data(), u32, Shape{batch_}});
    const RunHandle run = session_->run();
    const HostTensor predicted = run.output("class");
    const HostTensor losses = run.output("losses");
    for (int64_t i = 0; i < batch.count; ++i) {
      const auto at = static_cast<size_t>(i);
      result.correct += predicted.as<uint32_t>()[at] == batch.labels[at] ? 1 : 0;
      result.loss += static_cast<double>(losses.as<float>()[at]);
    }
    result.images += batch.count;
  }
  if (result.images > 0) result.loss /= static_cast<double>(result.images);
  return result;
}

std::vector<float> Evaluator::probabilities(std::span<const float> pixels) {
  if (static_cast<int64_t>(pixels.size()) != pixels_) {
    fail(ErrorKind::kInvalidArgument, "The image has ", pixels.size(), " pixels; the model takes ",
         pixels_, ".");
  }
  std::vector<float> images(static_cast<size_t>(batch_ * pixels_), 0.0f);
  std::copy(pixels.begin(), pixels.end(), images.begin());
  const std::vector<uint32_t> labels(static_cast<size_t>(batch_), 0);
  session_->set("image", {images.data(), f32, Shape{batch_, 1, kSide, kSide}});
  session_->set("label", {labels.data(), u32, Shape{batch_}});
  const HostTensor probability = session_->run().output("probability");
  const auto row = probability.as<float>().first(static_cast<size_t>(classes_));
  return {row.begin(), row.end()};
}

}  // namespace meganeura::cli
