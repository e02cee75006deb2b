// The rate of a strict f32 contraction beside the device's plain multiply-add rate, in one run.
//
// usage: mg_contraction_rate [DEVICE] [M N K]        e.g. mg_contraction_rate llvmpipe 512 512 512
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "device/device.h"
#include "emit/spirv/emit.h"
#include "kernel_ir/builder.h"
#include "kernel_ir/text.h"
#include "kernels/archetypes.h"
#include "meganeura/device.h"
#include "meganeura/error.h"

namespace mg = meganeura;
using mg::kir::Value;

namespace {

constexpr int kRounds = 7;
constexpr uint32_t kChains = 16;
constexpr uint32_t kSteps = 8192;
constexpr uint32_t kLocal = 64;
constexpr uint32_t kGroupsPerUnit = 64;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Independent chains of fused multiply-adds in registers; the sum is stored so that they stay.
mg::kir::Kernel multiply_add_kernel() {
  mg::kir::Builder b("multiply_add", {kLocal, 1, 1});
  const uint32_t out = b.slot("out", mg::scalar::Type::kF32, mg::kir::SlotAccess::kWrite);
  const Value group = b.builtin(mg::kir::Builtin::kWorkgroupX);
  const Value local = b.builtin(mg::kir::Builtin::kLocalIndex);
  const Value first = b.mul(group, b.u32(kLocal));
  const Value index = b.add(first, local);
  const Value seed =
      b.arith(mg::scalar::Op::kConvert, std::vector<Value>{index}, mg::scalar::Type::kF32);
  std::vector<Value> chains;
  for (uint32_t i = 0; i < kChains; ++i) {
    chains.push_back(b.add(seed, b.f32(static_cast<float>(i))));
  }
  const Value factor = b.f32(0.999f);
  const Value term = b.f32(0.5f);
  chains = b.for_range(b.u32(0), b.u32(kSteps), b.u32(1), chains,
                       [&](Value, std::span<const Value> carried) {
                         std::vector<Value> next;
                         for (Value chain : carried) next.push_back(b.fma(chain, factor, term));
                         return next;
                       });
  Value sum = chains[0];
  for (uint32_t i = 1; i < kChains; ++i) sum = b.add(sum, chains[i]);
  b.store(out, index, sum);
  return b.finish();
}

mg::kernels::ContractionSpec product(int64_t m, int64_t n, int64_t k) {
  mg::kernels::ContractionSpec spec;
  spec.m = {m};
  spec.n = {n};
  spec.k = {k};
  spec.a = {0, mg::f32, {0, {k, 1}}, {}, {}};
  spec.b = {1, mg::f32, {0, {n, 1}}, {}, {}};
  spec.epilogue = mg::scalar::identity(mg::scalar::Type::kF32);
  spec.outputs = {{2, mg::f32, {0, {n, 1}}}};
  return spec;
}

mg::Module module_of(const mg::kir::Kernel& kernel, const mg::device::Device& device) {
  mg::Module module;
  module.name = kernel.name;
  module.code = device.code();
  module.words = module.code == mg::CodeKind::kSpirv
                     ? mg::emit_spirv(kernel, device.capabilities())
                     : mg::kir::pack_text(mg::kir::to_string(kernel));
  module.binding = device.capabilities().binding;
  module.slots = static_cast<uint32_t>(kernel.slots.size());
  module.params = kernel.params;
  module.local_size = kernel.local_size;
  module.subgroup_size = kernel.subgroup_size;
  return module;
}

// A recording of one plan over memories it owns.
struct Work {
  std::vector<std::unique_ptr<mg::device::Pipeline>> pipelines;
  std::vector<std::unique_ptr<mg::device::Memory>> memories;
  std::unique_ptr<mg::device::Recording> recording;
};

Work prepare(mg::device::Device& device, const mg::kernels::KernelPlan& plan,
             const std::vector<uint64_t>& slot_bytes) {
  Work work;
  for (uint64_t bytes : slot_bytes) {
    work.memories.push_back(device.allocate(bytes, mg::device::MemoryKind::kDevice));
  }
  work.memories.push_back(
      device.allocate(std::max<uint64_t>(plan.scratch_bytes, 4), mg::device::MemoryKind::kDevice));
  std::vector<mg::Module> modules;
  for (const mg::kernels::Stage& stage : plan.stages) {
    modules.push_back(module_of(stage.kernel, device));
  }
  work.pipelines = device.create_pipelines(modules);
  std::vector<mg::device::Command> commands;
  for (const auto& memory : work.memories) {
    mg::device::Command fill;
    fill.kind = mg::device::Command::Kind::kFill;
    fill.destination = {memory.get(), 0, memory->bytes() / 4 * 4};
    fill.pattern = 0x3e800000;
    commands.push_back(fill);
  }
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const mg::kernels::Stage& stage = plan.stages[i];
    commands.emplace_back();
    mg::device::Command dispatch;
    dispatch.kind = mg::device::Command::Kind::kDispatch;
    dispatch.pipeline = work.pipelines[i].get();
    dispatch.grid = stage.grid;
    dispatch.params = stage.params;
    for (size_t slot = 0; slot < stage.slots.size(); ++slot) {
      const bool scratch = stage.slots[slot] == mg::kernels::Stage::kScratch;
      mg::device::Memory* memory =
          scratch ? work.memories.back().get() : work.memories[stage.slots[slot]].get();
      const auto access = stage.kernel.slots[slot].access;
      dispatch.bindings.push_back({{memory, 0, memory->bytes()},
                                   access != mg::kir::SlotAccess::kWrite,
                                   access != mg::kir::SlotAccess::kRead});
    }
    commands.push_back(dispatch);
  }
  work.recording = device.record(commands);
  return work;
}

