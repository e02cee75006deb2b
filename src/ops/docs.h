#pragma once

#include <string>

namespace meganeura {

// The table of ops in Markdown: name, operands, attributes, gradient, one sentence.
std::string ops_markdown();

}  // namespace meganeura
