#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/render_chart.h"
#include "cli/render_progress.h"
#include "cli/task.h"
#include "meganeura/error.h"

namespace meganeura::cli {
namespace {

constexpr int64_t kEvaluationBatch = 250;

struct TrainOptions {
  CommonOptions common;
  std::string task;
  std::string data;
  std::string out;
  std::string resume;
  std::string optimizer = "adamw";
  std::vector<int64_t> hidden = {256, 128};
  int64_t epochs = 10;
  int64_t batch = 128;
  int64_t limit = 0;
  double learning_rate = 0.0;
  double weight_decay = 0.01;
  double clip_norm = 0.0;
  uint32_t accumulate = 1;
  int shift = 1;
  uint64_t seed = 1;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Optimizer chosen_optimizer(const TrainOptions& options) {
  const double rate = options.learning_rate;
  if (options.optimizer == "sgd") {
    return SGD{.lr = rate > 0 ? rate : 0.1, .momentum = 0.9};
  }
  if (options.optimizer == "adam") return Adam{.lr = rate > 0 ? rate : 4e-3};
  return AdamW{.lr = rate > 0 ? rate : 4e-3, .weight_decay = options.weight_decay};
}

// Trains, shows how it goes, and keeps the curves.
class Run {
 public:
  Run(const TrainOptions& options, const Task& task)
      : options_(options),
        task_(task),
        device_(Device::open({.select = options.common.device})),
        directory_(options.out.empty() ? "out/" + options.task : options.out),
        shape_{options.task, widths()},
        train_(load(Split::kTrain)),
        test_(load(Split::kTest)),
        loader_(train_, {.batch_size = options.batch,
                         .seed = options.seed,
                         .drop_last = true,
                         .max_shift = options.shift}),
        graph_(shape_, options.batch),
        trainer_(device_, graph_.loss, trainer_options()),
        evaluator_(device_, shape_, trainer_.parameters(), kEvaluationBatch),
        progress_(Terminal::of(stderr), [](std::string_view text) {
          fmt::print(stderr, "{}", text);
          std::fflush(stderr);
        }) {}

  void train() {
    std::filesystem::create_directories(directory_);
    resume();
    announce();
    start_ = seconds_now();
    first_step_ = trainer_.micro_batches();
    FitOptions fit_options;
    fit_options.epochs = static_cast<uint64_t>(options_.epochs);
    fit_options.feed = [this](Trainer& trainer, const Batch& batch) {
      trainer.set(graph_.image, {batch.images.data(), f32, graph_.image.shape()});
      trainer.set(graph_.label, {batch.labels.data(), u32, graph_.label.shape()});
    };
    fit_options.on_step = [this](const StepEvent& event) { show_progress(event); };
    fit_options.on_epoch = [this](const EpochEvent& event) {
      progress_.finish();
      finish_epoch(event);
      return true;
    };
    fit(trainer_, loader_, fit_options);
    train_seconds_ = seconds_now() - start_;
    report();
  }

 private:
  std::vector<int64_t> widths() const {
    std::vector<int64_t> result = {28 * 28};
    result.insert(result.end(), options_.hidden.begin(), options_.hidden.end());
    result.push_back(static_cast<int64_t>(task_.class_names.size()));
    return result;
  }

  std::shared_ptr<const Dataset> load(Split split) const {
    Dataset dataset = read_mnist(data_directory(task_, options_.data), split);
    if (split == Split::kTrain && options_.limit > 0) dataset.truncate(options_.limit);
    return std::make_shared<const Dataset>(std::move(dataset));
  }

  uint64_t total_updates() const {
    return static_cast<uint64_t>(loader_.batches_per_epoch() * options_.epochs) /
           options_.accumulate;
  }

  TrainerOptions trainer_options() const {
    TrainerOptions result;
    result.optimizer = chosen_optimizer(options_);
    const uint64_t total = std::max<uint64_t>(total_updates(), 1);
    result.schedule = cosine_schedule(base_learning_rate(result.optimizer), total / 20, total);
    result.groups = {no_decay_on_vectors()};
    result.clip_norm = options_.clip_norm;
    result.accumulate = options_.accumulate;
    result.seed = options_.seed;
    result.metrics = {{"correct", graph_.correct}};
    return result;
  }

  std::filesystem::path checkpoint_path() const { return directory_ / "model.safetensors"; }

  void resume() {
    if (options_.resume.empty()) return;
    std::vector<std::pair<std::string, std::string>> extra;
    trainer_.load(options_.resume, LoadMode::kStrict, &extra);
    LoaderPosition position;
    for (const auto& [key, value] : extra) {
      if (key == "epoch") position.epoch = std::stoull(value);
      if (key == "index") position.index = std::stoll(value);
    }
    loader_.seek(position);
  }

  void announce() const {
    if (options_.common.json) return;
    const CompileReport& report = trainer_.compile_report();
    fmt::print("{}: {} training and {} test images, perceptron {}, {}\n", task_.title,
               format_count(train_->size()), format_count(test_->size()),
               fmt::join(shape_.widths, "-"), options_.optimizer);
    fmt::print("{}: {} kernels in {} levels, {} modules, {} of parameters and state\n",
               device_.name(), report.kernels, report.levels, report.modules,
               format_bytes(report.persistent_bytes));
  }

