// Assembles a SPIR-V module: sections in the order the specification asks for, ids in order of
// first use, types and constants stated once.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include <spirv/unified1/spirv.hpp11>

namespace meganeura::spirv {

using Id = uint32_t;

class Writer {
 public:
  enum class Section : uint8_t { kDecorations, kGlobals, kFunctions };
  static constexpr size_t kSections = 3;

  Id new_id() { return next_id_++; }
  void add(Section section, spv::Op op, std::span<const uint32_t> operands);
  void add(Section section, spv::Op op, std::initializer_list<uint32_t> operands) {
    add(section, op, std::span(operands.begin(), operands.size()));
  }
  // An instruction of the function with a result; returns the result id.
  Id add_result(spv::Op op, Id type, std::span<const uint32_t> operands);
  Id add_result(spv::Op op, Id type, std::initializer_list<uint32_t> operands) {
    return add_result(op, type, std::span(operands.begin(), operands.size()));
  }

  // Declared once each, in order of their number.
  void require(spv::Capability capability) { capabilities_.insert(capability); }
  // The GLSL.std.450 instruction set; imported on first use.
  Id extended_instructions();
  void execution_mode(spv::ExecutionMode mode, std::initializer_list<uint32_t> operands);
  void set_addressing(spv::AddressingModel model) { addressing_ = model; }

  // A type instruction without result type (OpTypeInt 32 0), one id per distinct operands.
  Id type(spv::Op op, std::initializer_list<uint32_t> operands);
  // A type that decorations tell from an equal one: always a new id.
  Id distinct_type(spv::Op op, std::span<const uint32_t> operands);
  // A constant, one id per distinct (op, type, operands).
  Id constant(spv::Op op, Id type, std::span<const uint32_t> operands);
  // A module-scope variable; every variable is listed in the interface of the entry point.
  Id variable(Id pointer_type, spv::StorageClass storage);
  void decorate(Id target, spv::Decoration decoration,
                std::initializer_list<uint32_t> operands = {});
  void decorate_member(Id structure, uint32_t member, spv::Decoration decoration,
                       std::initializer_list<uint32_t> operands = {});

  // The whole module; `entry` is the function behind the entry point "main".
  std::vector<uint32_t> finish(Id entry) const;

 private:
  using Words = std::vector<uint32_t>;

  Id next_id_ = 1;
  Id extended_ = 0;
  spv::AddressingModel addressing_ = spv::AddressingModel::Logical;
  std::set<spv::Capability> capabilities_;
  std::vector<Words> execution_modes_;
  std::array<Words, kSections> sections_;
  std::map<Words, Id> unique_;
  std::vector<Id> interface_;
};

}  // namespace meganeura::spirv
