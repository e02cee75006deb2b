#include <algorithm>

#include "base/format.h"
#include "kernels/archetype_list.h"
#include "kernels/cost.h"
#include "kernels/kernel_writer.h"
#include "kernels/spec_walk.h"

namespace meganeura::kernels {
namespace {

using kir::Value;

struct PointwiseTile {
  bool vectors = false;  // four elements a step, whole vectors where accesses allow it
  uint32_t local = 64;
  uint32_t steps = 1;  // items an invocation aims at
};

constexpr PointwiseTile kCpuTiles[] = {{true, 64, 8}, {false, 64, 8}};
constexpr PointwiseTile kGpuTiles[] = {{true, 256, 1}, {false, 256, 1}, {false, 64, 1}};

class Pointwise {
 public:
  Pointwise(const PointwiseSpec& spec, const Capabilities& capabilities)
      : spec_(spec),
        capabilities_(capabilities),
        body_(lower(spec.body, capabilities)),
        outputs_(pointers(spec.outputs)),
        total_(element_count(spec.extents)),
        narrow_(any_narrow(outputs_)) {
    require_packed(spec.extents, outputs_);
  }

  bool legal(const PointwiseTile& tile) const {
    return tile.local <= capabilities_.max_workgroup_invocations &&
           tile.local <= capabilities_.max_workgroup_size[0] && (!tile.vectors || vectorizable());
  }

  KernelPlan plan(const PointwiseTile& tile) const {
    const std::vector<const Input*> inputs = pointers(spec_.inputs);
    const std::string name = cat("pointwise_v", tile.vectors ? 4 : 1, "_l", tile.local);
    KernelWriter w({name, {tile.local, 1, 1}}, inputs, outputs_);
    const uint32_t items = tile.vectors ? (total_ + 3) / 4 : store_items(total_, outputs_);
    const Launch launch = plan_launch(items, tile.local, tile.steps, capabilities_);
    w.for_items(launch, [&](Value item) {
      if (tile.vectors) {
        vector_item(w, item);
      } else {
        scalar_item(w, item);
      }
    });
    KernelPlan plan;
    plan.stages.push_back(w.finish({launch.groups, 1, 1}));
    plan.tile = cat("pointwise v", tile.vectors ? 4 : 1, " l", tile.local);
    plan.cost = cost(tile, launch);
    require_fit(capabilities_, name, plan.stages[0].slots.size(), plan.stages[0].params.size());
    return plan;
  }

 private:
  // Four consecutive elements lie in one row, or there is only one row whose tail is cut off.
  bool vectorizable() const {
    if (spec_.extents.empty() || total_ < 4) return false;
    if (spec_.extents.size() > 1 && spec_.extents.back() % 4 != 0) return false;
    return std::any_of(spec_.outputs.begin(), spec_.outputs.end(), stores_vectors);
  }

  std::vector<Value> compute(KernelWriter& w, std::span<const Value> at) const {
    std::vector<Loaded> loaded;
    for (const Input& input : spec_.inputs) {
      loaded.push_back(w.load(w.advance(w.start(input), at)));
    }
    return w.b.inline_body(body_, KernelWriter::arguments({}, loaded));
  }

  void scalar_item(KernelWriter& w, Value item) const {
    w.store_item(item, spec_.extents, outputs_,
                 [&](std::span<const Value> at) { return compute(w, at); });
  }

  void vector_item(KernelWriter& w, Value item) const {
    const uint32_t tail = total_ % 4;
    if (tail == 0) return whole_vector(w, item);
    // Only flat spaces have a tail: the last item is cut off.
    Value whole = w.argument(total_ / 4);
    Value last = w.b.mul(whole, w.b.u32(4));
    w.b.if_else(
        w.b.less(item, whole),
        [&] {
          whole_vector(w, item);
          return std::vector<Value>{};
        },
        [&] {
          tail_elements(w, last, tail);
          return std::vector<Value>{};
        });
  }

  void whole_vector(KernelWriter& w, Value item) const {
    std::vector<int64_t> extents = spec_.extents;
    extents.back() /= 4;
    std::vector<Value> at = w.coordinates(item, extents);
    at.back() = w.b.mul(at.back(), w.b.u32(4));
    std::vector<Loaded> loaded;
    for (const Input& input : spec_.inputs) {
      loaded.push_back(w.load4(w.advance(w.start(input), at)));
    }
    std::vector<Value> values = w.b.inline_body(body_, KernelWriter::arguments({}, loaded));
    for (size_t i = 0; i < values.size(); ++i) {
      // A body without arguments, or an output that is a constant, has one lane.
      if (w.b.lanes(values[i]) == 1) values[i] = w.b.splat(values[i], 4);
      store_vector(w, spec_.outputs[i], at, values[i]);
    }
  }

