#include "kernels/reduction.h"

#include <algorithm>
#include <bit>

#include "base/format.h"
#include "kernels/cost.h"
#include "kernels/spec_walk.h"

namespace meganeura::kernels {
namespace {

using kir::Value;

DType word_dtype(scalar::Type type) {
  if (type == scalar::Type::kF32) return DType::kF32;
  return type == scalar::Type::kI32 ? DType::kI32 : DType::kU32;
}

class Reduction {
 public:
  Reduction(const ReductionSpec& spec, const Capabilities& capabilities)
      : spec_(spec),
        capabilities_(capabilities),
        prologue_(lower(spec.prologue, capabilities)),
        epilogue_(lower(spec.epilogue, capabilities)),
        type_(spec.prologue.nodes.at(spec.prologue.outputs[0]).type),
        combiner_(spec.combine, type_),
        outputs_(pointers(spec.outputs)),
        rows_(element_count(spec.outer)),
        length_(element_count(spec.reduced)),
        subgroup_(std::max(1u, capabilities.subgroup_size)) {
    require_packed(spec.outer, outputs_);
  }

  bool narrow() const { return any_narrow(outputs_); }
  uint32_t rows() const { return rows_; }
  uint32_t length() const { return length_; }

  // One invocation an output, walking the reduced points in order.
  KernelPlan serial() const {
    const uint32_t local = std::min(64u, local_limit());
    KernelWriter w = writer(cat("reduce_serial_l", local), local, 0);
    const uint32_t items = store_items(rows_, outputs_);
    const Launch launch = plan_launch(items, local, 1, capabilities_);
    w.for_items(launch, [&](Value item) {
      w.store_item(item, spec_.outer, outputs_, [&](std::span<const Value> at) {
        const std::vector<Cursor> cursors = start(w, at);
        const Accumulator total = nest(w, 0, cursors, w.b.u32(0));
        return finish(w, at, total);
      });
    });
    Work work = work_of(launch);
    const int64_t each = narrow() ? 4 : 1;
    add_walk(work, length_ * each * steps(launch), reads_across_rows());
    return plan(w, launch.groups, cat("reduce serial l", local), work);
  }

  bool subgroup_legal() const {
    return !narrow() && capabilities_.subgroup_shuffle && subgroup_ > 1 && length_ > 0 &&
           subgroup_ <= local_limit();
  }

  // One subgroup a row: lanes stride over the reduced points, then a fixed tree of exchanges.
  KernelPlan subgroup() const {
    const uint32_t target = capabilities_.device_class == DeviceClass::kCpu ? 64 : 128;
    const uint32_t per_group = std::max(1u, std::min(target, local_limit()) / subgroup_);
    const uint32_t local = per_group * subgroup_;
    KernelWriter w = writer(cat("reduce_subgroup_l", local), local, subgroup_);
    const Launch launch = plan_launch(rows_, per_group, 1, capabilities_);
    Value lane = w.b.builtin(kir::Builtin::kLane);
    w.for_items(launch, w.b.builtin(kir::Builtin::kSubgroup), [&](Value row) {
      const std::vector<Value> at = w.coordinates(row, spec_.outer);
      Accumulator total = strided(w, start(w, at), lane, subgroup_);
      for (uint32_t mask = subgroup_ / 2; mask > 0; mask /= 2) {
        Accumulator other;
        for (Value part : total) other.push_back(w.b.subgroup_shuffle_xor(part, mask));
        total = combiner_.merge(w, total, other);
      }
      w.b.if_then(w.b.equal(lane, w.b.u32(0)), [&] { store(w, at, finish(w, at, total)); });
    });
    Work work = work_of(launch);
    work.subgroups = per_group;
    add_walk(work, (length_ + subgroup_ - 1) / subgroup_ * steps(launch), reads_along_rows());
    work.operations += steps(launch) * 20 * std::bit_width(subgroup_);
    return plan(w, launch.groups, cat("reduce subgroup l", local), work);
  }

