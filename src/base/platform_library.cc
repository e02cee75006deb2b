#include "base/platform_library.h"

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#include "base/format.h"

namespace meganeura {
namespace {

#ifdef _WIN32
void* open_library(const char* name) { return LoadLibraryA(name); }
void close_library(void* handle) { FreeLibrary(static_cast<HMODULE>(handle)); }
void* find_symbol(void* handle, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(handle), name));
}
std::string last_reason(const char* name) {
  return cat(name, ": system error ", static_cast<uint32_t>(GetLastError()));
}
#else
void* open_library(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }
void close_library(void* handle) { dlclose(handle); }
void* find_symbol(void* handle, const char* name) { return dlsym(handle, name); }
std::string last_reason(const char* name) {
  const char* reason = dlerror();
  return reason ? std::string(reason) : std::string(name);
}
#endif

}  // namespace

std::shared_ptr<SharedLibrary> SharedLibrary::open(std::span<const char* const> names,
                                                   std::string& why) {
  why.clear();
  for (const char* name : names) {
    if (void* handle = open_library(name)) {
      return std::shared_ptr<SharedLibrary>(new SharedLibrary(handle));
    }
    if (!why.empty()) why += "; ";
    why += last_reason(name);
  }
  return nullptr;
}

SharedLibrary::~SharedLibrary() { close_library(handle_); }

void* SharedLibrary::symbol(const char* name) const { return find_symbol(handle_, name); }

}  // namespace meganeura
