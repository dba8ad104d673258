#pragma once

#include "base/result.h"
#include "ipam/use/transact.h"

namespace croft::app {

/// That the register takes writes, before a node is made ready by it: a paused one refuses each ADD. Writes nothing.
/// A missing right is no error here. Errors: refused_by_configuration, naming the successor, of one that was moved;
/// unavailable, of one that is being copied or filled, or whose datastoreReady says no; corrupt, newer_version, of a
/// pause that cannot be understood; those of the store.
[[nodiscard]] Result<void> check_is_open(engine::Context& context);

}  // namespace croft::app
