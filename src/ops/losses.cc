// Losses, built from primitives.
#include <algorithm>
#include <limits>
#include <optional>

#include "ops/indices.h"
#include "ops/rule.h"

namespace meganeura {
namespace {

using ops::Composite;
using ops::filled;
using ops::refuse;

// A vector [N] beside every class of [N, C].
Tensor across_classes(Tensor rows, const Shape& shape) {
  return ops::broadcast_axes(rows, shape, {0});
}

// One loss of cross_entropy, on logits [N, C].
class CrossEntropy {
 public:
  CrossEntropy(Tensor logits, Tensor labels, const CrossEntropyOptions& options, Place place)
      : options_(options), place_(place), logits_(logits), labels_(labels) {
    check_options();
  }

  Tensor by_index() {
    const Shape& shape = logits_.shape();
    check_index_labels();
    const Tensor label = across_classes(labels_, shape);
    const Tensor hit = equal(iota(logits_.graph(), shape, 1, labels_.dtype()), label);
    const Tensor kept = counted();
    if (kept) {
      const Tensor zero = filled(logits_, 0.0);
      logits_ = select(across_classes(kept, shape), logits_, zero);
    }
    // Nobody checks computed labels, nor whether signed ones are negative.
    const bool checked = limit_labels() && is_unsigned(labels_.dtype());
    const Tensor losses = row_losses(hit, checked);
    const Tensor zero = filled(losses, 0.0);
    return reduce(kept ? select(kept, losses, zero) : losses, total_weight(hit, kept));
  }

  Tensor by_probability() {
    const Tensor below = surprise();
    const double smoothing = options_.label_smoothing;
    Tensor target = labels_;
    if (smoothing > 0.0) target = target * (1.0 - smoothing) + smoothing / classes();
    Tensor terms = target * below;
    if (options_.weights) terms = terms * broadcast_to(options_.weights, terms.shape());
    return reduce(sum(terms, {1}), Tensor());
  }

 private:
  double classes() const { return static_cast<double>(logits_.shape()[1]); }

  void check_options() const {
    const int64_t count = logits_.shape()[1];
    if (count == 0) {
      refuse("cross_entropy", place_, "got logits ", logits_.dtype(), logits_.shape(),
             " without classes. The last axis needs an extent of 1 or more.");
    }
    const Tensor weights = options_.weights;
    if (weights && (weights.shape() != Shape{count} || weights.dtype() != f32)) {
      refuse("cross_entropy", place_, "got class weights ", weights.dtype(), weights.shape(),
             ". They must be f32[", count, "], one per class.");
    }
    if (!(options_.label_smoothing >= 0.0 && options_.label_smoothing <= 1.0)) {
      fail(ErrorKind::kInvalidArgument, "The op cross_entropy at ", to_string(place_),
           " has a label smoothing of ", options_.label_smoothing, ". Use a number from 0 to 1.");
    }
  }

  void check_index_labels() const {
    if (!options_.ignore_index) return;
    const int64_t index = *options_.ignore_index;
    const int64_t low = is_signed(labels_.dtype()) ? std::numeric_limits<int32_t>::min() : 0;
    const int64_t high = is_signed(labels_.dtype()) ? std::numeric_limits<int32_t>::max()
                                                    : std::numeric_limits<uint32_t>::max();
    if (index >= low && index <= high) return;
    fail(ErrorKind::kInvalidArgument, "The op cross_entropy at ", to_string(place_),
         " ignores the label ", index, ", which ", labels_.dtype(),
         " labels cannot hold. Use i32 labels for a negative ignore_index.");
  }

  // bool [N]: the rows whose label is not ignore_index; empty when all count.
  Tensor counted() const {
    if (!options_.ignore_index) return {};
    return not_equal(labels_, filled(labels_, static_cast<double>(*options_.ignore_index)));
  }

  // Whether the labels come from an input, whose values are compared with the limit when it is set.
  // A negative ignore_index leaves them unchecked, since limits also refuse negative values.
  bool limit_labels() const {
    int64_t limit = logits_.shape()[1];
    if (options_.ignore_index && *options_.ignore_index < 0) return false;
    if (options_.ignore_index) limit = std::max(limit, *options_.ignore_index + 1);
    return ops::limit_indices(labels_, limit) && limit == logits_.shape()[1];
  }

  // -log softmax [N, C], whose shift by the maximum counts as a constant.
  Tensor surprise() const {
    const Tensor below = logits_ - stop_gradient(max(logits_, {1}, true));
    return log(sum(exp(below), {1}, true)) - below;
  }

  Tensor row_losses(Tensor hit, bool checked) const {
    const Tensor loss = surprise();
    const Tensor zero = filled(loss, 0.0);
    Tensor result = sum(select(hit, loss, zero), {1});
    if (options_.weights) result = result * label_weights(hit);
    if (options_.label_smoothing > 0.0) {
      Tensor all = loss;
      if (options_.weights) all = all * broadcast_to(options_.weights, all.shape());
      result = result * (1.0 - options_.label_smoothing) +
               sum(all, {1}) * (options_.label_smoothing / classes());
    }
    if (checked) return result;
    const Tensor nan = filled(result, std::numeric_limits<double>::quiet_NaN());
    return select(ops::in_range(labels_, logits_.shape()[1]), result, nan);
  }

