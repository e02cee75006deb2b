#include "schedule/kernel_builder.h"

#include <algorithm>

#include "base/check.h"
#include "graph/node.h"

namespace meganeura::schedule {
namespace {

using kernels::Affine;
using kernels::Input;
using scalar::Scalar;
using scalar::Type;

// The iterated axes of a kernel. Each axis is one dimension, or several after splits; axes of
// extent 1 are none.
class Axes {
 public:
  size_t add(int64_t extent) {
    factors_.push_back(extent == 1 ? std::vector<int64_t>{} : std::vector<int64_t>{extent});
    return factors_.size() - 1;
  }
  const std::vector<int64_t>& factors(size_t axis) const { return factors_[axis]; }
  void split(size_t axis, size_t part, int64_t factor) {
    std::vector<int64_t>& parts = factors_[axis];
    parts.insert(parts.begin() + static_cast<ptrdiff_t>(part), parts[part] / factor);
    parts[part + 1] = factor;
  }

 private:
  std::vector<std::vector<int64_t>> factors_;
};

// An iteration space over some of the axes.
struct Space {
  Space(const Axes& axes, std::vector<size_t> which) : which(std::move(which)) {
    for (size_t axis : this->which) {
      first.push_back(extents.size());
      const auto& factors = axes.factors(axis);
      extents.insert(extents.end(), factors.begin(), factors.end());
    }
    first.push_back(extents.size());
  }

  // The point of a tensor whose axis i is iterated by position order[i] of this space.
  Point point(std::span<const size_t> order) const {
    const Point all = identity_point(first, extents);
    Point out;
    for (size_t position : order) out.coordinates.push_back(all.coordinates[position]);
    return out;
  }
  Point point() const { return identity_point(first, extents); }

  void split(Axes& axes, const NeedsSplit& request) const {
    const auto next = std::upper_bound(first.begin(), first.end(), request.dimension);
    const auto position = static_cast<size_t>(next - first.begin()) - 1;
    axes.split(which[position], request.dimension - first[position], request.factor);
  }

  std::vector<size_t> which;
  std::vector<int64_t> extents;
  std::vector<size_t> first;
};

struct SplitAndRetry {};

// Runs `build`; a split it asks for is made in the axes.
template <class Build>
auto within(const Space& space, Axes& axes, const Build& build) {
  try {
    return build();
  } catch (const NeedsSplit& request) {
    space.split(axes, request);
    throw SplitAndRetry{};
  }
}

std::vector<int64_t> extents_of(const Axes& axes, std::span<const size_t> which) {
  return Space(axes, {which.begin(), which.end()}).extents;
}

kernels::Output make_output(Tensor root, const Point& point, size_t rank, SlotTable& slots,
                            uint32_t buffer) {
  kernels::Output output;
  output.slot = slots.slot_of_buffer(buffer);
  output.dtype = root.dtype();
  std::vector<kernels::IndexTerm> terms;
  flatten(root.shape(), point, rank, output.access, terms);
  return output;
}

struct Tail {
  std::vector<Input> inputs;
  scalar::Body body;
  std::vector<kernels::Output> outputs;
};

// Everything after the anchor: its value is argument 0, of type `type`, at `point`.
Tail build_tail(Tensor root, Tensor anchor, Type type, const Space& space, SlotTable& slots,
                uint32_t buffer) {
  const Point point = space.point();
  Expander expander(slots, space.extents);
  const Scalar accumulator = as_stored(scalar::argument(0, type), anchor.dtype());
  expander.provide(anchor, point, accumulator);
  const Point root_point = root == anchor ? point
                                          : reshape_point(anchor.shape(), root.shape(), point,
                                                          space.extents, anchor.id());
  const Scalar value = expander.expand(root, root_point);
  Expander::Result result = expander.finish(std::span(&value, 1), std::span(&type, 1));
  return {std::move(result.inputs),
          std::move(result.body),
          {make_output(root, root_point, space.extents.size(), slots, buffer)}};
}

kernels::KernelSpec pointwise(Tensor root, uint32_t buffer, SlotTable& slots, Axes& axes) {
  std::vector<size_t> which(static_cast<size_t>(root.rank()));
  for (size_t i = 0; i < which.size(); ++i) which[i] = i;
  const Space space(axes, which);
  return within(space, axes, [&] {
    Expander expander(slots, space.extents);
    const Point point = space.point();
    const Scalar value = expander.expand(root, point);
    Expander::Result result = expander.finish(std::span(&value, 1), {});
    kernels::PointwiseSpec spec;
    spec.extents = space.extents;
    spec.inputs = std::move(result.inputs);
    spec.body = std::move(result.body);
    spec.outputs = {make_output(root, point, space.extents.size(), slots, buffer)};
    return kernels::KernelSpec(std::move(spec));
  });
}

kernels::Combine combine_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return kernels::Combine::kSum;
    case ReduceKind::kMax:
      return kernels::Combine::kMax;
    case ReduceKind::kMin:
      return kernels::Combine::kMin;
    case ReduceKind::kArgMax:
      return kernels::Combine::kArgMax;
  }
  MG_CHECK(false, "unknown reduction");
  return kernels::Combine::kSum;
}

