#include "emit/spirv/printer.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "emit/spirv/interface.h"
#include "emit/spirv/op_table.h"
#include "emit/spirv/writer.h"

namespace meganeura::spirv {

namespace {

using kir::Block;
using kir::Instruction;
using kir::Kernel;
using kir::Opcode;
using kir::Value;
using kir::ValueType;
using scalar::Op;
using scalar::Type;
using Section = Writer::Section;

constexpr uint32_t kWorkgroupBarrier =
    static_cast<uint32_t>(spv::MemorySemanticsMask::AcquireRelease) |
    static_cast<uint32_t>(spv::MemorySemanticsMask::WorkgroupMemory);
constexpr auto kWorkgroupScope = static_cast<uint32_t>(spv::Scope::Workgroup);
constexpr auto kSubgroupScope = static_cast<uint32_t>(spv::Scope::Subgroup);

class Printer {
 public:
  Printer(const Kernel& kernel, const Capabilities& capabilities)
      : kernel_(kernel),
        capabilities_(capabilities),
        interface_(writer_, kernel, capabilities.binding),
        ids_(kernel.types.size(), 0) {}

  std::vector<uint32_t> print();

 private:
  void declare_modes();
  void assign_ids(const Block& block);
  void print(const Block& block);
  void print(const Instruction& instruction);
  void print_memory(const Instruction& instruction);
  void print_arithmetic(const Instruction& instruction);
  void print_subgroup(const Instruction& instruction);
  void print_for(const Instruction& instruction);
  void print_if(const Instruction& instruction);
  void start_block(Id label);
  void branch(Id label) { writer_.add(Section::kFunctions, spv::Op::OpBranch, {label}); }
  void print_encoded(const Encoding& encoding, const Instruction& instruction);
  void define(const Instruction& instruction, spv::Op op, std::vector<uint32_t> operands);
  Id id(Value value) const;
  Id result_type(const Instruction& instruction) {
    return interface_.type(kernel_.type(instruction.results[0]));
  }

