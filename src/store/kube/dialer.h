#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/http2_connection.h"
#include "store/kube/client.h"

namespace croft::store::kube {

/// The earlier of two deadlines.
[[nodiscard]] inline Deadline earlier(Deadline a, Deadline b) { return a.at_since_boot < b.at_since_boot ? a : b; }

/// Makes connections to the servers. Safe to use from several threads.
class Dialer {
 public:
  /// The options have been through check().
  Dialer(const ClientOptions& options, const Clock& clock);

  /// Error: as Client::make.
  [[nodiscard]] static Result<void> check(const ClientOptions& options);

  struct Dialed {
    std::shared_ptr<os::Http2Connection> connection;
    std::size_t server = 0;
  };
  /// A connection to the first server, from `first` on and around, that takes one. Each has the dial timeout. Those
  /// that are set aside come after the others. Errors: deadline_exceeded when the caller's time is over; else what the
  /// servers said, each named: unavailable, or permission_denied, invalid_argument, … when one of them said that.
  [[nodiscard]] Result<Dialed> dial(std::size_t first, Deadline deadline);

  /// For kAside nobody is sent to the server for whom there is another.
  void set_aside(std::size_t server);
  [[nodiscard]] const wire::kube::KubeServer& server(std::size_t index) const { return places_[index].server; }
  [[nodiscard]] std::size_t servers() const { return places_.size(); }
  [[nodiscard]] std::uint64_t dials() const { return dials_; }

 private:
  static constexpr std::chrono::nanoseconds kAside = std::chrono::seconds{10};

  struct Place {
    wire::kube::KubeServer server;
    std::shared_ptr<const os::TransportSecurity> security;  ///< none: http
  };

  [[nodiscard]] std::vector<std::size_t> order_from(std::size_t first, const Instant& now);
  [[nodiscard]] Result<std::shared_ptr<os::Http2Connection>> dial_one(const Place& place, Deadline deadline);

  std::vector<Place> places_;
  decltype(ClientOptions::look_up) look_up_;
  std::chrono::nanoseconds dial_timeout_;
  const Clock& clock_;
  std::atomic<std::uint64_t> dials_{0};
  std::mutex mutex_;
  std::vector<std::chrono::nanoseconds> aside_until_;  ///< guarded by mutex_: since boot
};

}  // namespace croft::store::kube
