// The one exception type of the library.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "meganeura/export.h"

namespace meganeura {

enum class ErrorKind {
  kInvalidArgument,  // a value the caller passed is wrong
  kShape,            // shapes or dtypes of operands do not fit
  kUnsupported,      // legal, but this device, file version or build cannot do it
  kFile,             // a file is missing, malformed, truncated or of the wrong kind
  kOutOfMemory,      // host or device memory would not suffice
  kDeviceLost,       // the device stopped answering; sticky for everything made from it
  kInternal,         // a fault of this library: please report it
};

// The kind's name in snake_case, such as "invalid_argument".
MEGANEURA_API std::string_view to_string(ErrorKind kind);

// Carries a kind and a message in full sentences that names the thing, the value and the remedy.
class MEGANEURA_API Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message);
  ErrorKind kind() const noexcept { return kind_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorKind kind_;
  std::string message_;
};

}  // namespace meganeura
