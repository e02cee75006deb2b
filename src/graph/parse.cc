// Reads the text of print.cc.
#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "graph/elements_text.h"
#include "graph/node.h"

namespace meganeura {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_number(char c) { return is_word(c) || c == '.' || c == '+' || c == '-' || c == ':'; }

// A position in the text and the tokens from there.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  int line() const { return line_; }

  [[noreturn]] void fail_expecting(std::string_view expected) const {
    const size_t at = token_start();
    const std::string_view rest = text_.substr(at, text_.find('\n', at) - at);
    fail_at(cat("expected ", expected,
                rest.empty() ? " instead of the end of the line"
                             : cat(" instead of \"", rest.substr(0, 24), "\"")));
  }

  [[noreturn]] void fail_at(std::string_view what) const {
    fail(ErrorKind::kInvalidArgument, "Line ", line_, ", column ", token_start() - line_start_ + 1,
         " of the graph text: ", what, ".");
  }

  // Skips blank lines; false at the end of the text.
  bool next_line() {
    while (at_ < text_.size()) {
      skip_spaces();
      if (at_ == text_.size() || text_[at_] != '\n') return at_ < text_.size();
      advance_line();
    }
    return false;
  }

  void end_line() {
    skip_spaces();
    if (at_ == text_.size()) return;
    if (text_[at_] != '\n') fail_expecting("the end of the line");
    advance_line();
  }

  bool accept(std::string_view token) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(token)) return false;
    const size_t end = at_ + token.size();
    if (is_word(token.back()) && end < text_.size() && is_word(text_[end])) return false;
    at_ = end;
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail_expecting(cat("\"", token, "\""));
  }

  std::string_view word(std::string_view expected) { return take(is_word, expected); }
  std::string_view number(std::string_view expected) { return take(is_number, expected); }

  int64_t integer(std::string_view expected) {
    const Scanner before = *this;
    const std::string_view token = number(expected);
    int64_t value = 0;
    const auto result = std::from_chars(token.data(), token.data() + token.size(), value);
    if (result.ec != std::errc() || result.ptr != token.data() + token.size()) {
      before.fail_expecting(expected);
    }
    return value;
  }

  DType dtype() {
    const Scanner before = *this;
    const auto found = dtype_from_name(word("a dtype"));
    if (!found) before.fail_expecting("a dtype");
    return *found;
  }

  std::vector<int64_t> integers() {
    std::vector<int64_t> list;
    expect("[");
    if (accept("]")) return list;
    do list.push_back(integer("an integer"));
    while (accept(","));
    expect("]");
    return list;
  }

  std::string quoted() {
    std::string out;
    expect("\"");
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
      const char c = text_[at_++];
      out += c == '\\' ? escaped() : c;
    }
    expect("\"");
    return out;
  }

 private:
  size_t token_start() const {
    const size_t at = text_.find_first_not_of(" \t\r", at_);
    return at == std::string_view::npos ? text_.size() : at;
  }

  void skip_spaces() { at_ = token_start(); }

  void advance_line() {
    line_start_ = ++at_;
    ++line_;
  }

  std::string_view take(bool (*belongs)(char), std::string_view expected) {
    skip_spaces();
    size_t end = at_;
    while (end < text_.size() && belongs(text_[end])) ++end;
    if (end == at_) fail_expecting(expected);
    const std::string_view token = text_.substr(at_, end - at_);
    at_ = end;
    return token;
  }

  char escaped() {
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\\')) return text_[at_++];
    unsigned code = 0;
    const char* digits = text_.data() + at_ + 1;
    const bool hex = text_.substr(at_).starts_with('x') && text_.size() >= at_ + 3 &&
                     std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2;
    if (!hex) fail_expecting("an escape (\\\", \\\\ or \\x and two hexadecimal digits)");
    at_ += 3;
    return static_cast<char>(code);
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
};

class Parser {
 public:
  Parser(std::string_view text, const OpRow* (*find)(std::string_view name))
      : scan_(text), find_(find) {}

  ParsedGraph parse() {
    while (scan_.next_line()) {
      if (scan_.accept("output")) {
        parse_output();
      } else {
        parse_node();
      }
      scan_.end_line();
    }
    return std::move(parsed_);
  }

 private:
  void parse_output() {
    std::string name = scan_.quoted();
    parsed_.outputs.push_back({std::move(name), value()});
  }

  Tensor value() {
    scan_.expect("%");
    const Scanner before = scan_;
    const int64_t number = scan_.integer("the number of a value");
    if (number < 0 || static_cast<size_t>(number) >= values_.size()) {
      before.fail_at(cat("%", number, " has not been defined above"));
    }
    return values_[static_cast<size_t>(number)];
  }

