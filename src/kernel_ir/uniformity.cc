#include <algorithm>

#include "kernel_ir/opcode.h"

namespace meganeura::kir {
namespace {

// Starts from "uniform everywhere" and lowers until nothing changes, so loops reach the greatest
// fixed point.
class Analysis {
 public:
  explicit Analysis(const Kernel& kernel)
      : kernel_(kernel), levels_(kernel.types.size(), Uniformity::kWorkgroup) {}

  std::vector<Uniformity> run() {
    do {
      changed_ = false;
      visit(kernel_.body);
    } while (changed_);
    return std::move(levels_);
  }

 private:
  Uniformity level(Value value) const { return levels_[value.id]; }

  Uniformity meet(std::span<const Value> values) const {
    Uniformity lowest = Uniformity::kWorkgroup;
    for (Value value : values) lowest = std::min(lowest, level(value));
    return lowest;
  }

  void lower(Value value, Uniformity to) {
    if (to >= levels_[value.id]) return;
    levels_[value.id] = to;
    changed_ = true;
  }

  Uniformity of_builtin(Builtin builtin) const {
    switch (builtin) {
      case Builtin::kLocalIndex:
      case Builtin::kLane:
        return Uniformity::kInvocation;
      case Builtin::kSubgroup:
        return Uniformity::kSubgroup;
      default:
        return Uniformity::kWorkgroup;
    }
  }

  Uniformity of_result(const Instruction& instruction) const {
    Uniformity operands = meet(instruction.operands);
    switch (instruction.opcode) {
      case Opcode::kBuiltin:
        return of_builtin(static_cast<Builtin>(instruction.immediates[0]));
      case Opcode::kLoad:
        return kernel_.slots[instruction.immediates[0]].access == SlotAccess::kRead
                   ? operands
                   : Uniformity::kInvocation;
      case Opcode::kSharedLoad:
        return Uniformity::kInvocation;
      case Opcode::kSubgroupBroadcast:
        return std::max(operands, Uniformity::kSubgroup);
      case Opcode::kSubgroupAdd:
      case Opcode::kSubgroupMin:
      case Opcode::kSubgroupMax:
        return Uniformity::kSubgroup;
      default:
        return operands;
    }
  }

  void visit(const Block& block) {
    for (const Instruction& instruction : block.body) {
      if (instruction.opcode == Opcode::kFor) {
        visit_for(instruction);
      } else if (instruction.opcode == Opcode::kIf) {
        visit_if(instruction);
      } else {
        for (Value result : instruction.results) lower(result, of_result(instruction));
      }
    }
  }

  void visit_for(const Instruction& loop) {
    const Block& body = loop.blocks[0];
    Uniformity control = meet(std::span(loop.operands).first(3));
    lower(body.parameters[0], control);
    for (size_t i = 1; i < body.parameters.size(); ++i) {
      lower(body.parameters[i], level(loop.operands[i + 2]));
      lower(body.parameters[i], level(body.yields[i - 1]));
    }
    visit(body);
    for (size_t i = 0; i < loop.results.size(); ++i) {
      lower(loop.results[i],
            std::min({control, level(loop.operands[i + 3]), level(body.yields[i])}));
    }
  }

  void visit_if(const Instruction& branch) {
    for (const Block& block : branch.blocks) visit(block);
    for (size_t i = 0; i < branch.results.size(); ++i) {
      lower(branch.results[i],
            std::min({level(branch.operands[0]), level(branch.blocks[0].yields[i]),
                      level(branch.blocks[1].yields[i])}));
    }
  }

  const Kernel& kernel_;
  std::vector<Uniformity> levels_;
  bool changed_ = false;
};

}  // namespace

std::vector<Uniformity> analyze_uniformity(const Kernel& kernel) { return Analysis(kernel).run(); }

}  // namespace meganeura::kir
