#pragma once

#include <string>
#include <string_view>

namespace meganeura {

// The text in double quotes; quotes, backslashes and control characters are escaped (\" \\ \x0a).
std::string quoted(std::string_view text);

}  // namespace meganeura
