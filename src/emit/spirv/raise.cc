#include "emit/spirv/raise.h"

#include "base/check.h"
#include "emit/spirv/raise_float.h"
#include "emit/spirv/raise_integer.h"

namespace meganeura::spirv {

std::span<const RaisePass> raise_passes() {
  static const RaisePass kPasses[] = {
      {"float_remainder", raise_float_remainder},
      {"half", raise_half},
      {"float_min_max", raise_float_min_max},
      {"subgroup_min_max", raise_subgroup_min_max},
      {"float_to_integer", raise_float_to_integer},
      {"integer_division", raise_integer_division},
      {"is_nan", raise_is_nan},
      {"shift_count", raise_shift_count},
      {"trivial", raise_trivial},
      {"shared_vector", raise_shared_vector},
  };
  return kPasses;
}

const RaisePass& split_slot_vectors() {
  static const RaisePass kPass = {"slot_vector", raise_slot_vector};
  return kPass;
}

const RaisePass& raise_pass(std::string_view name) {
  for (const RaisePass& pass : raise_passes()) {
    if (pass.name == name) return pass;
  }
  MG_CHECK(name == split_slot_vectors().name, "There is no raise pass ", name, ".");
  return split_slot_vectors();
}

kir::Kernel raise(const kir::Kernel& kernel, const Capabilities& capabilities) {
  kir::Kernel raised = kernel;
  for (const RaisePass& pass : raise_passes()) raised = Rewriter::apply(raised, pass.rule);
  if (capabilities.binding == BindingMode::kDescriptor) {
    raised = Rewriter::apply(raised, split_slot_vectors().rule);
  }
  return raised;
}

}  // namespace meganeura::spirv