  void parse_node() {
    const Scanner start = scan_;
    const Place place = {"graph text", scan_.line()};
    scan_.expect("%");
    if (scan_.integer("the number of a value") != static_cast<int64_t>(values_.size())) {
      start.fail_at(cat("values are numbered in order, so %", values_.size(), " was expected"));
    }
    scan_.expect("=");
    const OpRow& row = op();
    std::vector<Tensor> operands = parse_operands();
    std::vector<AttributeValue> attributes = parse_attributes(row);
    scan_.expect(":");
    const Scanner type = scan_;
    const DType dtype = scan_.dtype();
    const std::vector<int64_t> extents = scan_.integers();
    const Tensor tensor = build_node(parsed_.graph, row, std::move(operands), std::move(attributes),
                                     place, parse_region());
    if (tensor.dtype() != dtype || !std::ranges::equal(tensor.shape(), extents)) {
      type.fail_at(cat("the type must be ", tensor.dtype(), tensor.shape()));
    }
    values_.push_back(tensor);
  }

  const OpRow& op() {
    const Scanner before = scan_;
    const std::string_view name = scan_.word("the name of an op");
    for (const OpRow& row : leaf_rows()) {
      if (row.name == name) return row;
    }
    const OpRow* row = find_(name);
    if (row == nullptr) before.fail_at(cat("there is no op \"", name, "\""));
    return *row;
  }

  std::vector<Tensor> parse_operands() {
    std::vector<Tensor> operands;
    scan_.expect("(");
    if (scan_.accept(")")) return operands;
    do operands.push_back(value());
    while (scan_.accept(","));
    scan_.expect(")");
    return operands;
  }

  // Fields stand in the row's order; flags may be missing.
  std::vector<AttributeValue> parse_attributes(const OpRow& row) {
    std::vector<AttributeValue> values;
    const bool braces = scan_.accept("{");
    bool first = true;
    for (const AttributeField& field : row.fields) {
      if (field.type == AttributeType::kBool) {
        const Scanner before = scan_;
        const bool set = braces && (first || scan_.accept(",")) && scan_.accept(field.name);
        if (!set) scan_ = before;
        first = first && !set;
        values.emplace_back(set);
        continue;
      }
      if (!braces) scan_.fail_expecting(cat("\"{\" and the attribute ", field.name));
      if (!first) scan_.expect(",");
      first = false;
      scan_.expect(field.name);
      scan_.expect("=");
      values.push_back(attribute_value(field, values));
    }
    if (braces) scan_.expect("}");
    return values;
  }

  AttributeValue attribute_value(const AttributeField& field,
                                 const std::vector<AttributeValue>& before) {
    switch (field.type) {
      case AttributeType::kInt:
        return scan_.integer("an integer");
      case AttributeType::kFloat:
        return float_value();
      case AttributeType::kString:
        return scan_.quoted();
      case AttributeType::kInts:
        return scan_.integers();
      case AttributeType::kDType:
        return scan_.dtype();
      case AttributeType::kData:
        return data(before);
      case AttributeType::kBool:
        break;
    }
    MG_CHECK(false, "flags have no value");
    return false;
  }

  double float_value() {
    const Scanner before = scan_;
    const auto value = number_from_text(scan_.number("a number"));
    if (!value) before.fail_expecting("a number");
    return *value;
  }

  // Elements of the dtype and for the shape in the fields before.
  Bytes data(const std::vector<AttributeValue>& before) {
    MG_CHECK(before.size() == 2, "data stands after dtype and shape");
    const auto dtype = std::get<DType>(before[0]);
    const Shape shape(std::get<std::vector<int64_t>>(before[1]));
    std::vector<std::byte> bytes;
    if (scan_.accept("splat")) {
      element(dtype, bytes);
      const std::vector<std::byte> one = bytes;
      const uint64_t size = storage_bytes(shape, dtype);
      if (size > kMaxSplatBytes) scan_.fail_at(cat("a constant of ", size, " bytes is too large"));
      bytes.reserve(size);
      while (bytes.size() < size) bytes.insert(bytes.end(), one.begin(), one.end());
      bytes.resize(size);
    } else {
      scan_.expect("[");
      if (!scan_.accept("]")) {
        do element(dtype, bytes);
        while (scan_.accept(","));
        scan_.expect("]");
      }
    }
    return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  }

  void element(DType dtype, std::vector<std::byte>& bytes) {
    const Scanner before = scan_;
    if (!append_element(dtype, scan_.number("an element"), bytes)) {
      before.fail_expecting(cat("a value of ", dtype));
    }
  }

  uint32_t parse_region() {
    if (!scan_.accept("recompute")) return 0;
    const Scanner before = scan_;
    const int64_t region = scan_.integer("the number of a region");
    if (region < 1 || region > kMaxRegion)
      before.fail_expecting("the number of a region, 1 or more");
    return static_cast<uint32_t>(region);
  }

  static constexpr int64_t kMaxRegion = 0x7fffffff;
  static constexpr uint64_t kMaxSplatBytes = uint64_t{1} << 31;

  Scanner scan_;
  const OpRow* (*find_)(std::string_view name);
  ParsedGraph parsed_;
  std::vector<Tensor> values_;
};

}  // namespace

ParsedGraph parse_graph(std::string_view text, const OpRow* (*find)(std::string_view name)) {
  return Parser(text, find).parse();
}

}  // namespace meganeura
