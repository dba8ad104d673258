#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/grpc_frame.h"
#include "http/grpc_listener.h"

namespace croft::os {

/// Names a call of one server, for as long as the server lives.
using GrpcCallId = std::uint64_t;

/// How many messages a method takes and gives.
enum class GrpcMethodKind : std::uint8_t {
  unknown,    ///< there is no such method
  unary,      ///< one there, one back
  streaming,  ///< any number, both ways
};

/// A unary call, whole.
struct GrpcRequest {
  GrpcCallId call = 0;
  std::string method;  ///< "/package.Service/Method"
  std::string message;
  Deadline deadline;  ///< when the caller stops waiting, as it said
  /// Whether the caller took the call back, or is gone. Readable from any thread.
  std::shared_ptr<const std::atomic<bool>> hung_up;
  /// Who called over a listener that knows its callers by certificates (TlsListener); null: over a Unix socket.
  std::shared_ptr<const GrpcPeer> peer;
  /// When the last sign of life went to the caller (GrpcServer::give_signs), since boot; 0: none did.
  std::shared_ptr<const std::atomic<std::chrono::nanoseconds>> told = nullptr;
};

/// The end of a call.
struct GrpcAnswer {
  GrpcCallId call = 0;
  GrpcCode code = GrpcCode::ok;
  std::string text;     ///< for people; with a code other than ok
  std::string message;  ///< of a unary call with code ok
};

/// What serves the calls of a GrpcServer. Called in the server's one thread: nothing here may block.
class GrpcHandler {
 public:
  virtual ~GrpcHandler() = default;
  [[nodiscard]] virtual GrpcMethodKind kind_of(std::string_view method) = 0;
  /// The same for a peer that was let in by its certificate. A handler that says nothing here serves none of them.
  [[nodiscard]] virtual GrpcMethodKind kind_for_peer(const GrpcPeer& /*peer*/, std::string_view /*method*/) {
    return GrpcMethodKind::unknown;
  }
  /// A unary call. It is to be answered, now or later, in this thread or another; who has hung up may be left without.
  virtual void on_request(GrpcRequest request) = 0;
  /// A streaming call begins.
  virtual void on_open(GrpcCallId call, std::string_view method) = 0;
  /// Of a streaming call. The next one comes once something was said to this one; many wait with the peer.
  virtual void on_message(GrpcCallId call, std::string message) = 0;
  /// The caller says nothing more, and waits.
  virtual void on_end(GrpcCallId call) = 0;
  /// The caller took a streaming call back that was not answered yet, or is gone.
  virtual void on_gone(GrpcCallId call) = 0;
  /// Everything that was there to be read at once has been: what came together can be passed on together.
  virtual void on_batch_end() {}
};

}  // namespace croft::os
