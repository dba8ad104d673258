#include "cli/croft_ipam/log_place.h"

#include <cstdlib>

namespace croft::app {

os::LogPlace log_place(const std::string& file) {
  const char* named = std::getenv("CROFT_LOG_DIRECTORY");
  return {named != nullptr && *named != '\0' ? named : "/var/log/croft", "ipam.log", file};
}

}  // namespace croft::app
