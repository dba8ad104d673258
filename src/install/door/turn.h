#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "os/file_lock.h"

namespace croft::edge {

/// One at a time on a node: installs, takes back, or writes a kubeconfig anew. A lock in the directory of network
/// configurations, under a name that no runtime reads; the file is there only meanwhile.
class InstallTurn {
 public:
  explicit InstallTurn(const std::string& configurations) : lock_(configurations + "/croft-install.lock") {}
  InstallTurn(const InstallTurn&) = delete;
  InstallTurn& operator=(const InstallTurn&) = delete;
  ~InstallTurn();

  /// Errors: deadline_exceeded, when another has it; as os::FileLock::lock.
  [[nodiscard]] Result<void> begin(const Clock& clock, Deadline deadline) { return lock_.lock(clock, deadline); }

 private:
  os::FileLock lock_;
};

/// Whether an installation wrote the kubeconfig at this path, and was not taken back: by the record beside it. To be
/// sure of it for longer than the call takes, have the turn. Errors: those of the record.
[[nodiscard]] Result<bool> is_installed_kubeconfig(const std::string& path);

}  // namespace croft::edge
