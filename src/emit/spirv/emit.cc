#include "emit/spirv/emit.h"

#include "base/check.h"
#include "emit/spirv/printer.h"
#include "emit/spirv/raise.h"

namespace meganeura {

namespace {

template <class... Parts>
[[noreturn]] void refuse(const kir::Kernel& kernel, const Parts&... parts) {
  fail(ErrorKind::kUnsupported, "Kernel \"", kernel.name, "\" ", parts...,
       " Choose another tile or another device.");
}

void check_workgroup(const kir::Kernel& kernel, const Capabilities& capabilities) {
  uint64_t invocations = 1;
  for (size_t i = 0; i < 3; ++i) {
    const uint32_t size = kernel.local_size[i];
    if (size == 0 || size > capabilities.max_workgroup_size[i]) {
      refuse(kernel, "has a workgroup of ", size, " invocations along axis ", i,
             " where the device allows 1 to ", capabilities.max_workgroup_size[i], ".");
    }
    invocations *= size;
  }
  if (invocations > capabilities.max_workgroup_invocations) {
    refuse(kernel, "has a workgroup of ", invocations, " invocations where the device allows ",
           capabilities.max_workgroup_invocations, ".");
  }
  uint64_t shared_bytes = 0;
  for (const kir::SharedArray& shared : kernel.shared) shared_bytes += uint64_t{4} * shared.count;
  if (shared_bytes > capabilities.shared_bytes) {
    refuse(kernel, "shares ", shared_bytes, " bytes in a workgroup where the device has ",
           capabilities.shared_bytes, ".");
  }
  const uint32_t push_bytes = push_constant_bytes(kernel, capabilities.binding);
  if (push_bytes > capabilities.push_constant_bytes) {
    refuse(kernel, "needs ", push_bytes, " bytes of push constants for ", kernel.slots.size(),
           " slots and ", kernel.params, " params where the device has ",
           capabilities.push_constant_bytes, ".");
  }
}

struct SubgroupUse {
  bool arithmetic = false;
  bool shuffle = false;
  bool ballot = false;
};

void collect(const kir::Block& block, SubgroupUse& use) {
  for (const kir::Instruction& instruction : block.body) {
    switch (instruction.opcode) {
      case kir::Opcode::kSubgroupAdd:
      case kir::Opcode::kSubgroupMin:
      case kir::Opcode::kSubgroupMax:
        use.arithmetic = true;
        break;
      case kir::Opcode::kSubgroupShuffleXor:
        use.shuffle = true;
        break;
      case kir::Opcode::kSubgroupBroadcast:
        use.ballot = true;
        break;
      default:
        for (const kir::Block& inner : instruction.blocks) collect(inner, use);
    }
  }
}

void check_subgroups(const kir::Kernel& kernel, const Capabilities& capabilities) {
  SubgroupUse use;
  collect(kernel.body, use);
  const struct {
    bool used, offered;
    const char* name;
  } kFeatures[] = {
      {use.arithmetic, capabilities.subgroup_arithmetic, "subgroup arithmetic"},
      {use.shuffle, capabilities.subgroup_shuffle, "subgroup shuffle"},
      {use.ballot, capabilities.subgroup_ballot, "subgroup ballot"},
  };
  for (const auto& feature : kFeatures) {
    if (feature.used && !feature.offered) {
      refuse(kernel, "uses ", feature.name, ", which the device does not offer.");
    }
  }
  if (kernel.subgroup_size != 0 && kernel.subgroup_size != capabilities.subgroup_size &&
      !capabilities.subgroup_size_control) {
    refuse(kernel, "requires subgroups of ", kernel.subgroup_size,
           " invocations where the device has a fixed size of ", capabilities.subgroup_size, ".");
  }
}

}  // namespace

uint32_t push_constant_bytes(const kir::Kernel& kernel, BindingMode binding) {
  const auto slots = static_cast<uint32_t>(kernel.slots.size());
  return (binding == BindingMode::kAddress ? 8 * slots : 0) + 4 * kernel.params;
}

std::vector<uint32_t> emit_spirv(const kir::Kernel& kernel, const Capabilities& capabilities) {
  check_workgroup(kernel, capabilities);
  check_subgroups(kernel, capabilities);
  return spirv::print(spirv::raise(kernel, capabilities), capabilities);
}

}  // namespace meganeura
