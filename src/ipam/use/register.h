#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ipam/audit/unseen.h"
#include "ipam/use/transact.h"

namespace croft::engine {

/// The records read for a look at the register that decides nothing.
struct Register {
  core::Snapshot snapshot;
  std::map<core::Key, store::Revision> revisions;
  std::vector<core::audit::Unreadable> unreadable;
};

/// The kinds of a register that may be left unread where this account may not read them, each as a whole
/// (core::audit::Unreadable without a name, permission_denied).
using MayLack = std::set<core::Kind>;

/// Reads everything wanted (records and lists with values), as of one moment where the store can give so much at once
/// and all of it may be read. Errors: those of the store, but permission_denied of what it may lack.
[[nodiscard]] Result<Register> read_register(const Context& context, const core::Missing& wanted,
                                             const MayLack& may_lack = {});

}  // namespace croft::engine
