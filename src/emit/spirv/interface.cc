#include "emit/spirv/interface.h"

#include "emit/spirv/op_table.h"

namespace meganeura::spirv {

using kir::SlotAccess;
using kir::ValueType;
using scalar::Type;
using spv::StorageClass;

namespace {

constexpr uint32_t kAddressBytes = 8;

}  // namespace

Interface::Interface(Writer& writer, const kir::Kernel& kernel, BindingMode binding)
    : writer_(writer), kernel_(kernel), binding_(binding) {
  declare_slots();
  declare_push_constants();
  declare_shared();
}

Id Interface::type(ValueType type) {
  if (type.lanes > 1) {
    const Id element = this->type({type.element, 1});
    return writer_.type(spv::Op::OpTypeVector, {element, type.lanes});
  }
  switch (type.element) {
    case Type::kBool:
      return writer_.type(spv::Op::OpTypeBool, {});
    case Type::kI32:
      return writer_.type(spv::Op::OpTypeInt, {32, 1});
    case Type::kU32:
      return writer_.type(spv::Op::OpTypeInt, {32, 0});
    case Type::kF32:
      return writer_.type(spv::Op::OpTypeFloat, {32});
  }
  return 0;
}

Id Interface::constant(ValueType type, uint32_t bits) {
  const Id type_id = this->type(type);
  if (type.lanes > 1) {
    const std::vector<uint32_t> parts(type.lanes, constant({type.element, 1}, bits));
    return writer_.constant(spv::Op::OpConstantComposite, type_id, parts);
  }
  if (type.element == Type::kBool) {
    const spv::Op op = bits != 0 ? spv::Op::OpConstantTrue : spv::Op::OpConstantFalse;
    return writer_.constant(op, type_id, {});
  }
  return writer_.constant(spv::Op::OpConstant, type_id, std::array{bits});
}

Id Interface::pointer_type(StorageClass storage, Id pointee) {
  return writer_.type(spv::Op::OpTypePointer, {static_cast<uint32_t>(storage), pointee});
}

// A block with one runtime array; one per element type and access, as decorations differ.
Id Interface::slot_struct(const kir::Slot& slot) {
  Id& structure = structs_[{slot.element, slot.access}];
  if (structure != 0) return structure;
  const Id element = type({slot.element, 1});
  Id& array = arrays_[element];
  if (array == 0) {
    array = writer_.distinct_type(spv::Op::OpTypeRuntimeArray, std::array{element});
    writer_.decorate(array, spv::Decoration::ArrayStride, {4});
  }
  structure = writer_.distinct_type(spv::Op::OpTypeStruct, std::array{array});
  writer_.decorate(structure, spv::Decoration::Block);
  writer_.decorate_member(structure, 0, spv::Decoration::Offset, {0});
  if (slot.access == SlotAccess::kRead) {
    writer_.decorate_member(structure, 0, spv::Decoration::NonWritable);
  }
  if (slot.access == SlotAccess::kWrite) {
    writer_.decorate_member(structure, 0, spv::Decoration::NonReadable);
  }
  return structure;
}

void Interface::declare_slots() {
  for (const kir::Slot& slot : kernel_.slots) slot_structs_.push_back(slot_struct(slot));
  if (binding_ == BindingMode::kAddress) {
    if (kernel_.slots.empty()) return;
    writer_.require(spv::Capability::PhysicalStorageBufferAddresses);
    writer_.set_addressing(spv::AddressingModel::PhysicalStorageBuffer64);
    return;
  }
  for (uint32_t i = 0; i < slot_structs_.size(); ++i) {
    const Id pointer = pointer_type(StorageClass::StorageBuffer, slot_structs_[i]);
    const Id variable = writer_.variable(pointer, StorageClass::StorageBuffer);
    writer_.decorate(variable, spv::Decoration::DescriptorSet, {0});
    writer_.decorate(variable, spv::Decoration::Binding, {i});
    // Without it the device may assume that slots do not overlap; updates in place do.
    writer_.decorate(variable, spv::Decoration::Aliased);
    slot_bases_.push_back(variable);
  }
}

void Interface::declare_push_constants() {
  std::vector<Id> members;
  std::vector<uint32_t> offsets;
  if (binding_ == BindingMode::kAddress) {
    for (const Id structure : slot_structs_) {
      offsets.push_back(kAddressBytes * static_cast<uint32_t>(members.size()));
      members.push_back(pointer_type(StorageClass::PhysicalStorageBuffer, structure));
    }
  }
  first_param_ = static_cast<uint32_t>(members.size());
  for (uint32_t i = 0; i < kernel_.params; ++i) {
    offsets.push_back(kAddressBytes * first_param_ + 4 * i);
    members.push_back(type({Type::kU32, 1}));
  }
  if (members.empty()) return;
  const Id structure = writer_.distinct_type(spv::Op::OpTypeStruct, members);
  writer_.decorate(structure, spv::Decoration::Block);
  for (uint32_t i = 0; i < members.size(); ++i) {
    writer_.decorate_member(structure, i, spv::Decoration::Offset, {offsets[i]});
  }
  push_constants_ = writer_.variable(pointer_type(StorageClass::PushConstant, structure),
                                     StorageClass::PushConstant);
}

void Interface::declare_shared() {
  for (const kir::SharedArray& shared : kernel_.shared) {
    const Id count = u32(shared.count);
    const Id element = type({shared.element, 1});
    const Id array = writer_.type(spv::Op::OpTypeArray, {element, count});
    shared_variables_.push_back(
        writer_.variable(pointer_type(StorageClass::Workgroup, array), StorageClass::Workgroup));
  }
}

void Interface::read_param(Id result, uint32_t index) {
  const Id u32_type = type({Type::kU32, 1});
  const Id pointer = pointer_type(StorageClass::PushConstant, u32_type);
  const Id member = u32(first_param_ + index);
  const Id address = writer_.add_result(spv::Op::OpAccessChain, pointer, {push_constants_, member});
  writer_.add(Writer::Section::kFunctions, spv::Op::OpLoad, {u32_type, result, address});
}

void Interface::read_builtin(Id result, kir::Builtin builtin) {
  const BuiltinEncoding& encoding = builtin_encoding(builtin);
  if (encoding.is_subgroup) writer_.require(spv::Capability::GroupNonUniform);
  const Id u32_type = type({Type::kU32, 1});
  const Id type_id =
      encoding.is_vector ? writer_.type(spv::Op::OpTypeVector, {u32_type, 3}) : u32_type;
  Id& variable = builtins_[static_cast<uint32_t>(encoding.builtin)];
  if (variable == 0) {
    variable = writer_.variable(pointer_type(StorageClass::Input, type_id), StorageClass::Input);
    writer_.decorate(variable, spv::Decoration::BuiltIn, {static_cast<uint32_t>(encoding.builtin)});
  }
  const Id loaded = encoding.is_vector ? writer_.new_id() : result;
  writer_.add(Writer::Section::kFunctions, spv::Op::OpLoad, {type_id, loaded, variable});
  if (!encoding.is_vector) return;
  writer_.add(Writer::Section::kFunctions, spv::Op::OpCompositeExtract,
              {u32_type, result, loaded, encoding.component});
}

void Interface::begin_function() {
  if (binding_ == BindingMode::kDescriptor) return;
  for (uint32_t slot = 0; slot < slot_structs_.size(); ++slot) {
    const Id block = pointer_type(StorageClass::PhysicalStorageBuffer, slot_structs_[slot]);
    const Id member = pointer_type(StorageClass::PushConstant, block);
    const Id number = u32(slot);
    const Id where = writer_.add_result(spv::Op::OpAccessChain, member, {push_constants_, number});
    slot_bases_.push_back(writer_.add_result(spv::Op::OpLoad, block, {where}));
  }
}

Id Interface::slot_pointer(uint32_t slot, Id index, uint8_t lanes) {
  const StorageClass storage = binding_ == BindingMode::kDescriptor
                                   ? StorageClass::StorageBuffer
                                   : StorageClass::PhysicalStorageBuffer;
  const Type element = kernel_.slots[slot].element;
  const Id zero = u32(0);
  const Id scalar_pointer = pointer_type(storage, type({element, 1}));
  const Id at =
      writer_.add_result(spv::Op::OpAccessChain, scalar_pointer, {slot_bases_[slot], zero, index});
  if (lanes == 1) return at;
  const Id vector_pointer = pointer_type(storage, type({element, lanes}));
  return writer_.add_result(spv::Op::OpBitcast, vector_pointer, {at});
}

Id Interface::shared_pointer(uint32_t array, Id index) {
  const Id element = type({kernel_.shared[array].element, 1});
  const Id pointer = pointer_type(StorageClass::Workgroup, element);
  return writer_.add_result(spv::Op::OpAccessChain, pointer, {shared_variables_[array], index});
}

}  // namespace meganeura::spirv
