#pragma once

#include <string>
#include <vector>

#include "cli/command_model.h"

namespace croft::app {

struct ManPage {
  std::string file;  ///< "croft-pool-list.1"
  std::string text;  ///< for man(1), in the macros of man(7)
};

/// A page for the program and one for each command below it. `section` is 1 for what people type, 8 for
/// daemons. The same tree and version give the same bytes.
[[nodiscard]] std::vector<ManPage> man_pages(const CommandModel& root, const std::string& version, int section = 1);

}  // namespace croft::app