double best_seconds(mg::device::Device& device, const Work& work) {
  double best = 1e9;
  mg::device::Recording* const recording = work.recording.get();
  for (int round = 0; round <= kRounds; ++round) {
    const double start = seconds_now();
    device.wait(device.submit(std::span(&recording, 1)));
    if (round > 0) best = std::min(best, seconds_now() - start);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) try {
  const mg::Device opened = mg::Device::open({.select = argc > 1 ? argv[1] : ""});
  mg::device::Device& device = opened.implementation();
  int64_t extents[3] = {512, 512, 512};
  for (int i = 0; i < 3 && i + 2 < argc; ++i) extents[i] = std::atoll(argv[i + 2]);
  const auto [m, n, k] = extents;

  mg::kernels::KernelPlan multiply_add;
  const uint32_t groups = kGroupsPerUnit * device.capabilities().compute_units;
  multiply_add.stages = {{multiply_add_kernel(), {groups, 1, 1}, {0}, {}}};
  const Work peak = prepare(device, multiply_add, {uint64_t{groups} * kLocal * 4});
  const double peak_rate = 2.0 * kChains * kSteps * kLocal * groups / best_seconds(device, peak);

  const mg::kernels::KernelPlan plan = mg::kernels::build(product(m, n, k), device.capabilities());
  const Work work = prepare(device, plan,
                            {static_cast<uint64_t>(4 * m * k), static_cast<uint64_t>(4 * k * n),
                             static_cast<uint64_t>(4 * m * n)});
  const double seconds = best_seconds(device, work);
  const double rate =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / seconds;
  std::printf("device               %s\n", opened.name().c_str());
  std::printf("multiply-add kernel  %9.2f GFLOP/s\n", peak_rate / 1e9);
  std::printf("contraction %lldx%lldx%lld  %9.2f GFLOP/s  %8.1f us  (%s)\n",
              static_cast<long long>(m), static_cast<long long>(n), static_cast<long long>(k),
              rate / 1e9, seconds * 1e6, plan.tile.c_str());
  std::printf("ratio                %9.1f %%\n", 100.0 * rate / peak_rate);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
