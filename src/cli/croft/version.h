#pragma once

#include <string>

namespace croft::app {

/// The output of `croft --version`: the version, the commit when the tree it was built from has one, the libraries.
[[nodiscard]] std::string version_text();

}  // namespace croft::app
