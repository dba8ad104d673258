#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "base/texts.h"

namespace croft::os {

/// The connection that all calls of a client share, to one of several servers of one cluster. The servers are a ring:
/// one that fails is left for the next, and asked again after all others. One thread dials, the others wait for it.
/// Safe to use from several threads.
template <class Connection>
class SharedConnection {
 public:
  struct Use {
    std::shared_ptr<Connection> connection;
    std::size_t server = 0;
  };
  /// Connects to a server. Its error names it.
  using Dial = std::function<Result<std::shared_ptr<Connection>>(std::size_t server, Deadline deadline)>;

  /// Begins with a random server. `whom` is for messages: "member of etcd". The last two must outlive it.
  SharedConnection(std::string whom, std::size_t servers, Dial dial, const Clock& clock, Random& random)
      : whom_(std::move(whom)),
        servers_(servers),
        dial_(std::move(dial)),
        clock_(clock),
        random_(random),
        server_(random.next() % servers) {}

  /// The one that is there and `is_usable()`, or a new one. Errors: as dial().
  [[nodiscard]] Result<Use> get(Deadline deadline) {
    std::unique_lock lock(mutex_);
    while (is_dialing_) {
      const auto now = clock_.now();
      if (deadline.passed(now)) {
        return fail(ErrorCode::deadline_exceeded, "no connection to a {} was made in time", whom_);
      }
      const auto left = deadline.at_since_boot - now.since_boot;
      dialed_.wait_for(lock, std::min<std::chrono::nanoseconds>(left, std::chrono::hours{1}));
    }
    if (current_.connection && current_.connection->is_usable()) return current_;
    // A server that says goodbye wants its clients elsewhere.
    if (current_.connection) server_ = (server_ + 1) % servers_;
    current_ = {};
    is_dialing_ = true;
    const std::size_t first = server_;
    lock.unlock();
    auto made = dial(first, deadline, dial_);
    lock.lock();
    is_dialing_ = false;
    dialed_.notify_all();
    if (!made) return made;
    server_ = made->server;
    current_ = *made;
    return made;
  }

  /// A connection of one's own to the first server, from `first` on and around, that takes one. Errors: what the
  /// servers said: unavailable, or permission_denied, invalid_argument, … when one of them said that; deadline_exceeded
  /// when the caller's time is over.
  [[nodiscard]] Result<Use> dial(std::size_t first, Deadline deadline, const Dial& how) const {
    ErrorCode code = ErrorCode::unavailable;
    std::string reasons;
    for (std::size_t i = 0; i < servers_; ++i) {
      if (deadline.passed(clock_.now())) {
        return fail(ErrorCode::deadline_exceeded, "no {} could be reached in time{}", whom_, reasons);
      }
      const std::size_t server = (first + i) % servers_;
      auto connection = how(server, deadline);
      if (connection) return Use{*std::move(connection), server};
      const Error& error = connection.error();
      reasons += (reasons.empty() ? ": " : "; ") + error.message;
      // A file that is missing may be on its way: certificates are renewed while plugins run.
      const bool passes = is_transient(error.code) || error.code == ErrorCode::not_found;
      if (!passes) code = error.code;
    }
    const char* done = code == ErrorCode::unavailable ? "reached" : "used";
    return fail(code, "no {} can be {}{}", whom_, done, reasons);
  }

  /// The others that wait on it go on; new calls look for another server.
  void leave(const Use& use) {
    const std::lock_guard lock(mutex_);
    if (current_.connection != use.connection) return;
    current_ = {};
    server_ = (server_ + 1) % servers_;
  }

  /// A span and up to `percent` more, so that not all clients come back in step.
  [[nodiscard]] std::chrono::nanoseconds spread(std::chrono::nanoseconds span, std::uint64_t percent) {
    const std::lock_guard lock(mutex_);
    return span + span / 100 * static_cast<std::int64_t>(random_.next() % percent);
  }

 private:
  const std::string whom_;
  const std::size_t servers_;
  const Dial dial_;
  const Clock& clock_;

  std::mutex mutex_;  ///< guards all below
  Random& random_;
  Use current_;         ///< without connection: none
  std::size_t server_;  ///< where `current_` leads to, or where to begin
  bool is_dialing_ = false;
  std::condition_variable dialed_;
};

}  // namespace croft::os
