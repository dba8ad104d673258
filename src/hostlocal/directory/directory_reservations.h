#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "hostlocal/decide/audit.h"
#include "hostlocal/reservations.h"
#include "store/store_url.h"

namespace croft::store::hostlocal {

/// How long to wait for the lock unless said otherwise. The reference waits for ever; a runtime gives up after minutes,
/// and an error that names the process that has the lock is worth more.
inline constexpr std::chrono::seconds kLockWaitMax{90};

/// Opens and locks `<data_dir>/<network>`, the network's directory; a missing lock file is made. The lock is let go
/// with the object. `network` must be a CNI network name (no slash, not starting with a dot). `clock` must outlive the
/// object. Errors: as path_error gives them; deadline_exceeded, naming the process that holds the lock.
///
/// Beside the files it keeps an index, `<data_dir>/.croft/<network>.index`: see docs/adr/0005-host-local-index.md.
/// Where it can't be kept (read-only, a file system with coarse times), each call reads all files.
[[nodiscard]] Result<std::unique_ptr<Reservations>> open_reservations(
    const std::string& data_dir, const std::string& network, OpenMode mode, const Clock& clock,
    std::chrono::nanoseconds lock_wait = kLockWaitMax);

/// Whether ADD could work there now, without changing anything but making the directory: it can be made, written, and
/// has space.
[[nodiscard]] Result<void> check_directory(const std::string& data_dir, const std::string& network);

/// Reads a network's directory without its lock: a look must neither wait for an ADD nor make the lock file. Files come
/// and go by one rename or removal each, so what is read was true of each file, not of all at one moment. The reference
/// creates a file before it writes it, so a young empty file is no news. A file that can't be read, and a link, which
/// is not followed, has no holder. Errors: as path_error; invalid_argument for more than a million files.
[[nodiscard]] Result<core::host_local::Directory> read_directory(const std::string& path);

}  // namespace croft::store::hostlocal
