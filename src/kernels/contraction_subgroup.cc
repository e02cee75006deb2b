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
constexpr SubgroupTile kTiles[] = {{16, 8}, {16, 4}, {8, 2}, {16, 1}, {4, 4}};

// How one operand is read: element by element, or vectors along k or along the free dimension.
enum class Read : uint8_t { kSingle, kAlongK, kAcross };
constexpr const char* kReadNames[] = {"s", "k", "x"};

// Whether vectors along the dimension `along` of the operand are aligned.
bool aligned(const Input& operand, size_t along, const std::vector<int64_t>& extents) {
  const Affine& access = operand.access;
  if (is_narrow(operand.dtype) || access.strides[along] != 1 || access.offset % 4 != 0) {
    return false;
  }
  for (size_t d = 0; d < extents.size(); ++d) {
    if (d != along && access.strides[d] % 4 != 0) return false;
  }
  return extents[along] % 4 == 0;
}

class SubgroupContraction {
 public:
  SubgroupContraction(const Contraction& work, const Capabilities& capabilities, SubgroupTile tile)
      : work_(work),
        capabilities_(capabilities),
        tile_(tile),
        lanes_(capabilities.subgroup_size),
        read_a_(choose(work.a, work.spec.m, tile.rows % 4 == 0)),
        read_b_(choose(work.b, work.spec.n, tile.columns % 4 == 0)),
        unroll_(read_a_ == Read::kAlongK || read_b_ == Read::kAlongK ? 4 : 1) {}

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
    result.tile = cat("contract subgroup ", tile_.rows, "x", tile_.columns, " ", reads());
    result.cost = cost();
    return result;
  }

 private:
  Read choose(const Input& operand, const std::vector<int64_t>& free, bool across) const {
    std::vector<int64_t> extents = work_.spec.batch;
    extents.insert(extents.end(), free.begin(), free.end());
    extents.insert(extents.end(), work_.spec.k.begin(), work_.spec.k.end());
    const size_t k = extents.size() - 1;
    if (across && free.size() == 1 && aligned(operand, work_.spec.batch.size(), extents)) {
      return Read::kAcross;
    }
    return work_.spec.k.size() == 1 && aligned(operand, k, extents) ? Read::kAlongK : Read::kSingle;
  }

  std::string reads() const {
    return cat(kReadNames[static_cast<size_t>(read_a_)], kReadNames[static_cast<size_t>(read_b_)]);
  }

  uint32_t width() const { return lanes_ * tile_.columns; }

  std::array<uint32_t, 3> grid() const {
    return {(work_.n + width() - 1) / width(), (work_.m + tile_.rows - 1) / tile_.rows,
            work_.batch};
  }

  // Where the lanes' first elements of one operand lie, before anything along k.
  struct Operand {
    const Input* input = nullptr;
    Read read = Read::kSingle;
    std::vector<Value> bases;
  };

  Operand operand(KernelWriter& w, const Input& input, Read read, Value batch, Value first,
                  Value lane, Value extent, uint32_t count,
                  const std::vector<int64_t>& free) const {
    const size_t batches = work_.spec.batch.size();
    Operand result{&input, read, {}};
    const std::vector<Value> batch_at = w.coordinates(batch, work_.spec.batch);
    const Value origin = w.address(input.access, batch_at);
    const uint32_t each = read == Read::kAcross ? 4 : 1;
    Value last = w.b.sub(extent, w.b.u32(each));
    Value shift = w.b.mul(lane, w.b.u32(each));
    for (uint32_t i = 0; i < count; i += each * lanes_) {
      Value at = w.b.add(first, w.b.u32(i));
      at = w.b.add(at, shift);
      // Those beyond the edge read the last one; their results are not stored.
      at = w.b.min(at, last);
      Value step = group_offset(w, at, free, strides_of(input.access, batches, free.size()));
      result.bases.push_back(w.b.add(origin, step));
    }
    return result;
  }

  // The operand's values at k, k + 1, …: [unrolled k][element]; elements as the tile counts them.
  std::vector<std::vector<Value>> read(KernelWriter& w, const Operand& operand, Value k) const {
    const Input& input = *operand.input;
    const size_t first_k = input.access.strides.size() - work_.spec.k.size();
    const std::span<const int64_t> strides = strides_of(input.access, first_k, work_.spec.k.size());
    std::vector<std::vector<Value>> values(unroll_);
    for (uint32_t u = 0; u < unroll_; ++u) {
      if (operand.read == Read::kAlongK && u > 0) break;
      Value step = group_offset(w, w.b.add(k, w.b.u32(u)), work_.spec.k, strides);
      for (Value base : operand.bases) {
        Value at = w.b.add(base, step);
        if (operand.read == Read::kSingle) {
          values[u].push_back(w.load_element(input.slot, input.dtype, at));
          continue;
        }
        Value vector = w.load_elements4(input.slot, input.dtype, at);
        for (uint32_t j = 0; j < 4; ++j) {
          Value element = w.b.extract(vector, j);
          values[operand.read == Read::kAlongK ? j : u].push_back(element);
        }
      }
    }
    return values;
  }

  // Row r of the tile, spread to all lanes.
  Value broadcast_row(KernelWriter& w, std::span<const Value> values, uint32_t r) const {
    if (read_a_ != Read::kAcross) return w.b.subgroup_broadcast(values[r / lanes_], r % lanes_);
    const uint32_t span = 4 * lanes_;
    return w.b.subgroup_broadcast(values[r / span * 4 + r % 4], r % span / 4);
  }

  std::vector<Value> multiply(KernelWriter& w, const Operand& a, const Operand& b, Value k,
                              std::span<const Value> carried) const {
    const std::vector<std::vector<Value>> rows = read(w, a, k);
    const std::vector<std::vector<Value>> columns = read(w, b, k);
    std::vector<Value> sums(carried.begin(), carried.end());
    for (uint32_t u = 0; u < unroll_; ++u) {
      for (uint32_t r = 0; r < tile_.rows; ++r) {
        Value x = broadcast_row(w, rows[u], r);
        for (uint32_t c = 0; c < tile_.columns; ++c) {
          Value& sum = sums[r * tile_.columns + c];
          sum = w.b.fma(x, columns[u][c], sum);
        }
      }
    }
    return sums;
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
        Value column = w.b.add(first_column, column_of(w, c, lane));
        w.b.if_then(w.b.less(column, n), [&] {
          Value place = w.b.add(row_memory, w.b.mul(c, w.b.u32(lanes_)));
          epilogue.store(row, column, w.b.shared_load(memory, place));
        });
        return std::vector<Value>{};
      });
      return std::vector<Value>{};
    });
  }

  // Column c of the lane, relative to the tile.
  Value column_of(KernelWriter& w, Value c, Value lane) const {
    if (read_b_ != Read::kAcross) return w.b.add(w.b.mul(c, w.b.u32(lanes_)), lane);
    Value vector = w.shift_right(c, w.b.u32(2));
    Value column = w.b.mul(vector, w.b.u32(4 * lanes_));
    column = w.b.add(column, w.b.mul(lane, w.b.u32(4)));
    return w.b.add(column, w.bit_and(c, w.b.u32(3)));
  }

  Stage build(bool runtime_strides) const {
    const std::string name =
        cat("contract_subgroup", lanes_, "_", tile_.rows, "x", tile_.columns, "_", reads());
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
    const Operand a =
        operand(w, work_.a, read_a_, batch, first_row, lane, m, tile_.rows, work_.spec.m);
    const Operand b =
        operand(w, work_.b, read_b_, batch, first_column, lane, n, width(), work_.spec.n);
    const std::vector<Value> zeros(tile_.rows * tile_.columns, w.b.f32(0));
    Value begin = w.b.u32(0);
    Value step = w.b.u32(unroll_);
    const std::vector<Value> sums = w.b.for_range(
        begin, k, step, zeros,
        [&](Value at, std::span<const Value> carried) { return multiply(w, a, b, at, carried); });
    store(w, sums, batch, first_row, first_column, lane, m, n);
    return w.finish(grid());
  }

  int64_t loads_per_k(Read read, uint32_t elements) const {
    // In tenths of a single load: a vector costs two and a half.
    return read == Read::kSingle ? 10 * int64_t{elements} : 25 * int64_t{elements} / 4;
  }

  int64_t cost() const {
    const uint32_t a_loads = (tile_.rows + lanes_ - 1) / lanes_;
    const int64_t tenths = loads_per_k(read_a_, a_loads) + loads_per_k(read_b_, tile_.columns);
    const int64_t outputs = int64_t{tile_.rows} * tile_.columns;
    const std::array<uint32_t, 3> groups = grid();
    Work work{.groups = int64_t{groups[0]} * groups[1] * groups[2]};
    const int64_t accesses = 3 + static_cast<int64_t>(work_.spec.extras.size());
    work.packed_loads = work_.k * tenths / 10 + outputs * accesses;
    work.operations = work_.k * (outputs + tile_.rows) +
                      outputs * static_cast<int64_t>(work_.epilogue.nodes.size() + 8);
    return estimate_ns(work, capabilities_);
  }

  const Contraction& work_;
  const Capabilities& capabilities_;
  SubgroupTile tile_;
  uint32_t lanes_;
  Read read_a_;
  Read read_b_;
  uint32_t unroll_;
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
