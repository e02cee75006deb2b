#include "kernels/testing/spec_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/format.h"
#include "device/interpreter/interpreter.h"
#include "emit/spirv/emit.h"
#include "emit/spirv/validate.h"
#include "kernels/archetypes.h"
#include "meganeura/error.h"

namespace meganeura::kernels {
namespace {

std::string describe(const Capabilities& device) {
  return cat("subgroup ", device.subgroup_size, ", class ", static_cast<int>(device.device_class),
             ", fused_fma ", device.fused_fma);
}

void run(const KernelPlan& plan, const Capabilities& device, SlotMemory& memory) {
  std::vector<std::byte> scratch(plan.scratch_bytes);
  for (const Stage& stage : plan.stages) {
    std::vector<std::span<std::byte>> slots;
    for (uint32_t slot : stage.slots) {
      slots.push_back(slot == Stage::kScratch ? std::span(scratch) : std::span(memory.at(slot)));
    }
    device::run_kernel(stage.kernel, stage.grid, slots, stage.params,
                       {.subgroup_size = device.subgroup_size, .fused_fma = device.fused_fma});
  }
}

void validate_module(const kir::Kernel& kernel, const Capabilities& device,
                     const std::string& where) {
  // Equal kernels are validated once.
  static std::set<std::string> seen;
  if (!seen.insert(to_string(kernel)).second) return;
  const SpirvVerdict verdict = validate_spirv(emit_spirv(kernel, device));
  EXPECT_TRUE(verdict.valid || !verdict.available) << where << ": " << verdict.message;
}

bool close(const ExpectedElement& want, double have) {
  if (std::isinf(want.bound) || (std::isnan(want.value) && std::isnan(have))) return true;
  if (want.value == have) return true;
  // The reference itself rounds, far below any bound.
  return std::abs(want.value - have) <= want.bound + 1e-12 * std::abs(want.value);
}

// Bytes that the spec writes, padding of narrow outputs included.
std::vector<std::vector<bool>> written(const std::vector<ExpectedElement>& expected,
                                       const SlotMemory& memory) {
  std::vector<std::vector<bool>> marks;
  for (const auto& bytes : memory) marks.emplace_back(bytes.size(), false);
  for (const ExpectedElement& element : expected) {
    const size_t size = std::max<uint32_t>(8, info(element.dtype).bits) / 8;
    const size_t begin = static_cast<size_t>(element.index) * size;
    for (size_t i = begin / 4 * 4; i < (begin + size + 3) / 4 * 4; ++i) {
      marks.at(element.slot).at(i) = true;
    }
  }
  return marks;
}

void compare(const std::vector<ExpectedElement>& expected, const SlotMemory& before,
             const SlotMemory& after, const std::string& where) {
  int failures = 0;
  for (const ExpectedElement& want : expected) {
    const double have = read_element(after[want.slot], want.dtype, want.index);
    if (close(want, have)) continue;
    ADD_FAILURE() << where << ": slot " << want.slot << " element " << want.index << " is " << have
                  << ", expected " << want.value << " within " << want.bound;
    if (++failures == 3) return;
  }
  const auto marks = written(expected, before);
  for (size_t slot = 0; slot < before.size(); ++slot) {
    for (size_t i = 0; i < before[slot].size(); ++i) {
      if (marks[slot][i] || before[slot][i] == after[slot][i]) continue;
      ADD_FAILURE() << where << ": byte " << i << " of slot " << slot << " changed";
      return;
    }
  }
}

}  // namespace

std::vector<Capabilities> test_capabilities() {
  std::vector<Capabilities> devices;
  const std::pair<uint32_t, DeviceClass> kinds[] = {{8, DeviceClass::kCpu},
                                                    {4, DeviceClass::kCpu},
                                                    {16, DeviceClass::kSmallGpu},
                                                    {32, DeviceClass::kLargeGpu},
                                                    {64, DeviceClass::kLargeGpu}};
  for (const auto& [subgroup, device_class] : kinds) {
    Capabilities device = device::interpreter_capabilities(subgroup, device_class);
    // Self-tests decide on these, so both answers must work.
    device.fused_fma = subgroup != 16;
    device.exact_division = subgroup != 4;
    device.exact_sqrt = subgroup != 4;
    devices.push_back(device);
  }
  return devices;
}

std::vector<std::string> check_candidates(const std::string& what, const KernelSpec& spec,
                                          const SlotMemory& memory,
                                          const std::vector<Capabilities>& devices) {
  const std::vector<ExpectedElement> expected = evaluate_spec(spec, memory);
  std::vector<std::string> tiles;
  for (const Capabilities& device : devices) {
    for (const KernelPlan& plan : candidates(spec, device)) {
      const std::string where = cat(what, ", ", plan.tile, " on ", describe(device));
      SlotMemory after = memory;
      try {
        run(plan, device, after);
        for (const Stage& stage : plan.stages) validate_module(stage.kernel, device, where);
      } catch (const Error& error) {
        ADD_FAILURE() << where << ": " << error.what() << "\n" << to_string(spec);
        continue;
      }
      compare(expected, memory, after, where + "\n" + to_string(spec));
      tiles.push_back(plan.tile);
    }
  }
  return tiles;
}

}  // namespace meganeura::kernels
