#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/transport.h"

namespace croft::os {

struct Http2Options {
  /// How long the peer has, from the connection on, to show that it speaks HTTP/2.
  std::chrono::nanoseconds settings_timeout = std::chrono::seconds{1};
  /// While somebody waits: after so long without a byte the peer is asked for one (PING) …
  std::chrono::nanoseconds ping_after = std::chrono::milliseconds{5500};
  /// … and after so long without an answer it counts as dead. 5 s is what grpc servers allow at the most often.
  std::chrono::nanoseconds ping_timeout = std::chrono::seconds{4};
  std::size_t header_bytes_max = 64U << 10;  ///< of one answer, headers and trailers together
  std::size_t streams_max = 1000;            ///< open at once; further ones are refused here
  std::size_t unsent_bytes_max = std::size_t{64} << 20;
  /// The bound of all answers together that nobody has taken yet. The one with which they become more fails:
  /// invalid_argument.
  std::size_t unread_bytes_max = std::size_t{256} << 20;
};

struct Http2Header {
  std::string name;  ///< lower case
  std::string value;
};

/// Why a stream came to an end before its answer was complete.
struct Http2Failure {
  Error
      error;  ///< unavailable, deadline_exceeded, corrupt (the peer breaks the protocol), invalid_argument (too large)
  /// True: the peer has seen none of it, or said that it did nothing with it. False: nobody knows.
  bool surely_not_processed = false;
};

/// One request on its way and its answer. Made by Http2Connection::open. One thread may read and another write.
/// Destroying it resets the stream when it is not over.
class Http2Stream {
 public:
  virtual ~Http2Stream() = default;

  /// Adds to the body; with `end` nothing follows. It is sent as far as the peer lets us, the rest when somebody waits.
  /// Error: unavailable when the stream has ended; invalid_argument when too much is waiting.
  [[nodiscard]] virtual Result<void> write(std::string_view bytes, bool end) = 0;

  /// The news of a stream.
  struct Received {
    std::string bytes;                    ///< of the body, in order; may be empty
    bool ended = false;                   ///< the answer is complete: headers(), trailers()
    std::optional<Http2Failure> failure;  ///< it will never be; `bytes` came before
    bool timed_out = false;               ///< the deadline came first; nothing else is set
    bool late = false;                    ///< the deadline has passed all the same: there is no time for more
  };
  /// Waits until there is a part of the body, or the end. After `ended` or `failure` it is not called again.
  [[nodiscard]] virtual Received read(Deadline deadline) = 0;
  /// Waits for the end; `bytes` is the whole body. At the deadline the stream is reset and the failure says so.
  [[nodiscard]] virtual Received read_all(Deadline deadline) = 0;

  /// Waits until the answer has begun: headers() are whole, but for interim ones (1xx); true. Or until it will never,
  /// which read() tells then; true as well. False at the deadline.
  [[nodiscard]] virtual bool wait_for_headers(Deadline deadline) = 0;

  /// Whether none of the request can have left this process. To be asked after a timeout.
  [[nodiscard]] virtual bool nothing_sent() const = 0;

  /// The headers of the answer, with `:status`; complete after wait_for_headers(), the first bytes of the body, or the
  /// end.
  [[nodiscard]] virtual std::vector<Http2Header> headers() const = 0;
  [[nodiscard]] virtual std::vector<Http2Header> trailers() const = 0;
};

/// The client's side of one HTTP/2 connection, over any Transport. It has no thread: whoever waits moves the bytes of
/// all streams. One of the waiting threads sleeps on the socket, the others until it has something for them or leaves.
/// Safe to use from several threads. When nobody waits nothing moves; what the peer sends meanwhile stays in the
/// kernel.
///
/// Once broken it stays broken: every stream fails with the reason, and new ones cannot be opened.
class Http2Connection {
 public:
  /// Takes over a connected transport and sends the preface; waits for nothing. `peer` is for messages.
  [[nodiscard]] static std::shared_ptr<Http2Connection> make(std::unique_ptr<Transport> transport, std::string peer,
                                                             const Http2Options& options, const Clock& clock);
  virtual ~Http2Connection() = default;

  /// Waits until the peer has shown that it speaks HTTP/2. Only then is a request worth sending that must not be lost.
  [[nodiscard]] virtual Result<void> wait_until_ready(Deadline deadline) = 0;

  /// Begins a request. `headers` have the pseudo-headers first. Without `end` more of the body follows with write().
  /// Errors, all of them before anything was sent: unavailable (broken, or the peer takes no new streams: GOAWAY),
  /// invalid_argument when the bounds of Http2Options would be passed.
  [[nodiscard]] virtual Result<std::shared_ptr<Http2Stream>> open(const std::vector<Http2Header>& headers,
                                                                  std::string body, bool end,
                                                                  std::size_t received_bytes_max) = 0;

  /// Whether open() can succeed: not broken, and the peer has not said goodbye.
  [[nodiscard]] virtual bool is_usable() = 0;
};

}  // namespace croft::os
