#include "base/platform_environment.h"

#ifdef _WIN32
#include <stdlib.h>
#define MEGANEURA_ENVIRONMENT _environ
#elif defined(__APPLE__)
#include <crt_externs.h>
#define MEGANEURA_ENVIRONMENT (*_NSGetEnviron())
#else
#include <unistd.h>
#define MEGANEURA_ENVIRONMENT environ
#endif

namespace meganeura {

std::vector<std::string> environment_variables() {
  std::vector<std::string> variables;
  for (char** entry = MEGANEURA_ENVIRONMENT; entry && *entry; ++entry) {
    variables.emplace_back(*entry);
  }
  return variables;
}

}  // namespace meganeura