  // f32 [N]: the class weight of every label.
  Tensor label_weights(Tensor hit) const {
    const Tensor spread = broadcast_to(options_.weights, hit.shape());
    return sum(select(hit, spread, filled(spread, 0.0)), {1});
  }

  // What the mean divides by, or empty for the number of rows.
  Tensor total_weight(Tensor hit, Tensor kept) const {
    if (options_.reduction != Reduction::kMean || (!kept && !options_.weights)) return {};
    const Shape rows = labels_.shape();
    Tensor weight = options_.weights ? label_weights(hit) : filled(logits_.graph(), rows, f32, 1.0);
    if (kept) weight = select(kept, weight, filled(weight, 0.0));
    return sum(weight);
  }

  Tensor reduce(Tensor losses, Tensor total) const {
    switch (options_.reduction) {
      case Reduction::kNone:
        return losses;
      case Reduction::kSum:
        return sum(losses);
      case Reduction::kMean:
        break;
    }
    return total ? sum(losses) / total : mean(losses);
  }

  const CrossEntropyOptions& options_;
  Place place_;
  Tensor logits_;
  Tensor labels_;
};

Tensor reduced(Tensor losses, Reduction reduction) {
  if (reduction == Reduction::kNone) return losses;
  return reduction == Reduction::kSum ? sum(losses) : mean(losses);
}

void check_target(std::string_view op, const Operand& x, const Operand& target) {
  ops::require(op, target);
  if (is_float(x.tensor.dtype()) && x.tensor.dtype() == target.tensor.dtype() &&
      x.tensor.shape() == target.tensor.shape()) {
    return;
  }
  refuse(op, x.place, "compares ", x.tensor.dtype(), x.tensor.shape(), " with ",
         target.tensor.dtype(), target.tensor.shape(),
         ". Both must be floats of one shape and dtype; use reshape, broadcast_to or cast.");
}

}  // namespace

Tensor cross_entropy(Operand logits, Operand labels, const CrossEntropyOptions& options) {
  const Composite scope("cross_entropy", logits);
  ops::require("cross_entropy", labels);
  const Shape& shape = logits.tensor.shape();
  const Shape& label_shape = labels.tensor.shape();
  const bool soft = is_float(labels.tensor.dtype());
  const bool indices = labels.tensor.dtype() == u32 || labels.tensor.dtype() == i32;
  const bool single = shape.rank() == 1;
  Shape expected = shape;
  if (!soft) expected = single || shape.rank() == 0 ? Shape{} : Shape{shape[0]};
  if (!is_float(logits.tensor.dtype()) || shape.rank() < 1 || shape.rank() > 2 ||
      !(soft || indices) || label_shape != expected) {
    refuse("cross_entropy", logits.place, "got logits ", logits.tensor.dtype(), shape,
           " and labels ", labels.tensor.dtype(), label_shape,
           ". Logits are [N, C] or [C]; labels are u32 or i32 class indices without the axis of "
           "classes, or float probabilities of the logits' shape. Use reshape or cast.");
  }
  if (soft && options.ignore_index) {
    fail(ErrorKind::kInvalidArgument, "The op cross_entropy at ", to_string(logits.place),
         " has an ignore_index, but its labels are probabilities. Leave it out, or give indices.");
  }
  const int64_t count = shape[shape.rank() - 1];
  const int64_t rows = single ? 1 : shape[0];
  const Tensor matrix = reshape(ops::widened(logits.tensor), {rows, count});
  const Tensor target =
      soft ? reshape(cast(labels, matrix.dtype()), {rows, count}) : reshape(labels, {rows});
  CrossEntropy loss(matrix, target, options, logits.place);
  const Tensor result = soft ? loss.by_probability() : loss.by_index();
  return single && options.reduction == Reduction::kNone ? reshape(result, {}) : result;
}

Tensor mse_loss(Operand x, Operand target, Reduction reduction) {
  const Composite scope("mse_loss", x);
  check_target("mse_loss", x, target);
  const Tensor difference = sub(x, target);
  return reduced(difference * difference, reduction);
}

Tensor l1_loss(Operand x, Operand target, Reduction reduction) {
  const Composite scope("l1_loss", x);
  check_target("l1_loss", x, target);
  return reduced(abs(sub(x, target)), reduction);
}

// Not by abs and max, whose derivatives at 0 would not add up to that of the sum.
Tensor bce_with_logits(Operand x, Operand target, Reduction reduction) {
  const Composite scope("bce_with_logits", x);
  check_target("bce_with_logits", x, target);
  return reduced(sub(softplus(x), mul(x, target)), reduction);
}

}  // namespace meganeura
