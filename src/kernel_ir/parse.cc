#include <bit>
#include <charconv>
#include <unordered_map>

#include "base/check.h"
#include "kernel_ir/opcode.h"

namespace meganeura::kir {
namespace {

constexpr uint32_t kMaxDepth = 64;

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

// A recursive-descent parser over the text; a token is a word, a number, a string or one sign.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) { kernel_.types.emplace_back(); }

  Kernel run() {
    expect("kernel");
    kernel_.name = string();
    expect("local");
    expect("(");
    for (size_t i = 0; i < 3; ++i) {
      if (i > 0) expect(",");
      kernel_.local_size[i] = integer();
    }
    expect(")");
    kernel_.subgroup_size = bracketed("subgroup");
    kernel_.params = bracketed("params");
    expect("{");
    while (accept("slot")) slot();
    while (accept("shared")) shared();
    block(kernel_.body, 0);
    expect("}");
    if (peek() != "") wrong("the end of the text");
    return std::move(kernel_);
  }

 private:
  [[noreturn]] void wrong(std::string_view expected) {
    std::string_view found = peek();
    fail(ErrorKind::kInvalidArgument, "Line ", line_, " of the kernel text: expected ", expected,
         " but found ", found.empty() ? "the end of the text" : cat("'", found, "'"), ".");
  }

