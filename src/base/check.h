// Internal checks; they stay on in release builds.
#pragma once

#include "base/format.h"
#include "meganeura/error.h"

namespace meganeura {

// Throws Error(kInternal) with place and message.
[[noreturn]] void internal_fault(const char* file, int line, const std::string& message);

template <class... Parts>
[[noreturn]] void fail(ErrorKind kind, const Parts&... parts) {
  throw Error(kind, cat(parts...));
}

}  // namespace meganeura

// MG_CHECK(condition, parts...): a violated condition is a fault of this library, not of its user.
#define MG_CHECK(condition, ...)                                                      \
  do {                                                                                \
    if (!(condition)) [[unlikely]]                                                    \
      ::meganeura::internal_fault(__FILE__, __LINE__, ::meganeura::cat(__VA_ARGS__)); \
  } while (false)
