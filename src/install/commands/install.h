#pragma once

#include "agent/daemon/daemon.h"
#include "base/result.h"
#include "install/commands/install_options.h"

namespace croft::app {

/// `croftd install`: Croft's files on this node, all or none of them (edge::Installation::write), where no pod that
/// lives would lose its address to another (NetworkTakeover); returns the exit code. Errors: invalid_argument and
/// refused_by_configuration, of what it was told, with the flag; refused_for_safety; of the files, the register and the
/// API.
[[nodiscard]] Result<int> install(InstallOptions options, const Daemon& daemon);

}  // namespace croft::app
