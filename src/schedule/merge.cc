#include "schedule/merge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "schedule/slot_use.h"

namespace meganeura::schedule {
namespace {

using kernels::Input;
using kernels::PointwiseSpec;
using scalar::Scalar;

struct Use {
  std::set<uint32_t> reads;
  std::set<uint32_t> writes;
};

Use buffer_use(const ScheduledKernel& kernel) {
  Use use;
  const SlotUse slots = slot_use(kernel.spec);
  for (size_t slot = 0; slot < slots.reads.size(); ++slot) {
    if (slots.reads[slot]) use.reads.insert(kernel.buffers[slot]);
    if (slots.writes[slot]) use.writes.insert(kernel.buffers[slot]);
  }
  return use;
}

bool intersect(const std::set<uint32_t>& a, const std::set<uint32_t>& b) {
  return std::any_of(a.begin(), a.end(), [&](uint32_t x) { return b.contains(x); });
}

// Collects the parts of a merged kernel with slots over a common buffer list.
class Merger {
 public:
  // Adds the inputs of a kernel, except those that `handed_on` replaces; returns its outputs.
  std::vector<Scalar> add(const ScheduledKernel& kernel,
                          const std::map<uint32_t, Scalar>& handed_on) {
    const auto& spec = std::get<PointwiseSpec>(kernel.spec);
    std::vector<Scalar> values;
    std::vector<Scalar> flags;
    for (const Input& input : spec.inputs) {
      auto made = input.slot == Input::kIndexValue ? handed_on.end()
                                                   : handed_on.find(kernel.buffers[input.slot]);
      if (made != handed_on.end()) {
        values.push_back(made->second);
        continue;
      }
      const Input moved = move(input, kernel.buffers);
      auto at = std::find(inputs_.begin(), inputs_.end(), moved);
      if (at == inputs_.end()) at = inputs_.insert(at, moved);
      const auto index = static_cast<uint32_t>(at - inputs_.begin());
      values.push_back(scalar::argument(index, scalar::compute_type(input.dtype)));
      if (!input.guards.empty()) {
        flags.push_back(scalar::argument(kFlagBase + index, scalar::Type::kBool));
      }
    }
    values.insert(values.end(), flags.begin(), flags.end());
    return scalar::apply(spec.body, values);
  }

  void add_output(const kernels::Output& output, uint32_t buffer, const Scalar& value) {
    kernels::Output moved = output;
    moved.slot = slot(buffer);
    outputs_.push_back(moved);
    values_.push_back(value);
  }

  const std::vector<uint32_t>& buffers() const { return buffers_; }

  PointwiseSpec finish(std::vector<int64_t> extents) {
    std::vector<scalar::Type> types;
    for (const Input& input : inputs_) types.push_back(scalar::compute_type(input.dtype));
    std::vector<Scalar> arguments;
    for (uint32_t i = 0; i < types.size(); ++i) arguments.push_back(scalar::argument(i, types[i]));
    std::map<uint32_t, Scalar> flags;
    for (uint32_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].guards.empty()) continue;
      flags[i] = scalar::argument(static_cast<uint32_t>(types.size()), scalar::Type::kBool);
      types.push_back(scalar::Type::kBool);
    }
    std::vector<Scalar> renamed;
    std::map<const Scalar::Expression*, Scalar> done;
    for (const Scalar& value : values_) renamed.push_back(rename(value, flags, done));
    PointwiseSpec spec;
    spec.extents = std::move(extents);
    spec.inputs = std::move(inputs_);
    spec.body = scalar::linearize(renamed, types);
    spec.outputs = std::move(outputs_);
    return spec;
  }

 private:
  static constexpr uint32_t kFlagBase = 1u << 20;

  static Scalar rename(const Scalar& value, const std::map<uint32_t, Scalar>& flags,
                       std::map<const Scalar::Expression*, Scalar>& done) {
    const Scalar::Expression& expression = value.expression();
    if (auto found = done.find(&expression); found != done.end()) return found->second;
    Scalar out = value;
    if (expression.op == scalar::Op::kArgument) {
      if (expression.payload >= kFlagBase) out = flags.at(expression.payload - kFlagBase);
    } else if (!expression.operands.empty()) {
      std::vector<Scalar> operands;
      for (const Scalar& operand : expression.operands) {
        operands.push_back(rename(operand, flags, done));
      }
      out = scalar::make(expression.op, std::move(operands), expression.type);
    }
    done[&expression] = out;
    return out;
  }

  uint32_t slot(uint32_t buffer) {
    auto at = std::find(buffers_.begin(), buffers_.end(), buffer);
    if (at == buffers_.end()) at = buffers_.insert(at, buffer);
    return static_cast<uint32_t>(at - buffers_.begin());
  }

  Input move(Input input, const std::vector<uint32_t>& buffers) {
    if (input.slot != Input::kIndexValue) input.slot = slot(buffers[input.slot]);
    for (kernels::IndexTerm& term : input.terms) term.slot = slot(buffers[term.slot]);
    for (kernels::Guard& guard : input.guards) {
      for (kernels::IndexTerm& term : guard.terms) term.slot = slot(buffers[term.slot]);
    }
    return input;
  }

