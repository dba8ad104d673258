#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "hostlocal/decide/assign.h"
#include "hostlocal/decide/audit.h"
#include "hostlocal/format/config.h"
#include "ipam/audit/runtime_comparison.h"

// The facts that a look at a host-local directory needs, read from this machine. Nothing here changes anything.

namespace croft::edge {

/// Adds what a CNI cache directory (`<directory>/results`) says. Error: not_found when there is no such directory. One
/// that can't be read is a line in `unseen`.
[[nodiscard]] Result<void> read_cached_attachments(const std::string& directory, core::host_local::SignsOfLife& life);

/// Adds the addresses of all network namespaces; see os::addresses_of_all_namespaces.
void add_namespace_addresses(bool own_processes_are_all, core::host_local::SignsOfLife& life);

/// Where the range sets of a network may be found.
struct SetSources {
  std::string config_file;  ///< --config; when it is given, nothing else is asked
  std::string network;
  std::vector<std::string> cache_directories;  ///< CNI caches; flannel keeps its delegates' configuration beside them
  std::string config_directory = "/etc/cni/net.d";
};

struct FoundSets {
  std::vector<core::host_local::RangeSet> sets;  ///< empty: no configuration was found
  std::string source;                            ///< the file they are from
  std::vector<std::string> unusable;             ///< files that could not be used, and why; the first few
};

/// The range sets of a network, from the file that was given. Else they are those of the newest entry of the runtime's
/// cache (`results`) that has this network's configuration, else of the newest one that flannel made (`flannel`), else
/// of the first file of the configuration directory. Error: the given file can't be used.
[[nodiscard]] Result<FoundSets> find_range_sets(const SetSources& sources);

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
