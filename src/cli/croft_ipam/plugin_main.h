#pragma once

#include <span>
#include <string_view>

#include "cni/door/skeleton.h"

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

}  // namespace croft::app
