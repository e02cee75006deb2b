// Two classes, eight points, 40 steps, a checkpoint, and a fresh inference session: 8 of 8.
#include <cstdio>

#include "meganeura/meganeura.h"

namespace mg = meganeura;

namespace {

constexpr float kPoints[8][2] = {{-2.0f, -1.0f}, {-1.5f, -2.0f}, {-1.0f, -1.0f}, {-2.5f, -0.5f},
                                 {2.0f, 1.0f},   {1.5f, 2.0f},   {1.0f, 1.0f},   {2.5f, 0.5f}};
constexpr uint32_t kClasses[8] = {0, 0, 0, 0, 1, 1, 1, 1};

struct Classifier {
  mg::Graph graph;
  mg::Tensor points = graph.input("points", mg::f32, {8, 2});
  mg::nn::Linear linear{graph, "linear", 2, 2};
  mg::Tensor logits = linear(points);
};

}  // namespace

int main() try {
  mg::Device device = mg::Device::open();
  {
    Classifier model;
    mg::Tensor classes = model.graph.input("classes", mg::u32, {8});
    mg::Trainer trainer(device, mg::cross_entropy(model.logits, classes),
                        {.optimizer = mg::SGD{.lr = 0.5}});
    trainer.set(model.points, {kPoints, mg::f32, {8, 2}});
    trainer.set(classes, {kClasses, mg::u32, {8}});
    for (int step = 0; step < 40; ++step) {
      const float loss = trainer.step().loss();
      if (step % 13 == 0) std::printf("step %2d  loss %.6f\n", step, static_cast<double>(loss));
    }
    trainer.save("train_deploy.safetensors");
  }
  Classifier model;
  mg::ParameterStore parameters(device);
  const mg::SegmentOutputs segment{"infer", {{"class", mg::arg_max(model.logits, {1})}}};
  const auto program = mg::compile({&segment, 1}, device);
  mg::Session session(device, *program, parameters);
  mg::load_parameters("train_deploy.safetensors", parameters);
  session.set("points", {kPoints, mg::f32, {8, 2}});
  const mg::HostTensor predicted = session.run().output("class");
  int correct = 0;
  for (int i = 0; i < 8; ++i) correct += predicted.as<uint32_t>()[i] == kClasses[i];
  std::printf("%d of 8 correct\n", correct);
  return correct == 8 ? 0 : 1;
} catch (const mg::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