  void store_vector(KernelWriter& w, const Output& output, std::span<const Value> at,
                    Value value) const {
    Value index = w.address(output.access, at);
    if (!is_narrow(output.dtype)) {
      if (stores_vectors(output)) return w.store(output, index, value);
      for (uint32_t lane = 0; lane < 4; ++lane) {
        const uint32_t step = lane * static_cast<uint32_t>(output.access.strides.back());
        Value place = w.b.add(index, w.b.u32(step));
        w.store(output, place, w.b.extract(value, lane));
      }
      return;
    }
    const uint32_t each = 32 / storage_bits_of(output.dtype);
    Value word_index = w.b.div(index, w.b.u32(each));
    for (uint32_t word = 0; word < 4 / each; ++word) {
      std::vector<Value> elements;
      for (uint32_t i = 0; i < each; ++i) {
        elements.push_back(w.b.extract(value, word * each + i));
      }
      Value packed = pack(w, output.dtype, elements);
      w.store_word(output, w.b.add(word_index, w.b.u32(word)), packed);
    }
  }

  // Up to one word of elements; missing ones are zero bits.
  Value pack(KernelWriter& w, DType dtype, std::span<const Value> elements) const {
    if (dtype == DType::kF16 && elements.size() == 2) {
      return w.b.arith(scalar::Op::kPackF16, elements, kir::Type::kU32);
    }
    Value word = w.b.u32(0);
    for (uint32_t i = 0; i < elements.size(); ++i) {
      Value bits = w.storage_bits(dtype, elements[i]);
      Value shifted = w.shift_left(bits, w.b.u32(i * storage_bits_of(dtype)));
      word = w.bit_or(word, shifted);
    }
    return word;
  }

  void tail_elements(KernelWriter& w, Value first, uint32_t count) const {
    std::vector<std::vector<Value>> values;
    for (uint32_t i = 0; i < count; ++i) {
      Value at = w.b.add(first, w.b.u32(i));
      values.push_back(compute(w, std::array{at}));
      for (size_t o = 0; o < spec_.outputs.size(); ++o) {
        const Output& output = spec_.outputs[o];
        if (is_narrow(output.dtype)) continue;
        w.store(output, w.address(output.access, std::array{at}), values[i][o]);
      }
    }
    for (size_t o = 0; o < spec_.outputs.size(); ++o) {
      const Output& output = spec_.outputs[o];
      if (!is_narrow(output.dtype)) continue;
      const uint32_t each = 32 / storage_bits_of(output.dtype);
      Value base = w.b.div(first, w.b.u32(each));
      for (uint32_t word = 0; word * each < count; ++word) {
        std::vector<Value> elements;
        for (uint32_t i = word * each; i < std::min(count, (word + 1) * each); ++i) {
          elements.push_back(values[i][o]);
        }
        Value packed = pack(w, output.dtype, elements);
        w.store_word(output, w.b.add(base, w.b.u32(word)), packed);
      }
    }
  }

  int64_t cost(const PointwiseTile& tile, const Launch& launch) const {
    const bool cpu = capabilities_.device_class == DeviceClass::kCpu;
    const int64_t width = tile.vectors || narrow_ ? 4 : 1;
    const int64_t items = (int64_t{launch.items} + launch.local - 1) / launch.local;
    const int64_t steps = (items + launch.groups - 1) / launch.groups;
    const int64_t subgroup = std::max<uint32_t>(1, capabilities_.subgroup_size);
    Work work{.groups = launch.groups, .subgroups = (launch.local + subgroup - 1) / subgroup};
    int64_t accesses = 0;
    for (const Input& input : spec_.inputs) {
      const bool wide = tile.vectors && load4_mode(input) != Load4::kSingle;
      // A vector costs a CPU about two and a half scalars: it saves the loop over lanes.
      accesses += !wide ? 2 * width : cpu ? (load4_mode(input) == Load4::kSame ? 2 : 5) : 2;
    }
    for (const Output& output : spec_.outputs) {
      const bool wide = tile.vectors && stores_vectors(output);
      accesses += !wide ? 2 * width : cpu ? 5 : 2;
    }
    work.packed_loads = steps * accesses / 2;
    work.operations =
        steps * width * static_cast<int64_t>(body_.nodes.size() + 3 * spec_.extents.size());
    return estimate_ns(work, capabilities_);
  }

  const PointwiseSpec& spec_;
  const Capabilities& capabilities_;
  scalar::Body body_;
  std::vector<const Output*> outputs_;
  uint32_t total_;
  bool narrow_;
};

}  // namespace

std::vector<KernelPlan> pointwise_candidates(const PointwiseSpec& spec,
                                             const Capabilities& capabilities) {
  const Pointwise archetype(spec, capabilities);
  const bool cpu = capabilities.device_class == DeviceClass::kCpu;
  const std::span<const PointwiseTile> tiles =
      cpu ? std::span<const PointwiseTile>(kCpuTiles) : std::span<const PointwiseTile>(kGpuTiles);
  std::vector<KernelPlan> plans;
  for (const PointwiseTile& tile : tiles) {
    if (archetype.legal(tile)) plans.push_back(archetype.plan(tile));
  }
  return plans;
}

}  // namespace meganeura::kernels