  const Kernel& kernel_;
  const Capabilities& capabilities_;
  Writer writer_;
  Interface interface_;
  std::vector<Id> ids_;  // by value
  Id block_ = 0;         // label of the open block
  bool uses_f32_ = false;
};

Id Printer::id(Value value) const {
  const Id id = ids_.at(value.id);
  MG_CHECK(id != 0, "Kernel ", kernel_.name, " uses value %", value.id, " before its definition.");
  return id;
}

std::vector<uint32_t> Printer::print() {
  writer_.require(spv::Capability::Shader);
  const Id void_type = writer_.type(spv::Op::OpTypeVoid, {});
  const Id function_type = writer_.type(spv::Op::OpTypeFunction, {void_type});
  const Id function = writer_.new_id();
  assign_ids(kernel_.body);
  for (const ValueType& type : kernel_.types) uses_f32_ |= type.element == Type::kF32;
  declare_modes();
  writer_.add(Section::kFunctions, spv::Op::OpFunction, {void_type, function, 0, function_type});
  start_block(writer_.new_id());
  interface_.begin_function();
  print(kernel_.body);
  writer_.add(Section::kFunctions, spv::Op::OpReturn, {});
  writer_.add(Section::kFunctions, spv::Op::OpFunctionEnd, {});
  return writer_.finish(function);
}

void Printer::declare_modes() {
  const auto& size = kernel_.local_size;
  writer_.execution_mode(spv::ExecutionMode::LocalSize, {size[0], size[1], size[2]});
  if (!uses_f32_) return;
  if (capabilities_.denorm_preserve) {
    writer_.require(spv::Capability::DenormPreserve);
    writer_.execution_mode(spv::ExecutionMode::DenormPreserve, {32});
  }
  if (capabilities_.signed_zero_inf_nan_preserve) {
    writer_.require(spv::Capability::SignedZeroInfNanPreserve);
    writer_.execution_mode(spv::ExecutionMode::SignedZeroInfNanPreserve, {32});
  }
  if (capabilities_.rounding_rte) {
    writer_.require(spv::Capability::RoundingModeRTE);
    writer_.execution_mode(spv::ExecutionMode::RoundingModeRTE, {32});
  }
}

// Every value has its id before anything is printed: the phis of a loop name the values of its end.
// A constant has the id of the module's constant, the result of a loop that of the carried phi.
void Printer::assign_ids(const Block& block) {
  for (const Value parameter : block.parameters) ids_.at(parameter.id) = writer_.new_id();
  for (const Instruction& instruction : block.body) {
    for (const Block& inner : instruction.blocks) assign_ids(inner);
    for (size_t i = 0; i < instruction.results.size(); ++i) {
      const Value result = instruction.results[i];
      Id& id = ids_.at(result.id);
      if (instruction.opcode == Opcode::kConstant) {
        id = interface_.constant(kernel_.type(result), instruction.immediates[0]);
      } else if (instruction.opcode == Opcode::kFor) {
        id = ids_.at(instruction.blocks[0].parameters[i + 1].id);
      } else {
        id = writer_.new_id();
      }
    }
  }
}

void Printer::start_block(Id label) {
  writer_.add(Section::kFunctions, spv::Op::OpLabel, {label});
  block_ = label;
}

void Printer::print(const Block& block) {
  for (const Instruction& instruction : block.body) print(instruction);
}

void Printer::define(const Instruction& instruction, spv::Op op, std::vector<uint32_t> operands) {
  operands.insert(operands.begin(), {result_type(instruction), id(instruction.results[0])});
  writer_.add(Section::kFunctions, op, operands);
}

void Printer::print(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kConstant:
      return;
    case Opcode::kBuiltin:
      return interface_.read_builtin(id(instruction.results[0]),
                                     static_cast<kir::Builtin>(instruction.immediates[0]));
    case Opcode::kParam:
      return interface_.read_param(id(instruction.results[0]), instruction.immediates[0]);
    case Opcode::kArith:
      return print_arithmetic(instruction);
    case Opcode::kLoad:
    case Opcode::kStore:
    case Opcode::kSharedLoad:
    case Opcode::kSharedStore:
      return print_memory(instruction);
    case Opcode::kExtract:
      return define(instruction, spv::Op::OpCompositeExtract,
                    {id(instruction.operands[0]), instruction.immediates[0]});
    case Opcode::kCompose: {
      std::vector<uint32_t> parts;
      for (const Value part : instruction.operands) parts.push_back(id(part));
      return define(instruction, spv::Op::OpCompositeConstruct, std::move(parts));
    }
    case Opcode::kBarrier: {
      const Id scope = interface_.u32(kWorkgroupScope);
      const Id semantics = interface_.u32(kWorkgroupBarrier);
      return writer_.add(Section::kFunctions, spv::Op::OpControlBarrier, {scope, scope, semantics});
    }
    case Opcode::kSubgroupBroadcast:
    case Opcode::kSubgroupAdd:
    case Opcode::kSubgroupMin:
    case Opcode::kSubgroupMax:
    case Opcode::kSubgroupShuffleXor:
      return print_subgroup(instruction);
    case Opcode::kFor:
      return print_for(instruction);
    case Opcode::kIf:
      return print_if(instruction);
  }
}

void Printer::print_memory(const Instruction& instruction) {
  const bool is_store =
      instruction.opcode == Opcode::kStore || instruction.opcode == Opcode::kSharedStore;
  const bool is_slot = instruction.opcode == Opcode::kLoad || instruction.opcode == Opcode::kStore;
  const Value value = is_store ? instruction.operands[1] : instruction.results[0];
  const uint8_t lanes = kernel_.type(value).lanes;
  const uint32_t where = instruction.immediates[0];
  const Id index = id(instruction.operands[0]);
  const Id pointer = is_slot ? interface_.slot_pointer(where, index, lanes)
                             : interface_.shared_pointer(where, index);
  std::vector<uint32_t> operands = {pointer};
  if (is_store) operands.push_back(id(value));
  if (is_slot && interface_.aligned()) {
    operands.push_back(static_cast<uint32_t>(spv::MemoryAccessMask::Aligned));
    operands.push_back(uint32_t{4} * lanes);
  }
  if (is_store) return writer_.add(Section::kFunctions, spv::Op::OpStore, operands);
  define(instruction, spv::Op::OpLoad, std::move(operands));
}

void Printer::print_encoded(const Encoding& encoding, const Instruction& instruction) {
  const auto op = static_cast<spv::Op>(encoding.code);
  const Value result = instruction.results[0];
  std::vector<uint32_t> operands;
  for (const Value operand : instruction.operands) operands.push_back(id(operand));
  switch (encoding.form) {
    case Encoding::Form::kNone:
      MG_CHECK(false, "SPIR-V has no instruction for ", info(instruction.arith).name, " of ",
               to_string(kernel_.type(instruction.operands.back()).element), " in kernel ",
               kernel_.name, "; a raise pass should have replaced it.");
      return;
    case Encoding::Form::kCore:
      define(instruction, op, std::move(operands));
      break;
    case Encoding::Form::kExtended:
      operands.insert(operands.begin(), {writer_.extended_instructions(), encoding.code});
      define(instruction, spv::Op::OpExtInst, std::move(operands));
      break;
    case Encoding::Form::kHighHalf: {
      const Id half = result_type(instruction);
      const Id both = writer_.type(spv::Op::OpTypeStruct, {half, half});
      const Id product = writer_.add_result(op, both, operands);
      define(instruction, spv::Op::OpCompositeExtract, {product, 1});
      break;
    }
  }
  if (encoding.no_contraction) writer_.decorate(id(result), spv::Decoration::NoContraction);
}

void Printer::print_arithmetic(const Instruction& instruction) {
  const Type operand = kernel_.type(instruction.operands.back()).element;
  if (instruction.arith == Op::kConvert) {
    const Type to = kernel_.type(instruction.results[0]).element;
    return print_encoded(conversion_encoding(operand, to), instruction);
  }
  // The last operand of a select is a chosen value; the first operand of everything else (a shift
  // count may be of another type) has the type that decides.
  const size_t decisive = instruction.arith == Op::kSelect ? 1 : 0;
  const Type type = kernel_.type(instruction.operands[decisive]).element;
  print_encoded(arithmetic_encoding(instruction.arith, type), instruction);
}

void Printer::print_subgroup(const Instruction& instruction) {
  const Value value = instruction.operands[0];
  const Id scope = interface_.u32(kSubgroupScope);
  writer_.require(spv::Capability::GroupNonUniform);
  if (instruction.opcode == Opcode::kSubgroupBroadcast) {
    writer_.require(spv::Capability::GroupNonUniformBallot);
    const Id lane = interface_.u32(instruction.immediates[0]);
    return define(instruction, spv::Op::OpGroupNonUniformBroadcast, {scope, id(value), lane});
  }
  if (instruction.opcode == Opcode::kSubgroupShuffleXor) {
    writer_.require(spv::Capability::GroupNonUniformShuffle);
    const Id mask = interface_.u32(instruction.immediates[0]);
    return define(instruction, spv::Op::OpGroupNonUniformShuffleXor, {scope, id(value), mask});
  }
  writer_.require(spv::Capability::GroupNonUniformArithmetic);
  const Encoding encoding = subgroup_encoding(instruction.opcode, kernel_.type(value).element);
  MG_CHECK(encoding.form == Encoding::Form::kCore, "Kernel ", kernel_.name,
           " has a subgroup reduction of ", to_string(kernel_.type(value).element),
           " that SPIR-V does not have or order.");
  const auto reduce = static_cast<uint32_t>(spv::GroupOperation::Reduce);
  define(instruction, static_cast<spv::Op>(encoding.code), {scope, reduce, id(value)});
}

void Printer::print_for(const Instruction& instruction) {
  const Block& body = instruction.blocks[0];
  const Id before = block_;
  const Id header = writer_.new_id();
  const Id inside = writer_.new_id();
  const Id proceed = writer_.new_id();
  const Id after = writer_.new_id();
  const Id next = writer_.new_id();
  branch(header);
  start_block(header);
  const Value induction = body.parameters[0];
  const Id index_type = interface_.type(kernel_.type(induction));
  const Id begin = id(instruction.operands[0]);
  writer_.add(Section::kFunctions, spv::Op::OpPhi,
              {index_type, id(induction), begin, before, next, proceed});
  for (size_t i = 1; i < body.parameters.size(); ++i) {
    const Value carried = body.parameters[i];
    const Id type = interface_.type(kernel_.type(carried));
    writer_.add(Section::kFunctions, spv::Op::OpPhi,
                {type, id(carried), id(instruction.operands[i + 2]), before, id(body.yields[i - 1]),
                 proceed});
  }
  const Id bool_type = interface_.type({Type::kBool, 1});
  const Id more = writer_.add_result(spv::Op::OpULessThan, bool_type,
                                     {id(induction), id(instruction.operands[1])});
  writer_.add(Section::kFunctions, spv::Op::OpLoopMerge, {after, proceed, 0});
  writer_.add(Section::kFunctions, spv::Op::OpBranchConditional, {more, inside, after});
  start_block(inside);
  print(body);
  branch(proceed);
  start_block(proceed);
  writer_.add(Section::kFunctions, spv::Op::OpIAdd,
              {index_type, next, id(induction), id(instruction.operands[2])});
  branch(header);
  start_block(after);
}

void Printer::print_if(const Instruction& instruction) {
  const Id after = writer_.new_id();
  const Id condition = id(instruction.operands[0]);
  const std::array labels = {writer_.new_id(), writer_.new_id()};
  std::array<Id, 2> ends{};
  writer_.add(Section::kFunctions, spv::Op::OpSelectionMerge, {after, 0});
  writer_.add(Section::kFunctions, spv::Op::OpBranchConditional, {condition, labels[0], labels[1]});
  for (size_t i = 0; i < labels.size(); ++i) {
    start_block(labels[i]);
    if (i < instruction.blocks.size()) print(instruction.blocks[i]);
    ends[i] = block_;
    branch(after);
  }
  start_block(after);
  for (size_t i = 0; i < instruction.results.size(); ++i) {
    const Value result = instruction.results[i];
    const Id type = interface_.type(kernel_.type(result));
    const Id yes = id(instruction.blocks[0].yields[i]);
    const Id no = id(instruction.blocks[1].yields[i]);
    writer_.add(Section::kFunctions, spv::Op::OpPhi, {type, id(result), yes, ends[0], no, ends[1]});
  }
}

}  // namespace

std::vector<uint32_t> print(const Kernel& raised, const Capabilities& capabilities) {
  return Printer(raised, capabilities).print();
}

}  // namespace meganeura::spirv
