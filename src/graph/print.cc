// The text of graphs; parse.cc reads it.
#include <cstring>
#include <map>

#include "base/format.h"
#include "graph/elements_text.h"
#include "graph/node.h"
#include "graph/quoted.h"

namespace meganeura {
namespace {

std::string data_text(const Node& node, const Bytes& data) {
  const size_t width = info(node.dtype).block_bytes;
  const std::span<const std::byte> bytes = *data;
  const size_t count = bytes.size() / width;
  const auto element = [&](size_t i) {
    return element_text(node.dtype, bytes.subspan(i * width, width));
  };
  const bool splat =
      count > 0 && std::memcmp(bytes.data(), bytes.data() + width, bytes.size() - width) == 0;
  if (splat) return cat("splat ", element(0));
  std::vector<std::string> parts;
  for (size_t i = 0; i < count; ++i) parts.push_back(element(i));
  return cat("[", join(parts), "]");
}

std::string value_text(const Node& node, const AttributeValue& value) {
  struct Printer {
    const Node& node;
    std::string operator()(bool flag) const { return cat(flag); }
    std::string operator()(int64_t number) const { return cat(number); }
    std::string operator()(double number) const { return cat(number); }
    std::string operator()(const std::string& text) const { return quoted(text); }
    std::string operator()(const std::vector<int64_t>& list) const {
      return cat("[", join(list), "]");
    }
    std::string operator()(DType dtype) const { return cat(dtype); }
    std::string operator()(const Bytes& data) const { return data_text(node, data); }
  };
  return std::visit(Printer{node}, value);
}

// "name = value" of every field; a flag stands alone when it is set and is left out when not.
std::string attributes_text(const Node& node) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < node.attributes.size(); ++i) {
    const std::string_view name = node.row->fields[i].name;
    const bool* flag = std::get_if<bool>(&node.attributes[i]);
    if (flag == nullptr) {
      parts.push_back(cat(name, " = ", value_text(node, node.attributes[i])));
    } else if (*flag) {
      parts.emplace_back(name);
    }
  }
  return parts.empty() ? "" : cat(" {", join(parts), "}");
}

}  // namespace

std::string quoted(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (code < 0x20 || code == 0x7f) {
      out += {'\\', 'x', kDigits[code >> 4], kDigits[code & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string print_graph(std::span<const Output> outputs) {
  std::vector<Tensor> roots;
  for (const Output& output : outputs) roots.push_back(output.tensor);
  std::map<uint32_t, size_t> numbers;
  std::map<uint32_t, size_t> regions = {{0, 0}};
  std::string out;
  for (Tensor tensor : topological_order(roots)) {
    const Node& node = tensor.node();
    std::vector<std::string> operands;
    for (Tensor operand : node.operands) operands.push_back(cat("%", numbers.at(operand.id())));
    const size_t number = numbers.emplace(tensor.id(), numbers.size()).first->second;
    out += cat("%", number, " = ", node.row->name, "(", join(operands), ")", attributes_text(node),
               " : ", node.dtype, node.shape);
    const size_t region = regions.emplace(node.recompute, regions.size()).first->second;
    if (region != 0) out += cat(" recompute ", region);
    out += "\n";
  }
  for (const Output& output : outputs) {
    out += cat("output ", quoted(output.name), " %", numbers.at(output.tensor.id()), "\n");
  }
  return out;
}

}  // namespace meganeura
