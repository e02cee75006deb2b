#include <algorithm>

#include "base/format.h"
#include "kernels/contraction.h"
#include "kernels/cost.h"
#include "kernels/reduction.h"
#include "kernels/spec_walk.h"

namespace meganeura::kernels {
namespace {

using kir::Value;

// A workgroup computes m × n outputs, k at a time; an invocation computes rows × columns of them
// as quads of 4 × 4.
struct Tile {
  uint32_t m;
  uint32_t n;
  uint32_t k;
  uint32_t rows;
  uint32_t columns;

  uint32_t threads() const { return m / rows * (n / columns); }
};
constexpr Tile kTiles[] = {
    {128, 128, 16, 8, 8}, {64, 64, 16, 8, 4}, {64, 64, 16, 4, 4}, {32, 32, 32, 4, 4}};
// Keeps rows of vectors aligned and spreads them over banks.
constexpr uint32_t kPad = 4;
constexpr uint32_t kMaxSplit = 16;

class TiledContraction {
 public:
  TiledContraction(const Contraction& work, const Capabilities& capabilities, Tile tile,
                   uint32_t split)
      : work_(work), capabilities_(capabilities), tile_(tile), split_(split) {
    const uint32_t blocks = (work.k + tile.k - 1) / tile.k;
    part_ = (blocks + split - 1) / split * tile.k;
    // Rounding parts up to whole blocks can leave the last ones empty.
    split_ = (work.k + part_ - 1) / part_;
  }

  uint32_t split() const { return split_; }

  bool legal() const {
    return tile_.threads() <= capabilities_.max_workgroup_invocations &&
           tile_.threads() <= capabilities_.max_workgroup_size[0] &&
           tile_.k * (tile_.m + tile_.n + 2 * kPad) * 4 <= capabilities_.shared_bytes &&
           grid()[0] <= capabilities_.max_workgroup_count[0] &&
           grid()[1] <= capabilities_.max_workgroup_count[1] &&
           uint64_t{work_.batch} * split_ <= capabilities_.max_workgroup_count[2] &&
           uint64_t{split_} * outputs() < (uint64_t{1} << 31) &&
           fits(capabilities_, 2 + work_.spec.extras.size() + work_.spec.outputs.size(), 0);
  }

  KernelPlan plan() const {
    KernelPlan result;
    result.tile =
        cat("contract tiled ", tile_.m, "x", tile_.n, "x", tile_.k, " t", tile_.threads());
    result.cost = cost();
    if (split_ == 1) {
      result.stages.push_back(build(work_));
      return result;
    }
    result.tile += cat(" split ", split_);
    const uint32_t scratch = slot_count(work_.spec);
    const Contraction partial = partial_work(scratch);
    result.stages.push_back(build(partial));
    const KernelPlan second = serial_reduction(merge_spec(scratch), capabilities_);
    result.stages.push_back(second.stages[0]);
    result.cost += second.cost;
    for (Stage& stage : result.stages) {
      std::replace(stage.slots.begin(), stage.slots.end(), scratch, Stage::kScratch);
    }
    result.scratch_bytes = uint64_t{split_} * outputs() * 4;
    return result;
  }

 private:
  uint32_t outputs() const { return work_.batch * work_.m * work_.n; }

  std::array<uint32_t, 3> grid() const {
    return {(work_.n + tile_.n - 1) / tile_.n, (work_.m + tile_.m - 1) / tile_.m,
            work_.batch * split_};
  }

  // The first stage of a split: sums of one part of k, stored as (part, batch, m, n).
  Contraction partial_work(uint32_t scratch) const {
    Contraction partial = work_;
    partial.spec.extras.clear();
    partial.epilogue = scalar::identity(scalar::Type::kF32);
    partial.spec.outputs = {{scratch, DType::kF32, {0, Shape(work_.output_extents()).strides()}}};
    return partial;
  }

