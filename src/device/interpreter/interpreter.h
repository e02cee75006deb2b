// Runs kernel IR on the host with exact 32-bit semantics: the reference for emitters, the device of
// tests, and the detector of out-of-bounds accesses and data races.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "device/device.h"
#include "kernel_ir/kernel.h"

namespace meganeura::device {

struct RunOptions {
  uint32_t subgroup_size = 8;  // a power of two up to 128; a kernel's own requirement wins
  bool fused_fma = true;       // fma rounds once
};

// Runs all workgroups of `grid`, the invocations of one in lockstep. slots[i] are the bytes that
// slot i sees (4-byte aligned; whole words count); slots may overlap. Throws Error(kInternal)
// naming kernel, instruction, index, workgroup and invocation for accesses out of bounds or
// misaligned, shared memory read before it was written, barriers that not all invocations reach,
// shuffles from absent lanes, and for data races: one element touched by two invocations that no
// barrier orders (a barrier orders only shared memory), of which one writes.
void run_kernel(const kir::Kernel& kernel, std::array<uint32_t, 3> grid,
                std::span<const std::span<std::byte>> slots, std::span<const uint32_t> params,
                const RunOptions& options = {});

struct InterpreterOptions {
  uint32_t subgroup_size = 8;
  DeviceClass device_class = DeviceClass::kCpu;
  std::optional<Capabilities> capabilities;  // instead of interpreter_capabilities of the above
};

// Everything the interpreter can do: exact arithmetic, any subgroup size, generous limits.
Capabilities interpreter_capabilities(uint32_t subgroup_size = 8,
                                      DeviceClass device_class = DeviceClass::kCpu);

// A device whose modules are kernel text (CodeKind::kKernelText) and whose submissions run before
// they return. kDevice memory is not mapped and starts as NaN, so that reading what was never
// written shows.
std::shared_ptr<Device> open_interpreter(const InterpreterOptions& options = {});

}  // namespace meganeura::device
