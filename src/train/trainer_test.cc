#include "meganeura/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "meganeura/error.h"
#include "meganeura/nn.h"
#include "meganeura/ops.h"
#include "meganeura/safetensors.h"

namespace meganeura {
namespace {

constexpr int64_t kRows = 6;
constexpr int64_t kWidth = 5;

// A small regression with dropout, whose inputs are a function of the micro-batch alone.
struct Model {
  Graph graph;
  Tensor x = graph.input("x", f32, {kRows, kWidth});
  Tensor target = graph.input("target", f32, {kRows, 2});
  nn::Linear hidden{graph, "hidden", kWidth, 7};
  nn::Linear out{graph, "out", 7, 2};
  Tensor loss = build();

  Tensor build() {
    const StepInputs inputs = step_inputs(graph);
    const nn::Dropout dropout(0.25, 3);
    const Tensor kept = dropout(tanh(hidden(x)), {inputs.seed, inputs.random_step});
    return mse_loss(out(kept), target);
  }
};

TrainerOptions options_for(const Optimizer& optimizer) {
  TrainerOptions options;
  options.optimizer = optimizer;
  options.schedule = cosine_schedule(0.05, 2, 6);
  options.groups = {no_decay_on_vectors()};
  options.clip_norm = 0.5;
  options.accumulate = 2;
  options.seed = 11;
  return options;
}

Device interpreter() { return Device::open({.select = "interpreter"}); }

// A file of the running test's own, so that tests may run at the same time.
std::filesystem::path temporary(const std::string& name) {
  std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  for (char& c : test) {
    if (c == '/') c = '-';
  }
  return std::filesystem::temp_directory_path() /
         ("meganeura-" + test + "-" + name + ".safetensors");
}

void feed(Trainer& trainer, const Model& model) {
  std::vector<float> x;
  std::vector<float> target;
  const auto batch = static_cast<double>(trainer.micro_batches());
  for (int64_t i = 0; i < kRows * kWidth; ++i) {
    x.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(i) + batch)));
  }
  for (int64_t i = 0; i < kRows * 2; ++i) {
    target.push_back(static_cast<float>(std::cos(1.3 * static_cast<double>(i) - batch)));
  }
  trainer.set(model.x, {x.data(), f32, model.x.shape()});
  trainer.set(model.target, {target.data(), f32, model.target.shape()});
}

std::vector<float> run(Trainer& trainer, const Model& model, int steps) {
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i) {
    feed(trainer, model);
    losses.push_back(trainer.step().loss());
  }
  return losses;
}

std::vector<std::byte> state_of(Trainer& trainer) {
  std::vector<std::byte> bytes;
  for (const std::string& name : trainer.parameters().names()) {
    const HostTensor value = trainer.parameters().read(name);
    bytes.insert(bytes.end(), value.bytes.begin(), value.bytes.end());
  }
  return bytes;
}

class Resume : public testing::TestWithParam<Optimizer> {};

// Three micro-batches end in the middle of an accumulation window of two.
TEST_P(Resume, ThreeStepsSavedThenTheRestEqualEightSteps) {
  const auto path = temporary("resume");
  Model whole;
  Trainer uninterrupted(interpreter(), whole.loss, options_for(GetParam()));
  const std::vector<float> expected = run(uninterrupted, whole, 8);
  {
    Model first;
    Trainer trainer(interpreter(), first.loss, options_for(GetParam()));
    run(trainer, first, 3);
    trainer.save(path, {{"index", "18"}});
  }
  Model second;
  Trainer trainer(interpreter(), second.loss, options_for(GetParam()));
  std::vector<std::pair<std::string, std::string>> extra;
  trainer.load(path, LoadMode::kStrict, &extra);
  EXPECT_EQ(extra, (std::vector<std::pair<std::string, std::string>>{{"index", "18"}}));
  const std::vector<float> rest = run(trainer, second, 5);
  EXPECT_EQ(rest, std::vector<float>(expected.begin() + 3, expected.end()));
  EXPECT_EQ(state_of(trainer), state_of(uninterrupted));
  EXPECT_EQ(trainer.updates(), 4u);
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Resume,
                         testing::Values(Optimizer(SGD{.lr = 0.05, .momentum = 0.9}),
                                         Optimizer(AdamW{.lr = 0.05})),
                         [](const testing::TestParamInfo<Optimizer>& info) {
                           return info.param.index() == 0 ? "SgdMomentum" : "AdamW";
                         });

TEST(Trainer, RefusesACheckpointOfOtherBetasAndChangesNothing) {
  const auto path = temporary("betas");
  Model saved;
  Trainer first(interpreter(), saved.loss, options_for(AdamW{.beta1 = 0.8}));
  run(first, saved, 2);
  first.save(path);
  Model model;
  Trainer trainer(interpreter(), model.loss, options_for(AdamW{}));
  const std::vector<std::byte> before = state_of(trainer);
  try {
    trainer.load(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile);
    EXPECT_NE(std::string(error.what()).find("beta1=0.8"), std::string::npos);
  }
  EXPECT_EQ(state_of(trainer), before);
  EXPECT_EQ(trainer.load(path, LoadMode::kPartial).matched.size(), 4u);
  EXPECT_EQ(trainer.updates(), 0u);
  std::filesystem::remove(path);
}

TEST(Trainer, RefusesDamagedStepTextAndMissingTensors) {
  const auto path = temporary("damaged");
  Model model;
  Trainer trainer(interpreter(), model.loss, options_for(AdamW{}));
  trainer.save(path);
  const SafetensorsFile file = SafetensorsFile::open(path);
  Metadata metadata = file.metadata();
  std::vector<NamedTensor> tensors = file.tensors();
  metadata["updates"] = "3x";
  const auto bad_text = temporary("bad-text");
  save_safetensors(bad_text, tensors, metadata);
  EXPECT_THROW(trainer.load(bad_text), Error);
  tensors.pop_back();
  save_safetensors(bad_text, tensors, file.metadata());
  EXPECT_THROW(trainer.load(bad_text), Error);
  std::filesystem::remove(bad_text);
  std::filesystem::remove(path);
}

TEST(Trainer, LoadsParametersForInferenceWithoutOptimizerState) {
  const auto path = temporary("inference");
  Model model;
  Trainer trainer(interpreter(), model.loss, options_for(AdamW{}));
  run(trainer, model, 4);
  trainer.save(path);
  Graph graph;
  const nn::Linear hidden(graph, "hidden", kWidth, 7);
  const nn::Linear out(graph, "out", 7, 2);
  const Tensor x = graph.input("x", f32, {1, kWidth});
  const SegmentOutputs segment{"infer", {{"y", out(tanh(hidden(x)))}}};
  const Device device = interpreter();
  const auto program = compile({&segment, 1}, device);
  ParameterStore store(device);
  store.add(*program);
  const LoadReport report = load_parameters(path, store);
  EXPECT_EQ(report.matched.size(), 4u);
  EXPECT_EQ(store.read("out.bias").bytes, trainer.parameters().read("out.bias").bytes);
  std::filesystem::remove(path);
}

TEST(Trainer, RefusesALossWithoutParameters) {
  Graph graph;
  const Tensor x = graph.input("x", f32, {3});
  EXPECT_THROW(Trainer(interpreter(), mean(x)), Error);
}

}  // namespace
}  // namespace meganeura