  // The second: parts in order, then the epilogue.
  ReductionSpec merge_spec(uint32_t scratch) const {
    ReductionSpec merge;
    merge.outer = work_.output_extents();
    merge.reduced = {int64_t{split_}};
    Input partial{scratch, DType::kF32, {0, Shape(merge.outer).strides()}, {}, {}};
    partial.access.strides.push_back(outputs());
    merge.inputs = {partial};
    merge.prologue = scalar::identity(scalar::Type::kF32);
    merge.extras = work_.spec.extras;
    merge.epilogue = work_.spec.epilogue;
    merge.outputs = work_.spec.outputs;
    return merge;
  }

  // One operand's way to shared memory: each invocation moves the same few elements of every
  // block, its neighbours those next in memory.
  struct Mover {
    const Input* input = nullptr;
    uint32_t array = 0;
    std::vector<Value> origins;  // address without k
    std::vector<Value> k;        // k inside the block
    std::vector<Value> places;   // in shared memory, k-major
  };

  Mover mover(KernelWriter& w, const Input& input, const std::vector<int64_t>& free,
              std::string name, uint32_t extent, uint32_t size, Value batch, Value first,
              Value thread) const {
    const size_t batches = work_.spec.batch.size();
    Mover result{&input, 0, {}, {}, {}};
    result.array = w.b.shared(std::move(name), scalar::Type::kF32, tile_.k * (size + kPad));
    const std::vector<Value> batch_at = w.coordinates(batch, work_.spec.batch);
    const Value origin = w.address(input.access, batch_at);
    const bool k_fastest = !work_.spec.k.empty() && input.access.strides.back() == 1;
    const std::array<int64_t, 2> order =
        k_fastest ? std::array<int64_t, 2>{size, tile_.k} : std::array<int64_t, 2>{tile_.k, size};
    for (uint32_t i = 0; i < tile_.k * size; i += tile_.threads()) {
      Value element = w.b.add(thread, w.b.u32(i));
      const std::vector<Value> at = w.coordinates(element, order);
      Value k = at[k_fastest ? 1 : 0];
      Value free_local = at[k_fastest ? 0 : 1];
      Value free_at = w.b.add(first, free_local);
      // Beyond the edge the last one is read; its results are not stored.
      if (extent % size != 0) free_at = w.b.min(free_at, w.b.u32(extent - 1));
      Value step = group_offset(w, free_at, free, strides_of(input.access, batches, free.size()));
      result.origins.push_back(w.b.add(origin, step));
      result.k.push_back(k);
      Value row = w.b.mul(k, w.b.u32(size + kPad));
      result.places.push_back(w.b.add(row, free_local));
    }
    return result;
  }

  bool ragged_k() const { return work_.k % tile_.k != 0; }

  void move(KernelWriter& w, const Mover& mover, Value block) const {
    const Input& input = *mover.input;
    const size_t first_k = input.access.strides.size() - work_.spec.k.size();
    std::vector<Value> values;
    for (size_t i = 0; i < mover.origins.size(); ++i) {
      Value k = w.b.add(block, mover.k[i]);
      Value inside;
      if (ragged_k()) {
        inside = w.b.less(k, w.b.u32(work_.k));
        k = w.b.min(k, w.b.u32(work_.k - 1));
      }
      Value step =
          group_offset(w, k, work_.spec.k, strides_of(input.access, first_k, work_.spec.k.size()));
      Value value = w.load_element(input.slot, input.dtype, w.b.add(mover.origins[i], step));
      if (inside) value = w.b.select(inside, value, w.b.f32(0));
      values.push_back(value);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      w.b.shared_store(mover.array, mover.places[i], values[i]);
    }
  }

  // Where quad q of an invocation begins in a tile of `size` with `count` elements each.
  static uint32_t quad_stride(uint32_t size, uint32_t count) { return 4 * (size / count); }

  std::vector<Value> quads(KernelWriter& w, uint32_t array, Value row, Value position,
                           uint32_t size, uint32_t count) const {
    std::vector<Value> values;
    for (uint32_t q = 0; q < count / 4; ++q) {
      Value place = w.b.add(position, w.b.u32(q * quad_stride(size, count)));
      Value vector = w.b.shared_load(array, w.b.add(row, place), 4);
      for (uint32_t j = 0; j < 4; ++j) values.push_back(w.b.extract(vector, j));
    }
    return values;
  }

