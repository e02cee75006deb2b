#include "schedule/schedule.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"
#include "graph/node.h"
#include "schedule/fuse.h"
#include "schedule/kernel_builder.h"
#include "schedule/merge.h"
#include "schedule/slot_use.h"

namespace meganeura::schedule {
namespace {

struct Kernel {
  Root root;
  BuiltSpec built;
};

// An update that cannot be written in place; planning restarts with it as a copy.
struct NeedsCopy {
  uint32_t assign;
};

// Plans one segment. Values whose leaf is assigned are written straight into the leaf's memory
// when every reader of the old value can run before.
class SegmentPlanner {
 public:
  SegmentPlanner(const SegmentRoots& segment, std::vector<Buffer>& buffers,
                 std::map<uint32_t, uint32_t>& leaf_buffers, const ScheduleOptions& options)
      : segment_(segment), buffers_(buffers), leaf_buffers_(leaf_buffers), options_(options) {
    std::vector<Tensor> roots;
    for (const Output& output : segment_.outputs) roots.push_back(output.tensor);
    order_ = topological_order(roots);
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i].id()] = i;
  }

  SegmentSchedule plan() {
    for (;;) {
      try {
        return attempt();
      } catch (const NeedsCopy& copy) {
        copies_.insert(copy.assign);
        buffers_.resize(leaf_end_);
      }
    }
  }

 private:
  SegmentSchedule attempt() {
    buffer_of_.clear();
    roots_.clear();
    kernels_.clear();
    writer_.clear();
    assigned_.clear();
    for (Tensor tensor : order_) {
      if (is_leaf(tensor.node()) && tensor.node().row->lowering != Lowering::kConstant) {
        buffer_of_[tensor.id()] = leaf_buffer(tensor);
      }
    }
    leaf_end_ = buffers_.size();
    std::set<uint32_t> required;
    for (const Output& output : segment_.outputs) {
      if (is_assign(output)) add_assign(output.tensor, required);
    }
    for (const Output& output : segment_.outputs) {
      if (!is_assign(output)) add_output(output, required);
    }
    fusion_ = plan_fusion(order_, required, options_);
    for (Tensor tensor : order_) {
      if (fusion_.buffered.contains(tensor.id())) materialize(tensor);
    }
    for (size_t i = 0; i < roots_.size(); ++i) build(roots_[i]);
    return {segment_.name, in_order()};
  }

  uint32_t add_buffer(Buffer buffer) {
    buffers_.push_back(std::move(buffer));
    return static_cast<uint32_t>(buffers_.size() - 1);
  }

  uint32_t leaf_buffer(Tensor leaf) {
    auto found = leaf_buffers_.find(leaf.id());
    if (found != leaf_buffers_.end()) return found->second;
    const uint32_t buffer =
        add_buffer({BufferKind::kLeaf, leaf.dtype(), leaf.shape(), leaf_name(leaf.node()), leaf});
    leaf_buffers_[leaf.id()] = buffer;
    return buffer;
  }

  static bool is_assign(const Output& output) {
    return output.tensor.node().row->lowering == Lowering::kAssign;
  }

  void add_output(const Output& output, std::set<uint32_t>& required) {
    const Tensor tensor = output.tensor;
    const uint32_t buffer =
        add_buffer({BufferKind::kOutput, tensor.dtype(), tensor.shape(), output.name, tensor});
    add_target(tensor, buffer, required);
  }

  void add_assign(Tensor assign, std::set<uint32_t>& required) {
    const Tensor leaf = assign.node().operands[0];
    const Tensor value = assign.node().operands[1];
    const uint32_t buffer = buffer_of_.at(leaf.id());
    if (!assigned_once(assign)) return;
    writer_[buffer] = assign;
    if (copies_.contains(assign.id())) {
      // The new value waits in a temporary until everything has read the old one.
      const uint32_t waiting =
          add_buffer({BufferKind::kTemporary, leaf.dtype(), leaf.shape(), "", assign});
      buffer_of_[assign.id()] = waiting;
      roots_.push_back({assign, waiting, false});
      roots_.push_back({assign, buffer, true});
      return;
    }
    add_target(value, buffer, required);
  }

  // The same assign may stand among the outputs twice; two different ones are an error.
  bool assigned_once(Tensor assign) {
    const Tensor leaf = assign.node().operands[0];
    auto [entry, fresh] = assigned_.try_emplace(leaf.id(), assign);
    if (fresh || entry->second == assign) return fresh;
    fail(ErrorKind::kInvalidArgument, "The leaf \"", leaf_name(leaf.node()),
         "\" is assigned twice in segment \"", segment_.name, "\" (",
         describe(entry->second.node()), " and ", describe(assign.node()),
         "). Combine the two values into one assign.");
  }

