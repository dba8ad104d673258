#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/grpc_listener.h"
#include "http/grpc_session.h"
#include "http/unix_listener.h"

namespace croft::os {

struct GrpcServerOptions {
  GrpcSessionOptions session;
  std::size_t connections_max = 512;  ///< open at once; further ones are closed at once
  /// For the peer to prove itself, where the listener asks for that, and to show that it speaks HTTP/2.
  std::chrono::nanoseconds greeting_max = std::chrono::seconds{5};
  /// A connection of which the handler has no call for so long is closed, also while a request is half there or an
  /// answer half gone.
  std::chrono::nanoseconds idle_max = std::chrono::seconds{30};
};

/// A gRPC server on a Unix socket (UnixListener), or on TCP for peers with certificates (TlsListener). One thread moves
/// the bytes of all connections, and sleeps without a timer unless a connection may become too old. It knows no
/// protocol above gRPC; see GrpcSession for what a peer may do to it.
class GrpcServer {
 public:
  /// Listens, and serves nobody yet. `clock` must outlive it. Error: unavailable when descriptors are missing.
  [[nodiscard]] static Result<std::unique_ptr<GrpcServer>> make(std::unique_ptr<GrpcListener> listener,
                                                                const GrpcServerOptions& options, const Clock& clock);
  /// As stop() with no patience.
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  /// Serves from now on; once. `handler` must outlive the server, or its stop().
  void serve(GrpcHandler& handler);

  /// Ends calls, from any thread; the peers see it soon. However many there are: one wake-up, and none out of the
  /// handler itself. Calls that are gone are passed over.
  void answer(std::vector<GrpcAnswer> answers);
  /// Says `message` to the caller that waits, at `first` (since boot) and every kGrpcSignEvery from then on, until the
  /// call is answered. The thread that serves says it, whatever the others wait for. Only a client that reads a unary
  /// method as a streaming one takes more than the answer.
  void give_signs(GrpcCallId call, std::string message, std::chrono::nanoseconds first);

  /// Takes no more connections; the files of Unix sockets are gone when it returns.
  void stop_listening();
  /// As stop_listening(), and takes no more calls. Those that are there may be answered until the deadline; then their
  /// callers count as gone, and everything is closed. Returns when that has happened. Not from the handler.
  void stop(Deadline deadline);

  struct Counts {
    std::size_t open = 0;
    std::uint64_t accepted = 0;
    std::uint64_t foreign_users = 0;   ///< refused: may not connect
    std::uint64_t too_many = 0;        ///< refused: over connections_max
    std::uint64_t no_descriptors = 0;  ///< refused: the process or the machine had none left
    std::uint64_t unproven = 0;        ///< closed: gave no proof of who they are (of TLS), or not in time
  };
  [[nodiscard]] Counts counts() const;

 private:
  class Loop;
  explicit GrpcServer(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace croft::os
