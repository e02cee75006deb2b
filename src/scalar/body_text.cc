// Printing and parsing of bodies:
//   (a0: f32, a1: f32) { %2 = constant f32 0.5; %3 = mul a0 %2; %4 = convert i32 %3; return %4, a1
//   }
#include <bit>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "scalar/scalar.h"

namespace meganeura::scalar {
namespace {

bool names_type(Op op) { return op == Op::kConstant || op == Op::kConvert || op == Op::kBitcast; }

std::string operand_text(const Body& body, uint32_t index) {
  return cat(index < body.arguments.size() ? "a" : "%", index);
}

// Finite numbers in the shortest form that reads back the same; NaN by its bits.
std::string constant_text(const Node& node) {
  switch (node.type) {
    case Type::kBool:
      return node.payload != 0 ? "true" : "false";
    case Type::kI32:
      return cat(static_cast<int32_t>(node.payload));
    case Type::kU32:
      return cat(node.payload);
    case Type::kF32:
      break;
  }
  const auto value = std::bit_cast<float>(node.payload);
  if (!std::isnan(value)) return cat(value);
  std::array<char, 8> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), node.payload, 16);
  return cat("0x", std::string_view(digits.data(), end.ptr));
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Body parse() {
    parse_arguments();
    expect("{");
    while (!accept("return")) {
      parse_node();
      expect(";");
    }
    if (!accept("}")) {
      do {
        body_.outputs.push_back(parse_operand());
      } while (accept(","));
      expect("}");
    }
    skip_space();
    if (position_ != text_.size()) refuse("the end");
    return std::move(body_);
  }

 private:
  void parse_arguments() {
    expect("(");
    if (accept(")")) return;
    do {
      expect(cat("a", body_.arguments.size()));
      expect(":");
      const Type type = parse_type();
      const auto index = static_cast<uint32_t>(body_.arguments.size());
      body_.nodes.push_back({.op = Op::kArgument, .type = type, .payload = index});
      body_.arguments.push_back(type);
    } while (accept(","));
    expect(")");
  }

  void parse_node() {
    expect(cat("%", body_.nodes.size()));
    expect("=");
    const auto op = op_from_name(peek());
    if (!op || *op == Op::kArgument) refuse("the name of a scalar op");
    take();
    Node node{.op = *op};
    if (names_type(*op)) node.type = parse_type();
    if (*op == Op::kConstant) {
      node.payload = parse_constant(node.type);
    } else {
      std::array<Type, 3> types{};
      const uint8_t arity = info(*op).arity;
      for (uint8_t i = 0; i < arity; ++i) {
        node.operands[i] = parse_operand();
        types[i] = body_.nodes[node.operands[i]].type;
      }
      try {
        node.type = result_type(*op, std::span(types.data(), arity), node.type);
      } catch (const Error& error) {
        fail(ErrorKind::kInvalidArgument, "Node %", body_.nodes.size(),
             " of the scalar body does not fit its operands: ", error.what());
      }
    }
    body_.nodes.push_back(node);
  }

  uint32_t parse_operand() {
    const std::string_view word = peek();
    uint32_t index = 0;
    const bool shaped = word.size() > 1 && (word[0] == 'a' || word[0] == '%');
    if (!shaped || !read_number(word.substr(1), index) || index >= body_.nodes.size() ||
        (word[0] == 'a') != (index < body_.arguments.size())) {
      refuse("an argument such as a0 or an earlier node such as %2");
    }
    take();
    return index;
  }

  Type parse_type() {
    const auto type = type_from_name(peek());
    if (!type) refuse("bool, i32, u32 or f32");
    take();
    return *type;
  }

  uint32_t parse_constant(Type type) {
    const std::string_view word = peek();
    uint32_t bits = 0;
    int32_t integer = 0;
    float number = 0;
    bool good = false;
    if (type == Type::kBool) {
      good = word == "true" || word == "false";
      bits = word == "true" ? 1 : 0;
    } else if (type == Type::kU32) {
      good = read_number(word, bits);
    } else if (type == Type::kI32) {
      good = read_number(word, integer);
      bits = static_cast<uint32_t>(integer);
    } else if (word.starts_with("0x")) {
      good = read_number(word.substr(2), bits, 16);
    } else {
      good = read_number(word, number);
      bits = std::bit_cast<uint32_t>(number);
    }
    if (!good) refuse(cat("a constant of type ", to_string(type)));
    take();
    return bits;
  }

  template <class T, class... Base>
  static bool read_number(std::string_view word, T& value, Base... base) {
    const auto result = std::from_chars(word.data(), word.data() + word.size(), value, base...);
    return result.ec == std::errc() && result.ptr == word.data() + word.size();
  }

  void skip_space() {
    const size_t next = text_.find_first_not_of(" \t\r\n", position_);
    position_ = next == std::string_view::npos ? text_.size() : next;
  }

  // The next word, or the next single character of punctuation.
  std::string_view peek() {
    skip_space();
    constexpr std::string_view kPunctuation = "(){}:,;=";
    const std::string_view rest = text_.substr(position_);
    if (!rest.empty() && kPunctuation.find(rest[0]) != std::string_view::npos) {
      return rest.substr(0, 1);
    }
    return rest.substr(0, rest.find_first_of(" \t\r\n(){}:,;="));
  }

  void take() { position_ += peek().size(); }

  bool accept(std::string_view word) {
    if (peek() != word) return false;
    take();
    return true;
  }

  void expect(std::string_view word) {
    if (!accept(word)) refuse(cat("'", word, "'"));
  }

  [[noreturn]] void refuse(std::string_view expected) {
    const std::string_view found = peek();
    fail(ErrorKind::kInvalidArgument, "The scalar body has ",
         found.empty() ? std::string("nothing") : cat("'", found, "'"), " at character ", position_,
         " where ", expected, " was expected.");
  }

  std::string_view text_;
  size_t position_ = 0;
  Body body_;
};

}  // namespace

std::string to_string(const Body& body) {
  std::string out = "(";
  for (size_t i = 0; i < body.arguments.size(); ++i) {
    out += cat(i == 0 ? "" : ", ", "a", i, ": ", to_string(body.arguments[i]));
  }
  out += ") { ";
  for (size_t i = body.arguments.size(); i < body.nodes.size(); ++i) {
    const Node& node = body.nodes[i];
    out += cat("%", i, " = ", info(node.op).name);
    if (names_type(node.op)) out += cat(" ", to_string(node.type));
    if (node.op == Op::kConstant) out += cat(" ", constant_text(node));
    for (uint8_t j = 0; j < info(node.op).arity; ++j) {
      out += cat(" ", operand_text(body, node.operands[j]));
    }
    out += "; ";
  }
  out += "return";
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    out += cat(i == 0 ? " " : ", ", operand_text(body, body.outputs[i]));
  }
  return out + " }";
}

Body parse_body(std::string_view text) { return Parser(text).parse(); }

}  // namespace meganeura::scalar
