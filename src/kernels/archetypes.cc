#include "kernels/archetypes.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/archetype_list.h"
#include "kernels/spec_walk.h"

namespace meganeura::kernels {
namespace {

// Storage buffers that every current driver offers to one stage of a pipeline.
constexpr uint32_t kDescriptorSlots = 16;

bool writes_nothing(const KernelSpec& spec) {
  KernelSpec copy = spec;
  const SpecParts parts = parts_of(copy);
  for (uint32_t group : parts.outputs.front().groups) {
    if (element_count(parts.groups[group].list()) == 0) return true;
  }
  return false;
}

// With descriptors a slot reaches only so far; addresses have no such limit.
void check_ranges(const KernelSpec& spec, const Capabilities& capabilities) {
  if (capabilities.binding != BindingMode::kDescriptor) return;
  KernelSpec copy = spec;
  const SpecParts parts = parts_of(copy);
  auto check = [&](const Affine& access, const std::vector<uint32_t>& groups, uint32_t slot,
                   DType dtype) {
    uint64_t last = static_cast<uint64_t>(std::max<int64_t>(0, access.offset));
    size_t d = 0;
    for (uint32_t group : groups) {
      for (int64_t extent : parts.groups[group].list()) {
        const int64_t reach = access.strides[d++] * (extent - 1);
        if (reach > 0) last += static_cast<uint64_t>(reach);
      }
    }
    const uint64_t bytes = (last + 1) * info(dtype).bits / 8;
    if (bytes <= capabilities.max_buffer_range) return;
    fail(ErrorKind::kUnsupported, "Slot ", slot, " of a kernel reaches ", bytes,
         " bytes, but this device binds at most ", capabilities.max_buffer_range,
         " bytes. Use buffer device addresses or split the tensor.");
  };
  for (const InputPart& part : parts.inputs) {
    if (part.input->slot == Input::kIndexValue || !part.input->guards.empty()) continue;
    check(part.input->access, part.groups, part.input->slot, part.input->dtype);
  }
  for (const OutputPart& part : parts.outputs) {
    check(part.output->access, part.groups, part.output->slot, part.output->dtype);
  }
}

std::vector<KernelPlan> dispatch(const PointwiseSpec& spec, const Capabilities& capabilities) {
  return pointwise_candidates(spec, capabilities);
}
std::vector<KernelPlan> dispatch(const ReductionSpec& spec, const Capabilities& capabilities) {
  return reduction_candidates(spec, capabilities);
}
std::vector<KernelPlan> dispatch(const ContractionSpec& spec, const Capabilities& capabilities) {
  return contraction_candidates(spec, capabilities);
}
std::vector<KernelPlan> dispatch(const ScatterAddSpec& spec, const Capabilities& capabilities) {
  return scatter_add_candidates(spec, capabilities);
}

}  // namespace

uint32_t max_slots(const Capabilities& capabilities, uint32_t params) {
  if (capabilities.binding == BindingMode::kDescriptor) return kDescriptorSlots;
  const uint32_t used = 4 * params;
  return used >= capabilities.push_constant_bytes ? 0
                                                  : (capabilities.push_constant_bytes - used) / 8;
}

std::vector<KernelPlan> candidates(const KernelSpec& spec, const Capabilities& capabilities) {
  const KernelSpec canonical = canonicalize(spec);
  check_ranges(canonical, capabilities);
  if (writes_nothing(canonical)) {
    KernelPlan nothing;
    nothing.tile = "empty";
    return {nothing};
  }
  std::vector<KernelPlan> plans = std::visit(
      [&](const auto& alternative) { return dispatch(alternative, capabilities); }, canonical);
  std::stable_sort(plans.begin(), plans.end(),
                   [](const KernelPlan& a, const KernelPlan& b) { return a.cost < b.cost; });
  return plans;
}

KernelPlan build(const KernelSpec& spec, const Capabilities& capabilities) {
  return candidates(spec, capabilities).front();
}

}  // namespace meganeura::kernels
