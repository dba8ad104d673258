#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "agent/door/service.h"
#include "base/clock.h"
#include "base/result.h"
#include "http/grpc_listener.h"
#include "http/grpc_server.h"
#include "http/unix_listener.h"

namespace croft::edge {

/// Check of gRPC's service of health: whether the agent serves, as a whole ("") and by the name of its service. Calls
/// come as bytes. Its Watch is not served: clients take that for "ask by Check". Safe to use from several threads.
class GrpcHealth {
 public:
  static constexpr std::string_view kCheckMethod = "/grpc.health.v1.Health/Check";

  [[nodiscard]] os::GrpcAnswer check(os::GrpcCallId call, std::string_view message) const;

  /// "Serving" at first.
  void set_serving(bool serving) { serving_ = serving; }

 private:
  std::atomic<bool> serving_ = true;
};

/// The gRPC server of the agent, with gRPC's service of health, on http/grpc_server.h. Bounds what one peer may send:
/// 64 KiB a message (more is INVALID_ARGUMENT), 8 KiB of metadata, 32 streams a connection, 512 connections.
/// Connections without a call end after half a minute. Status and health are answered whatever the store does.
class AgentServer {
 public:
  /// Serves from now on, in threads of its own. Calls for which the lanes have no room are answered RESOURCE_EXHAUSTED
  /// at once. `service` and `clock` must outlive it.
  [[nodiscard]] static Result<std::unique_ptr<AgentServer>> start(AgentService& service,
                                                                  std::unique_ptr<os::UnixListener> listener,
                                                                  const Clock& clock, std::size_t room = kLanesRoom);
  /// As stop() with no patience.
  ~AgentServer();
  AgentServer(const AgentServer&) = delete;
  AgentServer& operator=(const AgentServer&) = delete;

  /// Takes no more connections and calls, lets those that are there end until the deadline, and stops serving.
  void stop(Deadline deadline);

  /// The answer of the health service from now on: "serving" at first.
  void set_serving(bool serving) { health_.set_serving(serving); }

  [[nodiscard]] os::GrpcServer::Counts connections() const { return server_->counts(); }

 private:
  class Door;
  AgentServer(AgentService& service, std::unique_ptr<os::GrpcServer> server, const Clock& clock, std::size_t room);
  void send(std::vector<AgentAnswer> answers);

  std::unique_ptr<os::GrpcServer> server_;
  Lanes lanes_;
  GrpcHealth health_;
  std::unique_ptr<Door> door_;
};

}  // namespace croft::edge