kernels::KernelSpec reduction(Tensor root, Tensor anchor, uint32_t buffer, SlotTable& slots,
                              Axes& axes) {
  const Node& node = anchor.node();
  const Tensor operand = node.operands[0];
  const auto& reduced = node.get<std::vector<int64_t>>("axes");
  std::vector<size_t> outer_axes;
  std::vector<size_t> reduced_axes;
  std::vector<size_t> position(static_cast<size_t>(operand.rank()));
  for (size_t axis = 0; axis < position.size(); ++axis) {
    const bool is_reduced =
        std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(axis)) != reduced.end();
    (is_reduced ? reduced_axes : outer_axes).push_back(axis);
  }
  std::vector<size_t> all = outer_axes;
  all.insert(all.end(), reduced_axes.begin(), reduced_axes.end());
  for (size_t i = 0; i < all.size(); ++i) position[all[i]] = i;

  const Space space(axes, all);
  const Space outer(axes, outer_axes);
  kernels::ReductionSpec spec;
  spec.outer = outer.extents;
  spec.reduced = extents_of(axes, reduced_axes);
  spec.combine = combine_of(node.row->reduce);
  within(space, axes, [&] {
    Expander expander(slots, space.extents);
    const Scalar value = expander.expand(operand, space.point(position));
    Expander::Result result = expander.finish(std::span(&value, 1), {});
    spec.inputs = std::move(result.inputs);
    spec.prologue = std::move(result.body);
    return 0;
  });
  const Type type =
      node.row->reduce == ReduceKind::kArgMax ? Type::kU32 : scalar::compute_type(operand.dtype());
  Tail tail =
      within(outer, axes, [&] { return build_tail(root, anchor, type, outer, slots, buffer); });
  spec.extras = std::move(tail.inputs);
  spec.epilogue = std::move(tail.body);
  spec.outputs = std::move(tail.outputs);
  return spec;
}

Input contraction_operand(Tensor operand, const Space& space, std::span<const size_t> order,
                          SlotTable& slots, Axes& axes) {
  return within(space, axes, [&] {
    Expander expander(slots, space.extents);
    Input input = expander.input(operand, space.point(order));
    if (!input.terms.empty() || !input.guards.empty()) throw NeedsBuffer{operand.id()};
    return input;
  });
}

kernels::KernelSpec contraction(Tensor root, Tensor anchor, uint32_t buffer, SlotTable& slots,
                                Axes& axes) {
  const Node& node = anchor.node();
  const auto& a_batch = node.get<std::vector<int64_t>>("a_batch");
  const auto& b_batch = node.get<std::vector<int64_t>>("b_batch");
  const auto& a_contract = node.get<std::vector<int64_t>>("a_contract");
  const auto& b_contract = node.get<std::vector<int64_t>>("b_contract");
  // Axis ids: those of the output first (batch, m, n), then the contracted ones.
  const auto output_rank = static_cast<size_t>(anchor.rank());
  std::vector<size_t> batch, m, n, k;
  for (size_t i = 0; i < a_batch.size(); ++i) batch.push_back(i);
  for (size_t i = 0; i < a_contract.size(); ++i) k.push_back(output_rank + i);
  auto axis_ids = [&](Tensor operand, const std::vector<int64_t>& batch_axes,
                      const std::vector<int64_t>& contracted, std::vector<size_t>& free,
                      size_t next) {
    std::vector<size_t> ids;
    for (int64_t axis = 0; axis < operand.rank(); ++axis) {
      const auto b = std::find(batch_axes.begin(), batch_axes.end(), axis);
      const auto c = std::find(contracted.begin(), contracted.end(), axis);
      if (b != batch_axes.end()) {
        ids.push_back(static_cast<size_t>(b - batch_axes.begin()));
      } else if (c != contracted.end()) {
        ids.push_back(output_rank + static_cast<size_t>(c - contracted.begin()));
      } else {
        free.push_back(next);
        ids.push_back(next++);
      }
    }
    return ids;
  };
  const std::vector<size_t> a_ids =
      axis_ids(node.operands[0], a_batch, a_contract, m, batch.size());
  const std::vector<size_t> b_ids =
      axis_ids(node.operands[1], b_batch, b_contract, n, batch.size() + m.size());

  auto operand_input = [&](Tensor operand, const std::vector<size_t>& ids,
                           std::initializer_list<const std::vector<size_t>*> groups) {
    std::vector<size_t> which;
    for (const auto* group : groups) which.insert(which.end(), group->begin(), group->end());
    std::vector<size_t> order;
    for (size_t id : ids) {
      order.push_back(
          static_cast<size_t>(std::find(which.begin(), which.end(), id) - which.begin()));
    }
    return contraction_operand(operand, Space(axes, which), order, slots, axes);
  };
  kernels::ContractionSpec spec;
  spec.a = operand_input(node.operands[0], a_ids, {&batch, &m, &k});
  spec.b = operand_input(node.operands[1], b_ids, {&batch, &k, &n});
  spec.batch = extents_of(axes, batch);
  spec.m = extents_of(axes, m);
  spec.n = extents_of(axes, n);
  spec.k = extents_of(axes, k);
  std::vector<size_t> output_axes(output_rank);
  for (size_t i = 0; i < output_rank; ++i) output_axes[i] = i;
  const Space outer(axes, output_axes);
  Tail tail = within(outer, axes,
                     [&] { return build_tail(root, anchor, Type::kF32, outer, slots, buffer); });
  spec.extras = std::move(tail.inputs);
  spec.epilogue = std::move(tail.body);
  spec.outputs = std::move(tail.outputs);
  return spec;
}

