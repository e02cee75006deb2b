// The module-scope part of a printed kernel: types, slots, shared arrays, params and built-ins.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "emit/spirv/writer.h"
#include "kernel_ir/capabilities.h"
#include "kernel_ir/kernel.h"

namespace meganeura::spirv {

class Interface {
 public:
  Interface(Writer& writer, const kir::Kernel& kernel, BindingMode binding);

  Id type(kir::ValueType type);
  Id constant(kir::ValueType type, uint32_t bits);
  Id u32(uint32_t value) { return constant({scalar::Type::kU32, 1}, value); }

  // Function instructions at the start of the entry block: the addresses of the slots.
  void begin_function();
  // Function instructions that leave a param or built-in in `result`.
  void read_param(Id result, uint32_t index);
  void read_builtin(Id result, kir::Builtin builtin);
  // A pointer to the element (lanes == 1) or to the vector that starts there.
  Id slot_pointer(uint32_t slot, Id index, uint8_t lanes);
  Id shared_pointer(uint32_t array, Id index);
  // Whether slot accesses need the Aligned operand.
  bool aligned() const { return binding_ == BindingMode::kAddress; }

 private:
  Id pointer_type(spv::StorageClass storage, Id pointee);
  Id slot_struct(const kir::Slot& slot);
  void declare_slots();
  void declare_push_constants();
  void declare_shared();

  Writer& writer_;
  const kir::Kernel& kernel_;
  BindingMode binding_;
  std::vector<Id> slot_structs_;  // by slot
  std::vector<Id> slot_bases_;    // by slot: the variable, or the address once it is loaded
  std::vector<Id> shared_variables_;
  std::map<std::pair<scalar::Type, kir::SlotAccess>, Id> structs_;
  std::map<uint32_t, Id> arrays_;    // runtime array by element type id
  std::map<uint32_t, Id> builtins_;  // variable by spv::BuiltIn
  Id push_constants_ = 0;
  uint32_t first_param_ = 0;  // member number
};

}  // namespace meganeura::spirv
