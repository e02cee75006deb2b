#include "meganeura/trainer.h"

#include "base/check.h"
#include "graph/node.h"
#include "meganeura/autodiff.h"
#include "program/program.h"
#include "train/trainer_state.h"

namespace meganeura {
namespace {

constexpr std::string_view kStepSegment = "step";
constexpr std::string_view kUpdateSegment = "update";
constexpr std::string_view kLossOutput = "loss";

Tensor rank_zero_input(Graph& graph, std::string_view name, DType dtype) {
  if (const Tensor found = graph.find(name)) {
    const bool fits = found.node().row->lowering == Lowering::kInput && found.dtype() == dtype &&
                      found.rank() == 0;
    if (fits) return found;
    fail(ErrorKind::kInvalidArgument, "The name \"", name, "\" is reserved for the rank-0 ", dtype,
         " input that the trainer sets, but the graph has ", describe(found.node()), " of type ",
         found.dtype(), found.shape(), " by that name. Rename it.");
  }
  return graph.input(std::string(name), dtype, Shape{});
}

void append_assigns(std::vector<Output>& outputs, std::span<const Tensor> assigns) {
  for (Tensor assign : assigns) {
    outputs.push_back({leaf_name(assign.node().operands[0].node()), assign});
  }
}

// The segments of a training program: one, or accumulate and update.
std::vector<SegmentOutputs> training_segments(Tensor loss, std::span<const Tensor> parameters,
                                              const TrainerOptions& options) {
  Graph& graph = loss.graph();
  const StepInputs inputs = step_inputs(graph);
  std::vector<Tensor> gradients = grad(loss, parameters);
  SegmentOutputs step{std::string(kStepSegment), {{std::string(kLossOutput), loss}}};
  step.outputs.insert(step.outputs.end(), options.metrics.begin(), options.metrics.end());

  GradientAccumulation accumulation;
  if (options.accumulate > 1) {
    accumulation = accumulate_gradients(graph, parameters, gradients, options.accumulate);
    gradients = accumulation.gradients;
  }
  if (options.clip_norm > 0.0) {
    gradients = clip_global_norm(gradients, options.clip_norm).gradients;
  }
  const std::vector<Tensor> updates = apply(graph, options.optimizer, parameters, gradients,
                                            inputs.learning_rate, inputs.updates, options.groups);
  if (options.accumulate == 1) {
    append_assigns(step.outputs, updates);
    return {std::move(step)};
  }
  append_assigns(step.outputs, accumulation.accumulate);
  SegmentOutputs update{std::string(kUpdateSegment), {}};
  append_assigns(update.outputs, updates);
  append_assigns(update.outputs, accumulation.reset);
  return {std::move(step), std::move(update)};
}

}  // namespace

StepInputs step_inputs(Graph& graph) {
  return {rank_zero_input(graph, "seed", u32), rank_zero_input(graph, "random_step", u32),
          rank_zero_input(graph, "learning_rate", f32), rank_zero_input(graph, "updates", u32)};
}

float StepHandle::loss() const { return run_.scalar(kLossOutput); }
HostTensor StepHandle::metric(std::string_view name) const { return run_.output(name); }

Trainer::Trainer(Device device, Tensor loss, TrainerOptions options)
    : implementation_(std::make_unique<Implementation>(device, std::move(options))) {
  Implementation& impl = *implementation_;
  if (impl.options.accumulate == 0) {
    fail(ErrorKind::kInvalidArgument,
         "TrainerOptions::accumulate is 0; an update needs at least one micro-batch.");
  }
  if (!impl.options.schedule) {
    impl.options.schedule = constant_schedule(base_learning_rate(impl.options.optimizer));
  }
  impl.graph = &loss.graph();
  impl.parameters = trainable_parameters(loss);
  if (impl.parameters.empty()) {
    fail(ErrorKind::kInvalidArgument,
         "The loss depends on no trainable parameter, so there is nothing to train.");
  }
  const std::vector<SegmentOutputs> segments =
      training_segments(loss, impl.parameters, impl.options);
  impl.program = compile(segments, device, impl.options.compile, &impl.report);
  impl.session =
      std::make_unique<Session>(device, *impl.program, impl.store, impl.options.in_flight);
}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;

void Trainer::set(Tensor input, const TensorView& value) { set(leaf_name(input.node()), value); }

void Trainer::set(std::string_view input, const TensorView& value) {
  implementation_->session->set(input, value);
}

StepHandle Trainer::step() {
  Implementation& impl = *implementation_;
  const auto set_if_used = [&](std::string_view name, auto value) {
    if (impl.program->find(name) != nullptr) impl.session->set(name, value);
  };
  set_if_used("seed", static_cast<uint32_t>(impl.options.seed));
  set_if_used("random_step", static_cast<uint32_t>(impl.micro_batches));
  set_if_used("updates", static_cast<uint32_t>(impl.updates));
  set_if_used("learning_rate", learning_rate());
  StepHandle handle;
  handle.updated_ = (impl.micro_batches + 1) % impl.options.accumulate == 0;
  std::vector<std::string> segments = {std::string(kStepSegment)};
  if (handle.updated_ && impl.options.accumulate > 1) segments.emplace_back(kUpdateSegment);
  handle.run_ = impl.session->run(segments);
  ++impl.micro_batches;
  if (handle.updated_) ++impl.updates;
  return handle;
}

uint64_t Trainer::updates() const { return implementation_->updates; }
uint64_t Trainer::micro_batches() const { return implementation_->micro_batches; }

float Trainer::learning_rate() const {
  return static_cast<float>(implementation_->options.schedule(implementation_->updates));
}

ParameterStore& Trainer::parameters() { return implementation_->store; }
const Program& Trainer::program() const { return *implementation_->program; }
const CompileReport& Trainer::compile_report() const { return implementation_->report; }

}  // namespace meganeura