// A buffer addressed as if it were flat.
Input dense_input(Tensor tensor, std::vector<int64_t> strides, SlotTable& slots) {
  const auto slot = slots.slot(through_reshapes(tensor));
  if (!slot) throw NeedsBuffer{tensor.id()};
  Input input;
  input.slot = *slot;
  input.dtype = tensor.dtype();
  input.access.strides = std::move(strides);
  return input;
}

kernels::KernelSpec scatter_add(Tensor anchor, uint32_t buffer, SlotTable& slots) {
  const Node& node = anchor.node();
  const std::vector<int64_t> strides = node.shape.strides();
  kernels::ScatterAddSpec spec;
  spec.rows = node.shape[0];
  spec.positions = node.operands[1].shape().elements();
  spec.inner.assign(node.shape.begin() + 1, node.shape.end());
  const Tensor base = through_reshapes(node.operands[0]);
  const bool splat = base.node().row->lowering == Lowering::kConstant ||
                     base.node().row->lowering == Lowering::kBroadcast;
  Tensor source = base;
  while (source.node().row->lowering == Lowering::kBroadcast ||
         source.node().row->lowering == Lowering::kReshape) {
    source = source.node().operands[0];
  }
  const auto value = splat && source.node().row->lowering == Lowering::kConstant
                         ? splat_value(source.node())
                         : std::nullopt;
  spec.has_base = !(value && value->expression().payload == 0);
  if (spec.has_base) spec.base = dense_input(node.operands[0], strides, slots);
  spec.index = dense_input(node.operands[1], {1}, slots);
  spec.updates = dense_input(node.operands[2], strides, slots);
  spec.output.slot = slots.slot_of_buffer(buffer);
  spec.output.dtype = node.dtype;
  spec.output.access.strides = strides;
  return spec;
}

Axes axes_for(Tensor root, std::optional<Tensor> anchor) {
  Axes axes;
  if (!anchor) {
    for (int64_t extent : root.shape()) axes.add(extent);
    return axes;
  }
  const Node& node = anchor->node();
  if (node.row->lowering == Lowering::kReduce) {
    for (int64_t extent : node.operands[0].shape()) axes.add(extent);
  } else if (node.row->lowering == Lowering::kContract) {
    for (int64_t extent : node.shape) axes.add(extent);
    for (int64_t axis : node.get<std::vector<int64_t>>("a_contract")) {
      axes.add(node.operands[0].shape()[static_cast<int>(axis)]);
    }
  }
  return axes;
}

kernels::KernelSpec build_once(Tensor root, uint32_t buffer, std::optional<Tensor> anchor,
                               SlotTable& slots, Axes& axes) {
  if (!anchor) return pointwise(root, buffer, slots, axes);
  switch (anchor->node().row->lowering) {
    case Lowering::kReduce:
      return reduction(root, *anchor, buffer, slots, axes);
    case Lowering::kContract:
      return contraction(root, *anchor, buffer, slots, axes);
    default:
      return scatter_add(*anchor, buffer, slots);
  }
}

}  // namespace

BuiltSpec build_spec(const Root& root, std::optional<Tensor> anchor,
                     const std::map<uint32_t, uint32_t>& buffer_of) {
  Axes axes = axes_for(root.tensor, anchor);
  for (;;) {
    SlotTable slots(buffer_of, root.copy ? std::nullopt : std::optional(root.tensor.id()));
    try {
      kernels::KernelSpec spec = build_once(root.tensor, root.buffer, anchor, slots, axes);
      std::string label(anchor ? anchor->node().row->name : root.tensor.node().row->name);
      if (root.copy) label = "copy";
      if (anchor && *anchor != root.tensor) label += cat("+", root.tensor.node().row->name);
      return {std::move(spec), slots.buffers(), slots.tensors(),
              cat(label, " ", root.tensor.shape())};
    } catch (const SplitAndRetry&) {
      continue;
    }
  }
}

}  // namespace meganeura::schedule
