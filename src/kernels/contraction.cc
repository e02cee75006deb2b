#include "kernels/contraction.h"

#include <algorithm>

#include "base/format.h"
#include "kernels/cost.h"
#include "kernels/reduction.h"
#include "kernels/spec_walk.h"

namespace meganeura::kernels {

using kir::Value;

namespace {

// Moves `count` strides at `from` behind the `over` strides that follow them.
void move_back(Affine& access, size_t from, size_t count, size_t over) {
  auto begin = access.strides.begin() + static_cast<ptrdiff_t>(from);
  auto middle = begin + static_cast<ptrdiff_t>(count);
  std::rotate(begin, middle, middle + static_cast<ptrdiff_t>(over));
}

// Products of the k dimensions from `d` on, summed in nested loops.
Accumulator sum_products(KernelWriter& w, const Contraction& work, size_t d, const Cursor& a,
                         const Cursor& b) {
  const Combiner sum(Combine::kSum, scalar::Type::kF32);
  if (d == work.spec.k.size()) {
    const Value x = w.load(a).value;
    const Value y = w.load(b).value;
    return {w.b.mul(x, y)};
  }
  return sum.accumulate(w, static_cast<uint32_t>(work.spec.k[d]), [&](Value i) {
    const Cursor next_a = w.advance(a, std::array{i});
    const Cursor next_b = w.advance(b, std::array{i});
    return sum_products(w, work, d + 1, next_a, next_b);
  });
}

}  // namespace

std::vector<int64_t> Contraction::output_extents() const {
  std::vector<int64_t> extents = spec.batch;
  extents.insert(extents.end(), spec.m.begin(), spec.m.end());
  extents.insert(extents.end(), spec.n.begin(), spec.n.end());
  return extents;
}

std::vector<const Input*> Contraction::inputs() const {
  std::vector<const Input*> result = {&a, &b};
  for (const Input& extra : spec.extras) result.push_back(&extra);
  return result;
}

Contraction make_contraction(const ContractionSpec& spec, const Capabilities& capabilities) {
  Contraction work;
  work.spec = spec;
  work.a = spec.a;
  work.b = spec.b;
  move_back(work.b.access, spec.batch.size(), spec.k.size(), spec.n.size());
  work.epilogue = lower(spec.epilogue, capabilities);
  work.batch = element_count(spec.batch);
  work.m = element_count(spec.m);
  work.n = element_count(spec.n);
  work.k = element_count(spec.k);
  return work;
}

ContractionSpec transposed(const ContractionSpec& spec) {
  ContractionSpec result = spec;
  std::swap(result.m, result.n);
  result.a = spec.b;
  result.b = spec.a;
  const size_t batch = spec.batch.size();
  // a is over batch + m + k and b over batch + k + n.
  move_back(result.a.access, batch, spec.k.size(), spec.n.size());
  move_back(result.b.access, batch, spec.m.size(), spec.k.size());
  for (Input& extra : result.extras) {
    for_each_affine(
        extra, [&](Affine& affine) { move_back(affine, batch, spec.m.size(), spec.n.size()); });
  }
  for (Output& output : result.outputs) {
    move_back(output.access, batch, spec.m.size(), spec.n.size());
  }
  return result;
}

std::span<const int64_t> strides_of(const Affine& access, size_t first, size_t count) {
  return std::span(access.strides).subspan(first, count);
}

Value group_offset(KernelWriter& w, Value flat, std::span<const int64_t> extents,
                   std::span<const int64_t> strides) {
  const std::vector<Value> at = w.coordinates(flat, extents);
  Value sum = w.b.u32(0);
  for (size_t d = 0; d < at.size(); ++d) {
    Value step = w.b.mul(at[d], w.number(strides[d]));
    sum = w.b.add(sum, step);
  }
  return sum;
}

KernelPlan naive_contraction(const Contraction& work, const Capabilities& capabilities) {
  const uint32_t local =
      std::min({64u, capabilities.max_workgroup_invocations, capabilities.max_workgroup_size[0]});
  const std::string name = cat("contract_naive_l", local);
  const std::vector<const Output*> outputs = work.outputs();
  const std::vector<int64_t> extents = work.output_extents();
  require_packed(extents, outputs);
  KernelWriter w({name, {local, 1, 1}}, work.inputs(), outputs);
  const uint32_t items = store_items(element_count(extents), outputs);
  const Launch launch = plan_launch(items, local, 1, capabilities);
  w.for_items(launch, [&](Value item) {
    w.store_item(item, extents, outputs, [&](std::span<const Value> at) {
      const size_t batch = work.spec.batch.size();
      const size_t m = work.spec.m.size();
      const Cursor a = w.advance(w.start(work.a), at.first(batch + m));
      const Cursor b_batch = w.advance(w.start(work.b), at.first(batch));
      const Cursor b = w.advance(b_batch, at.subspan(batch + m));
      const Accumulator sum = sum_products(w, work, 0, a, b);
      std::vector<Loaded> extras;
      for (const Input& extra : work.spec.extras) {
        extras.push_back(w.load(w.advance(w.start(extra), at)));
      }
      return w.b.inline_body(work.epilogue, KernelWriter::arguments(sum, extras));
    });
  });
  KernelPlan plan;
  plan.stages.push_back(w.finish({launch.groups, 1, 1}));
  require_fit(capabilities, name, plan.stages[0].slots.size(), plan.stages[0].params.size());
  plan.tile = cat("contract naive l", local);
  const int64_t subgroup = std::max(1u, capabilities.subgroup_size);
  const int64_t workers = int64_t{launch.groups} * local;
  const int64_t points = (launch.items + workers - 1) / workers * work.k;
  plan.cost = estimate_ns({.groups = launch.groups,
                           .subgroups = (local + subgroup - 1) / subgroup,
                           .loads = 2 * points,
                           .operations = 6 * points},
                          capabilities);
  return plan;
}

Epilogue::Epilogue(KernelWriter& w, const Contraction& work, Value batch) : w_(&w), work_(&work) {
  const std::vector<Value> at = w.coordinates(batch, work.spec.batch);
  for (const Input& extra : work.spec.extras) {
    batch_.extras.push_back(w.advance(w.start(extra), at));
  }
  for (const Output& output : work.spec.outputs) {
    batch_.outputs.push_back(w.address(output.access, at));
  }
}

Epilogue::Row Epilogue::row(Value m) const {
  const ContractionSpec& spec = work_->spec;
  Row row = batch_;
  const std::vector<Value> at = w_->coordinates(m, spec.m);
  for (Cursor& extra : row.extras) extra = w_->advance(extra, at);
  for (size_t i = 0; i < row.outputs.size(); ++i) {
    Value step = group_offset(*w_, m, spec.m,
                              strides_of(spec.outputs[i].access, spec.batch.size(), spec.m.size()));
    row.outputs[i] = w_->b.add(row.outputs[i], step);
  }
  return row;
}

void Epilogue::store(const Row& row, Value n, Value accumulator) const {
  const ContractionSpec& spec = work_->spec;
  const std::vector<Value> at = w_->coordinates(n, spec.n);
  std::vector<Loaded> extras;
  for (const Cursor& extra : row.extras) extras.push_back(w_->load(w_->advance(extra, at)));
  const std::vector<Value> values =
      w_->b.inline_body(work_->epilogue, KernelWriter::arguments(std::array{accumulator}, extras));
  for (size_t i = 0; i < values.size(); ++i) {
    Value step = group_offset(
        *w_, n, spec.n,
        strides_of(spec.outputs[i].access, spec.batch.size() + spec.m.size(), spec.n.size()));
    w_->store(spec.outputs[i], w_->b.add(row.outputs[i], step), values[i]);
  }
}

std::vector<KernelPlan> contraction_candidates(const ContractionSpec& spec,
                                               const Capabilities& capabilities) {
  const Contraction straight = make_contraction(spec, capabilities);
  std::vector<KernelPlan> plans;
  if (straight.k > 0 && !any_narrow(straight.outputs())) {
    const Contraction turned = make_contraction(transposed(spec), capabilities);
    for (const Contraction* work : {&straight, &turned}) {
      for (KernelPlan& plan : subgroup_contractions(*work, capabilities)) {
        if (work == &turned) plan.tile += " transposed";
        plans.push_back(std::move(plan));
      }
    }
    for (KernelPlan& plan : tiled_contractions(straight, capabilities)) {
      plans.push_back(std::move(plan));
    }
  }
  plans.push_back(naive_contraction(straight, capabilities));
  return plans;
}

}  // namespace meganeura::kernels