  std::vector<Input> inputs_;
  std::vector<kernels::Output> outputs_;
  std::vector<Scalar> values_;
  std::vector<uint32_t> buffers_;
};

class SegmentMerger {
 public:
  SegmentMerger(SegmentSchedule& segment, const std::vector<Buffer>& buffers, uint32_t max_slots)
      : segment_(segment), buffers_(buffers), max_slots_(max_slots) {}

  bool run() {
    bool changed = false;
    for (const ScheduledKernel& kernel : segment_.kernels) uses_.push_back(buffer_use(kernel));
    for (size_t j = 1; j < segment_.kernels.size(); ++j) {
      for (size_t i = j; i-- > 0;) {
        if (!try_merge(i, j)) continue;
        segment_.kernels.erase(segment_.kernels.begin() + static_cast<ptrdiff_t>(i));
        uses_.erase(uses_.begin() + static_cast<ptrdiff_t>(i));
        changed = true;
        --j;
      }
    }
    return changed;
  }

 private:
  // The buffers that kernel i writes and kernel j reads, all at the same places.
  std::optional<std::set<uint32_t>> handed_on(size_t i, size_t j) const {
    const ScheduledKernel& first = segment_.kernels[i];
    const ScheduledKernel& second = segment_.kernels[j];
    const auto* a = std::get_if<PointwiseSpec>(&first.spec);
    const auto* b = std::get_if<PointwiseSpec>(&second.spec);
    if (a == nullptr || b == nullptr || a->extents != b->extents) return std::nullopt;
    std::map<uint32_t, kernels::Affine> written;
    for (const kernels::Output& output : a->outputs) {
      written[first.buffers[output.slot]] = output.access;
    }
    std::set<uint32_t> shared;
    for (const Input& input : b->inputs) {
      if (input.slot == Input::kIndexValue) continue;
      auto made = written.find(second.buffers[input.slot]);
      if (made == written.end()) continue;
      if (input.access != made->second || !input.terms.empty() || !input.guards.empty()) {
        return std::nullopt;
      }
      shared.insert(made->first);
    }
    for (const auto& [buffer, access] : written) {
      const bool term_reads = uses_[j].reads.contains(buffer) && !shared.contains(buffer);
      if (term_reads || uses_[j].writes.contains(buffer)) return std::nullopt;
    }
    if (shared.empty()) return std::nullopt;
    return shared;
  }

  // Kernel i may run as late as kernel j.
  bool can_sink(size_t i, size_t j) const {
    for (size_t k = i + 1; k < j; ++k) {
      if (intersect(uses_[k].reads, uses_[i].writes) ||
          intersect(uses_[k].writes, uses_[i].writes) ||
          intersect(uses_[k].writes, uses_[i].reads)) {
        return false;
      }
    }
    return true;
  }

  bool read_by_others(uint32_t buffer, size_t i, size_t j) const {
    for (size_t k = 0; k < uses_.size(); ++k) {
      if (k != i && k != j && uses_[k].reads.contains(buffer)) return true;
    }
    return false;
  }

  bool try_merge(size_t i, size_t j) {
    const auto shared = handed_on(i, j);
    if (!shared || !can_sink(i, j)) return false;
    const ScheduledKernel& first = segment_.kernels[i];
    ScheduledKernel& second = segment_.kernels[j];
    const auto& a = std::get<PointwiseSpec>(first.spec);
    const auto& b = std::get<PointwiseSpec>(second.spec);
    Merger merger;
    const std::vector<Scalar> early = merger.add(first, {});
    std::map<uint32_t, Scalar> values;
    for (size_t o = 0; o < a.outputs.size(); ++o) {
      values[first.buffers[a.outputs[o].slot]] = early[o];
    }
    const std::vector<Scalar> late = merger.add(second, values);
    for (size_t o = 0; o < a.outputs.size(); ++o) {
      const uint32_t buffer = first.buffers[a.outputs[o].slot];
      const bool needed = buffers_[buffer].kind != BufferKind::kTemporary ||
                          !shared->contains(buffer) || read_by_others(buffer, i, j);
      if (needed) merger.add_output(a.outputs[o], buffer, early[o]);
    }
    for (size_t o = 0; o < b.outputs.size(); ++o) {
      merger.add_output(b.outputs[o], second.buffers[b.outputs[o].slot], late[o]);
    }
    if (merger.buffers().size() > max_slots_) return false;
    const std::vector<uint32_t> buffers = merger.buffers();
    ScheduledKernel merged{merger.finish(b.extents), buffers, first.label + ", " + second.label};
    for (const kernels::Output& output : std::get<PointwiseSpec>(merged.spec).outputs) {
      if (reads_elsewhere(merged.spec, output.slot)) return false;
    }
    second = std::move(merged);
    uses_[j] = buffer_use(second);
    return true;
  }

  SegmentSchedule& segment_;
  const std::vector<Buffer>& buffers_;
  uint32_t max_slots_;
  std::vector<Use> uses_;
};

}  // namespace

bool merge_elementwise(Schedule& schedule, uint32_t max_slots) {
  bool changed = false;
  for (SegmentSchedule& segment : schedule.segments) {
    changed = SegmentMerger(segment, schedule.buffers, max_slots).run() || changed;
  }
  return changed;
}

}  // namespace meganeura::schedule
