#include <algorithm>

#include "base/format.h"
#include "kernels/archetype_list.h"
#include "kernels/cost.h"
#include "kernels/kernel_writer.h"
#include "kernels/spec_walk.h"

namespace meganeura::kernels {
namespace {

using kir::Value;

class ScatterAdd {
 public:
  ScatterAdd(const ScatterAddSpec& spec, const Capabilities& capabilities)
      : spec_(spec),
        capabilities_(capabilities),
        outputs_({&spec.output}),
        inner_(element_count(spec.inner)),
        subgroup_(std::max(1u, capabilities.subgroup_size)) {
    extents_ = {spec.rows};
    extents_.insert(extents_.end(), spec.inner.begin(), spec.inner.end());
    require_packed(extents_, outputs_);
  }

  // One invocation an output, looking at every position.
  KernelPlan serial() const {
    const uint32_t local = std::min(64u, local_limit());
    KernelWriter w = writer(cat("scatter_serial_l", local), local, 0);
    const uint32_t items = store_items(element_count(extents_), outputs_);
    const Launch launch = plan_launch(items, local, 1, capabilities_);
    w.for_items(launch, [&](Value item) {
      w.store_item(item, extents_, outputs_, [&](std::span<const Value> at) {
        const std::span<const Value> column = at.subspan(1);
        const std::array<Value, 1> initial = {base(w, at)};
        return w.loop(w.b.u32(positions()), initial, [&](Value p, std::span<const Value> sum) {
          return std::vector<Value>{add_if(w, matches(w, p, at[0]), p, column, sum[0])};
        });
      });
    });
    const int64_t points = steps(launch) * positions() * (any_narrow(outputs_) ? 4 : 1);
    return plan(w, launch, cat("scatter serial l", local), local / subgroup_, points, points);
  }

  bool subgroup_legal() const {
    return !any_narrow(outputs_) && capabilities_.subgroup_arithmetic && subgroup_ > 1 &&
           subgroup_ <= local_limit();
  }

  // One subgroup for a row and as many columns as it has lanes: the lanes look at that many
  // positions at once, and only where one matches are updates read.
  KernelPlan subgroup() const {
    const uint32_t per_group = std::max(1u, std::min(64u, local_limit()) / subgroup_);
    const uint32_t local = per_group * subgroup_;
    KernelWriter w = writer(cat("scatter_subgroup_l", local), local, subgroup_);
    const uint32_t chunks = (inner_ + subgroup_ - 1) / subgroup_;
    const uint32_t items = element_count({spec_.rows, int64_t{chunks}});
    const Launch launch = plan_launch(items, per_group, 1, capabilities_);
    Value lane = w.b.builtin(kir::Builtin::kLane);
    w.for_items(launch, w.b.builtin(kir::Builtin::kSubgroup), [&](Value item) {
      const std::vector<Value> split =
          w.coordinates(item, std::array<int64_t, 2>{spec_.rows, chunks});
      Value first = w.b.mul(split[1], w.b.u32(subgroup_));
      Value flat = w.b.add(first, lane);
      Value clamped = w.b.min(flat, w.b.u32(inner_ - 1));
      std::vector<Value> at = w.coordinates(clamped, spec_.inner);
      at.insert(at.begin(), split[0]);
      Value total = sum_blocks(w, lane, at);
      w.b.if_then(w.b.less(flat, w.b.u32(inner_)),
                  [&] { w.store(spec_.output, w.address(spec_.output.access, at), total); });
    });
    const int64_t blocks = (positions() + subgroup_ - 1) / subgroup_;
    const int64_t rows = std::max<int64_t>(1, spec_.rows);
    // On average every position belongs to some row.
    const int64_t hits = steps(launch) * ((positions() + rows - 1) / rows) * subgroup_;
    return plan(w, launch, cat("scatter subgroup l", local), per_group,
                steps(launch) * blocks + hits, steps(launch) * blocks * 4);
  }

 private:
  uint32_t local_limit() const {
    return std::min(capabilities_.max_workgroup_invocations, capabilities_.max_workgroup_size[0]);
  }
  uint32_t positions() const { return static_cast<uint32_t>(spec_.positions); }

