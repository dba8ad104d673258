#include "os/load_library.h"

#include <dlfcn.h>

#include <fmt/format.h>

namespace croft::os {

Result<void> load_library(const std::string& name) {
  if (::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
  const char* const why = ::dlerror();
  return fail(ErrorCode::unavailable,
              fmt::format("cannot load {}: {}; install its package", name, why == nullptr ? "no reason" : why));
}

}  // namespace croft::os
