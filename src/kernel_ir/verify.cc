#include <algorithm>

#include "base/check.h"
#include "kernel_ir/opcode.h"
#include "kernel_ir/text.h"

namespace meganeura::kir {
namespace {

constexpr uint32_t kMaxInvocations = 4096;
constexpr uint32_t kMaxSubgroup = 128;
constexpr uint32_t kMaxDepth = 64;

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel)
      : kernel_(kernel),
        state_(kernel.types.size(), State::kUndefined),
        constants_(kernel.types.size()) {}

  void run() {
    header();
    require(kernel_.body.parameters.empty(), "The kernel's body takes no block parameters.");
    require(kernel_.body.yields.empty(), "The kernel's body yields nothing.");
    block(kernel_.body, 0);
    levels_ = analyze_uniformity(kernel_);
    control(kernel_.body, Uniformity::kWorkgroup);
  }

 private:
  enum class State : uint8_t { kUndefined, kVisible, kGone };

  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    if (condition) return;
    std::string place = cat("Kernel \"", kernel_.name, "\"");
    if (current_ != nullptr) place += cat(", \"", describe(kernel_, *current_), "\"");
    fail(ErrorKind::kInternal, place, ": ", parts...);
  }

  void header() const {
    uint64_t invocations = 1;
    for (uint32_t size : kernel_.local_size) {
      require(size >= 1 && size <= kMaxInvocations, "A local size of ", size, " is outside 1 to ",
              kMaxInvocations, ".");
      invocations *= size;
    }
    require(invocations <= kMaxInvocations, "A workgroup of ", invocations,
            " invocations is larger than ", kMaxInvocations, ".");
    uint32_t width = kernel_.subgroup_size;
    require(width <= kMaxSubgroup && (width & (width - 1)) == 0, "A subgroup size of ", width,
            " is no power of two up to ", kMaxSubgroup, ".");
    require(!kernel_.types.empty(), "The type table lacks its unused entry 0.");
    for (size_t i = 1; i < kernel_.types.size(); ++i) {
      uint32_t lanes = kernel_.types[i].lanes;
      require(lanes == 1 || lanes == 2 || lanes == 4, "Value %", i, " has ", lanes,
              " lanes; 1, 2 and 4 exist.");
      require(kernel_.types[i].element <= Type::kF32, "Value %", i, " has no known type.");
    }
    for (const Slot& slot : kernel_.slots) {
      require(slot.element != Type::kBool, "Slot \"", slot.name,
              "\" holds bool; slots hold f32, i32 or u32.");
    }
    for (const SharedArray& array : kernel_.shared) {
      require(array.element != Type::kBool, "Shared array \"", array.name,
              "\" holds bool; shared arrays hold f32, i32 or u32.");
      require(array.count > 0, "Shared array \"", array.name, "\" is empty.");
    }
  }

  void define(Value value) {
    require(value && value.id < kernel_.types.size(), "Value %", value.id,
            " has no entry in the type table.");
    require(state_[value.id] == State::kUndefined, "Value %", value.id, " is defined twice.");
    state_[value.id] = State::kVisible;
  }

  ValueType use(Value value) const {
    require(value && value.id < kernel_.types.size(), "Value %", value.id,
            " has no entry in the type table.");
    require(state_[value.id] != State::kUndefined, "Value %", value.id,
            " is used before its definition.");
    require(state_[value.id] == State::kVisible, "Value %", value.id,
            " is used outside the block that defines it.");
    return kernel_.types[value.id];
  }

  void expect(Value value, ValueType type, std::string_view what) const {
    ValueType have = use(value);
    require(have == type, "The ", what, " is ", to_string(have), " where ", to_string(type),
            " is expected.");
  }

  void same_types(std::span<const Value> values, std::span<const Value> like,
                  std::string_view what) const {
    require(values.size() == like.size(), "The ", what, " has ", values.size(), " values where ",
            like.size(), " are expected.");
    for (size_t i = 0; i < values.size(); ++i) {
      require(kernel_.types[values[i].id] == kernel_.types[like[i].id], "Value ", i, " of the ",
              what, " is ", to_string(kernel_.types[values[i].id]), " where ",
              to_string(kernel_.types[like[i].id]), " is expected.");
    }
  }

  // Parameters are defined, the body is checked, then everything defined inside goes out of scope.
  void block(const Block& block, uint32_t depth) {
    require(depth <= kMaxDepth, "Blocks are nested deeper than ", kMaxDepth, ".");
    for (Value value : block.parameters) define(value);
    const Instruction* outer = current_;
    for (const Instruction& instruction : block.body) {
      current_ = &instruction;
      check(instruction, depth);
    }
    current_ = outer;
    for (Value value : block.yields) use(value);
    for (const Instruction& instruction : block.body) leave(instruction.results);
    leave(block.parameters);
  }

  void leave(std::span<const Value> values) {
    for (Value value : values) state_[value.id] = State::kGone;
  }

  void check(const Instruction& instruction, uint32_t depth) {
    require(instruction.opcode <= Opcode::kIf, "The opcode ",
            static_cast<uint32_t>(instruction.opcode), " does not exist.");
    const OpcodeInfo& row = info(instruction.opcode);
    count(instruction.operands.size(), row.operands, "operands");
    count(instruction.results.size(), row.results, "results");
    count(instruction.blocks.size(), row.blocks, "blocks");
    for (Value value : instruction.operands) use(value);
    if (instruction.opcode == Opcode::kFor) return loop(instruction, depth);
    if (instruction.opcode == Opcode::kIf) return branch(instruction, depth);
    for (Value value : instruction.results) define(value);
    straight(instruction);
  }

  void count(size_t have, uint8_t want, std::string_view what) const {
    require(want == OpcodeInfo::kAny || have == want, "The instruction has ", have, " ", what,
            " where ", static_cast<uint32_t>(want), " are expected.");
  }

  ValueType result(const Instruction& instruction) const {
    return kernel_.types[instruction.results[0].id];
  }

  void expect_result(const Instruction& instruction, ValueType type) const {
    require(result(instruction) == type, "The result is ", to_string(result(instruction)),
            " where ", to_string(type), " is expected.");
  }

  void straight(const Instruction& instruction) {
    switch (instruction.opcode) {
      case Opcode::kArith:
        return arith(instruction);
      case Opcode::kConstant:
        require(result(instruction).element != Type::kBool || instruction.immediates[0] <= 1,
                "A bool constant has the bits ", instruction.immediates[0], "; 0 and 1 exist.");
        constants_[instruction.results[0].id] = &instruction;
        return;
      case Opcode::kBuiltin:
        require(instruction.immediates[0] < kBuiltinCount, "The builtin ",
                instruction.immediates[0], " does not exist.");
        return expect_result(instruction, {Type::kU32, 1});
      case Opcode::kParam:
        require(instruction.immediates[0] < kernel_.params, "Argument ", instruction.immediates[0],
                " is read but ", kernel_.params, " are declared.");
        return expect_result(instruction, {Type::kU32, 1});
      case Opcode::kLoad:
      case Opcode::kStore:
        return slot(instruction);
      case Opcode::kSharedLoad:
      case Opcode::kSharedStore:
        return shared(instruction);
      case Opcode::kExtract:
      case Opcode::kCompose:
        return vector(instruction);
      case Opcode::kBarrier:
        return;
      default:
        return subgroup(instruction);
    }
  }

  void arith(const Instruction& instruction) const {
    require(scalar::info(instruction.arith).primitive && instruction.operands.size() <= 3,
            "The op ", scalar::info(instruction.arith).name,
            " is not a primitive one; lower bodies before they are inlined.");
    ValueType type = result(instruction);
    std::vector<Type> types;
    for (Value value : instruction.operands) {
      ValueType operand = use(value);
      require(operand.lanes == type.lanes, "An operand of ", to_string(operand),
              " meets a result of ", to_string(type), "; their lanes must be equal.");
      types.push_back(operand.element);
    }
    std::optional<Type> expected;
    try {
      expected = scalar::result_type(instruction.arith, types, type.element);
    } catch (const Error& error) {
      require(false, error.what());
    }
    expect_result(instruction, {*expected, type.lanes});
  }

  void slot(const Instruction& instruction) const {
    uint32_t index = instruction.immediates[0];
    require(index < kernel_.slots.size(), "Slot ", index, " does not exist.");
    const Slot& slot = kernel_.slots[index];
    expect(instruction.operands[0], {Type::kU32, 1}, "index");
    if (instruction.opcode == Opcode::kLoad) {
      require(slot.access != SlotAccess::kWrite, "Slot \"", slot.name, "\" is write-only.");
      expect_result(instruction, {slot.element, result(instruction).lanes});
    } else {
      require(slot.access != SlotAccess::kRead, "Slot \"", slot.name, "\" is read-only.");
      uint8_t lanes = use(instruction.operands[1]).lanes;
      expect(instruction.operands[1], {slot.element, lanes}, "stored value");
    }
  }

  void shared(const Instruction& instruction) const {
    uint32_t index = instruction.immediates[0];
    require(index < kernel_.shared.size(), "Shared array ", index, " does not exist.");
    const SharedArray& array = kernel_.shared[index];
    expect(instruction.operands[0], {Type::kU32, 1}, "index");
    if (instruction.opcode == Opcode::kSharedLoad) {
      expect_result(instruction, {array.element, result(instruction).lanes});
    } else {
      uint8_t lanes = use(instruction.operands[1]).lanes;
      expect(instruction.operands[1], {array.element, lanes}, "stored value");
    }
  }

  void vector(const Instruction& instruction) const {
    if (instruction.opcode == Opcode::kExtract) {
      ValueType operand = use(instruction.operands[0]);
      require(instruction.immediates[0] < operand.lanes, "Lane ", instruction.immediates[0], " of ",
              to_string(operand), " does not exist.");
      return expect_result(instruction, {operand.element, 1});
    }
    ValueType type = result(instruction);
    require(instruction.operands.size() == type.lanes && type.lanes > 1, "A ", to_string(type),
            " is composed of ", instruction.operands.size(), " values.");
    for (Value value : instruction.operands) expect(value, {type.element, 1}, "component");
  }

  void subgroup(const Instruction& instruction) const {
    ValueType type = use(instruction.operands[0]);
    uint32_t immediate = instruction.immediates[0];
    uint32_t width = kernel_.subgroup_size != 0 ? kernel_.subgroup_size : kMaxSubgroup;
    require(type.element != Type::kBool, "Subgroup operations do not take bool.");
    if (instruction.opcode == Opcode::kSubgroupAdd) {
      require(type.element != Type::kF32,
              "An f32 subgroup sum has no fixed order; build it from subgroup_shuffle_xor.");
    } else if (instruction.opcode == Opcode::kSubgroupBroadcast) {
      require(immediate < width, "Lane ", immediate, " is outside a subgroup of ", width, ".");
    } else if (instruction.opcode == Opcode::kSubgroupShuffleXor) {
      require(immediate > 0 && immediate < width, "The mask ", immediate, " is outside 1 to ",
              width - 1, ".");
    }
    expect_result(instruction, type);
  }

  void loop(const Instruction& instruction, uint32_t depth) {
    require(instruction.operands.size() >= 3, "A loop needs begin, end and step.");
    expect(instruction.operands[0], {Type::kU32, 1}, "begin");
    expect(instruction.operands[1], {Type::kU32, 1}, "end");
    expect(instruction.operands[2], {Type::kU32, 1}, "step");
    const Instruction* step = constants_[instruction.operands[2].id];
    require(step == nullptr || step->immediates[0] > 0, "The step is 0.");
    const Block& body = instruction.blocks[0];
    require(body.parameters.size() == instruction.operands.size() - 2, "The loop body takes ",
            body.parameters.size(), " values; an induction value and ",
            instruction.operands.size() - 3, " carried ones are expected.");
    block(body, depth + 1);
    require(kernel_.type(body.parameters[0]) == ValueType{Type::kU32, 1}, "The induction value is ",
            to_string(kernel_.type(body.parameters[0])), " where u32 is expected.");
    auto initial = std::span(instruction.operands).subspan(3);
    same_types(std::span(body.parameters).subspan(1), initial, "carried parameters");
    same_types(body.yields, initial, "loop's yield");
    for (Value value : instruction.results) define(value);
    same_types(instruction.results, initial, "loop's result");
  }

  void branch(const Instruction& instruction, uint32_t depth) {
    expect(instruction.operands[0], {Type::kBool, 1}, "condition");
    for (const Block& arm : instruction.blocks) {
      require(arm.parameters.empty(), "A branch takes no block parameters.");
      block(arm, depth + 1);
    }
    for (Value value : instruction.results) define(value);
    same_types(instruction.blocks[0].yields, instruction.results, "first branch's yield");
    same_types(instruction.blocks[1].yields, instruction.results, "second branch's yield");
  }

  // `reach`: how widely the decision to be here is shared.
  void control(const Block& block, Uniformity reach) {
    for (const Instruction& instruction : block.body) {
      current_ = &instruction;
      Uniformity decision = reach;
      if (instruction.opcode == Opcode::kBarrier) {
        require(reach == Uniformity::kWorkgroup,
                "A barrier stands in control flow that differs within the workgroup.");
      } else if (instruction.opcode >= Opcode::kSubgroupBroadcast &&
                 instruction.opcode <= Opcode::kSubgroupShuffleXor) {
        require(reach >= Uniformity::kSubgroup,
                "A subgroup operation stands in control flow that differs within the subgroup.");
      } else if (instruction.opcode == Opcode::kFor) {
        require(levels_[instruction.operands[2].id] == Uniformity::kWorkgroup,
                "The step of a loop differs within the workgroup.");
        for (size_t i = 0; i < 3; ++i) {
          decision = std::min(decision, levels_[instruction.operands[i].id]);
        }
      } else if (instruction.opcode == Opcode::kIf) {
        decision = std::min(decision, levels_[instruction.operands[0].id]);
      }
      for (const Block& inner : instruction.blocks) control(inner, decision);
    }
  }

  const Kernel& kernel_;
  std::vector<State> state_;
  std::vector<const Instruction*> constants_;  // by value id; others are null
  std::vector<Uniformity> levels_;
  const Instruction* current_ = nullptr;
};

}  // namespace

void verify(const Kernel& kernel) { Verifier(kernel).run(); }

}  // namespace meganeura::kir
