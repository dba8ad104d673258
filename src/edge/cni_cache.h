#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/audit.h"

namespace croft::edge {

struct CniCache {
  engine::LiveAttachments attachments;
  std::vector<std::string> unreadable;  ///< one line a file that could not be understood
};

/// Reads the attachments that the runtime knows from libcni's cache directory (by default /var/lib/cni; the files are
/// in its subdirectory `results`). An empty or cut file, as power loss leaves it, is named in `unreadable`; a missing
/// directory is not_found, never an empty list.
[[nodiscard]] Result<CniCache> read_cni_cache(const std::string& cache_directory);

}  // namespace croft::edge
