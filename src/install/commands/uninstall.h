#pragma once

#include "agent/daemon/daemon.h"
#include "base/result.h"
#include "install/commands/install_options.h"

namespace croft::app {

/// `croftd install --uninstall`: takes all of it back (edge::Installation::take_back), in its turn, where no network
/// comes to the front that would give what Croft's pods live with again; returns the exit code. Errors:
/// refused_for_safety, of such a network, but with `is_forced`; of the turn; of the files.
[[nodiscard]] Result<int> uninstall(const InstallOptions& options, const Daemon& daemon);

}  // namespace croft::app
