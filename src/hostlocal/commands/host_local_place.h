#pragma once

#include <string>

#include "base/result.h"

namespace croft::app {

/// A host-local directory as the command line names it.
struct HostLocalPlace {
  std::string path;  ///< `<data_dir>/<directory_name>`, without symbolic links
  std::string data_dir;
  std::string directory_name;
  std::string network;  ///< the CNI network; the directory's name unless another was given
};

/// Reads `--dir` and `--network` (which may be empty). The directory need not exist, its parent must. Errors: not_found
/// and others of os::resolved_path; invalid_argument naming the option.
[[nodiscard]] Result<HostLocalPlace> host_local_place(const std::string& directory, const std::string& network);

}  // namespace croft::app
