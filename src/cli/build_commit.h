#pragma once

#include <string>

namespace croft::app {

/// The commit that this program was built from, as a part of `--version`: " (commit 0123456789ab)", with "+changes"
/// behind it when the tree had some. Empty when the tree was none of git's.
[[nodiscard]] std::string commit_text();

}  // namespace croft::app
