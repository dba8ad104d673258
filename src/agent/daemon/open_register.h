#pragma once

#include "base/result.h"
#include "ipam/use/transact.h"

namespace croft::app {

/// That the register takes writes, before a node is made ready by it: one that is closed refuses each ADD. Writes
/// nothing. What may not be asked is none of its errors, as rights are asked for by themselves. Errors:
/// refused_by_configuration, naming the other store, of one that was moved; unavailable, of one that is being filled or
/// moved, or whose datastoreReady says no, which may be over later; corrupt, newer_version, of a mark that nobody
/// understands; those of the store.
[[nodiscard]] Result<void> check_is_open(engine::Context& context);

}  // namespace croft::app
