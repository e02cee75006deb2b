#include <algorithm>
#include <cstring>
#include <set>

#include "base/check.h"
#include "program/program.h"

namespace meganeura {
namespace {

constexpr uint64_t kArenaAlignment = 256;
constexpr uint64_t kTensorAlignment = 4;
constexpr uint32_t kSpirvMagic = 0x07230203;
constexpr uint64_t kAddressBytes = 8;

constexpr std::string_view kSpaceNames[] = {"a tensor", "the inputs", "the outputs",
                                            "the constants", "the scratch"};

template <class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) fail(ErrorKind::kInternal, "The program is inconsistent: ", parts...);
}

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  void verify() {
    verify_target();
    verify_tensors();
    for (const Module& module : program_.modules) verify_module(module);
    verify_segments();
  }

 private:
  void verify_target() {
    const Program& p = program_;
    require(p.target == "vulkan1.2" || p.target == "interpreter", "the target is \"", p.target,
            "\"; \"vulkan1.2\" and \"interpreter\" are known.");
    require(p.capabilities.subgroup_size != 0, "the capabilities have a subgroup size of 0.");
    require(static_cast<size_t>(p.capabilities.device_class) <=
                    static_cast<size_t>(DeviceClass::kApple) &&
                static_cast<size_t>(p.capabilities.binding) <=
                    static_cast<size_t>(BindingMode::kDescriptor),
            "the capabilities have an unknown device class or binding mode.");
  }

  void verify_tensors() {
    std::set<std::string_view> names;
    for (uint32_t i = 0; i < program_.tensors.size(); ++i) {
      const ProgramTensor& tensor = program_.tensors[i];
      require(!tensor.name.empty(), "tensor ", i, " has no name.");
      require(names.insert(tensor.name).second, "the name \"", tensor.name,
              "\" stands for two tensors.");
      verify_tensor(tensor, i);
    }
  }

  void verify_tensor(const ProgramTensor& tensor, uint32_t index) {
    require(static_cast<size_t>(tensor.kind) <= static_cast<size_t>(TensorKind::kConstant),
            "tensor \"", tensor.name, "\" has the unknown kind ",
            static_cast<uint32_t>(tensor.kind), ".");
    require(static_cast<size_t>(tensor.dtype) <= static_cast<size_t>(DType::kBool), "tensor \"",
            tensor.name, "\" has the unknown dtype ", static_cast<uint32_t>(tensor.dtype), ".");
    static constexpr Region::Space kHome[] = {Region::Space::kTensor, Region::Space::kTensor,
                                              Region::Space::kInputs, Region::Space::kOutputs,
                                              Region::Space::kConstants};
    const Region& region = tensor.region;
    const Region::Space home = kHome[static_cast<size_t>(tensor.kind)];
    require(region.space == home, "tensor \"", tensor.name, "\" does not lie in ",
            kSpaceNames[static_cast<size_t>(home)], ", where its kind belongs.");
    const uint64_t needed = storage_bytes(tensor.shape, tensor.dtype);
    require(region.bytes >= needed, "tensor \"", tensor.name, "\" of shape ",
            tensor.shape.to_string(), " and dtype ", tensor.dtype, " needs ", needed,
            " bytes and has ", region.bytes, ".");
    const bool persistent = home == Region::Space::kTensor;
    require(!persistent || (region.tensor == index && region.offset == 0), "tensor \"", tensor.name,
            "\" is persistent and must start its own memory.");
    require(persistent || tensor.initializer.empty(), "tensor \"", tensor.name,
            "\" has an initializer and is not persistent.");
    require(!tensor.trainable || tensor.kind == TensorKind::kParameter, "tensor \"", tensor.name,
            "\" is trainable and not a parameter.");
    require(tensor.limit >= 0 && (tensor.limit == 0 || is_integer(tensor.dtype)), "tensor \"",
            tensor.name, "\" of dtype ", tensor.dtype, " has the limit ", tensor.limit, ".");
    if (!persistent) verify_region(region, cat("tensor \"", tensor.name, "\""));
  }

  uint64_t space_bytes(const Region& region) const {
    switch (region.space) {
      case Region::Space::kTensor:
        return program_.tensors[region.tensor].region.bytes;
      case Region::Space::kInputs:
        return program_.input_bytes;
      case Region::Space::kOutputs:
        return program_.output_bytes;
      case Region::Space::kConstants:
        return program_.constants.size();
      case Region::Space::kScratch:
        return program_.scratch_bytes;
    }
    return 0;
  }

  void verify_region(const Region& region, const std::string& owner) {
    require(static_cast<size_t>(region.space) <= static_cast<size_t>(Region::Space::kScratch),
            owner, " lies in the unknown space ", static_cast<uint32_t>(region.space), ".");
    const bool named = region.space == Region::Space::kTensor;
    require(named ? region.tensor < program_.tensors.size() : region.tensor == 0, owner,
            " names tensor ", region.tensor, "; there are ", program_.tensors.size(), ".");
    if (named) {
      const TensorKind kind = program_.tensors[region.tensor].kind;
      require(kind == TensorKind::kParameter || kind == TensorKind::kState, owner,
              " lies in tensor \"", program_.tensors[region.tensor].name,
              "\", which is not persistent.");
    }
    const uint64_t alignment = named ? kTensorAlignment : kArenaAlignment;
    require(region.offset % alignment == 0, owner, " starts at byte ", region.offset,
            ", which is no multiple of ", alignment, ".");
    const uint64_t space = space_bytes(region);
    require(region.offset <= space && region.bytes <= space - region.offset, owner, " spans bytes ",
            region.offset, " to ", region.offset + region.bytes, " of ",
            kSpaceNames[static_cast<size_t>(region.space)], ", which has ", space, ".");
  }

  void verify_module(const Module& module) {
    const bool spirv = program_.target == "vulkan1.2";
    require(module.code == (spirv ? CodeKind::kSpirv : CodeKind::kKernelText), "module \"",
            module.name, "\" holds code of kind ", static_cast<uint32_t>(module.code),
            ", which the target ", program_.target, " does not run.");
    require(!module.words.empty() && (!spirv || module.words[0] == kSpirvMagic), "module \"",
            module.name, "\" does not begin like its kind of code.");
    require(module.binding == program_.capabilities.binding, "module \"", module.name,
            "\" binds its slots another way than the program.");
    const uint64_t push_bytes =
        (module.binding == BindingMode::kAddress ? kAddressBytes * module.slots : 0) +
        uint64_t{4} * module.params;
    require(push_bytes <= program_.capabilities.push_constant_bytes, "module \"", module.name,
            "\" needs ", push_bytes, " bytes of push constants; the program was compiled for ",
            program_.capabilities.push_constant_bytes, ".");
    uint64_t invocations = 1;
    for (size_t i = 0; i < 3; ++i) {
      const uint32_t size = module.local_size[i];
      require(size != 0 && size <= program_.capabilities.max_workgroup_size[i], "module \"",
              module.name, "\" has a workgroup of ", size, " along axis ", i, ".");
      invocations *= size;
    }
    require(invocations <= program_.capabilities.max_workgroup_invocations, "module \"",
            module.name, "\" has a workgroup of ", invocations, " invocations.");
  }

  void verify_segments() {
    std::set<std::string_view> names;
    for (const Segment& segment : program_.segments) {
      require(names.insert(segment.name).second, "two segments are called \"", segment.name, "\".");
      for (size_t level = 0; level < segment.levels.size(); ++level) {
        for (const Dispatch& dispatch : segment.levels[level].dispatches) {
          verify_dispatch(dispatch, cat("dispatch \"", dispatch.label, "\" in level ", level,
                                        " of segment \"", segment.name, "\""));
        }
      }
    }
  }

  void verify_dispatch(const Dispatch& dispatch, const std::string& owner) {
    require(dispatch.module < program_.modules.size(), owner, " runs module ", dispatch.module,
            "; there are ", program_.modules.size(), ".");
    const Module& module = program_.modules[dispatch.module];
    for (size_t i = 0; i < 3; ++i) {
      const uint32_t most = program_.capabilities.max_workgroup_count[i];
      require(dispatch.grid[i] != 0 && dispatch.grid[i] <= most, owner, " has ", dispatch.grid[i],
              " workgroups along axis ", i, "; 1 to ", most, " are possible.");
    }
    require(dispatch.bindings.size() == module.slots, owner, " binds ", dispatch.bindings.size(),
            " slots; module \"", module.name, "\" has ", module.slots, ".");
    require(dispatch.params.size() == module.params, owner, " passes ", dispatch.params.size(),
            " params; module \"", module.name, "\" takes ", module.params, ".");
    for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
      const Binding& binding = dispatch.bindings[i];
      const std::string slot = cat("slot ", i, " of ", owner);
      verify_region(binding.region, slot);
      require(binding.read || binding.write, slot, " is neither read nor written.");
      const Region::Space space = binding.region.space;
      const bool fixed = space == Region::Space::kConstants || space == Region::Space::kInputs;
      require(!binding.write || !fixed, slot, " writes to ",
              kSpaceNames[static_cast<size_t>(space)], ", which kernels only read.");
      const uint64_t range = program_.capabilities.max_buffer_range;
      require(module.binding == BindingMode::kAddress || binding.region.bytes <= range, slot,
              " spans ", binding.region.bytes, " bytes; a descriptor reaches ", range, ".");
    }
  }

  const Program& program_;
};

}  // namespace

void verify_program(const Program& program) { Verifier(program).verify(); }

}  // namespace meganeura
