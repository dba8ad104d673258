#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "cni/format/conflist.h"
#include "cni/format/network.h"

namespace croft::app {

/// Asks croft-ipam STATUS in this process, with a configuration that is not in its place yet: its store's URL may name
/// drafts. It does not try the main plugin. Errors: unavailable, where the plugin says "try again later" (code 11), as
/// without a pool; invalid_argument, of the configuration; refused_by_configuration, of all else.
[[nodiscard]] Result<void> ask_plugin_status(wire::cni::Network network, const Clock& clock, Random& random);

/// `ptp` and `bridge` want something of the register beside: a pool with a gateway, for each family. Errors: of the
/// store; refused_by_configuration.
[[nodiscard]] Result<void> check_gateways(const wire::cni::NetworkList& drafted, const Clock& clock, Random& random);

}  // namespace croft::app
