#include "kernel_ir/kernel.h"

namespace meganeura::kir {
namespace {

void count(const Block& block, Census& census) {
  for (const Instruction& instruction : block.body) {
    ++census.instructions;
    switch (instruction.opcode) {
      case Opcode::kBarrier:
        census.uses_barrier = true;
        break;
      case Opcode::kSubgroupBroadcast:
        census.uses_subgroup_ballot = true;
        break;
      case Opcode::kSubgroupAdd:
      case Opcode::kSubgroupMin:
      case Opcode::kSubgroupMax:
        census.uses_subgroup_arithmetic = true;
        break;
      case Opcode::kSubgroupShuffleXor:
        census.uses_subgroup_shuffle = true;
        break;
      default:
        break;
    }
    for (const Block& inner : instruction.blocks) count(inner, census);
  }
}

}  // namespace

Census census(const Kernel& kernel) {
  Census result;
  for (const SharedArray& array : kernel.shared) result.shared_bytes += uint64_t{4} * array.count;
  count(kernel.body, result);
  return result;
}

}  // namespace meganeura::kir
