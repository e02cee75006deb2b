#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "device/interpreter/interpreter.h"
#include "device/interpreter/machine.h"
#include "kernel_ir/text.h"

namespace meganeura::device {
namespace {

// What never-written device memory holds: a NaN in every word.
constexpr uint32_t kPoison = ~0u;

class HostMemory : public Memory {
 public:
  HostMemory(uint64_t bytes, MemoryKind kind)
      : bytes_(bytes),
        kind_(kind),
        words_((bytes + 3) / 4, kind == MemoryKind::kDevice ? kPoison : 0) {}
  uint64_t bytes() const override { return bytes_; }
  std::byte* mapped() override { return kind_ == MemoryKind::kDevice ? nullptr : data(); }
  std::byte* data() { return reinterpret_cast<std::byte*>(words_.data()); }
  uint64_t padded_bytes() const { return words_.size() * 4; }

 private:
  uint64_t bytes_;
  MemoryKind kind_;
  std::vector<uint32_t> words_;
};

class KernelPipeline : public Pipeline {
 public:
  explicit KernelPipeline(kir::Kernel kernel_to_keep) : kernel(std::move(kernel_to_keep)) {}
  const kir::Kernel kernel;
};

std::string name_of(const Command& command) {
  return cat("Command \"", command.label.empty() ? "without a label" : command.label, "\"");
}

HostMemory& host_memory(const Command& command, const Span& span) {
  auto* memory = dynamic_cast<HostMemory*>(span.memory);
  MG_CHECK(memory != nullptr, name_of(command), " uses memory that is not the interpreter's.");
  MG_CHECK(span.offset <= memory->bytes() && span.bytes <= memory->bytes() - span.offset,
           name_of(command), " reaches bytes ", span.offset, " to ", span.offset + span.bytes,
           " of a memory of ", memory->bytes(), ".");
  MG_CHECK(span.offset % 4 == 0, name_of(command), " starts at byte ", span.offset,
           ", which is no multiple of 4.");
  return *memory;
}

// What a kernel sees of a span: the last word may be padding of the allocation.
std::span<std::byte> slot_bytes(const Command& command, const Span& span) {
  if (span.bytes == 0) return {};
  HostMemory& memory = host_memory(command, span);
  uint64_t bytes = std::min((span.bytes + 3) / 4 * 4, memory.padded_bytes() - span.offset);
  return {memory.data() + span.offset, bytes};
}

void check_dispatch(const Command& command, const Capabilities& capabilities) {
  auto* pipeline = dynamic_cast<KernelPipeline*>(command.pipeline);
  MG_CHECK(pipeline != nullptr, name_of(command), " has no pipeline of the interpreter.");
  const kir::Kernel& kernel = pipeline->kernel;
  MG_CHECK(command.bindings.size() == kernel.slots.size(), name_of(command), " binds ",
           command.bindings.size(), " slots but kernel \"", kernel.name, "\" has ",
           kernel.slots.size(), ".");
  MG_CHECK(command.params.size() == kernel.params, name_of(command), " gives ",
           command.params.size(), " arguments but kernel \"", kernel.name, "\" takes ",
           kernel.params, ".");
  for (size_t i = 0; i < kernel.slots.size(); ++i) {
    const kir::Slot& slot = kernel.slots[i];
    const BoundSpan& binding = command.bindings[i];
    MG_CHECK((binding.read || slot.access == kir::SlotAccess::kWrite) &&
                 (binding.write || slot.access == kir::SlotAccess::kRead),
             name_of(command), " binds slot \"", slot.name, "\" of kernel \"", kernel.name,
             "\" without declaring that the kernel ",
             slot.access == kir::SlotAccess::kRead ? "reads it." : "writes it.");
    MG_CHECK(binding.span.bytes <= capabilities.max_buffer_range, name_of(command), " binds ",
             binding.span.bytes, " bytes to slot \"", slot.name, "\"; the device's limit is ",
             capabilities.max_buffer_range, ".");
    slot_bytes(command, binding.span);
  }
  for (size_t axis = 0; axis < 3; ++axis) {
    MG_CHECK(command.grid[axis] <= capabilities.max_workgroup_count[axis], name_of(command),
             " dispatches ", command.grid[axis], " workgroups along axis ", axis,
             "; the device's limit is ", capabilities.max_workgroup_count[axis], ".");
  }
}

void check_transfer(const Command& command) {
  host_memory(command, command.destination);
  MG_CHECK(command.destination.bytes % 4 == 0, name_of(command), " writes ",
           command.destination.bytes, " bytes, which is no multiple of 4.");
  if (command.kind != Command::Kind::kCopy) return;
  host_memory(command, command.source);
  MG_CHECK(command.source.bytes == command.destination.bytes, name_of(command), " copies ",
           command.source.bytes, " bytes into ", command.destination.bytes, ".");
}

class HostRecording : public Recording {
 public:
  explicit HostRecording(std::span<const Command> commands)
      : commands_(commands.begin(), commands.end()) {}

