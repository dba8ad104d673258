#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cni/door/skeleton.h"
#include "os/log_file.h"

namespace croft::app {

/// One job of a plugin's file.
struct Personality {
  std::string_view name;
  int (*serve)(const edge::CniHost& host);
  /// Answers arguments on the command line; null: they are not looked at, as by every CNI plugin.
  int (*answer_options)(std::span<char* const> options) = nullptr;
};

/// The main() of a CNI plugin: serves one call and ends the process. The name that the file is called by selects the
/// personality; a file with one has that one by any name. `libraries`: those that it was built with, for `--version`.
[[noreturn]] void plugin_main(int argc, char** argv, std::span<const Personality> personalities,
                              std::string_view libraries);

/// Where this process logs: `file` as the configuration names it (empty: `ipam.log`), below the directory
/// CROFT_LOG_DIRECTORY of the process's environment, else below /var/log/croft. The environment is the container
/// runtime's, which belongs to root; no configuration of a network reaches it. A value that is no absolute path:
/// nothing is logged.
[[nodiscard]] os::LogPlace log_place(const std::string& file);

}  // namespace croft::app
