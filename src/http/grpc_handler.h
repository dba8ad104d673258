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

/// A unary call, whole. There are no others.
struct GrpcRequest {
  GrpcCallId call = 0;
  std::string method;  ///< "/package.Service/Method"
  std::string message;
  Deadline deadline;  ///< when the caller stops waiting, as it said
  /// Whether the caller took the call back, or is gone. Readable from any thread.
  std::shared_ptr<const std::atomic<bool>> hung_up;
  /// The caller, over a listener that knows its callers by certificates (TlsListener); null: over a Unix socket.
  std::shared_ptr<const GrpcPeer> peer;
  /// When the last sign of life went to the caller (GrpcServer::give_signs), since boot; 0: none did.
  std::shared_ptr<const std::atomic<std::chrono::nanoseconds>> told = nullptr;
};

/// The end of a call.
struct GrpcAnswer {
  GrpcCallId call = 0;
  GrpcCode code = GrpcCode::ok;
  std::string text;     ///< for people; with a code other than ok
  std::string message;  ///< with code ok
};

/// The service behind a GrpcServer. Called in the server's one thread: nothing here may block.
class GrpcHandler {
 public:
  virtual ~GrpcHandler() = default;
  /// Whether there is such a method.
  [[nodiscard]] virtual bool serves(std::string_view method) = 0;
  /// The same for a peer that was let in by its certificate. A handler that says nothing here serves none of them.
  [[nodiscard]] virtual bool serves_peer(const GrpcPeer& /*peer*/, std::string_view /*method*/) { return false; }
  /// A call. It is to be answered, now or later, in this thread or another; who has hung up may be left without.
  virtual void on_request(GrpcRequest request) = 0;
  /// Everything that was there to be read at once has been: what came together can be passed on together.
  virtual void on_batch_end() {}
};

}  // namespace croft::os
