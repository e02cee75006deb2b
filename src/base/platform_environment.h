// The process's environment variables.
#pragma once

#include <string>
#include <vector>

namespace meganeura {

// All variables as "NAME=value", in the system's order.
std::vector<std::string> environment_variables();

}  // namespace meganeura
