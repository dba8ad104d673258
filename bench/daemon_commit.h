#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "processes.h"
#include "store/store.h"

namespace croft::bench {

/// What is left of an ADD in a process that has the store open: its commit. One at a time, so that it can be measured
/// in turns with what it is the limit of: how fast a disk is changes from minute to minute.
class BareCommit {
 public:
  virtual ~BareCommit() = default;
  [[nodiscard]] virtual Milliseconds once() = 0;
};

/// The commit of commit_sample.h. The store must be for this alone: its block is in no pool.
[[nodiscard]] std::unique_ptr<BareCommit> bare_commit(store::Store& store, const Clock& clock);

/// One etcd transaction on an open connection that compares and puts one record, as large as the block of such a
/// commit. `endpoint`: "http://127.0.0.1:2379". The record goes with the object.
[[nodiscard]] std::unique_ptr<BareCommit> bare_etcd_transaction(const std::string& endpoint, const Clock& clock);

/// The median of such commits on a store that others use; what they wrote is gone afterwards.
[[nodiscard]] Milliseconds commit_of_daemon(store::Store& store, const Clock& clock);

}  // namespace croft::bench
