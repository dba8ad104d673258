#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "http/grpc_channel.h"
#include "store/etcd/kv.h"

namespace croft::store::etcd {

/// A watch stream on a gRPC stream.
class GrpcWatchStream final : public WatchStream {
 public:
  /// `events_bytes_max` bounds what the pieces of answers that are not whole may come to, together.
  GrpcWatchStream(std::unique_ptr<os::GrpcStream> stream, std::size_t events_bytes_max, const Clock& clock)
      : stream_(std::move(stream)), events_bytes_max_(events_bytes_max), clock_(clock) {}

  [[nodiscard]] Result<void> add(const WatchCreate& watch) override;
  [[nodiscard]] Result<void> cancel(std::int64_t id) override;
  [[nodiscard]] Result<WatchUpdate> next(Deadline deadline) override;

 private:
  /// The update a message makes; nothing when its other pieces are still to come.
  [[nodiscard]] Result<std::optional<WatchUpdate>> take(wire::etcd::WatchResponse response);
  [[nodiscard]] std::int64_t answered(std::int64_t id);
  [[nodiscard]] bool was_asked_for(std::int64_t id);
  void forget_pieces(std::int64_t id);

  struct Pieces {
    std::vector<Event> events;
    std::size_t bytes = 0;
  };

  std::unique_ptr<os::GrpcStream> stream_;
  std::size_t events_bytes_max_;
  const Clock& clock_;
  std::map<std::int64_t, Pieces> pieces_;  ///< for the thread in next()
  std::size_t pieces_bytes_ = 0;           ///< of all of them
  std::optional<Error> lost_;              ///< for the thread in next()

  std::mutex mutex_;                     ///< guards both below, and keeps `unanswered_` in the order of sending
  std::deque<std::int64_t> unanswered_;  ///< watches whose creation was not yet answered, in the order of their sending
  std::multiset<std::int64_t> asked_for_;  ///< and not canceled by the server; a taken id is refused alone
};

}  // namespace croft::store::etcd
