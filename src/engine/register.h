#pragma once

#include <map>
#include <optional>
#include <vector>

#include "engine/transact.h"

namespace croft::engine {

/// A record that is there and cannot be read. Without a name: the whole kind cannot even be listed.
struct Unreadable {
  core::Key key;
  Error error;          ///< corrupt or newer_version
  bool beside = false;  ///< Calico's own record is whole, only what Croft keeps beside it is damaged
};

/// What was read for a look at the register that decides nothing.
struct Register {
  core::Snapshot snapshot;
  std::map<core::Key, store::Revision> revisions;
  std::vector<Unreadable> unreadable;
};

/// Reads everything wanted (records and lists with values), as of one moment if nothing is damaged. A damaged record
/// costs only itself: then lists are read page by page, and a page that has one is read record by record. Errors: those
/// of the store, but corrupt and newer_version.
[[nodiscard]] Result<Register> read_register(const Context& context, const core::Missing& wanted);

}  // namespace croft::engine
