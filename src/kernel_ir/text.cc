#include "kernel_ir/text.h"

#include <bit>
#include <cmath>

#include "base/check.h"
#include "kernel_ir/opcode.h"

namespace meganeura::kir {
namespace {

constexpr std::array<std::string_view, 3> kAccessNames = {"read", "write", "readwrite"};

std::string quote(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 32 || byte == 127) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string hex(uint32_t bits) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) out += kHex[bits >> shift & 15];
  return out;
}

std::string constant_text(Type type, uint32_t bits) {
  switch (type) {
    case Type::kBool:
      return bits <= 1 ? cat(bits == 1) : hex(bits);
    case Type::kI32:
      return cat(static_cast<int32_t>(bits));
    case Type::kU32:
      return cat(bits);
    case Type::kF32: {
      float value = std::bit_cast<float>(bits);
      return std::isfinite(value) ? cat(value) : hex(bits);
    }
  }
  return hex(bits);
}

class Printer {
 public:
  Printer(const Kernel& kernel, bool renumber) : kernel_(kernel) {
    if (!renumber) return;
    names_.assign(kernel.types.size(), 0);
    number(kernel.body);
  }

  std::string kernel() {
    append("kernel ", quote(kernel_.name), " local(", join(kernel_.local_size), ") subgroup(",
           kernel_.subgroup_size, ") params(", kernel_.params, ") {\n");
    for (size_t i = 0; i < kernel_.slots.size(); ++i) {
      const Slot& slot = kernel_.slots[i];
      append("  slot ", i, " ", quote(slot.name), ": ", scalar::to_string(slot.element), " ",
             kAccessNames.at(static_cast<size_t>(slot.access)), "\n");
    }
    for (size_t i = 0; i < kernel_.shared.size(); ++i) {
      const SharedArray& array = kernel_.shared[i];
      append("  shared ", i, " ", quote(array.name), ": ", scalar::to_string(array.element), "[",
             array.count, "]\n");
    }
    block(kernel_.body, 1);
    append("}\n");
    return std::move(out_);
  }

  std::string line(const Instruction& instruction) {
    head(instruction);
    return std::move(out_);
  }

 private:
  template <class... Parts>
  void append(const Parts&... parts) {
    (append_to(out_, parts), ...);
  }

  void number(const Block& block) {
    for (Value value : block.parameters) names_.at(value.id) = ++last_name_;
    for (const Instruction& instruction : block.body) {
      for (const Block& inner : instruction.blocks) number(inner);
      for (Value value : instruction.results) names_.at(value.id) = ++last_name_;
    }
  }

  void value(Value value) { append("%", names_.empty() ? value.id : names_.at(value.id)); }

  void typed(Value value_to_print) {
    value(value_to_print);
    uint32_t id = value_to_print.id;
    append(": ", id < kernel_.types.size() ? to_string(kernel_.types[id]) : "?");
  }

  void values(std::span<const Value> list) {
    for (Value item : list) {
      append(" ");
      value(item);
    }
  }

  // Everything of an instruction before its blocks.
  void head(const Instruction& instruction) {
    for (size_t i = 0; i < instruction.results.size(); ++i) {
      if (i > 0) append(", ");
      typed(instruction.results[i]);
    }
    if (!instruction.results.empty()) append(" = ");
    const OpcodeInfo& row = info(instruction.opcode);
    append(row.name);
    switch (instruction.opcode) {
      case Opcode::kArith:
        append(" ", scalar::info(instruction.arith).name);
        break;
      case Opcode::kConstant:
        constant(instruction);
        return;
      case Opcode::kBuiltin: {
        uint32_t index = instruction.immediates[0];
        append(" ", index < kBuiltinCount ? to_string(static_cast<Builtin>(index)) : "?");
        return;
      }
      case Opcode::kFor:
        loop(instruction);
        return;
      default:
        if (row.immediates > 0) append(" ", instruction.immediates[0]);
    }
    values(instruction.operands);
  }

  void constant(const Instruction& instruction) {
    uint32_t id = instruction.results.empty() ? 0 : instruction.results[0].id;
    Type type = id < kernel_.types.size() ? kernel_.types[id].element : Type::kU32;
    append(" ", constant_text(type, instruction.immediates[0]));
  }

  void loop(const Instruction& instruction) {
    if (instruction.blocks.empty() || instruction.operands.size() < 3) {
      values(instruction.operands);
      return;
    }
    const std::vector<Value>& parameters = instruction.blocks[0].parameters;
    append(" ");
    if (!parameters.empty()) typed(parameters[0]);
    append(" in ");
    value(instruction.operands[0]);
    append(" to ");
    value(instruction.operands[1]);
    append(" step ");
    value(instruction.operands[2]);
    if (parameters.size() < 2) return;
    append(" carry(");
    for (size_t i = 1; i < parameters.size(); ++i) {
      if (i > 1) append(", ");
      typed(parameters[i]);
      append(" = ");
      if (i + 2 < instruction.operands.size()) value(instruction.operands[i + 2]);
    }
    append(")");
  }

  void block(const Block& block, size_t depth) {
    std::string indent(2 * depth, ' ');
    for (const Instruction& instruction : block.body) {
      append(indent);
      head(instruction);
      for (size_t i = 0; i < instruction.blocks.size(); ++i) {
        append(i == 0 ? " {\n" : cat(indent, "} else {\n"));
        this->block(instruction.blocks[i], depth + 1);
      }
      append(instruction.blocks.empty() ? "\n" : cat(indent, "}\n"));
    }
    if (block.yields.empty()) return;
    append(indent, "yield");
    values(block.yields);
    append("\n");
  }

  const Kernel& kernel_;
  std::vector<uint32_t> names_;  // by value id; empty: the ids themselves
  uint32_t last_name_ = 0;
  std::string out_;
};

}  // namespace

std::string to_string(const Kernel& kernel) { return Printer(kernel, true).kernel(); }

std::string describe(const Kernel& kernel, const Instruction& instruction) {
  return Printer(kernel, false).line(instruction);
}

std::vector<uint32_t> pack_text(std::string_view text) {
  std::vector<uint32_t> words((text.size() + 3) / 4);
  for (size_t i = 0; i < text.size(); ++i) {
    words[i / 4] |= static_cast<uint32_t>(static_cast<unsigned char>(text[i])) << (i % 4 * 8);
  }
  return words;
}

std::string unpack_text(std::span<const uint32_t> words) {
  std::string text;
  text.reserve(words.size() * 4);
  for (uint32_t word : words) {
    for (int i = 0; i < 4; ++i) text += static_cast<char>(word >> (i * 8) & 255);
  }
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

}  // namespace meganeura::kir
