#include "runtime/program_check.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace meganeura {
namespace {

struct Flag {
  std::string_view name;
  bool Capabilities::*member;
};

// A program may rely on each of these that it was compiled for.
constexpr Flag kFlags[] = {
    {"subgroup arithmetic", &Capabilities::subgroup_arithmetic},
    {"subgroup shuffles", &Capabilities::subgroup_shuffle},
    {"subgroup ballots", &Capabilities::subgroup_ballot},
    {"fma that rounds once", &Capabilities::fused_fma},
    {"correctly rounded division", &Capabilities::exact_division},
    {"correctly rounded square roots", &Capabilities::exact_sqrt},
    {"preserved signed zeros, infinities and NaN", &Capabilities::signed_zero_inf_nan_preserve},
    {"preserved denormals", &Capabilities::denorm_preserve},
    {"rounding to nearest even", &Capabilities::rounding_rte},
};

std::string_view target_of(CodeKind code) {
  return code == CodeKind::kSpirv ? "vulkan1.2" : "interpreter";
}

void check_ranges(const Program& program, const device::Device& device) {
  const uint64_t most = device.capabilities().max_buffer_range;
  for (const Segment& segment : program.segments) {
    for (const Level& level : segment.levels) {
      for (const Dispatch& dispatch : level.dispatches) {
        for (const Binding& binding : dispatch.bindings) {
          if (binding.region.bytes <= most) continue;
          fail(ErrorKind::kUnsupported, "The dispatch \"", dispatch.label, "\" reaches ",
               binding.region.bytes, " bytes of one buffer, and ", device.info().name, " allows ",
               most, ". Use smaller batches or tensors.");
        }
      }
    }
  }
}

}  // namespace

void check_program_fits(const Program& program, const device::Device& device) {
  const std::string_view target = target_of(device.code());
  if (program.target != target) {
    fail(ErrorKind::kUnsupported, "The program was compiled for ", program.target, ", and ",
         device.info().name, " runs programs for ", target, ". Compile it for this device.");
  }
  const Capabilities& wanted = program.capabilities;
  const Capabilities& offered = device.capabilities();
  std::vector<std::string> missing;
  for (const Flag& flag : kFlags) {
    if (wanted.*flag.member && !(offered.*flag.member)) missing.emplace_back(flag.name);
  }
  if (wanted.binding == BindingMode::kAddress && offered.binding != BindingMode::kAddress) {
    missing.emplace_back("buffer addresses");
  }
  if (wanted.shared_bytes > offered.shared_bytes) {
    missing.push_back(cat(wanted.shared_bytes, " bytes of shared memory"));
  }
  const auto fixes_subgroup = [](const Module& module) { return module.subgroup_size != 0; };
  if (wanted.subgroup_size != offered.subgroup_size &&
      !(offered.subgroup_size_control && std::ranges::all_of(program.modules, fixes_subgroup))) {
    missing.push_back(cat("subgroups of ", wanted.subgroup_size));
  }
  if (!missing.empty()) {
    fail(ErrorKind::kUnsupported, "The program was compiled for a device with ", join(missing),
         ", which ", device.info().name, " does not have. Compile it for this device.");
  }
  check_ranges(program, device);
}

}  // namespace meganeura
