#include "meganeura/gradcheck.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "graph/initialize.h"
#include "graph/node.h"
#include "meganeura/autodiff.h"
#include "ops/evaluate/evaluate.h"

namespace meganeura {
namespace {

using Values = std::vector<double>;

class Checker {
 public:
  Checker(Tensor loss, std::span<const Tensor> parameters,
          const std::map<std::string, Values>& leaves, const GradcheckOptions& options)
      : loss_(loss), options_(options) {
    for (const auto& [name, values] : leaves) {
      const Tensor leaf = loss.graph().find(name);
      if (!leaf) {
        fail(ErrorKind::kInvalidArgument, "A value was given for \"", name,
             "\", but the graph has no leaf of that name. Check its spelling.");
      }
      if (static_cast<int64_t>(values.size()) != leaf.shape().elements()) {
        fail(ErrorKind::kShape, "The value given for \"", name, "\" has ", values.size(),
             " elements, but the leaf has the shape ", leaf.shape(), ".");
      }
      leaves_[name] = {leaf.shape(), leaf.dtype(), values};
    }
    for (Tensor parameter : parameters) give_value(parameter);
    base_loss_ = loss_value();
  }

  void check(Tensor parameter, const Values& gradient) {
    const std::string& name = leaf_name(parameter.node());
    const auto count = static_cast<int64_t>(gradient.size());
    if (count == 0) return;
    Values direction(gradient.size(), 0.0);
    for (int64_t i = 0; count <= options_.per_element && i < count; ++i) {
      direction[static_cast<size_t>(i)] = 1.0;
      compare(name, gradient, direction, cat("element ", i));
      direction[static_cast<size_t>(i)] = 0.0;
    }
    for (int k = 0; k < options_.directions; ++k) {
      direction = initial_value(cat(name, "/direction", k), parameter.shape(), f64,
                                Initializer::uniform(-1, 1), options_.seed);
      compare(name, gradient, direction, cat("random direction ", k));
    }
  }

  const LeafValues& leaves() const { return leaves_; }
  GradcheckReport report() && { return std::move(report_); }

 private:
  // Parameters without a given value take their initializer, as the evaluation would.
  void give_value(Tensor parameter) {
    const Node& node = parameter.node();
    if (!is_leaf(node) || node.row->lowering == Lowering::kConstant) {
      fail(ErrorKind::kInvalidArgument, "The gradient check varies leaves, but ", describe(node),
           " is none. Make it an input or a parameter.");
    }
    const std::string name = leaf_name(node);
    if (leaves_.contains(name)) return;
    leaves_[name] = evaluate(std::span(&parameter, 1), {}, scalar::Mode::kIdeal).front();
  }

  double loss_value() const {
    return evaluate(std::span(&loss_, 1), leaves_, scalar::Mode::kIdeal).front().values.front();
  }

  double loss_along(Values& values, const Values& base, const Values& direction, double step) {
    for (size_t i = 0; i < base.size(); ++i) values[i] = base[i] + step * direction[i];
    return loss_value();
  }

  double numeric_derivative(const std::string& name, const Values& direction) {
    Values& values = leaves_.at(name).values;
    const Values base = values;
    const auto central = [&](double step) {
      const double ahead = loss_along(values, base, direction, step);
      const double behind = loss_along(values, base, direction, -step);
      return (ahead - behind) / (2.0 * step);
    };
    const double wide = central(options_.step);
    const double narrow = central(options_.step / 2.0);
    values = base;
    return (4.0 * narrow - wide) / 3.0;
  }

  void compare(const std::string& name, const Values& gradient, const Values& direction,
               const std::string& what) {
    double expected = 0.0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      if (direction[i] != 0.0) expected += gradient[i] * direction[i];
    }
    const double numeric = numeric_derivative(name, direction);
    const double scale = std::max(std::abs(expected), std::abs(numeric));
    const double tolerance =
        options_.relative * scale + options_.absolute * std::max(1.0, std::abs(base_loss_));
    const double difference = std::abs(expected - numeric);
    ++report_.checked;
    report_.largest = std::max(report_.largest, scale);
    report_.worst = std::max(report_.worst, difference / tolerance);
    if (difference <= tolerance || report_.failed++ > 0) return;
    report_.first = cat("The derivative for ", what, " of \"", name, "\" is ", expected,
                        ", but central differences give ", numeric, ".");
  }

  Tensor loss_;
  GradcheckOptions options_;
  LeafValues leaves_;
  double base_loss_ = 0.0;
  GradcheckReport report_;
};

}  // namespace

GradcheckReport gradcheck(Tensor loss, std::span<const Tensor> parameters,
                          const std::map<std::string, std::vector<double>>& leaves,
                          const GradcheckOptions& options) {
  const std::vector<Tensor> gradients = grad(loss, parameters);
  Checker checker(loss, parameters, leaves, options);
  const auto values = evaluate(gradients, checker.leaves(), scalar::Mode::kIdeal);
  for (size_t i = 0; i < parameters.size(); ++i) checker.check(parameters[i], values[i].values);
  return std::move(checker).report();
}

}  // namespace meganeura
