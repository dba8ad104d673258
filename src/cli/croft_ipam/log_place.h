#pragma once

#include <string>

#include "os/log_file.h"

namespace croft::app {

/// Where this process logs: `file` as the configuration names it (empty: `ipam.log`), below the directory
/// CROFT_LOG_DIRECTORY of the process's environment, else below /var/log/croft. The environment is the container
/// runtime's, which belongs to root; no configuration of a network reaches it. A value that is no absolute path:
/// nothing is logged.
[[nodiscard]] os::LogPlace log_place(const std::string& file);

}  // namespace croft::app