  std::vector<Value> multiply_block(KernelWriter& w, const Mover& a, const Mover& b, Value a_quad,
                                    Value b_quad, std::span<const Value> sums) const {
    return w.loop(w.b.u32(tile_.k), sums, [&](Value k, std::span<const Value> carried) {
      Value a_row = w.b.mul(k, w.b.u32(tile_.m + kPad));
      Value b_row = w.b.mul(k, w.b.u32(tile_.n + kPad));
      const std::vector<Value> x = quads(w, a.array, a_row, a_quad, tile_.m, tile_.rows);
      const std::vector<Value> y = quads(w, b.array, b_row, b_quad, tile_.n, tile_.columns);
      std::vector<Value> next(carried.begin(), carried.end());
      for (uint32_t r = 0; r < tile_.rows; ++r) {
        for (uint32_t c = 0; c < tile_.columns; ++c) {
          Value& sum = next[r * tile_.columns + c];
          sum = w.b.fma(x[r], y[c], sum);
        }
      }
      return next;
    });
  }

  void store(KernelWriter& w, const Contraction& work, Value batch, Value first_row,
             Value first_column, std::span<const Value> sums) const {
    const Epilogue epilogue(w, work, batch);
    auto guarded = [&](bool ragged, Value index, uint32_t extent, const auto& body) {
      if (!ragged) return body();
      w.b.if_then(w.b.less(index, w.b.u32(extent)), body);
    };
    auto element = [&](Value first, uint32_t i, uint32_t stride) {
      return w.b.add(first, w.b.u32(i / 4 * stride + i % 4));
    };
    for (uint32_t r = 0; r < tile_.rows; ++r) {
      Value m = element(first_row, r, quad_stride(tile_.m, tile_.rows));
      guarded(work.m % tile_.m != 0, m, work.m, [&] {
        const Epilogue::Row row = epilogue.row(m);
        for (uint32_t c = 0; c < tile_.columns; ++c) {
          Value n = element(first_column, c, quad_stride(tile_.n, tile_.columns));
          guarded(work.n % tile_.n != 0, n, work.n,
                  [&] { epilogue.store(row, n, sums[r * tile_.columns + c]); });
        }
      });
    }
  }

  Stage build(const Contraction& work) const {
    const std::string name =
        cat("contract_tiled_", tile_.m, "x", tile_.n, "x", tile_.k, "_t", tile_.threads());
    KernelWriter w({name, {tile_.threads(), 1, 1}}, work.inputs(), work.outputs());
    Value group_x = w.b.builtin(kir::Builtin::kWorkgroupX);
    Value group_y = w.b.builtin(kir::Builtin::kWorkgroupY);
    Value group_z = w.b.builtin(kir::Builtin::kWorkgroupZ);
    Value thread = w.b.builtin(kir::Builtin::kLocalIndex);
    Value first_n = w.b.mul(group_x, w.b.u32(tile_.n));
    Value first_m = w.b.mul(group_y, w.b.u32(tile_.m));
    const std::vector<Value> split =
        w.coordinates(group_z, std::array<int64_t, 2>{split_, work.batch});
    Value batch = split_ == 1 ? group_z : split[1];
    Value begin = split_ == 1 ? w.b.u32(0) : w.b.mul(split[0], w.b.u32(part_));
    Value end = w.b.u32(work.k);
    if (split_ > 1) end = w.b.min(w.b.add(begin, w.b.u32(part_)), end);

    const Mover a = mover(w, work.a, work.spec.m, "a", work.m, tile_.m, batch, first_m, thread);
    const Mover b = mover(w, work.b, work.spec.n, "b", work.n, tile_.n, batch, first_n, thread);
    const std::vector<Value> place = w.coordinates(
        thread, std::array<int64_t, 2>{tile_.m / tile_.rows, tile_.n / tile_.columns});
    Value a_quad = w.b.mul(place[0], w.b.u32(4));
    Value b_quad = w.b.mul(place[1], w.b.u32(4));
    const std::vector<Value> zeros(tile_.rows * tile_.columns, w.b.f32(0));
    Value step = w.b.u32(tile_.k);
    const std::vector<Value> sums =
        w.b.for_range(begin, end, step, zeros, [&](Value block, std::span<const Value> carried) {
          move(w, a, block);
          move(w, b, block);
          w.b.barrier();
          std::vector<Value> next = multiply_block(w, a, b, a_quad, b_quad, carried);
          w.b.barrier();
          return next;
        });
    Value row = w.b.add(first_m, a_quad);
    Value column = w.b.add(first_n, b_quad);
    store_parts(w, work, split_ == 1 ? Value{} : split[0], batch, row, column, sums);
    return w.finish(grid());
  }

