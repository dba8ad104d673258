#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "os/endpoint.h"
#include "os/grpc_channel.h"
#include "store/etcd/client.h"

namespace croft::store::etcd {

/// The earlier of two deadlines.
[[nodiscard]] inline Deadline earlier(Deadline a, Deadline b) { return a.at_since_boot < b.at_since_boot ? a : b; }

/// Makes connections to the members. Safe to use from several threads.
class Dialer {
 public:
  Dialer(ClientOptions options, std::vector<os::Endpoint> endpoints, const Clock& clock)
      : options_(std::move(options)), endpoints_(std::move(endpoints)), clock_(clock) {}

  struct Dialed {
    std::shared_ptr<os::GrpcChannel> channel;
    std::size_t member = 0;
  };
  /// A connection to the first member, from `first` on and around, that takes one; with `ready` to one that has shown
  /// that it speaks HTTP/2. Each has the dial timeout.
  /// Errors: deadline_exceeded when the caller's time is over; else what the members said, each named: unavailable, or
  /// permission_denied, invalid_argument, … when one of them said that.
  [[nodiscard]] Result<Dialed> dial(std::size_t first, bool ready, Deadline deadline);

  [[nodiscard]] const ClientOptions& options() const { return options_; }
  [[nodiscard]] std::size_t members() const { return endpoints_.size(); }
  [[nodiscard]] const Clock& clock() const { return clock_; }
  [[nodiscard]] std::uint64_t dials() const { return dials_; }

 private:
  [[nodiscard]] Result<std::shared_ptr<os::GrpcChannel>> dial_one(const os::Endpoint& endpoint, bool ready,
                                                                  Deadline deadline);

  ClientOptions options_;
  std::vector<os::Endpoint> endpoints_;
  const Clock& clock_;
  std::atomic<std::uint64_t> dials_{0};
};

}  // namespace croft::store::etcd
