#include "meganeura/error.h"

#include <array>
#include <utility>

#include "base/check.h"

namespace meganeura {

std::string_view to_string(ErrorKind kind) {
  static constexpr std::array<std::string_view, 7> kNames = {
      "invalid_argument", "shape",       "unsupported", "file",
      "out_of_memory",    "device_lost", "internal"};
  return kNames.at(static_cast<size_t>(kind));
}

Error::Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

void internal_fault(const char* file, int line, const std::string& message) {
  throw Error(ErrorKind::kInternal, cat("Internal fault at ", file, ":", line, ": ", message,
                                        " Please report this with the command that led to it."));
}

}  // namespace meganeura
