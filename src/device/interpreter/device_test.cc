#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "device/interpreter/interpreter.h"
#include "kernel_ir/builder.h"
#include "kernel_ir/text.h"

namespace meganeura::device {
namespace {

using kir::Builder;
using kir::Builtin;
using kir::SlotAccess;
using kir::Value;
using scalar::Type;

Module module_of(const kir::Kernel& kernel) {
  Module module;
  module.name = kernel.name;
  module.code = CodeKind::kKernelText;
  module.words = kir::pack_text(kir::to_string(kernel));
  module.slots = static_cast<uint32_t>(kernel.slots.size());
  module.params = kernel.params;
  module.local_size = kernel.local_size;
  module.subgroup_size = kernel.subgroup_size;
  return module;
}

// y[i] = y[i] · x[i] + argument, for sizes that are multiples of 8.
kir::Kernel scale_kernel(uint32_t subgroup_size = 0) {
  Builder b("scale", {8, 1, 1}, subgroup_size);
  uint32_t x = b.slot("x", Type::kF32, SlotAccess::kRead);
  uint32_t y = b.slot("y", Type::kF32, SlotAccess::kReadWrite);
  Value extra = b.arith(scalar::Op::kConvert, std::array{b.read_param(b.param())}, Type::kF32);
  Value base = b.mul(b.builtin(Builtin::kWorkgroupX), b.u32(8));
  Value index = b.add(base, b.builtin(Builtin::kLocalIndex));
  Value old = b.load(y, index);
  Value product = b.mul(old, b.load(x, index));
  b.store(y, index, b.add(product, extra));
  return b.finish();
}

Command dispatch(Pipeline& pipeline, Span x, Span y, uint32_t groups) {
  Command command;
  command.kind = Command::Kind::kDispatch;
  command.pipeline = &pipeline;
  command.grid = {groups, 1, 1};
  command.bindings = {{x, true, false}, {y, true, true}};
  command.params = {3};
  command.label = "scale y";
  return command;
}

Command copy(Span source, Span destination) {
  Command command;
  command.kind = Command::Kind::kCopy;
  command.source = source;
  command.destination = destination;
  command.label = "copy";
  return command;
}

Command fill(Span destination, float value) {
  Command command;
  command.kind = Command::Kind::kFill;
  command.destination = destination;
  command.pattern = std::bit_cast<uint32_t>(value);
  command.label = "fill";
  return command;
}

struct Fixture {
  explicit Fixture(const InterpreterOptions& options = {}) : device(open_interpreter(options)) {
    Module module = module_of(scale_kernel());
    pipeline = std::move(device->create_pipelines(std::span(&module, 1)).at(0));
    x = device->allocate(64, MemoryKind::kDevice);
    y = device->allocate(64, MemoryKind::kDevice);
    upload = device->allocate(64, MemoryKind::kUpload);
    readback = device->allocate(64, MemoryKind::kReadback);
  }
  Span all(const std::unique_ptr<Memory>& memory) const { return {memory.get(), 0, 64}; }
  std::vector<float> result() const {
    std::vector<float> values(16);
    std::memcpy(values.data(), readback->mapped(), 64);
    return values;
  }
  std::string refusal(std::vector<Command> commands) const {
    try {
      device->record(commands);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  std::shared_ptr<Device> device;
  std::unique_ptr<Pipeline> pipeline;
  std::unique_ptr<Memory> x, y, upload, readback;
};

bool has(const std::string& message, std::string_view part) {
  return message.find(part) != std::string::npos;
}

TEST(InterpreterDevice, ReplaysARecording) {
  Fixture f;
  std::vector<Command> setup = {copy(f.all(f.upload), f.all(f.x)), fill(f.all(f.y), 2.0f)};
  std::vector<Command> step = {dispatch(*f.pipeline, f.all(f.x), f.all(f.y), 2), Command{},
                               copy(f.all(f.y), f.all(f.readback))};
  auto first = f.device->record(setup);
  auto second = f.device->record(step);
  std::vector<float> xs(16);
  for (int i = 0; i < 16; ++i) xs[static_cast<size_t>(i)] = static_cast<float>(i);
  std::memcpy(f.upload->mapped(), xs.data(), 64);
  uint64_t ticket = f.device->submit(std::array{first.get(), second.get(), second.get()});
  f.device->wait(ticket);
  EXPECT_TRUE(f.device->done(ticket));
  std::vector<float> result = f.result();
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(result[i], (2 * xs[i] + 3) * xs[i] + 3);
  EXPECT_GT(f.device->submit(std::array{second.get()}), ticket);
}

TEST(InterpreterDevice, DeviceMemoryIsNotMappedAndStartsAsNaN) {
  Fixture f;
  EXPECT_EQ(f.x->mapped(), nullptr);
  EXPECT_NE(f.upload->mapped(), nullptr);
  EXPECT_NE(f.readback->mapped(), nullptr);
  EXPECT_EQ(f.x->bytes(), 64u);
  std::vector<Command> commands = {copy(f.all(f.x), f.all(f.readback))};
  auto recording = f.device->record(commands);
  f.device->submit(std::array{recording.get()});
  for (float value : f.result()) EXPECT_TRUE(std::isnan(value));
}

TEST(InterpreterDevice, EmptyMemoriesAndDispatchesAreLegal) {
  Fixture f;
  auto none = f.device->allocate(0, MemoryKind::kDevice);
  EXPECT_EQ(none->bytes(), 0u);
  Span empty{none.get(), 0, 0};
  std::vector<Command> commands = {copy(empty, empty), fill(empty, 1),
                                   dispatch(*f.pipeline, empty, empty, 0)};
  auto recording = f.device->record(commands);
  EXPECT_NO_THROW(f.device->submit(std::array{recording.get()}));
}

TEST(InterpreterDevice, SpansNeedNotBeWholeWords) {
  Fixture f;
  auto odd = f.device->allocate(61, MemoryKind::kDevice);
  EXPECT_EQ(odd->bytes(), 61u);
  std::vector<Command> commands = {dispatch(*f.pipeline, f.all(f.x), {odd.get(), 0, 61}, 2)};
  auto recording = f.device->record(commands);
  EXPECT_NO_THROW(f.device->submit(std::array{recording.get()}));
}

TEST(InterpreterDevice, DescribesItself) {
  InterpreterOptions options{.subgroup_size = 32, .device_class = DeviceClass::kLargeGpu};
  auto device = open_interpreter(options);
  EXPECT_EQ(device->info().name, "interpreter");
  EXPECT_TRUE(device->info().software);
  EXPECT_EQ(device->code(), CodeKind::kKernelText);
  EXPECT_EQ(device->capabilities().subgroup_size, 32u);
  EXPECT_EQ(device->capabilities().device_class, DeviceClass::kLargeGpu);
  EXPECT_TRUE(device->capabilities().fused_fma);
  EXPECT_TRUE(device->capabilities().exact_division);
  EXPECT_TRUE(device->capabilities().exact_sqrt);
  options.subgroup_size = 12;
  EXPECT_THROW(open_interpreter(options), Error);
}

TEST(InterpreterDevice, CapabilitiesCanBeSet) {
  Capabilities small = interpreter_capabilities(4);
  small.max_workgroup_invocations = 4;
  small.subgroup_size_control = false;
  small.max_allocation_bytes = 100;
  auto device = open_interpreter({.capabilities = small});
  EXPECT_EQ(device->capabilities().max_workgroup_invocations, 4u);
  Module module = module_of(scale_kernel());
  EXPECT_THROW(device->create_pipelines(std::span(&module, 1)), Error);
  try {
    device->allocate(101, MemoryKind::kDevice);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
    EXPECT_TRUE(has(error.what(), "101 bytes"));
  }
  small.max_workgroup_invocations = 8;
  device = open_interpreter({.capabilities = small});
  EXPECT_NO_THROW(device->create_pipelines(std::span(&module, 1)));
  Module sized = module_of(scale_kernel(8));
  EXPECT_THROW(device->create_pipelines(std::span(&sized, 1)), Error);
}

TEST(InterpreterDevice, RefusesBadModules) {
  auto device = open_interpreter();
  const Module good = module_of(scale_kernel());
  auto refusal = [&](const std::function<void(Module&)>& change) -> std::string {
    Module module = good;
    change(module);
    try {
      device->create_pipelines(std::span(&module, 1));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal([](Module&) {}), "");
  EXPECT_TRUE(has(refusal([](Module& m) { m.code = CodeKind::kSpirv; }), "kernel text"));
  EXPECT_TRUE(has(refusal([](Module& m) { m.words.resize(5); }), "Module \"scale\": Line 1"));
  EXPECT_TRUE(has(refusal([](Module& m) { m.words.clear(); }), "expected 'kernel'"));
  EXPECT_TRUE(has(refusal([](Module& m) { m.slots = 1; }), "describes other slots"));
  EXPECT_TRUE(has(refusal([](Module& m) { m.params = 0; }), "describes other slots"));
  EXPECT_TRUE(has(refusal([](Module& m) { m.local_size[0] = 16; }), "describes other slots"));
  EXPECT_TRUE(has(refusal([](Module& m) {
                    m.words = kir::pack_text(
                        "kernel \"bad\" local(8, 1, 1) subgroup(0) params(0) { barrier yield }"
                        "barrier");
                  }),
                  "expected the end of the text"));
}

TEST(InterpreterDevice, RefusesSharedMemoryBeyondTheDevice) {
  Builder b("shared", {8, 1, 1});
  b.shared("tile", Type::kF32, 8193);
  Module module = module_of(b.finish());
  auto device = open_interpreter();
  EXPECT_THROW(device->create_pipelines(std::span(&module, 1)), Error);
}

TEST(InterpreterDevice, RefusesBadCommandsWhenRecording) {
  Fixture f;
  Command good = dispatch(*f.pipeline, f.all(f.x), f.all(f.y), 2);
  auto changed = [&](const std::function<void(Command&)>& change) {
    Command command = good;
    change(command);
    return f.refusal({command});
  };
  EXPECT_EQ(f.refusal({good}), "");
  EXPECT_TRUE(has(changed([](Command& c) { c.pipeline = nullptr; }), "has no pipeline"));
  EXPECT_TRUE(has(changed([](Command& c) { c.bindings.pop_back(); }), "binds 1 slots"));
  EXPECT_TRUE(has(changed([](Command& c) { c.params.clear(); }), "gives 0 arguments"));
  EXPECT_TRUE(has(changed([](Command& c) { c.bindings[1].write = false; }), "writes it"));
  EXPECT_TRUE(has(changed([](Command& c) { c.bindings[0].read = false; }), "reads it"));
  EXPECT_TRUE(has(changed([](Command& c) { c.bindings[0].span.bytes = 65; }), "reaches bytes"));
  EXPECT_TRUE(has(changed([](Command& c) { c.bindings[0].span.offset = ~0ull; }), "reaches"));
  EXPECT_TRUE(has(changed([](Command& c) {
                    c.bindings[0].span = {c.bindings[0].span.memory, 2, 4};
                  }),
                  "no multiple of 4"));
  EXPECT_TRUE(has(changed([](Command& c) { c.bindings[0].span.memory = nullptr; }),
                  "not the interpreter's"));
  EXPECT_TRUE(has(changed([](Command& c) { c.grid[1] = 70000; }), "70000 workgroups"));
  EXPECT_TRUE(has(f.refusal({copy({f.x.get(), 0, 8}, {f.y.get(), 0, 4})}), "copies 8 bytes"));
  EXPECT_TRUE(has(f.refusal({copy({f.x.get(), 0, 6}, {f.y.get(), 0, 6})}), "multiple of 4"));
  EXPECT_TRUE(has(f.refusal({fill({f.x.get(), 60, 8}, 1)}), "reaches bytes"));
  EXPECT_TRUE(has(f.refusal({good, good}), "No barrier stands between"));
}

TEST(InterpreterDevice, FaultsWhileRunningNameTheCommand) {
  Fixture f;
  std::vector<Command> commands = {dispatch(*f.pipeline, f.all(f.x), f.all(f.y), 3)};
  auto recording = f.device->record(commands);
  try {
    f.device->submit(std::array{recording.get()});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_TRUE(has(error.what(), "Command \"scale y\": Kernel \"scale\"")) << error.what();
    EXPECT_TRUE(has(error.what(), "Index 16 is outside \"y\" of 16 elements")) << error.what();
  }
}

TEST(InterpreterDevice, RefusesTicketsItNeverGave) {
  auto device = open_interpreter();
  EXPECT_NO_THROW(device->wait(0));
  EXPECT_THROW(device->wait(1), Error);
  EXPECT_THROW(device->done(1), Error);
}

}  // namespace
}  // namespace meganeura::device