  void skip_space() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '\n') {
        ++line_;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
      ++at_;
    }
  }

  std::string_view peek() {
    skip_space();
    if (at_ == text_.size()) return {};
    size_t end = at_;
    auto here = [&] { return end < text_.size() ? text_[end] : '\0'; };
    if (letter(here())) {
      while (letter(here()) || digit(here())) ++end;
    } else if (digit(here()) || here() == '-') {
      ++end;
      while (letter(here()) || digit(here()) || here() == '.' || exponent_sign(end)) ++end;
    } else if (here() == '"') {
      ++end;
      while (end < text_.size() && here() != '"' && here() != '\n') end += here() == '\\' ? 2 : 1;
      end = std::min(end + 1, text_.size());
    } else {
      ++end;
    }
    return text_.substr(at_, end - at_);
  }

  bool exponent_sign(size_t at) const {
    return at < text_.size() && (text_[at] == '-' || text_[at] == '+') && text_[at - 1] == 'e';
  }

  std::string_view next() {
    std::string_view token = peek();
    at_ += token.size();
    return token;
  }

  bool accept(std::string_view token) {
    if (peek() != token) return false;
    next();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) wrong(cat("'", token, "'"));
  }

  template <class T>
  T number(std::string_view what) {
    std::string_view token = peek();
    T value{};
    auto result = std::from_chars(token.data(), token.data() + token.size(), value);
    if (result.ec != std::errc{} || result.ptr != token.data() + token.size()) wrong(what);
    next();
    return value;
  }

  uint32_t integer() { return number<uint32_t>("an integer below 2^32"); }

  uint32_t bracketed(std::string_view word) {
    expect(word);
    expect("(");
    uint32_t value = integer();
    expect(")");
    return value;
  }

  static int hex_digit(char c) {
    if (digit(c)) return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  }

  std::string string() {
    std::string_view token = peek();
    if (token.size() < 2 || token.front() != '"' || token.back() != '"') wrong("a quoted name");
    std::string out;
    std::string_view inner = token.substr(1, token.size() - 2);
    for (size_t i = 0; i < inner.size(); ++i) {
      if (inner[i] != '\\') {
        out += inner[i];
      } else if (i + 1 < inner.size() && (inner[i + 1] == '"' || inner[i + 1] == '\\')) {
        out += inner[++i];
      } else if (i + 3 < inner.size() && inner[i + 1] == 'x' && hex_digit(inner[i + 2]) >= 0 &&
                 hex_digit(inner[i + 3]) >= 0) {
        out += static_cast<char>(hex_digit(inner[i + 2]) * 16 + hex_digit(inner[i + 3]));
        i += 3;
      } else {
        wrong("a quoted name with the escapes \\\", \\\\ and \\xNN");
      }
    }
    next();
    return out;
  }

  Type element() {
    auto type = scalar::type_from_name(peek());
    if (!type) wrong("a type (bool, i32, u32 or f32)");
    next();
    return *type;
  }

  ValueType type() {
    std::string_view token = peek();
    uint8_t lanes = 1;
    if (token.size() > 2 && token[token.size() - 2] == 'x') {
      lanes = token.back() == '2' ? 2 : token.back() == '4' ? 4 : 0;
      token.remove_suffix(2);
    }
    auto element = scalar::type_from_name(token);
    if (!element || lanes == 0) wrong("a type such as f32 or u32x4");
    next();
    return {*element, lanes};
  }

  void position(size_t have, std::string_view what) {
    if (peek() != cat(have)) wrong(cat("the number ", have, " of the ", what));
    next();
  }

  void slot() {
    position(kernel_.slots.size(), "slot");
    Slot slot;
    slot.name = string();
    expect(":");
    slot.element = element();
    if (accept("read")) {
      slot.access = SlotAccess::kRead;
    } else if (accept("write")) {
      slot.access = SlotAccess::kWrite;
    } else if (accept("readwrite")) {
      slot.access = SlotAccess::kReadWrite;
    } else {
      wrong("read, write or readwrite");
    }
    kernel_.slots.push_back(std::move(slot));
  }

  void shared() {
    position(kernel_.shared.size(), "shared array");
    SharedArray array;
    array.name = string();
    expect(":");
    array.element = element();
    expect("[");
    array.count = integer();
    expect("]");
    kernel_.shared.push_back(std::move(array));
  }

  // A value's number in the text, after its %.
  uint32_t name() {
    expect("%");
    return integer();
  }

  Value define(uint32_t name, ValueType type) {
    kernel_.types.push_back(type);
    Value value{static_cast<uint32_t>(kernel_.types.size() - 1)};
    if (!values_.emplace(name, value).second) {
      fail(ErrorKind::kInvalidArgument, "Line ", line_, " of the kernel text: %", name,
           " is defined a second time.");
    }
    return value;
  }

  Value use() {
    uint32_t number = name();
    auto found = values_.find(number);
    if (found == values_.end()) {
      fail(ErrorKind::kInvalidArgument, "Line ", line_, " of the kernel text: %", number,
           " is used before its definition.");
    }
    return found->second;
  }

  std::pair<uint32_t, ValueType> typed() {
    uint32_t number = name();
    expect(":");
    return {number, type()};
  }

  // Up to, not including, the closing brace.
  void block(Block& block, uint32_t depth) {
    if (depth > kMaxDepth) wrong(cat("blocks nested at most ", kMaxDepth, " deep"));
    while (peek() != "}" && peek() != "yield") {
      Instruction instruction = this->instruction(depth);
      block.body.push_back(std::move(instruction));
    }
    if (!accept("yield")) return;
    while (peek() == "%") block.yields.push_back(use());
  }

  Instruction instruction(uint32_t depth) {
    std::vector<std::pair<uint32_t, ValueType>> results;
    if (peek() == "%") {
      do {
        results.push_back(typed());
      } while (accept(","));
      expect("=");
    }
    auto opcode = opcode_from_name(peek());
    if (!opcode) wrong("an instruction");
    next();
    Instruction instruction;
    instruction.opcode = *opcode;
    if (*opcode == Opcode::kFor) {
      loop(instruction, depth);
    } else if (*opcode == Opcode::kIf) {
      branch(instruction, depth);
    } else {
      straight(instruction, results);
    }
    for (const auto& [number, type] : results) {
      Value value = define(number, type);
      instruction.results.push_back(value);
    }
    return instruction;
  }

  void straight(Instruction& instruction, std::span<const std::pair<uint32_t, ValueType>> results) {
    switch (instruction.opcode) {
      case Opcode::kArith: {
        auto op = scalar::op_from_name(peek());
        if (!op) wrong("an arithmetic op");
        instruction.arith = *op;
        next();
        break;
      }
      case Opcode::kConstant:
        if (results.size() != 1) wrong("one result of a constant");
        instruction.immediates[0] = constant(results[0].second.element);
        return;
      case Opcode::kBuiltin: {
        auto builtin = builtin_from_name(peek());
        if (!builtin) wrong("a builtin such as workgroup_x");
        instruction.immediates[0] = static_cast<uint32_t>(*builtin);
        next();
        return;
      }
      default:
        if (info(instruction.opcode).immediates > 0) instruction.immediates[0] = integer();
    }
    while (peek() == "%" && !starts_definition()) instruction.operands.push_back(use());
  }

  // Whether "%7:" or "%7 :" stands here: the next instruction rather than an operand.
  bool starts_definition() {
    size_t at = at_;
    uint32_t line = line_;
    next();
    next();
    bool result = peek() == ":";
    at_ = at;
    line_ = line;
    return result;
  }

  uint32_t constant(Type type) {
    if (peek().starts_with("0x")) return bits();
    switch (type) {
      case Type::kBool:
        if (accept("true")) return 1;
        if (accept("false")) return 0;
        wrong("true or false");
      case Type::kI32:
        return static_cast<uint32_t>(number<int32_t>("an i32"));
      case Type::kU32:
        return number<uint32_t>("a u32");
      case Type::kF32:
        return std::bit_cast<uint32_t>(number<float>("an f32"));
    }
    wrong("a constant");
  }

  uint32_t bits() {
    std::string_view token = peek().substr(2);
    uint32_t value = 0;
    auto result = std::from_chars(token.data(), token.data() + token.size(), value, 16);
    if (result.ec != std::errc{} || result.ptr != token.data() + token.size()) {
      wrong("32 bits in hexadecimal");
    }
    next();
    return value;
  }

  void loop(Instruction& instruction, uint32_t depth) {
    Block body;
    auto induction = typed();
    expect("in");
    instruction.operands.push_back(use());
    expect("to");
    instruction.operands.push_back(use());
    expect("step");
    instruction.operands.push_back(use());
    std::vector<std::pair<uint32_t, ValueType>> carried;
    if (accept("carry")) {
      expect("(");
      do {
        carried.push_back(typed());
        expect("=");
        instruction.operands.push_back(use());
      } while (accept(","));
      expect(")");
    }
    body.parameters.push_back(define(induction.first, induction.second));
    for (const auto& [number, type] : carried) body.parameters.push_back(define(number, type));
    expect("{");
    block(body, depth + 1);
    expect("}");
    instruction.blocks.push_back(std::move(body));
  }

  void branch(Instruction& instruction, uint32_t depth) {
    instruction.operands.push_back(use());
    for (std::string_view lead : {"", "else"}) {
      if (!lead.empty()) expect(lead);
      expect("{");
      Block arm;
      block(arm, depth + 1);
      expect("}");
      instruction.blocks.push_back(std::move(arm));
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  Kernel kernel_;
  std::unordered_map<uint32_t, Value> values_;  // by number in the text; looked up only
};

}  // namespace

Kernel parse_kernel(std::string_view text) { return Parser(text).run(); }

}  // namespace meganeura::kir
