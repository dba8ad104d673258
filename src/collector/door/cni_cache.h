#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ipam/audit/runtime_comparison.h"

namespace croft::edge {

struct CniCache {
  core::audit::LiveAttachments attachments;
  /// Why paths of network namespaces say nothing here; then none of them counts as gone. Empty when they do.
  std::string blind_because;
};

/// Reads the attachments that the runtime knows from libcni's cache directories (by default /var/lib/cni; the files are
/// in its subdirectory `results`), and looks at the network namespace of each: libcni keeps an entry until a DEL of the
/// same network, so an entry alone does not say that its container lives. The entries that Multus keeps below
/// one by default (`multus/results`), with the names of the networks that it calls, come before it. `is_the_machine`:
/// this container is the node, take what is seen here for all there is. A missing directory is not_found, never an
/// empty list.
[[nodiscard]] Result<CniCache> read_cni_caches(const std::vector<std::string>& directories, bool is_the_machine);

}  // namespace croft::edge
