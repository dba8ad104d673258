#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/grpc_frame.h"
#include "http/http2_connection.h"
#include "http/transport.h"

namespace croft::os {

/// How a call ended.
struct GrpcStatus {
  GrpcCode code = GrpcCode::ok;
  std::string message;
  /// Whether the server itself said so, in an answer that is whole. Else it is our word for a failure on the way:
  /// unavailable, deadline_exceeded, internal (the peer does not speak gRPC), resource_exhausted (answer too large).
  bool from_server = false;
  /// True: no handler of the server can have seen the call. Never set when the server itself said so.
  bool surely_not_processed = false;
  [[nodiscard]] bool ok() const { return code == GrpcCode::ok; }
};

struct GrpcReply {
  GrpcStatus status;
  std::string message;  ///< with code ok
};

/// Signs of life that a server gives before its answer to a unary call (GrpcServer::give_signs).
struct GrpcSigns {
  std::function<bool(std::string_view message)> is_one;  ///< absent: none are given
  Deadline first;                                        ///< for the first of them, or the answer
  std::chrono::nanoseconds silence{};                    ///< the longest time to the next
};

struct GrpcOptions {
  Http2Options http2;
  std::size_t message_bytes_max = std::size_t{64} << 20;
};

/// A call with messages in both directions.
class GrpcStream {
 public:
  /// Sends a message, or queues what the peer does not take yet. Error: unavailable, invalid_argument as
  /// Http2Stream::write. May be called while another thread is in read().
  [[nodiscard]] Result<void> write(std::string_view message);

  struct Received {
    std::optional<std::string> message;
    std::optional<GrpcStatus> status;  ///< the end of the call, also when it is ok
  };
  /// The next message or the end; neither when the deadline came first. For one thread at a time.
  [[nodiscard]] Received read(Deadline deadline);

 private:
  friend class GrpcChannel;
  GrpcStream(std::shared_ptr<Http2Stream> stream, std::size_t message_bytes_max)
      : stream_(std::move(stream)), unframer_(message_bytes_max) {}
  std::shared_ptr<Http2Stream> stream_;
  GrpcUnframer unframer_;
  std::optional<GrpcStatus> end_;
};

/// gRPC calls over one connection, without compression. Safe to use from several threads; see Http2Connection for who
/// does the work.
class GrpcChannel {
 public:
  /// Connects and returns without waiting for the peer's first byte. Errors: as connect_transport.
  [[nodiscard]] static Result<std::shared_ptr<GrpcChannel>> connect(const Endpoint& endpoint,
                                                                    const TransportSecurity* security,
                                                                    const GrpcOptions& options, const Clock& clock,
                                                                    Deadline deadline);

  /// One message there, one back. `path` is "/package.Service/Method". `metadata` is sent as it is; names lower case.
  /// Waits until the deadline, and with `signs` no longer than they come.
  [[nodiscard]] GrpcReply call(std::string_view path, std::string_view message, Deadline deadline,
                               const std::vector<Http2Header>& metadata = {}, const GrpcSigns& signs = {});

  /// A call that stays open. Errors: as Http2Connection::open.
  [[nodiscard]] Result<std::unique_ptr<GrpcStream>> open_stream(std::string_view path,
                                                                const std::vector<Http2Header>& metadata = {});

  /// Waits until the peer has shown that it speaks HTTP/2: before a call that must not be lost.
  [[nodiscard]] Result<void> wait_until_ready(Deadline deadline) { return connection_->wait_until_ready(deadline); }
  [[nodiscard]] bool is_usable() const { return connection_->is_usable(); }

 private:
  GrpcChannel(std::shared_ptr<Http2Connection> connection, const Endpoint& endpoint, const GrpcOptions& options,
              const Clock& clock);
  [[nodiscard]] std::vector<Http2Header> headers(std::string_view path, const std::vector<Http2Header>& metadata) const;

  std::shared_ptr<Http2Connection> connection_;
  std::string authority_;
  std::string scheme_;
  GrpcOptions options_;
  const Clock& clock_;
};

}  // namespace croft::os
