#include "runtime/test_support.h"

#include <algorithm>

#include "device/interpreter/interpreter.h"
#include "device/vulkan/vulkan_device.h"
#include "emit/spirv/emit.h"
#include "kernel_ir/builder.h"
#include "kernel_ir/text.h"

namespace meganeura {
namespace {

constexpr uint32_t kLocalSize = 32;

kir::Value global_index(kir::Builder& b) {
  const kir::Value group = b.builtin(kir::Builtin::kWorkgroupX);
  const kir::Value base = b.mul(group, b.u32(kLocalSize));
  return b.add(base, b.builtin(kir::Builtin::kLocalIndex));
}

// out[i] = a[i]·x[i] + b[i] for i < param 0.
kir::Kernel multiply_add() {
  kir::Builder b("multiply_add", {kLocalSize, 1, 1});
  const uint32_t a = b.slot("a", kir::Type::kF32, kir::SlotAccess::kRead);
  const uint32_t x = b.slot("x", kir::Type::kF32, kir::SlotAccess::kRead);
  const uint32_t c = b.slot("b", kir::Type::kF32, kir::SlotAccess::kRead);
  const uint32_t out = b.slot("out", kir::Type::kF32, kir::SlotAccess::kWrite);
  const kir::Value count = b.read_param(b.param());
  const kir::Value i = global_index(b);
  b.if_then(b.less(i, count), [&] {
    const kir::Value left = b.load(a, i);
    const kir::Value right = b.load(x, i);
    const kir::Value product = b.mul(left, right);
    const kir::Value sum = b.add(product, b.load(c, i));
    b.store(out, i, sum);
  });
  return b.finish();
}

// out[i] = a[i] + b[i] on words of the type, for i < param 0.
kir::Kernel add_words(std::string name, kir::Type type) {
  kir::Builder b(std::move(name), {kLocalSize, 1, 1});
  const uint32_t a = b.slot("a", type, kir::SlotAccess::kRead);
  const uint32_t c = b.slot("b", type, kir::SlotAccess::kRead);
  const uint32_t out = b.slot("out", type, kir::SlotAccess::kWrite);
  const kir::Value count = b.read_param(b.param());
  const kir::Value i = global_index(b);
  b.if_then(b.less(i, count), [&] {
    const kir::Value left = b.load(a, i);
    const kir::Value sum = b.add(left, b.load(c, i));
    b.store(out, i, sum);
  });
  return b.finish();
}

uint64_t align(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

class Maker {
 public:
  Maker(const device::Device& device, Program& program) : device_(device), program_(program) {}

  uint32_t module(const kir::Kernel& kernel) {
    Module module;
    module.name = kernel.name;
    module.code = device_.code();
    module.words = device_.code() == CodeKind::kSpirv ? emit_spirv(kernel, device_.capabilities())
                                                      : kir::pack_text(kir::to_string(kernel));
    module.binding = device_.capabilities().binding;
    module.slots = static_cast<uint32_t>(kernel.slots.size());
    module.params = kernel.params;
    module.local_size = kernel.local_size;
    program_.modules.push_back(std::move(module));
    return static_cast<uint32_t>(program_.modules.size() - 1);
  }

  Region tensor(std::string name, TensorKind kind, DType dtype, const Shape& shape,
                std::string initializer = {}) {
    ProgramTensor tensor;
    tensor.name = std::move(name);
    tensor.kind = kind;
    tensor.dtype = dtype;
    tensor.shape = shape;
    tensor.initializer = std::move(initializer);
    tensor.trainable = kind == TensorKind::kParameter;
    tensor.region.bytes = storage_bytes(shape, dtype);
    if (kind == TensorKind::kInput) {
      place(tensor.region, Region::Space::kInputs, program_.input_bytes);
    } else if (kind == TensorKind::kOutput) {
      place(tensor.region, Region::Space::kOutputs, program_.output_bytes);
    } else {
      tensor.region.space = Region::Space::kTensor;
      tensor.region.tensor = static_cast<uint32_t>(program_.tensors.size());
    }
    program_.tensors.push_back(tensor);
    return tensor.region;
  }

  Region constant(std::span<const std::byte> bytes) {
    Region region{Region::Space::kConstants, 0, program_.constants.size(), bytes.size()};
    program_.constants.insert(program_.constants.end(), bytes.begin(), bytes.end());
    program_.constants.resize(align(program_.constants.size()));
    return region;
  }

  Region scratch(uint64_t bytes) {
    Region region;
    region.bytes = bytes;
    place(region, Region::Space::kScratch, program_.scratch_bytes);
    return region;
  }

 private:
  static void place(Region& region, Region::Space space, uint64_t& used) {
    region.space = space;
    region.offset = used;
    used += align(region.bytes);
  }

  const device::Device& device_;
  Program& program_;
};

Dispatch make_dispatch(std::string label, uint32_t module, uint32_t count,
                       std::vector<Binding> bindings) {
  Dispatch dispatch;
  dispatch.label = std::move(label);
  dispatch.module = module;
  dispatch.grid = {std::max(1u, (count + kLocalSize - 1) / kLocalSize), 1, 1};
  dispatch.bindings = std::move(bindings);
  dispatch.params = {count};
  return dispatch;
}

Binding reads(const Region& region) { return {region, true, false}; }
Binding writes(const Region& region) { return {region, false, true}; }

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TestProgram::TestProgram(const device::Device& device, int64_t elements) {
  program.target = device.code() == CodeKind::kSpirv ? "vulkan1.2" : "interpreter";
  program.capabilities = device.capabilities();
  Maker make(device, program);
  const uint32_t multiply = make.module(multiply_add());
  const uint32_t add = make.module(add_words("add_f32", kir::Type::kF32));
  const uint32_t add_u32 = make.module(add_words("add_u32", kir::Type::kU32));

  const Shape vector{elements};
  const Region x = make.tensor("x", TensorKind::kInput, f32, vector);
  const Region rate = make.tensor("rate", TensorKind::kInput, f32, vector);
  const Region label = make.tensor("label", TensorKind::kInput, u32, Shape{kTestLabels});
  program.tensors.back().limit = 10;
  const Region w = make.tensor("w", TensorKind::kParameter, f32, vector, "uniform(-1, 1)");
  const Region count = make.tensor("count", TensorKind::kState, f32, Shape{}, "zeros");
  const Region y = make.tensor("y", TensorKind::kOutput, f32, vector);
  const Region total = make.tensor("total", TensorKind::kOutput, f32, Shape{});
  const Region echo = make.tensor("echo", TensorKind::kOutput, u32, Shape{kTestLabels});
  std::vector<float> constants;
  for (int64_t i = 0; i < elements; ++i) constants.push_back(test_constant(i));
  const Region c = make.constant(bytes_of(constants));
  const Region bias = make.constant(bytes_of(std::vector<float>{kTestBias}));
  const Region zeros = make.constant(bytes_of(std::vector<uint32_t>(kTestLabels)));
  const Region product = make.scratch(storage_bytes(vector, f32));
  const Region next_count = make.scratch(4);
  const Region zero = make.constant(bytes_of(std::vector<float>{0.0f}));

  const auto n = static_cast<uint32_t>(elements);
  Segment forward{"forward", {}};
  forward.levels.push_back({{
      make_dispatch("y", multiply, n, {reads(w), reads(x), reads(c), writes(y)}),
      make_dispatch("total", add, 1, {reads(bias), reads(count), writes(total)}),
      make_dispatch("echo", add_u32, kTestLabels, {reads(label), reads(zeros), writes(echo)}),
  }});
  Segment update{"update", {}};
  update.levels.push_back({{
      make_dispatch("product", multiply, n, {reads(w), reads(x), reads(rate), writes(product)}),
      make_dispatch("next count", add, 1, {reads(bias), reads(count), writes(next_count)}),
  }});
  update.levels.push_back({});  // an empty level needs no barrier of its own
  update.levels.push_back({{
      make_dispatch("keep w", add, n, {reads(product), reads(c), writes(w)}),
      make_dispatch("keep count", add, 1, {reads(next_count), reads(zero), writes(count)}),
  }});
  program.segments = {forward, update};
}

std::shared_ptr<device::Device> test_device(const std::string& kind, std::string& why) {
  if (kind == "interpreter") return device::open_interpreter();
  device::vulkan::OpenOptions options;
  options.descriptors = kind == "descriptors";
  try {
    return device::vulkan::open(device::vulkan::best(device::vulkan::list(options)), options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported) throw;
    why = error.what();
    return nullptr;
  }
}

}  // namespace meganeura
