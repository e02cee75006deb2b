#include <algorithm>
#include <bit>

#include "base/format.h"
#include "kernels/contraction.h"
#include "kernels/cost.h"

namespace meganeura::kernels {
namespace {

using kir::Value;

// Rows and columns a lane: a subgroup of S lanes computes rows × (S · columns) outputs.
struct SubgroupTile {
  uint32_t rows = 16;
  uint32_t columns = 8;
};
// Measured on llvmpipe: taller and wider blocks spill, smaller ones are bound by their loads.
constexpr SubgroupTile kTiles[] = {{16, 8}, {16, 4}, {8, 4}, {8, 2}, {16, 1}};

class SubgroupContraction {
 public:
  SubgroupContraction(const Contraction& work, const Capabilities& capabilities, SubgroupTile tile)
      : work_(work), capabilities_(capabilities), tile_(tile), lanes_(capabilities.subgroup_size) {}

  bool legal() const {
    return capabilities_.subgroup_ballot && lanes_ >= 4 && lanes_ <= 64 &&
           std::has_single_bit(lanes_) && lanes_ <= capabilities_.max_workgroup_invocations &&
           lanes_ <= capabilities_.max_workgroup_size[0] &&
           tile_.rows * tile_.columns * lanes_ * 4 <= capabilities_.shared_bytes &&
           grid()[0] <= capabilities_.max_workgroup_count[0] &&
           grid()[1] <= capabilities_.max_workgroup_count[1] &&
           grid()[2] <= capabilities_.max_workgroup_count[2];
  }

  // No stages when the push constants cannot hold the arguments.
  KernelPlan plan() const {
    KernelPlan result;
    for (bool runtime_strides : {true, false}) {
      Stage stage = build(runtime_strides);
      if (!fits(capabilities_, stage.slots.size(), stage.params.size())) continue;
      result.stages.push_back(std::move(stage));
      break;
    }
    result.tile = cat("contract subgroup ", tile_.rows, "x", tile_.columns);
    result.cost = cost();
    return result;
  }

 private:
  uint32_t width() const { return lanes_ * tile_.columns; }

  std::array<uint32_t, 3> grid() const {
    return {(work_.n + width() - 1) / width(), (work_.m + tile_.rows - 1) / tile_.rows,
            work_.batch};
  }

  // Addresses of the elements that a lane reads of one operand, before anything along k: lanes take
  // neighbours along the free dimension.
  std::vector<Value> bases(KernelWriter& w, const Input& input, const std::vector<int64_t>& free,
                           Value batch, Value first, Value extent, uint32_t count) const {
    const std::vector<Value> batch_at = w.coordinates(batch, work_.spec.batch);
    const Value origin = w.address(input.access, batch_at);
    const std::span<const int64_t> strides =
        strides_of(input.access, work_.spec.batch.size(), free.size());
    Value last = w.b.sub(extent, w.b.u32(1));
    Value lane_first = w.b.add(first, w.b.builtin(kir::Builtin::kLane));
    std::vector<Value> result;
    for (uint32_t i = 0; i < count; i += lanes_) {
      Value at = w.b.add(lane_first, w.b.u32(i));
      // Those beyond the edge read the last one; their results are not stored.
      at = w.b.min(at, last);
      Value step = group_offset(w, at, free, strides);
      result.push_back(w.b.add(origin, step));
    }
    return result;
  }

  std::vector<Value> read(KernelWriter& w, const Input& input, std::span<const Value> bases,
                          Value k) const {
    const size_t first_k = input.access.strides.size() - work_.spec.k.size();
    Value step =
        group_offset(w, k, work_.spec.k, strides_of(input.access, first_k, work_.spec.k.size()));
    std::vector<Value> values;
    for (Value base : bases) {
      values.push_back(w.load_element(input.slot, input.dtype, w.b.add(base, step)));
    }
    return values;
  }