  bool workgroup_legal(uint32_t local) const {
    return !narrow() && length_ > 0 && local <= local_limit() &&
           local * 4 * combiner_.parts() <= capabilities_.shared_bytes;
  }

  // One workgroup a row, with a tree in shared memory.
  KernelPlan workgroup(uint32_t local) const {
    KernelWriter w = writer(cat("reduce_workgroup_l", local), local, 0);
    std::vector<uint32_t> arrays;
    for (size_t i = 0; i < combiner_.parts(); ++i) {
      arrays.push_back(w.b.shared(cat("part", i), combiner_.accumulator_type(i), local));
    }
    const Launch launch = plan_launch(rows_, 1, 1, capabilities_);
    Value index = w.b.builtin(kir::Builtin::kLocalIndex);
    w.for_items(launch, w.b.u32(0), [&](Value row) {
      const std::vector<Value> at = w.coordinates(row, spec_.outer);
      const Accumulator mine = strided(w, start(w, at), index, local);
      const Accumulator total = shared_tree(w, arrays, index, local, mine);
      w.b.if_then(w.b.equal(index, w.b.u32(0)), [&] { store(w, at, finish(w, at, total)); });
      if (launch.loop) w.b.barrier();
    });
    Work work = work_of(launch);
    work.subgroups = (local + subgroup_ - 1) / subgroup_;
    add_walk(work, (length_ + local - 1) / local * steps(launch), reads_along_rows());
    work.barriers = steps(launch) * (1 + std::bit_width(local));
    work.operations += steps(launch) * 20 * std::bit_width(local);
    return plan(w, launch.groups, cat("reduce workgroup l", local), work);
  }

  bool two_stages_legal() const {
    return spec_.combine != Combine::kArgMax && length_ >= 128 && chunks() > 1;
  }

  // Interleaved parts of every row go to scratch; a second stage merges them in order.
  KernelPlan two_stages() const {
    const uint32_t parts = chunks();
    const uint32_t scratch = slot_count(spec_);
    const DType dtype = word_dtype(type_);
    const Output partial{scratch, dtype, {0, {int64_t{rows_}, 1}}};
    const uint32_t local = std::min(64u, local_limit());
    const std::vector<const Input*> inputs = pointers(spec_.inputs);
    KernelWriter w({cat("reduce_parts", parts, "_l", local), {local, 1, 1}}, inputs,
                   std::array{&partial});
    const Launch launch = plan_launch(parts * rows_, local, 1, capabilities_);
    w.for_items(launch, [&](Value item) {
      const std::vector<Value> split =
          w.coordinates(item, std::array<int64_t, 2>{parts, int64_t{rows_}});
      const std::vector<Value> at = w.coordinates(split[1], spec_.outer);
      const Accumulator part = strided(w, start(w, at), split[0], parts);
      w.store(partial, item, part[0]);
    });
    Work work = work_of(launch);
    const bool packed = rows_ == 1 ? reads_along_rows() : reads_across_rows();
    add_walk(work, (length_ + parts - 1) / parts * steps(launch), packed);
    KernelPlan result = plan(w, launch.groups, cat("reduce parts ", parts, " l", local), work);

    const KernelPlan second = serial_reduction(merge_spec(scratch, parts), capabilities_);
    result.stages.push_back(second.stages[0]);
    result.cost += second.cost;
    for (Stage& stage : result.stages) {
      std::replace(stage.slots.begin(), stage.slots.end(), scratch, Stage::kScratch);
    }
    result.scratch_bytes = uint64_t{parts} * rows_ * 4;
    return result;
  }

 private:
  uint32_t local_limit() const {
    return std::min(capabilities_.max_workgroup_invocations, capabilities_.max_workgroup_size[0]);
  }

  KernelWriter writer(std::string name, uint32_t local, uint32_t subgroup) const {
    std::vector<const Input*> inputs = pointers(spec_.inputs);
    for (const Input& extra : spec_.extras) inputs.push_back(&extra);
    return KernelWriter({std::move(name), {local, 1, 1}, subgroup}, inputs, outputs_);
  }