  void show_progress(const StepEvent& event) {
    if (options_.common.json) return;
    ++steps_done_;
    const double now = seconds_now();
    const auto done = static_cast<double>(steps_done_);
    const auto total = static_cast<double>(event.steps) * static_cast<double>(options_.epochs) -
                       static_cast<double>(first_step_);
    Progress progress;
    progress.label = fmt::format("epoch {}/{}", event.epoch + 1, options_.epochs);
    progress.done = event.step + 1;
    progress.total = event.steps;
    progress.loss = static_cast<double>(event.loss);
    progress.images_per_second = done * static_cast<double>(options_.batch) / (now - start_);
    progress.seconds_left = (total - done) * (now - start_) / done;
    progress_.show(progress, now);
  }

  void finish_epoch(const EpochEvent& event) {
    const uint64_t epoch = event.epoch;
    const double train_loss = event.mean_loss;
    const Evaluator::Result test = evaluator_.evaluate(test_);
    const auto x = static_cast<double>(epoch + 1);
    train_curve_.push_back({x, train_loss});
    test_curve_.push_back({x, test.loss});
    accuracy_curve_.push_back({x, 100.0 * test.accuracy()});
    last_test_ = test;
    if (!options_.common.json) {
      fmt::print("epoch {:>2}  train loss {:.4f}  test loss {:.4f}  test accuracy {:.2f} %\n",
                 epoch + 1, train_loss, test.loss, 100.0 * test.accuracy());
      std::fflush(stdout);
    }
    std::vector<std::pair<std::string, std::string>> extra = shape_.to_metadata();
    extra.emplace_back("epoch", fmt::format("{}", event.next.epoch));
    extra.emplace_back("index", fmt::format("{}", event.next.index));
    trainer_.save(checkpoint_path(), extra);
    save_curve();
  }

  void save_curve() const {
    Chart chart;
    chart.title = fmt::format("{} on {}", task_.title, device_.name());
    chart.x_label = "epoch";
    chart.left_label = "loss";
    chart.right_label = "test accuracy (%)";
    chart.series = {{"training loss", train_curve_, false},
                    {"test loss", test_curve_, false},
                    {"test accuracy", accuracy_curve_, true}};
    const std::filesystem::path path = directory_ / "curve.svg";
    std::ofstream file(path, std::ios::binary);
    file << chart_svg(chart);
    if (!file.flush()) {
      throw Error(ErrorKind::kFile,
                  fmt::format("The curve {} could not be written.", path.string()));
    }
  }

  void report() const {
    const double images = static_cast<double>(trainer_.micro_batches() - first_step_) *
                          static_cast<double>(options_.batch);
    if (options_.common.json) {
      const nlohmann::ordered_json json = {{"task", task_.name},
                                           {"device", device_.name()},
                                           {"epochs", options_.epochs},
                                           {"updates", trainer_.updates()},
                                           {"seconds", train_seconds_},
                                           {"images_per_second", images / train_seconds_},
                                           {"test_accuracy", last_test_.accuracy()},
                                           {"test_loss", last_test_.loss},
                                           {"checkpoint", checkpoint_path().string()}};
      fmt::print("{}\n", json.dump(2));
      return;
    }
    fmt::print("trained in {} ({} images/s), saved {} and {}\n", format_seconds(train_seconds_),
               format_count(static_cast<int64_t>(images / train_seconds_)),
               checkpoint_path().string(), (directory_ / "curve.svg").string());
  }

  const TrainOptions& options_;
  const Task& task_;
  Device device_;
  std::filesystem::path directory_;
  ModelShape shape_;
  std::shared_ptr<const Dataset> train_;
  std::shared_ptr<const Dataset> test_;
  DataLoader loader_;
  TrainingGraph graph_;
  Trainer trainer_;
  Evaluator evaluator_;
  ProgressPrinter progress_;
  std::vector<ChartPoint> train_curve_;
  std::vector<ChartPoint> test_curve_;
  std::vector<ChartPoint> accuracy_curve_;
  Evaluator::Result last_test_;
  double start_ = 0.0;
  double train_seconds_ = 0.0;
  uint64_t first_step_ = 0;
  uint64_t steps_done_ = 0;
};

void add_options(CLI::App& command, TrainOptions& options) {
  command.add_option("task", options.task, "mnist or fashion-mnist")->required();
  command.add_option("--out", options.out, "Directory for checkpoint and curve (out/TASK)");
  command.add_option("--data", options.data, "Directory of IDX files");
  command.add_option("--resume", options.resume, "Continue from this checkpoint");
  command.add_option("--epochs", options.epochs, "Passes over the training images")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--batch", options.batch, "Images per micro-batch")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--accumulate", options.accumulate, "Micro-batches per update")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--hidden", options.hidden, "Widths of the hidden layers")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--optimizer", options.optimizer, "adamw, adam or sgd")
      ->check(CLI::IsMember({"adamw", "adam", "sgd"}))
      ->capture_default_str();
  command.add_option("--lr", options.learning_rate,
                     "Peak learning rate (4e-3; sgd: 0.1), cosine schedule with warm-up");
  command.add_option("--weight-decay", options.weight_decay, "Of AdamW, on matrices")
      ->capture_default_str();
  command.add_option("--clip-norm", options.clip_norm, "Largest norm of all gradients; 0: off")
      ->capture_default_str();
  command.add_option("--shift", options.shift, "Move training images by up to so many pixels")
      ->capture_default_str();
  command.add_option("--limit", options.limit, "Train on the first so many images; 0: all")
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Of initial weights, order and shifts")
      ->capture_default_str();
}

}  // namespace

void add_train_command(CLI::App& program) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = program.add_subcommand(
      "train", "Train a classifier, plot its curves and save a checkpoint every epoch");
  add_options(*command, *options);
  add_device_option(*command, options->common);
  add_json_option(*command, options->common);
  command->callback([options] { Run(*options, find_task(options->task)).train(); });
}

}  // namespace meganeura::cli