  KernelWriter writer(std::string name, uint32_t local, uint32_t subgroup) const {
    std::vector<const Input*> inputs = {&spec_.index, &spec_.updates};
    if (spec_.has_base) inputs.push_back(&spec_.base);
    return KernelWriter({std::move(name), {local, 1, 1}, subgroup}, inputs, outputs_);
  }

  Value base(KernelWriter& w, std::span<const Value> at) const {
    if (!spec_.has_base) return w.b.constant(scalar::compute_type(spec_.output.dtype), 0);
    return w.load(w.advance(w.start(spec_.base), at)).value;
  }

  // Negative indices are large as u32 and match no row.
  Value matches(KernelWriter& w, Value p, Value row) const {
    Value index = w.load(w.advance(w.start(spec_.index), std::array{p})).value;
    return w.b.equal(w.bitcast(index, kir::Type::kU32), row);
  }

  Value add_if(KernelWriter& w, Value match, Value p, std::span<const Value> column,
               Value sum) const {
    return w.b.if_else(
        match,
        [&] {
          const Cursor cursor = w.advance(w.start(spec_.updates), std::array{p});
          Value update = w.load(w.advance(cursor, column)).value;
          return std::vector<Value>{w.b.add(sum, update)};
        },
        [&] { return std::vector<Value>{sum}; })[0];
  }

  Value sum_blocks(KernelWriter& w, Value lane, std::span<const Value> at) const {
    const std::array<Value, 1> initial = {base(w, at)};
    Value begin = w.b.u32(0);
    Value end = w.b.u32(positions());
    Value step = w.b.u32(subgroup_);
    return w.b.for_range(begin, end, step, initial, [&](Value first, std::span<const Value> sum) {
      Value mine = w.b.add(first, lane);
      Value inside = w.b.less(mine, end);
      Value clamped = w.b.min(mine, w.b.u32(positions() - 1));
      Value hit = w.b.logical_and(inside, matches(w, clamped, at[0]));
      Value one = w.b.u32(1);
      Value flag = w.b.select(hit, one, w.b.u32(0));
      Value any = w.b.subgroup_reduce(kir::Opcode::kSubgroupMax, flag);
      Value found = w.not_equal(any, w.b.u32(0));
      return w.b.if_else(
          found,
          [&] {
            Value last = w.b.min(w.b.add(first, step), end);
            return w.b.for_range(first, last, one, sum, [&](Value p, std::span<const Value> inner) {
              return std::vector<Value>{
                  add_if(w, matches(w, p, at[0]), p, at.subspan(1), inner[0])};
            });
          },
          [&] { return std::vector<Value>{sum[0]}; });
    })[0];
  }

  static int64_t steps(const Launch& launch) {
    const int64_t workers = int64_t{launch.groups} * launch.local;
    return (launch.items + workers - 1) / workers;
  }

  KernelPlan plan(KernelWriter& w, const Launch& launch, std::string tile, uint32_t subgroups,
                  int64_t loads, int64_t operations) const {
    KernelPlan result;
    result.stages.push_back(w.finish({launch.groups, 1, 1}));
    const Stage& stage = result.stages[0];
    require_fit(capabilities_, stage.kernel.name, stage.slots.size(), stage.params.size());
    result.tile = std::move(tile);
    result.cost = estimate_ns({.groups = launch.groups,
                               .subgroups = std::max(1u, subgroups),
                               .packed_loads = loads,
                               .operations = operations},
                              capabilities_);
    return result;
  }

  const ScatterAddSpec& spec_;
  const Capabilities& capabilities_;
  std::vector<const Output*> outputs_;
  std::vector<int64_t> extents_;
  uint32_t inner_;
  uint32_t subgroup_;
};

}  // namespace

std::vector<KernelPlan> scatter_add_candidates(const ScatterAddSpec& spec,
                                               const Capabilities& capabilities) {
  const ScatterAdd archetype(spec, capabilities);
  std::vector<KernelPlan> plans;
  if (archetype.subgroup_legal()) plans.push_back(archetype.subgroup());
  plans.push_back(archetype.serial());
  return plans;
}

}  // namespace meganeura::kernels