  void add_target(Tensor tensor, uint32_t buffer, std::set<uint32_t>& required) {
    // Constants have bytes of their own and are copied, like values that already have a buffer.
    const bool has_buffer =
        buffer_of_.contains(tensor.id()) || tensor.node().row->lowering == Lowering::kConstant;
    if (!has_buffer) {
      buffer_of_[tensor.id()] = buffer;
      required.insert(tensor.id());
    }
    roots_.push_back({tensor, buffer, has_buffer});
  }

  void materialize(Tensor tensor) {
    if (buffer_of_.contains(tensor.id())) return;
    const bool constant = tensor.node().row->lowering == Lowering::kConstant;
    const uint32_t buffer = add_buffer({constant ? BufferKind::kConstant : BufferKind::kTemporary,
                                        tensor.dtype(), tensor.shape(), "", tensor});
    buffer_of_[tensor.id()] = buffer;
    if (!constant) roots_.push_back({tensor, buffer, false});
  }

  std::optional<Tensor> anchor(const Root& root) const {
    if (root.copy) return std::nullopt;
    auto found = fusion_.anchor_of.find(root.tensor.id());
    if (found == fusion_.anchor_of.end()) {
      if (is_heavy(root.tensor.node())) return root.tensor;
      return std::nullopt;
    }
    const Tensor heavy(&root.tensor.graph(), found->second);
    if (heavy != root.tensor && buffer_of_.contains(heavy.id())) return std::nullopt;
    return heavy;
  }

  void build(const Root root) {
    if (root.tensor.shape().elements() == 0) return;
    for (;;) {
      try {
        BuiltSpec built = build_spec(root, anchor(root), buffer_of_);
        if (built.buffers.size() > options_.max_slots) {
          materialize(widest_operand(root));
          continue;
        }
        kernels_.push_back({root, std::move(built)});
        return;
      } catch (const NeedsBuffer& request) {
        const Tensor tensor(&root.tensor.graph(), request.tensor);
        MG_CHECK(!buffer_of_.contains(tensor.id()), "value ", describe(tensor.node()),
                 " already has a buffer");
        materialize(tensor);
      }
    }
  }

  // Among the values computed inside the kernel, the one nearest to the root that reads most.
  Tensor widest_operand(const Root& root) {
    std::vector<Tensor> pending = {root.tensor};
    Tensor best;
    size_t best_width = 1;
    std::set<uint32_t> seen;
    for (size_t i = 0; i < pending.size(); ++i) {
      for (Tensor operand : pending[i].node().operands) {
        if (buffer_of_.contains(operand.id()) || !seen.insert(operand.id()).second) continue;
        pending.push_back(operand);
        if (operand.node().row->lowering != Lowering::kMap || is_heavy(operand.node())) continue;
        const size_t width = leaves_below(operand).size();
        if (width > best_width && width <= options_.max_slots - 1) {
          best = operand;
          best_width = width;
        }
      }
    }
    if (!best) {
      fail(ErrorKind::kUnsupported, "The kernel for ", describe(root.tensor.node()),
           " needs more than ", options_.max_slots,
           " buffers, which is what one kernel can bind on this device. Use fewer operands.");
    }
    return best;
  }

  std::set<uint32_t> leaves_below(Tensor tensor) {
    std::set<uint32_t> leaves;
    std::vector<Tensor> pending = {tensor};
    std::set<uint32_t> seen;
    while (!pending.empty()) {
      const Tensor next = pending.back();
      pending.pop_back();
      if (!seen.insert(next.id()).second) continue;
      auto found = buffer_of_.find(next.id());
      if (found != buffer_of_.end()) {
        leaves.insert(found->second);
        continue;
      }
      for (Tensor operand : next.node().operands) pending.push_back(operand);
    }
    return leaves;
  }

  // A sequential order: producers first, readers of an old value before its writer.
  std::vector<ScheduledKernel> in_order() {
    std::sort(kernels_.begin(), kernels_.end(), [&](const Kernel& a, const Kernel& b) {
      return std::pair(position_.at(a.root.tensor.id()), a.root.buffer) <
             std::pair(position_.at(b.root.tensor.id()), b.root.buffer);
    });
    const std::vector<std::set<size_t>> before = order_constraints();
    std::vector<ScheduledKernel> out;
    std::vector<bool> done(kernels_.size(), false);
    for (size_t emitted = 0; emitted < kernels_.size(); ++emitted) {
      size_t next = kernels_.size();
      for (size_t i = 0; i < kernels_.size() && next == kernels_.size(); ++i) {
        if (done[i]) continue;
        const bool ready = std::all_of(before[i].begin(), before[i].end(),
                                       [&](size_t earlier) { return done[earlier]; });
        if (ready) next = i;
      }
      if (next == kernels_.size()) throw NeedsCopy{blocked_assign(done)};
      done[next] = true;
      BuiltSpec& built = kernels_[next].built;
      out.push_back({std::move(built.spec), std::move(built.buffers), std::move(built.label)});
    }
    return out;
  }

