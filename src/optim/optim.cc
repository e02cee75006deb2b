#include "meganeura/optim.h"

#include <cmath>

#include "base/check.h"
#include "graph/node.h"
#include "meganeura/ops.h"
#include "optim/states.h"

namespace meganeura {
namespace {

// One parameter on its way through an update rule; all tensors f32.
struct Update {
  Graph& graph;
  Tensor parameter;  // the leaf, to name its states
  Tensor value;
  Tensor gradient;
  Tensor rate;
  double weight_decay;
  Place place;
  std::vector<Tensor>& moments;  // assigns of the states

  Tensor state(std::string_view slot) const { return slot_state(graph, parameter, slot, place); }
  void keep(Tensor state, Tensor next) const { moments.push_back(assign(state, next)); }
  // The gradient with weight decay as a penalty on the loss.
  Tensor decayed_gradient() const {
    return weight_decay == 0.0 ? gradient : gradient + value * weight_decay;
  }
};

void require(bool sound, std::string_view optimizer, std::string_view field, double value,
             std::string_view range, Place place) {
  if (sound) return;
  fail(ErrorKind::kInvalidArgument, optimizer, " at ", to_string(place), " has ", field, " = ",
       value, "; it must be ", range, ".");
}

void require_not_negative(std::string_view optimizer, std::string_view field, double value,
                          Place place) {
  require(value >= 0.0 && std::isfinite(value), optimizer, field, value, "finite and 0 or more",
          place);
}

class SgdRule {
 public:
  SgdRule(const SGD& options, Tensor step, Place place) : options_(options), step_(step) {
    require_not_negative("SGD", "lr", options.lr, place);
    require_not_negative("SGD", "momentum", options.momentum, place);
    require_not_negative("SGD", "weight_decay", options.weight_decay, place);
    require(std::isfinite(options.dampening), "SGD", "dampening", options.dampening, "finite",
            place);
    if (options.nesterov && (options.momentum == 0.0 || options.dampening != 0.0)) {
      fail(ErrorKind::kInvalidArgument, "SGD at ", to_string(place),
           " asks for Nesterov momentum with ", "momentum = ", options.momentum,
           " and dampening = ", options.dampening, "; it needs momentum above 0 and no dampening.");
    }
  }

  Tensor next_value(const Update& update) const {
    const Tensor gradient = update.decayed_gradient();
    if (options_.momentum == 0.0) return update.value - update.rate * gradient;
    const Tensor state = update.state("momentum_buffer");
    const Tensor buffer = next_buffer(state, gradient);
    update.keep(state, buffer);
    const Tensor direction = options_.nesterov ? gradient + buffer * options_.momentum : buffer;
    return update.value - update.rate * direction;
  }

 private:
  // PyTorch's first buffer is the gradient itself, without dampening.
  Tensor next_buffer(Tensor state, Tensor gradient) const {
    const Tensor carried = state * options_.momentum;
    if (options_.dampening == 0.0) return carried + gradient;
    const Tensor first = equal(step_, step_.graph().scalar(0.0, u32));
    return select(first, gradient, carried + gradient * (1.0 - options_.dampening));
  }

  SGD options_;
  Tensor step_;
};

class AdamRule {
 public:
  AdamRule(const AdamW& options, bool decoupled, Tensor step, Place place)
      : options_(options), decoupled_(decoupled) {
    const std::string_view name = decoupled ? "AdamW" : "Adam";
    require_not_negative(name, "lr", options.lr, place);
    require_not_negative(name, "epsilon", options.epsilon, place);
    require_not_negative(name, "weight_decay", options.weight_decay, place);
    require(options.beta1 >= 0.0 && options.beta1 < 1.0, name, "beta1", options.beta1,
            "at least 0 and below 1", place);
    require(options.beta2 >= 0.0 && options.beta2 < 1.0, name, "beta2", options.beta2,
            "at least 0 and below 1", place);
    correction1_ = bias_correction(step, options.beta1);
    root_correction2_ = sqrt(bias_correction(step, options.beta2));
  }

  Tensor next_value(const Update& update) const {
    const Tensor gradient = decoupled_ ? update.gradient : update.decayed_gradient();
    const Tensor mean_state = update.state("exp_avg");
    const Tensor square_state = update.state("exp_avg_sq");
    const Tensor mean = mean_state + (gradient - mean_state) * (1.0 - options_.beta1);
    const Tensor squares =
        square_state * options_.beta2 + (gradient * gradient) * (1.0 - options_.beta2);
    update.keep(mean_state, mean);
    update.keep(square_state, squares);
    const Tensor denominator = sqrt(squares) / root_correction2_ + options_.epsilon;
    const Tensor rate = update.rate / correction1_;
    return shrunk(update) - rate * (mean / denominator);
  }

