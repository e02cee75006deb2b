// A program outside the project: a graph, its gradient, one step on the interpreter, and a file.
#include <meganeura/meganeura.h>

#include <cstdio>

namespace mg = meganeura;

namespace {

int check(bool condition, const char* what) {
  if (!condition) std::fprintf(stderr, "wrong: %s\n", what);
  return condition ? 0 : 1;
}

}  // namespace

int main() {
  mg::Graph graph;
  const mg::Tensor x = graph.input("x", mg::f32, {3});
  const mg::Tensor w = graph.parameter("w", mg::f32, {3}, mg::Initializer::constant(2.0));
  const mg::Tensor loss = mg::sum(mg::mul(mg::mul(w, w), x));
  const std::vector<mg::Tensor> gradients = mg::grad(loss, std::vector<mg::Tensor>{w});

  const mg::Device device = mg::Device::open({.select = "interpreter"});
  const std::vector<mg::SegmentOutputs> segments = {
      {"step", {{"loss", loss}, {"gradient", gradients[0]}}}};
  const auto program = mg::compile(segments, device);
  mg::ParameterStore store(device);
  mg::Session session(device, *program, store);
  const float values[] = {1.0f, -2.0f, 3.0f};
  session.set("x", mg::TensorView(values, mg::f32, {3}));
  const mg::RunHandle run = session.run();

  int wrong = check(run.scalar("loss") == 8.0f, "the loss");
  const mg::HostTensor gradient = run.output("gradient");
  for (int i = 0; i < 3; ++i)
    wrong += check(gradient.as<float>()[i] == 4.0f * values[i], "the gradient");

  const mg::NamedTensor saved{"gradient", gradient.dtype, gradient.shape, gradient.bytes};
  const auto file = mg::SafetensorsFile::parse(mg::serialize_safetensors({&saved, 1}), "memory");
  wrong += check(file.at("gradient").shape == mg::Shape{3}, "the saved shape");
  try {
    mg::read_idx("no/such/file");
    wrong += check(false, "a missing file was read");
  } catch (const mg::Error& error) {
    wrong += check(error.kind() == mg::ErrorKind::kFile, "the kind of the error");
  }
  return wrong;
}
