#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "hostlocal/decide/audit.h"

// The facts that a look at a host-local directory needs, read from this machine. Nothing here changes anything.

namespace croft::edge {

inline constexpr std::size_t kHostLocalFilesMax = 1'000'000;  ///< of a network's directory

/// Reads a network's directory without its lock: a look must neither wait for an ADD nor make the lock file. Files come
/// and go by one rename or removal each, so what is read was true of each file, not of all at one moment. The reference
/// creates a file before it writes it, so a young empty file is no news. Errors: as path_error; permission_denied also
/// when a single file can't be read.
[[nodiscard]] Result<core::host_local::Directory> read_host_local_directory(const std::string& path);

/// Adds what a CNI cache directory (`<directory>/results`) says. Error: not_found when there is no such directory. One
/// that can't be read is a line in `unseen`.
[[nodiscard]] Result<void> read_cached_attachments(const std::string& directory, core::host_local::SignsOfLife& life);

/// Adds the addresses of all network namespaces; see os::survey_network_namespaces.
void look_at_namespaces(bool own_processes_are_all, core::host_local::SignsOfLife& life);

}  // namespace croft::edge
