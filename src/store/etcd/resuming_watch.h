#pragma once

#include <map>
#include <memory>

#include "store/etcd/kv.h"

namespace croft::store::etcd {

/// Watches that survive the loss of a connection: it opens another stream, maybe to another member, and goes on after
/// the last revision that was delivered. For one thread.
class ResumingWatch {
 public:
  /// `kv`, `clock` and `random` must outlive it.
  ResumingWatch(Kv& kv, const Clock& clock, Random& random) : kv_(kv), clock_(clock), random_(random) {}

  /// Adds a watch, or gives one that ended a new start. `watch.start_revision` must not be 0: begin after a list, at
  /// its revision + 1, else what happened before the first connection is lost.
  void watch(const WatchCreate& watch);
  /// No more updates of it.
  void forget(std::int64_t id);

  /// Waits for the next update that is not about the connection: `events`, `compacted`, `canceled`; `idle` at the
  /// deadline, also when no member could be reached (`reason` says why then). After `compacted` and `canceled` the
  /// watch has ended: list, and give it a new start. Errors: permission_denied, invalid_argument, corrupt.
  [[nodiscard]] Result<WatchUpdate> next(Deadline deadline);

  /// How often a stream was opened.
  [[nodiscard]] std::uint64_t connects() const { return connects_; }

 private:
  /// One watch of the caller. The server knows it by another id, a new one for each start. It keeps the id of a watch
  /// that it ended, and events of an old start may still be on their way.
  struct Watched {
    WatchCreate create;  ///< start_revision is where it would resume
    std::int64_t server_id = 0;
  };

  [[nodiscard]] Result<void> connect(Deadline deadline);
  [[nodiscard]] Result<void> start(WatchStream& stream, std::int64_t id);
  [[nodiscard]] bool note(WatchUpdate& update);
  void pause(Deadline deadline);

  Kv& kv_;
  const Clock& clock_;
  Random& random_;
  std::map<std::int64_t, Watched> watches_;               ///< by the caller's id
  std::map<std::int64_t, std::int64_t> id_of_server_id_;  ///< of the watches of `stream_` that have not ended
  std::int64_t last_server_id_ = 0;
  std::unique_ptr<WatchStream> stream_;
  std::chrono::nanoseconds pause_{};  ///< before the next connection
  std::uint64_t connects_ = 0;
};

}  // namespace croft::store::etcd