  void run(const RunOptions& options) const {
    for (const Command& command : commands_) run(command, options);
  }

 private:
  static void run(const Command& command, const RunOptions& options) {
    switch (command.kind) {
      case Command::Kind::kBarrier:
        return;
      case Command::Kind::kDispatch:
        return dispatch(command, options);
      case Command::Kind::kCopy:
        std::copy_n(slot_bytes(command, command.source).data(), command.source.bytes,
                    slot_bytes(command, command.destination).data());
        return;
      case Command::Kind::kFill: {
        std::byte* at = slot_bytes(command, command.destination).data();
        for (uint64_t i = 0; i < command.destination.bytes; i += 4) {
          std::memcpy(at + i, &command.pattern, 4);
        }
        return;
      }
    }
  }

  static void dispatch(const Command& command, const RunOptions& options) {
    const kir::Kernel& kernel = static_cast<KernelPipeline*>(command.pipeline)->kernel;
    std::vector<std::span<std::byte>> slots;
    for (const BoundSpan& binding : command.bindings) {
      slots.push_back(slot_bytes(command, binding.span));
    }
    try {
      Machine(kernel, command.grid, slots, command.params, options).run();
    } catch (const Error& error) {
      fail(error.kind(), name_of(command), ": ", error.what());
    }
  }

  std::vector<Command> commands_;
};

class InterpreterDevice : public Device {
 public:
  explicit InterpreterDevice(const Capabilities& capabilities) : capabilities_(capabilities) {
    info_.name = "interpreter";
    info_.driver = "meganeura";
    info_.api = "interpreter";
    info_.uuid = "interpreter";
    info_.memory_bytes = capabilities.max_allocation_bytes;
    info_.software = true;
    info_.details = {
        {"device class", std::string(to_string(capabilities.device_class))},
        {"subgroup size", cat(capabilities.subgroup_size)},
        {"shared memory", cat(capabilities.shared_bytes, " bytes")},
        {"workgroup", cat(capabilities.max_workgroup_invocations, " invocations")},
    };
  }