  // Parts that keep every unit busy while each has a few dozen points.
  uint32_t chunks() const {
    const int64_t lanes = int64_t{4} * capabilities_.compute_units * subgroup_ *
                          cost_row(capabilities_.device_class).resident;
    const int64_t wanted = std::max<int64_t>(1, lanes / std::max(1u, rows_));
    return static_cast<uint32_t>(std::clamp<int64_t>(wanted, 1, length_ / 32));
  }

  // The second stage: partials over (part, row) to the spec's outputs.
  ReductionSpec merge_spec(uint32_t scratch, uint32_t parts) const {
    ReductionSpec merge = spec_;
    Input partial{scratch, word_dtype(type_), {0, Shape(spec_.outer).strides()}, {}, {}};
    partial.access.strides.push_back(rows_);
    merge.reduced = {int64_t{parts}};
    merge.inputs = {partial};
    merge.prologue = scalar::identity(type_);
    return merge;
  }

  std::vector<Cursor> start(KernelWriter& w, std::span<const Value> at) const {
    std::vector<Cursor> cursors;
    for (const Input& input : spec_.inputs) cursors.push_back(w.advance(w.start(input), at));
    return cursors;
  }

  Accumulator leaf(KernelWriter& w, const std::vector<Cursor>& cursors, Value flat) const {
    std::vector<Loaded> loaded;
    for (const Cursor& cursor : cursors) loaded.push_back(w.load(cursor));
    const Value value = w.b.inline_body(prologue_, KernelWriter::arguments({}, loaded))[0];
    return combiner_.single(w, value, flat);
  }

  static std::vector<Cursor> advance(KernelWriter& w, const std::vector<Cursor>& cursors,
                                     std::span<const Value> at) {
    std::vector<Cursor> next;
    for (const Cursor& cursor : cursors) next.push_back(w.advance(cursor, at));
    return next;
  }

  // A loop for every reduced dimension from `d` on.
  Accumulator nest(KernelWriter& w, size_t d, const std::vector<Cursor>& cursors,
                   Value flat) const {
    if (d == spec_.reduced.size()) return leaf(w, cursors, flat);
    const uint32_t extent = static_cast<uint32_t>(spec_.reduced[d]);
    return combiner_.accumulate(w, extent, [&](Value i) {
      Value index = w.b.add(w.b.mul(flat, w.b.u32(extent)), i);
      return nest(w, d + 1, advance(w, cursors, std::array{i}), index);
    });
  }

  // The points first, first + stride, … of the flat reduced space. Every worker takes equally many
  // steps, so that control flow stays uniform; those beyond the end count as nothing.
  Accumulator strided(KernelWriter& w, const std::vector<Cursor>& cursors, Value first,
                      uint32_t stride) const {
    const uint32_t count = (length_ + stride - 1) / stride;
    return combiner_.accumulate(w, count, [&](Value i) {
      Value flat = w.b.add(w.b.mul(i, w.b.u32(stride)), first);
      if (length_ % stride == 0) {
        return leaf(w, advance(w, cursors, w.coordinates(flat, spec_.reduced)), flat);
      }
      Value inside = w.b.less(flat, w.b.u32(length_));
      Value clamped = w.b.min(flat, w.b.u32(length_ - 1));
      const Accumulator value =
          leaf(w, advance(w, cursors, w.coordinates(clamped, spec_.reduced)), clamped);
      return combiner_.masked(w, inside, value);
    });
  }

  // Halves the number of partials until the first worker's is the total.
  Accumulator shared_tree(KernelWriter& w, const std::vector<uint32_t>& arrays, Value index,
                          uint32_t workers, const Accumulator& mine) const {
    auto load = [&](Value at) {
      Accumulator out;
      for (uint32_t array : arrays) out.push_back(w.b.shared_load(array, at));
      return out;
    };
    auto save = [&](const Accumulator& value) {
      for (size_t i = 0; i < arrays.size(); ++i) w.b.shared_store(arrays[i], index, value[i]);
    };
    save(mine);
    w.b.barrier();
    for (uint32_t half = std::bit_floor(workers - 1); half > 0; half /= 2) {
      Value partner = w.b.add(index, w.b.u32(half));
      Value active = w.b.less(partner, w.b.u32(std::min(workers, 2 * half)));
      w.b.if_then(active, [&] {
        const Accumulator own = load(index);
        save(combiner_.merge(w, own, load(partner)));
      });
      w.b.barrier();
    }
    return load(w.b.u32(0));
  }

