#pragma once

#include <memory>
#include <vector>

#include "agent/door/lanes.h"
#include "agent/door/service.h"
#include "base/clock.h"
#include "base/result.h"
#include "http/grpc_server.h"
#include "http/unix_listener.h"

namespace croft::edge {

/// Protobuf's own log in this process is of a peer's faults, who is told himself, and may quote him: nothing of it is
/// written from now on.
void silence_protobuf();

/// The gRPC server of the agent, with gRPC's service of health, on
/// http/grpc_server.h. Bounds what one peer may send: 64 KiB a message (more is INVALID_ARGUMENT), 8 KiB of metadata,
/// 32 streams a connection, 512 connections. Connections without a call end after half a minute. Status and health are
/// answered whatever the store does. Silences protobuf's own log in this process.
class AgentServer {
 public:
  /// Serves from now on, in threads of its own. Calls for which the lanes have no room are answered RESOURCE_EXHAUSTED
  /// at once. `service` and `clock` must outlive it.
  [[nodiscard]] static Result<std::unique_ptr<AgentServer>> start(AgentService& service,
                                                                  std::unique_ptr<os::UnixListener> listener,
                                                                  const LanesOptions& lanes, const Clock& clock);
  /// As stop() with no patience.
  ~AgentServer();
  AgentServer(const AgentServer&) = delete;
  AgentServer& operator=(const AgentServer&) = delete;

  /// Takes no more connections and calls, lets those that are there end until the deadline, and stops serving.
  void stop(Deadline deadline);

  /// The answer of the health service from now on: "serving" at first.
  void set_serving(bool serving);

  [[nodiscard]] os::GrpcServer::Counts connections() const { return server_->counts(); }

 private:
  class Door;
  AgentServer(AgentService& service, std::unique_ptr<os::GrpcServer> server, const LanesOptions& lanes,
              const Clock& clock);
  void send(std::vector<AgentAnswer> answers);

  std::unique_ptr<os::GrpcServer> server_;
  Lanes lanes_;
  std::unique_ptr<Door> door_;
};

}  // namespace croft::edge
