#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "http/http2_connection.h"
#include "os/file_descriptor.h"

namespace croft::os {

/// The state of one stream. All of it is guarded by the session's mutex.
struct Http2Stream::State {
  std::int32_t id = -1;

  // The request.
  std::string unsent;  ///< of the body
  std::size_t unsent_taken = 0;
  bool last_given = false;               ///< nothing follows `unsent`
  bool body_waits = false;               ///< nghttp2 was told that there is nothing to send now
  std::uint64_t begins_at = UINT64_MAX;  ///< where in the bytes of the connection; UINT64_MAX: not yet made

  // The answer.
  std::vector<Http2Header> headers;
  std::vector<Http2Header> trailers;
  std::size_t header_bytes = 0;
  bool in_trailers = false;
  bool has_headers = false;    ///< those of the answer itself, not of an interim one
  bool wants_headers = false;  ///< somebody waits for them
  std::string received;
  std::size_t received_bytes_max = 0;
  bool whole = false;   ///< the reader wants the end only: flow control goes on by itself
  bool ended = false;   ///< the peer has sent all
  bool closed = false;  ///< both sides have
  std::optional<Http2Failure> failure;

  std::condition_variable wake;

  [[nodiscard]] bool is_over() const { return ended || failure.has_value(); }
};

/// The part of a connection that knows nghttp2. Everything is called with `mutex` held.
class Http2Connection::Session {
 public:
  using State = Http2Stream::State;
  using Lock = std::unique_lock<std::mutex>;
  static constexpr std::size_t kReadBytes = std::size_t{32} << 10;

  Session(std::unique_ptr<Transport> transport, std::string peer, const Http2Options& options, const Clock& clock);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  std::mutex mutex;

  [[nodiscard]] Result<std::shared_ptr<State>> open(const std::vector<Http2Header>& headers, std::string body, bool end,
                                                    std::size_t received_bytes_max);
  [[nodiscard]] Result<void> write(State& state, std::string_view bytes, bool end);
  /// Takes what was received, and lets the peer send as much again.
  [[nodiscard]] std::string take_received(State& state);
  /// Nobody takes anything before the end: the peer may send on all the same, also for what came before this call.
  void take_in_whole(State& state);
  /// Resets the stream when it is not closed, and forgets it.
  void drop(const std::shared_ptr<State>& state);
  [[nodiscard]] bool nothing_sent(const State& state) const { return written_ <= state.begins_at; }
  /// Looks at what the peer has said meanwhile.
  [[nodiscard]] bool is_usable();
  [[nodiscard]] bool is_ready() const { return ready_; }
  [[nodiscard]] const std::optional<Error>& broken() const { return broken_; }
  [[nodiscard]] bool has_passed(Deadline deadline) const { return deadline.passed(clock_.now()); }

  /// Moves bytes, or sleeps while another thread does, until done() or the connection is broken (true), or the deadline
  /// (false). A thread that makes done() true notifies `wake`.
  template <class Done>
  [[nodiscard]] bool wait(Lock& lock, std::condition_variable& wake, Done done, Deadline deadline);

 private:
  friend struct Http2Callbacks;
  using Nanoseconds = std::chrono::nanoseconds;

  void start(const Http2Options& options);
  void refill();
  void flush();
  void read_available();
  void take_bytes(std::span<const std::byte> bytes);
  void drive(Lock& lock, Deadline deadline);
  void look_at_the_time();
  [[nodiscard]] Nanoseconds next_look() const;
  void break_connection(Error error);
  void fail_stream(State& state, Error error, bool surely_not_processed);
  void wake_all();
  void hand_over();
  [[nodiscard]] State* find(std::int32_t id);
  void forget_received(State& state);

  std::unique_ptr<Transport> transport_;
  std::string peer_;
  Http2Options options_;
  const Clock& clock_;
  FileDescriptor alarm_;  ///< eventfd: interrupts the poll of the driving thread
  nghttp2_session* session_ = nullptr;

  std::map<std::int32_t, std::shared_ptr<State>> streams_;
  std::size_t unread_bytes_ = 0;  ///< of all streams, those that are closed and not dropped included
  std::string out_;
  std::size_t out_taken_ = 0;
  /// Not filled, and not on the stack, all of whose pages a function touches as it begins.
  const std::unique_ptr<std::byte[]> in_ = std::make_unique_for_overwrite<std::byte[]>(kReadBytes);
  std::uint64_t queued_ = 0;   ///< bytes ever put into out_
  std::uint64_t written_ = 0;  ///< of these, taken by the transport

  bool more_to_read_ = false;  ///< not all that was there was read; the socket need not show it
  bool driving_ = false;       ///< some thread moves the bytes
  bool asleep_ = false;        ///< and sleeps on the socket, without the mutex
  std::vector<std::condition_variable*> waiters_;

  bool ready_ = false;     ///< the peer's SETTINGS came
  bool goodbye_ = false;   ///< GOAWAY came
  std::string violation_;  ///< what nghttp2 objected to
  std::optional<Error> broken_;
  Nanoseconds settings_by_{};
  Nanoseconds last_byte_at_{};
  std::optional<Nanoseconds> ping_sent_at_;
};

template <class Done>
bool Http2Connection::Session::wait(Lock& lock, std::condition_variable& wake, Done done, Deadline deadline) {
  constexpr Nanoseconds kSleepMax = std::chrono::hours{1};  // far deadlines would overflow the clock of wait_for
  bool in_time = true;
  bool first = true;
  while (!done() && !broken_) {
    const Nanoseconds now = clock_.now().since_boot;
    // The first time what is there already is taken, however late it is.
    if (!first && now >= deadline.at_since_boot) {
      in_time = false;
      break;
    }
    if (!driving_) {
      driving_ = true;
      flush();
      read_available();
      if (!done() && !broken_ && now < deadline.at_since_boot) drive(lock, deadline);
      flush();
      driving_ = false;
    } else {
      waiters_.push_back(&wake);
      const Nanoseconds left = deadline.at_since_boot > now ? deadline.at_since_boot - now : Nanoseconds{0};
      wake.wait_for(lock, std::min(left, kSleepMax));
      std::erase(waiters_, &wake);
    }
    first = false;
  }
  hand_over();
  return in_time;
}

}  // namespace croft::os