  // The sums pass through memory of the lane's own, so that one small loop can store them all.
  void store(KernelWriter& w, std::span<const Value> sums, Value batch, Value first_row,
             Value first_column, Value lane, Value m, Value n) const {
    const uint32_t memory =
        w.b.shared("sums", scalar::Type::kF32, static_cast<uint32_t>(sums.size()) * lanes_);
    for (uint32_t i = 0; i < sums.size(); ++i) {
      w.b.shared_store(memory, w.b.add(lane, w.b.u32(i * lanes_)), sums[i]);
    }
    const Epilogue epilogue(w, work_, batch);
    Value left = w.b.sub(m, first_row);
    Value rows = w.b.min(left, w.b.u32(tile_.rows));
    w.loop(rows, {}, [&](Value r, std::span<const Value>) {
      const Epilogue::Row row = epilogue.row(w.b.add(first_row, r));
      Value row_memory = w.b.mul(r, w.b.u32(tile_.columns * lanes_));
      row_memory = w.b.add(row_memory, lane);
      w.loop(w.b.u32(tile_.columns), {}, [&](Value c, std::span<const Value>) {
        Value step = w.b.mul(c, w.b.u32(lanes_));
        Value column = w.b.add(w.b.add(first_column, step), lane);
        w.b.if_then(w.b.less(column, n), [&] {
          Value place = w.b.add(row_memory, step);
          epilogue.store(row, column, w.b.shared_load(memory, place));
        });
        return std::vector<Value>{};
      });
      return std::vector<Value>{};
    });
  }

  Stage build(bool runtime_strides) const {
    const std::string name = cat("contract_subgroup", lanes_, "_", tile_.rows, "x", tile_.columns);
    KernelWriter w({name, {lanes_, 1, 1}, lanes_, runtime_strides}, work_.inputs(),
                   work_.outputs());
    Value m = w.argument(work_.m);
    Value n = w.argument(work_.n);
    Value k = w.argument(work_.k);
    Value lane = w.b.builtin(kir::Builtin::kLane);
    Value group_x = w.b.builtin(kir::Builtin::kWorkgroupX);
    Value first_column = w.b.mul(group_x, w.b.u32(width()));
    Value group_y = w.b.builtin(kir::Builtin::kWorkgroupY);
    Value first_row = w.b.mul(group_y, w.b.u32(tile_.rows));
    Value batch = w.b.builtin(kir::Builtin::kWorkgroupZ);
    const std::vector<Value> a_bases =
        bases(w, work_.a, work_.spec.m, batch, first_row, m, tile_.rows);
    const std::vector<Value> b_bases =
        bases(w, work_.b, work_.spec.n, batch, first_column, n, width());
    const std::vector<Value> zeros(tile_.rows * tile_.columns, w.b.f32(0));
    const std::vector<Value> sums = w.loop(k, zeros, [&](Value at, std::span<const Value> carried) {
      const std::vector<Value> rows = read(w, work_.a, a_bases, at);
      const std::vector<Value> columns = read(w, work_.b, b_bases, at);
      std::vector<Value> next(carried.begin(), carried.end());
      for (uint32_t r = 0; r < tile_.rows; ++r) {
        Value x = w.b.subgroup_broadcast(rows[r / lanes_], r % lanes_);
        for (uint32_t c = 0; c < tile_.columns; ++c) {
          Value& sum = next[r * tile_.columns + c];
          sum = w.b.fma(x, columns[c], sum);
        }
      }
      return next;
    });
    store(w, sums, batch, first_row, first_column, lane, m, n);
    return w.finish(grid());
  }

  int64_t cost() const {
    const int64_t loads = (tile_.rows + lanes_ - 1) / lanes_ + tile_.columns;
    const int64_t outputs = int64_t{tile_.rows} * tile_.columns;
    const std::array<uint32_t, 3> groups = grid();
    Work work{.groups = int64_t{groups[0]} * groups[1] * groups[2]};
    const int64_t accesses = 3 + static_cast<int64_t>(work_.spec.extras.size());
    work.packed_loads = work_.k * loads + outputs * accesses;
    work.operations = work_.k * (outputs + tile_.rows) +
                      outputs * static_cast<int64_t>(work_.epilogue.nodes.size() + 8);
    const int64_t ns = estimate_ns(work, capabilities_);
    // A GPU gains more from operands that a whole workgroup shares.
    return capabilities_.device_class == DeviceClass::kCpu ? ns : 2 * ns;
  }

  const Contraction& work_;
  const Capabilities& capabilities_;
  SubgroupTile tile_;
  uint32_t lanes_;
};

}  // namespace

std::vector<KernelPlan> subgroup_contractions(const Contraction& work,
                                              const Capabilities& capabilities) {
  std::vector<KernelPlan> plans;
  for (const SubgroupTile& tile : kTiles) {
    const SubgroupContraction form(work, capabilities, tile);
    if (!form.legal()) continue;
    KernelPlan plan = form.plan();
    if (!plan.stages.empty()) plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace meganeura::kernels