 private:
  Tensor shrunk(const Update& update) const {
    if (!decoupled_ || update.weight_decay == 0.0) return update.value;
    return update.value - update.value * (update.rate * update.weight_decay);
  }

  AdamW options_;
  bool decoupled_;
  Tensor correction1_;
  Tensor root_correction2_;
};

SgdRule make_rule(const SGD& options, Tensor step, Place place) {
  return SgdRule(options, step, place);
}

AdamRule make_rule(const Adam& options, Tensor step, Place place) {
  return AdamRule({options.lr, options.beta1, options.beta2, options.epsilon, options.weight_decay},
                  false, step, place);
}

AdamRule make_rule(const AdamW& options, Tensor step, Place place) {
  return AdamRule(options, true, step, place);
}

void check_scalar(const Graph& graph, Tensor tensor, DType dtype, std::string_view what,
                  Place place) {
  if (tensor && &tensor.graph() == &graph && tensor.rank() == 0 && tensor.dtype() == dtype) return;
  fail(ErrorKind::kShape, "The ", what, " given to the optimizer at ", to_string(place), " is ",
       tensor ? cat(tensor.dtype(), tensor.shape()) : std::string("an empty tensor"),
       "; it must be ", dtype, " of rank 0 in the optimizer's graph.");
}

const ParameterGroup* group_of(Tensor parameter, std::span<const ParameterGroup> groups,
                               Place place) {
  const std::string& name = leaf_name(parameter.node());
  for (const ParameterGroup& group : groups) {
    if (!group.matches) {
      fail(ErrorKind::kInvalidArgument, "A parameter group given to the optimizer at ",
           to_string(place), " has no predicate. Set ParameterGroup::matches.");
    }
    if (group.matches(name, parameter.shape())) return &group;
  }
  return nullptr;
}

void check_groups(std::span<const ParameterGroup> groups, Place place) {
  for (const ParameterGroup& group : groups) {
    require_not_negative("A parameter group", "lr_multiplier", group.lr_multiplier, place);
    require_not_negative("A parameter group", "weight_decay", group.weight_decay.value_or(0.0),
                         place);
  }
}

}  // namespace

double base_learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& options) { return options.lr; }, optimizer);
}

ParameterGroup no_decay_on_vectors() {
  return {[](std::string_view, const Shape& shape) { return shape.rank() <= 1; }, 1.0, 0.0};
}

std::vector<Tensor> apply(Graph& graph, const Optimizer& optimizer,
                          std::span<const Tensor> parameters, std::span<const Tensor> gradients,
                          Tensor learning_rate, Tensor step, std::span<const ParameterGroup> groups,
                          Place place) {
  check_pairs(graph, parameters, gradients, place);
  check_scalar(graph, learning_rate, f32, "learning rate", place);
  check_scalar(graph, step, u32, "step", place);
  check_groups(groups, place);
  const PlaceScope scope(graph, place);
  std::vector<Tensor> assigns;
  std::vector<Tensor> moments;
  std::visit(
      [&](const auto& options) {
        const auto rule = make_rule(options, step, place);
        for (size_t i = 0; i < parameters.size(); ++i) {
          const Tensor parameter = parameters[i];
          const DType dtype = parameter.dtype();
          const ParameterGroup* group = group_of(parameter, groups, place);
          const double multiplier = group ? group->lr_multiplier : 1.0;
          const double decay =
              group ? group->weight_decay.value_or(options.weight_decay) : options.weight_decay;
          const Update update = {graph,
                                 parameter,
                                 dtype == f32 ? parameter : cast(parameter, f32),
                                 dtype == f32 ? gradients[i] : cast(gradients[i], f32),
                                 multiplier == 1.0 ? learning_rate : learning_rate * multiplier,
                                 decay,
                                 place,
                                 moments};
          const Tensor next = rule.next_value(update);
          assigns.push_back(assign(parameter, dtype == f32 ? next : cast(next, dtype)));
        }
      },
      optimizer);
  assigns.insert(assigns.end(), moments.begin(), moments.end());
  return assigns;
}

Tensor bias_correction(Operand step, double beta) {
  Graph& graph = step.tensor.graph();
  if (!(beta >= 0.0 && beta < 1.0)) {
    fail(ErrorKind::kInvalidArgument, "The bias correction at ", to_string(step.place),
         " has beta = ", beta, "; it must be at least 0 and below 1.");
  }
  const PlaceScope scope(graph, step.place);
  if (beta == 0.0) return graph.scalar(1.0);
  const Tensor count = cast(add(step, graph.scalar(1.0, u32)), f32);
  const Tensor u = tanh(count * (-0.5 * std::log(beta)));
  return (u + u) / (u + 1.0);
}

}  // namespace meganeura
