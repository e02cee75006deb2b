#include "runtime/environment.h"

#include <algorithm>
#include <string_view>

#include "base/format.h"
#include "base/platform_environment.h"

namespace meganeura {
namespace {

constexpr std::string_view kPrefix = "MEGANEURA_";

// Takes a value; false when it is no legal one.
using Setter = bool (*)(Environment&, std::string_view);

struct Variable {
  std::string_view name;
  std::string_view values;  // what is legal, for warnings
  Setter set;
};

constexpr Variable kVariables[] = {
    {"MEGANEURA_DEVICE", "an index, a part of a name or \"interpreter\"",
     [](Environment& environment, std::string_view value) {
       environment.device = value;
       return true;
     }},
    {"MEGANEURA_CACHE_DIR", "a directory",
     [](Environment& environment, std::string_view value) {
       environment.cache_directory = value;
       return true;
     }},
    {"MEGANEURA_VALIDATION", "0 or 1",
     [](Environment& environment, std::string_view value) {
       environment.validation = value == "1";
       return value == "1" || value == "0" || value.empty();
     }},
};

}  // namespace

Environment parse_environment(const std::vector<std::string>& variables) {
  Environment environment;
  for (const std::string_view text : variables) {
    if (!text.starts_with(kPrefix)) continue;
    const size_t split = std::min(text.find('='), text.size());
    const std::string_view name = text.substr(0, split);
    const std::string_view value = text.substr(std::min(split + 1, text.size()));
    const auto* row = std::ranges::find(kVariables, name, &Variable::name);
    if (row == std::end(kVariables)) {
      std::vector<std::string_view> known;
      for (const Variable& variable : kVariables) known.push_back(variable.name);
      environment.warnings.push_back(cat("The environment variable ", name,
                                         " is unknown and ignored; known are ", join(known), "."));
    } else if (!row->set(environment, value)) {
      environment.warnings.push_back(cat("The environment variable ", name, " is \"", value,
                                         "\" and ignored; it takes ", row->values, "."));
    }
  }
  return environment;
}

Environment read_environment() { return parse_environment(environment_variables()); }

}  // namespace meganeura
