#pragma once

#include <string>

#include "base/clock.h"
#include "processes.h"
#include "store/store.h"

namespace croft::bench {

/// The median of the commit of an ADD (commit_sample.h) in a process that has the store open: what is left when nothing
/// is opened. What it wrote is gone afterwards.
[[nodiscard]] Milliseconds commit_of_daemon(store::Store& store, const Clock& clock);

/// The median of one etcd transaction on an open connection that compares and puts one record as large as the block of
/// such a commit. `endpoint`: "http://127.0.0.1:2379".
[[nodiscard]] Milliseconds bare_etcd_transaction(const std::string& endpoint, const Clock& clock);

}  // namespace croft::bench
