#include "schedule/fuse.h"

#include <algorithm>

#include "graph/node.h"

namespace meganeura::schedule {
namespace {

// In scalar operations; a composite such as exp counts as kCompositeCost.
constexpr int64_t kCheap = 4;
constexpr int64_t kCompositeCost = 20;
constexpr int64_t kLargestBody = 240;

bool moves_values(const Node& node) {
  switch (node.row->lowering) {
    case Lowering::kIdentity:
    case Lowering::kReshape:
    case Lowering::kPermute:
    case Lowering::kBroadcast:
    case Lowering::kSlice:
    case Lowering::kPad:
    case Lowering::kConcat:
    case Lowering::kDynamicSlice:
    case Lowering::kDynamicUpdateSlice:
    case Lowering::kGather:
    case Lowering::kAssign:
      return true;
    default:
      return false;
  }
}

int64_t body_cost(const Node& node) {
  std::vector<scalar::Type> types;
  std::vector<scalar::Scalar> arguments;
  for (Tensor operand : node.operands) {
    types.push_back(scalar::compute_type(operand.dtype()));
    arguments.push_back(scalar::argument(static_cast<uint32_t>(arguments.size()), types.back()));
  }
  const scalar::Scalar output = node.row->body(arguments, node);
  int64_t cost = 0;
  for (const scalar::Node& step : scalar::linearize(std::span(&output, 1), types).nodes) {
    if (step.op == scalar::Op::kArgument || step.op == scalar::Op::kConstant) continue;
    cost += scalar::info(step.op).primitive ? 1 : kCompositeCost;
  }
  return cost;
}

class Planner {
 public:
  Planner(std::span<const Tensor> order, const std::set<uint32_t>& required,
          const ScheduleOptions& options)
      : order_(order), required_(required), options_(options) {
    for (Tensor tensor : order_) {
      for (Tensor operand : tensor.node().operands) users_[operand.id()].push_back(tensor);
    }
    count_uses();
  }

  FusionPlan plan() {
    for (Tensor tensor : order_) place(tensor);
    return std::move(plan_);
  }

 private:
  // Users behind views count as users of what the view shows; `stretched` where such a view
  // repeats elements.
  void count_uses() {
    for (size_t i = order_.size(); i-- > 0;) {
      const Tensor tensor = order_[i];
      int64_t uses = required_.contains(tensor.id()) ? 1 : 0;
      bool stretched = false;
      for (Tensor user : users_[tensor.id()]) {
        const Node& node = user.node();
        const bool view = moves_values(node);
        uses += view ? std::max<int64_t>(uses_[user.id()], 1) : 1;
        if (view) stretched = stretched || stretched_[user.id()];
        if (node.row->lowering == Lowering::kBroadcast || node.row->lowering == Lowering::kGather) {
          stretched = stretched || node.shape.elements() > tensor.shape().elements();
        }
      }
      uses_[tensor.id()] = uses;
      stretched_[tensor.id()] = stretched;
    }
  }

  int64_t inline_cost(Tensor tensor) {
    return plan_.buffered.contains(tensor.id()) ? 0 : cost_[tensor.id()];
  }

  void place(Tensor tensor) {
    const Node& node = tensor.node();
    const uint32_t id = tensor.id();
    if (is_leaf(node)) return;
    int64_t cost = node.row->lowering == Lowering::kMap ? body_cost(node) : 0;
    for (Tensor operand : node.operands) cost += inline_cost(operand);
    cost_[id] = cost;
    if (required_.contains(id)) {
      plan_.buffered.insert(id);
    }
    if (is_heavy(node)) {
      place_heavy(tensor);
      return;
    }
    if (node.row->lowering != Lowering::kMap) return;
    const bool shared = cost > kCheap && (uses_[id] > 1 || stretched_[id]);
    if (!options_.fuse || shared || cost > kLargestBody) plan_.buffered.insert(id);
  }

  // A reduction or contraction with one elementwise user hands its result on in registers.
  void place_heavy(Tensor heavy) {
    const bool contraction = heavy.node().row->lowering == Lowering::kContract;
    const bool extend = options_.fuse && (options_.contraction_epilogues || !contraction);
    const Tensor end = extend ? chain_end(heavy) : heavy;
    if (end == heavy || plan_.anchor_of.contains(end.id())) {
      plan_.buffered.insert(heavy.id());
      plan_.anchor_of[heavy.id()] = heavy.id();
    } else {
      plan_.buffered.insert(end.id());
      plan_.anchor_of[end.id()] = heavy.id();
    }
  }

  Tensor chain_end(Tensor heavy) {
    Tensor end = heavy;
    if (heavy.node().row->lowering == Lowering::kScatterAdd) return end;
    while (!required_.contains(end.id()) && users_[end.id()].size() == 1) {
      const Tensor user = users_[end.id()][0];
      const Lowering lowering = user.node().row->lowering;
      const bool elementwise = lowering == Lowering::kMap || lowering == Lowering::kIdentity ||
                               lowering == Lowering::kReshape;
      const auto& operands = user.node().operands;
      if (!elementwise || std::count(operands.begin(), operands.end(), end) != 1) break;
      end = user;
    }
    // A trailing view computes nothing: let the values before it have the buffer.
    while (end != heavy && end.node().row->lowering != Lowering::kMap &&
           !required_.contains(end.id())) {
      end = end.node().operands[0];
    }
    return end;
  }

  std::span<const Tensor> order_;
  const std::set<uint32_t>& required_;
  const ScheduleOptions& options_;
  std::map<uint32_t, std::vector<Tensor>> users_;
  std::map<uint32_t, int64_t> uses_;
  std::map<uint32_t, bool> stretched_;
  std::map<uint32_t, int64_t> cost_;
  FusionPlan plan_;
};

}  // namespace

bool is_heavy(const Node& node) {
  return node.row->lowering == Lowering::kReduce || node.row->lowering == Lowering::kContract ||
         node.row->lowering == Lowering::kScatterAdd;
}

FusionPlan plan_fusion(std::span<const Tensor> order, const std::set<uint32_t>& required,
                       const ScheduleOptions& options) {
  return Planner(order, required, options).plan();
}

}  // namespace meganeura::schedule