  const DeviceInfo& info() const override { return info_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  CodeKind code() const override { return CodeKind::kKernelText; }

  std::unique_ptr<Memory> allocate(uint64_t bytes, MemoryKind kind) override {
    if (bytes <= capabilities_.max_allocation_bytes) {
      try {
        return std::make_unique<HostMemory>(bytes, kind);
      } catch (const std::bad_alloc&) {
      }
    }
    fail(ErrorKind::kOutOfMemory, "The interpreter cannot allocate ", bytes,
         " bytes (its limit for one allocation is ", capabilities_.max_allocation_bytes,
         "). Use a smaller batch or model.");
  }

  std::vector<std::unique_ptr<Pipeline>> create_pipelines(
      std::span<const Module> modules) override {
    std::vector<std::unique_ptr<Pipeline>> pipelines;
    for (const Module& module : modules) {
      pipelines.push_back(std::make_unique<KernelPipeline>(load(module)));
    }
    return pipelines;
  }

  std::unique_ptr<Recording> record(std::span<const Command> commands) override {
    for (const Command& command : commands) {
      if (command.kind == Command::Kind::kDispatch) {
        check_dispatch(command, capabilities_);
      } else if (command.kind != Command::Kind::kBarrier) {
        check_transfer(command);
      }
    }
    check_commands(commands);
    return std::make_unique<HostRecording>(commands);
  }

  uint64_t submit(std::span<Recording* const> recordings) override {
    RunOptions options{capabilities_.subgroup_size, capabilities_.fused_fma};
    for (Recording* recording : recordings) {
      auto* host = dynamic_cast<HostRecording*>(recording);
      MG_CHECK(host != nullptr, "A recording of another device was submitted to the interpreter.");
      host->run(options);
    }
    return ++last_ticket_;
  }

  void wait(uint64_t ticket) override { check_ticket(ticket); }
  bool done(uint64_t ticket) override {
    check_ticket(ticket);
    return true;
  }

 private:
  void check_ticket(uint64_t ticket) const {
    MG_CHECK(ticket <= last_ticket_, "Ticket ", ticket, " was never given out; the last one is ",
             last_ticket_, ".");
  }

  kir::Kernel load(const Module& module) const {
    if (module.code != CodeKind::kKernelText) {
      fail(ErrorKind::kUnsupported, "Module \"", module.name,
           "\" does not hold kernel text, the only code that the interpreter runs. Compile the "
           "program for the interpreter.");
    }
    kir::Kernel kernel = parse(module);
    kir::verify(kernel);
    MG_CHECK(kernel.slots.size() == module.slots && kernel.params == module.params &&
                 kernel.local_size == module.local_size &&
                 kernel.subgroup_size == module.subgroup_size,
             "Module \"", module.name,
             "\" describes other slots, arguments or sizes than its "
             "kernel text has.");
    check_limits(kernel);
    return kernel;
  }

  static kir::Kernel parse(const Module& module) {
    try {
      return kir::parse_kernel(kir::unpack_text(module.words));
    } catch (const Error& error) {
      fail(error.kind(), "Module \"", module.name, "\": ", error.what());
    }
  }

  void check_limits(const kir::Kernel& kernel) const {
    uint64_t invocations = 1;
    bool fits = true;
    for (size_t axis = 0; axis < 3; ++axis) {
      invocations *= kernel.local_size[axis];
      fits = fits && kernel.local_size[axis] <= capabilities_.max_workgroup_size[axis];
    }
    uint64_t shared_bytes = kir::census(kernel).shared_bytes;
    if (!fits || invocations > capabilities_.max_workgroup_invocations) {
      fail(ErrorKind::kUnsupported, "Kernel \"", kernel.name, "\" has workgroups of (",
           join(kernel.local_size), ") invocations; the device allows ",
           capabilities_.max_workgroup_invocations, " in all and (",
           join(capabilities_.max_workgroup_size), ") by axis.");
    }
    if (shared_bytes > capabilities_.shared_bytes) {
      fail(ErrorKind::kUnsupported, "Kernel \"", kernel.name, "\" needs ", shared_bytes,
           " bytes of shared memory; the device has ", capabilities_.shared_bytes, ".");
    }
    if (kernel.subgroup_size != 0 && kernel.subgroup_size != capabilities_.subgroup_size &&
        !capabilities_.subgroup_size_control) {
      fail(ErrorKind::kUnsupported, "Kernel \"", kernel.name, "\" requires subgroups of ",
           kernel.subgroup_size, "; the device has ", capabilities_.subgroup_size,
           " and no control over it.");
    }
  }

  Capabilities capabilities_;
  DeviceInfo info_;
  uint64_t last_ticket_ = 0;
};

}  // namespace

Capabilities interpreter_capabilities(uint32_t subgroup_size, DeviceClass device_class) {
  Capabilities capabilities;
  capabilities.device_class = device_class;
  capabilities.compute_units = 1;
  capabilities.subgroup_size = subgroup_size;
  capabilities.subgroup_size_control = true;
  capabilities.max_workgroup_invocations = 1024;
  capabilities.max_workgroup_size = {1024, 1024, 64};
  capabilities.shared_bytes = 32768;
  capabilities.max_buffer_range = 1ull << 31;
  capabilities.max_allocation_bytes = 1ull << 32;
  capabilities.fused_fma = true;
  capabilities.exact_division = true;
  capabilities.exact_sqrt = true;
  capabilities.signed_zero_inf_nan_preserve = true;
  capabilities.denorm_preserve = true;
  capabilities.rounding_rte = true;
  return capabilities;
}

std::shared_ptr<Device> open_interpreter(const InterpreterOptions& options) {
  Capabilities capabilities = options.capabilities.value_or(
      interpreter_capabilities(options.subgroup_size, options.device_class));
  uint32_t size = capabilities.subgroup_size;
  if (size == 0 || size > 128 || (size & (size - 1)) != 0) {
    fail(ErrorKind::kInvalidArgument, "The interpreter cannot have subgroups of ", size,
         "; choose a power of two from 1 to 128.");
  }
  return std::make_shared<InterpreterDevice>(capabilities);
}

}  // namespace meganeura::device
