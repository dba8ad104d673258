#pragma once

#include "agent/daemon/daemon.h"
#include "base/result.h"
#include "cni/format/network_list.h"

namespace croft::app {

/// Asks croft-ipam STATUS in this process with a network that is not in its place yet: its store's URL names drafts.
/// STATUS does not try the main plugin; one thing that `ptp` and `bridge` want of the register, a pool with a gateway,
/// is looked at too. Errors: unavailable, where the plugin says "try again later" (code 11), as without a pool;
/// invalid_argument, of the configuration; refused_by_configuration, of all else.
[[nodiscard]] Result<void> ask_plugin_status(const wire::cni::NetworkList& drafted, const Daemon& daemon);

}  // namespace croft::app
