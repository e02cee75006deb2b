// What stands behind an output stream.
#pragma once

#include <cstdio>

namespace meganeura {

// Whether the stream writes to a terminal, where lines can be overwritten.
bool is_terminal(std::FILE* stream);

// The columns of the stream's terminal, or 0 when there is none or it does not say.
int terminal_columns(std::FILE* stream);

}  // namespace meganeura