  std::vector<Value> finish(KernelWriter& w, std::span<const Value> at,
                            const Accumulator& total) const {
    std::vector<Loaded> extras;
    for (const Input& extra : spec_.extras) {
      extras.push_back(w.load(w.advance(w.start(extra), at)));
    }
    const Value result = combiner_.result(total);
    return w.b.inline_body(epilogue_, KernelWriter::arguments(std::array{result}, extras));
  }

  void store(KernelWriter& w, std::span<const Value> at, const std::vector<Value>& values) const {
    for (size_t i = 0; i < values.size(); ++i) {
      w.store(spec_.outputs[i], w.address(spec_.outputs[i].access, at), values[i]);
    }
  }

  // Whether neighbouring reduced points, or neighbouring outputs, are neighbours in memory.
  bool reads_along_rows() const {
    return std::all_of(spec_.inputs.begin(), spec_.inputs.end(), [&](const Input& input) {
      return spec_.reduced.empty() || std::abs(input.access.strides.back()) <= 1;
    });
  }
  bool reads_across_rows() const {
    return std::all_of(spec_.inputs.begin(), spec_.inputs.end(), [&](const Input& input) {
      return spec_.outer.empty() || std::abs(input.access.strides[spec_.outer.size() - 1]) <= 1;
    });
  }

  static int64_t steps(const Launch& launch) {
    const int64_t workers = int64_t{launch.groups} * launch.local;
    return (launch.items + workers - 1) / workers;
  }

  Work work_of(const Launch& launch) const {
    return {.groups = launch.groups, .subgroups = (launch.local + subgroup_ - 1) / subgroup_};
  }

  void add_walk(Work& work, int64_t points, bool packed) const {
    const int64_t loads = points * static_cast<int64_t>(spec_.inputs.size());
    (packed ? work.packed_loads : work.loads) += loads;
    work.operations += points * static_cast<int64_t>(prologue_.nodes.size() + 3) +
                       static_cast<int64_t>(epilogue_.nodes.size());
  }

  KernelPlan plan(KernelWriter& w, uint32_t groups, std::string tile, const Work& work) const {
    KernelPlan result;
    result.stages.push_back(w.finish({groups, 1, 1}));
    const Stage& stage = result.stages[0];
    require_fit(capabilities_, stage.kernel.name, stage.slots.size(), stage.params.size());
    result.tile = std::move(tile);
    result.cost = estimate_ns(work, capabilities_);
    return result;
  }

  const ReductionSpec& spec_;
  const Capabilities& capabilities_;
  scalar::Body prologue_;
  scalar::Body epilogue_;
  scalar::Type type_;
  Combiner combiner_;
  std::vector<const Output*> outputs_;
  uint32_t rows_;
  uint32_t length_;
  uint32_t subgroup_;
};

}  // namespace

KernelPlan serial_reduction(const ReductionSpec& spec, const Capabilities& capabilities) {
  return Reduction(spec, capabilities).serial();
}

std::vector<KernelPlan> reduction_candidates(const ReductionSpec& spec,
                                             const Capabilities& capabilities) {
  const Reduction archetype(spec, capabilities);
  std::vector<KernelPlan> plans;
  if (archetype.subgroup_legal()) plans.push_back(archetype.subgroup());
  for (uint32_t local : {256u, 64u}) {
    if (archetype.workgroup_legal(local)) plans.push_back(archetype.workgroup(local));
  }
  if (archetype.two_stages_legal()) plans.push_back(archetype.two_stages());
  plans.push_back(archetype.serial());
  return plans;
}

}  // namespace meganeura::kernels