  // Parts of a split lie one after the other in scratch.
  void store_parts(KernelWriter& w, const Contraction& work, Value part, Value batch, Value row,
                   Value column, std::span<const Value> sums) const {
    if (!part) return store(w, work, batch, row, column, sums);
    Contraction shifted = work;
    shifted.spec.batch.insert(shifted.spec.batch.begin(), int64_t{split_});
    auto& strides = shifted.spec.outputs[0].access.strides;
    strides.insert(strides.begin(), int64_t{outputs()});
    Value first = w.b.mul(part, w.b.u32(work.batch));
    store(w, shifted, w.b.add(first, batch), row, column, sums);
  }

  int64_t cost() const {
    const std::array<uint32_t, 3> groups = grid();
    const int64_t threads = tile_.threads();
    const int64_t subgroup = std::max<uint32_t>(1, capabilities_.subgroup_size);
    const int64_t blocks = part_ / tile_.k;
    const int64_t outputs = int64_t{tile_.rows} * tile_.columns;
    Work work{.groups = int64_t{groups[0]} * groups[1] * groups[2],
              .subgroups = (threads + subgroup - 1) / subgroup};
    work.packed_loads = blocks * (tile_.k * (tile_.m + tile_.n) / threads) + outputs;
    const int64_t shared_loads = (tile_.rows + tile_.columns) / 4;
    work.operations = blocks * tile_.k * (outputs + 4 * shared_loads) +
                      outputs * static_cast<int64_t>(work_.epilogue.nodes.size() + 8);
    work.barriers = 2 * blocks;
    int64_t ns = estimate_ns(work, capabilities_);
    // A CPU reads shared memory lane by lane.
    if (capabilities_.device_class == DeviceClass::kCpu) ns *= 8;
    return ns;
  }

  const Contraction& work_;
  const Capabilities& capabilities_;
  Tile tile_;
  uint32_t split_;
  uint32_t part_ = 0;  // extent of k in one part
};

// Parts that fill the device when the tiles alone do not.
uint32_t wanted_split(const Contraction& work, const Tile& tile, const Capabilities& capabilities) {
  const uint64_t tiles =
      uint64_t{(work.n + tile.n - 1) / tile.n} * ((work.m + tile.m - 1) / tile.m) * work.batch;
  const uint64_t units = std::max(1u, capabilities.compute_units);
  const uint64_t by_k = work.k / (4 * tile.k);
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(std::min(2 * units / tiles, by_k), 1, kMaxSplit));
}

}  // namespace

std::vector<KernelPlan> tiled_contractions(const Contraction& work,
                                           const Capabilities& capabilities) {
  std::vector<KernelPlan> plans;
  for (const Tile& tile : kTiles) {
    const TiledContraction whole(work, capabilities, tile, 1);
    if (whole.legal()) plans.push_back(whole.plan());
    const TiledContraction parts(work, capabilities, tile, wanted_split(work, tile, capabilities));
    if (parts.split() > 1 && parts.legal()) plans.push_back(parts.plan());
  }
  return plans;
}

}  // namespace meganeura::kernels
