#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace croft::app {

/// Command lines that show a command of croft ("pool create"), as they are typed. Every command that does something has
/// one.
[[nodiscard]] std::vector<std::string> examples_of(std::string_view path);

}  // namespace croft::app
