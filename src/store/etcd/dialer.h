#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/endpoint.h"
#include "http/grpc_channel.h"
#include "store/etcd/client.h"

namespace croft::store::etcd {

/// The earlier of two deadlines.
[[nodiscard]] inline Deadline earlier(Deadline a, Deadline b) { return a.at_since_boot < b.at_since_boot ? a : b; }

/// Makes connections to the members. Safe to use from several threads.
class Dialer {
 public:
  Dialer(ClientOptions options, std::vector<os::Endpoint> endpoints, const Clock& clock)
      : options_(std::move(options)),
        endpoints_(std::move(endpoints)),
        clock_(clock),
        aside_until_(endpoints_.size()) {}

  struct Dialed {
    std::shared_ptr<os::GrpcChannel> channel;
    std::size_t member = 0;
  };
  /// A connection to the first member, from `first` on and around, that takes one; with `ready` to one that has shown
  /// that it speaks HTTP/2. Each has the dial timeout. Those that are set aside come after the others.
  /// Errors: deadline_exceeded when the caller's time is over; else what the members said, each named: unavailable, or
  /// permission_denied, invalid_argument, … when one of them said that.
  [[nodiscard]] Result<Dialed> dial(std::size_t first, bool ready, Deadline deadline);

  /// For kAside nobody is sent to the member for whom there is another: its answers are none.
  void set_aside(std::size_t member);
  /// As it was configured.
  [[nodiscard]] std::string name_of(std::size_t member) const { return endpoints_[member].text(); }

  [[nodiscard]] const ClientOptions& options() const { return options_; }
  [[nodiscard]] std::size_t members() const { return endpoints_.size(); }
  [[nodiscard]] const Clock& clock() const { return clock_; }
  [[nodiscard]] std::uint64_t dials() const { return dials_; }

 private:
  static constexpr std::chrono::nanoseconds kAside = std::chrono::seconds{30};

  [[nodiscard]] std::vector<std::size_t> order_from(std::size_t first, const Instant& now);
  [[nodiscard]] Result<std::shared_ptr<os::GrpcChannel>> dial_one(const os::Endpoint& endpoint, bool ready,
                                                                  Deadline deadline);

  ClientOptions options_;
  std::vector<os::Endpoint> endpoints_;
  const Clock& clock_;
  std::atomic<std::uint64_t> dials_{0};
  std::mutex mutex_;
  std::vector<std::chrono::nanoseconds> aside_until_;  ///< guarded by mutex_: since boot
};

}  // namespace croft::store::etcd
