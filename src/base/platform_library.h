// Shared libraries opened at run time.
#pragma once

#include <memory>
#include <span>
#include <string>

namespace meganeura {

// An open shared library; closed with the last copy of the pointer.
class SharedLibrary {
 public:
  // The first of the names that the system's search finds, or nullptr with the reasons in `why`.
  static std::shared_ptr<SharedLibrary> open(std::span<const char* const> names, std::string& why);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  // The address of an exported symbol, or nullptr.
  void* symbol(const char* name) const;

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace meganeura