  std::vector<std::set<size_t>> order_constraints() {
    std::map<uint32_t, size_t> producer;  // tensor → kernel
    std::map<uint32_t, size_t> leaf_writer;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      if (!kernels_[i].root.copy) producer[kernels_[i].root.tensor.id()] = i;
      if (writer_.contains(kernels_[i].root.buffer)) leaf_writer[kernels_[i].root.buffer] = i;
    }
    std::vector<std::set<size_t>> before(kernels_.size());
    for (size_t i = 0; i < kernels_.size(); ++i) {
      for (uint32_t tensor : kernels_[i].built.tensors_read) {
        if (auto made = producer.find(tensor); made != producer.end() && made->second != i) {
          before[i].insert(made->second);
        }
        const Tensor read(&kernels_[i].root.tensor.graph(), tensor);
        auto writer = leaf_writer.find(buffer_of_.at(tensor));
        if (!is_leaf(read.node()) || writer == leaf_writer.end()) continue;
        if (writer->second == i) {
          check_in_place(kernels_[i]);
        } else {
          before[writer->second].insert(i);
        }
      }
    }
    return before;
  }

  void check_in_place(const Kernel& kernel) {
    const auto& slots = kernel.built.buffers;
    const auto slot = static_cast<uint32_t>(
        std::find(slots.begin(), slots.end(), kernel.root.buffer) - slots.begin());
    if (reads_elsewhere(kernel.built.spec, slot)) {
      throw NeedsCopy{writer_.at(kernel.root.buffer).id()};
    }
  }

  uint32_t blocked_assign(const std::vector<bool>& done) {
    for (size_t i = 0; i < kernels_.size(); ++i) {
      auto assign = writer_.find(kernels_[i].root.buffer);
      if (done[i] || assign == writer_.end()) continue;
      if (!copies_.contains(assign->second.id())) return assign->second.id();
    }
    MG_CHECK(false, "the kernels of segment ", segment_.name, " depend on each other in a cycle");
    return 0;
  }

  const SegmentRoots& segment_;
  std::vector<Buffer>& buffers_;
  std::map<uint32_t, uint32_t>& leaf_buffers_;
  const ScheduleOptions& options_;
  std::vector<Tensor> order_;
  std::map<uint32_t, size_t> position_;
  std::map<uint32_t, uint32_t> buffer_of_;
  std::map<uint32_t, Tensor> writer_;  // leaf buffer → the assign that writes it
  std::map<uint32_t, Tensor> assigned_;
  std::set<uint32_t> copies_;
  size_t leaf_end_ = 0;
  FusionPlan fusion_;
  std::vector<Root> roots_;
  std::vector<Kernel> kernels_;
};

}  // namespace

Schedule make_schedule(std::span<const SegmentRoots> segments, const ScheduleOptions& options) {
  Schedule schedule;
  std::map<uint32_t, uint32_t> leaf_buffers;
  for (const SegmentRoots& segment : segments) {
    SegmentPlanner planner(segment, schedule.buffers, leaf_buffers, options);
    schedule.segments.push_back(planner.plan());
  }
  if (options.merge) merge_elementwise(schedule, options.max_slots);
  return schedule;
}

std::string to_string(const Schedule& schedule) {
  static constexpr std::string_view kKinds[] = {"leaf", "constant", "output", "temporary"};
  std::string out;
  for (size_t i = 0; i < schedule.buffers.size(); ++i) {
    const Buffer& buffer = schedule.buffers[i];
    out += cat("buffer ", i, ": ", kKinds[static_cast<size_t>(buffer.kind)], " ", buffer.dtype,
               buffer.shape, buffer.name.empty() ? "" : " ", buffer.name, "\n");
  }
  for (const SegmentSchedule& segment : schedule.segments) {
    out += cat("segment ", segment.name, "\n");
    for (const ScheduledKernel& kernel : segment.kernels) {
      out += cat("kernel ", kernel.label, " buffers [", join(kernel.buffers), "]\n",
                 kernels::to_string(kernel.spec), "\n");
    }
  }
  return out;
}

}  // namespace meganeura::schedule
