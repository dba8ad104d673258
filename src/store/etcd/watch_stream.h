#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "os/grpc_channel.h"
#include "store/etcd/kv.h"

namespace croft::store::etcd {

/// A watch stream on a gRPC stream.
class GrpcWatchStream final : public WatchStream {
 public:
  /// `events_bytes_max` bounds what the pieces of one answer may come to.
  GrpcWatchStream(std::unique_ptr<os::GrpcStream> stream, std::size_t events_bytes_max)
      : stream_(std::move(stream)), events_bytes_max_(events_bytes_max) {}

  [[nodiscard]] Result<void> add(const WatchCreate& watch) override;
  [[nodiscard]] Result<void> cancel(std::int64_t id) override;
  [[nodiscard]] Result<WatchUpdate> next(Deadline deadline) override;

 private:
  /// The update a message makes; nothing when its other pieces are still to come.
  [[nodiscard]] Result<std::optional<WatchUpdate>> take(wire::etcd::WatchResponse response);
  [[nodiscard]] std::int64_t answered(std::int64_t id);

  struct Pieces {
    std::vector<Event> events;
    std::size_t bytes = 0;
  };

  std::unique_ptr<os::GrpcStream> stream_;
  std::size_t events_bytes_max_;
  std::map<std::int64_t, Pieces> pieces_;  ///< for the thread in next()
  std::optional<Error> lost_;              ///< for the thread in next()

  std::mutex mutex_;                     ///< keeps `unanswered_` in the order of sending
  std::deque<std::int64_t> unanswered_;  ///< watches whose creation was not yet answered, in the order of their sending
};

}  // namespace croft::store::etcd
