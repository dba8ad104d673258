#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "agent/door/server.h"
#include "base/clock.h"
#include "base/result.h"
#include "http/grpc_server.h"
#include "register/owner.h"
#include "vpc/format/messages.h"
#include "vpc/use/stock_actor.h"
#include "vpc/use/stock_calls.h"
#include "vpc/use/stock_keeper.h"

// UK8S' protocol on a stock of cloud addresses (docs/notes/warm-pool.md#grpc): its calls, which know no transport, and
// the server of them.

namespace croft::edge {

/// The service's world. References outlive it.
struct StockWorld {
  const Clock& clock;
  Random& random;  ///< safe to call from several threads
  engine::StockKeeper& keeper;
  /// Takes one line for each ADD and DEL, without newline; never fails. From several threads.
  std::function<void(const std::string& line)> log = [](const std::string&) {};
  /// A pod has its address; told once it is durable. Never blocks. May be null.
  std::function<void(const core::PodIdentity& pod, const net::Address& address)> assigned = nullptr;
  /// Why a pod got none. Never blocks. May be null.
  std::function<void(const core::PodIdentity& pod, const Error& why)> refused = nullptr;
  engine::FixedAddresses* fixed = nullptr;                ///< null: no pod keeps its address
  std::function<Result<wire::vpc::ShowAnswer>()> show{};  ///< the agent and its stock, for people
};

/// The calls of the protocol. ADDs, DELs and what writes records are messages to the stock's actor; an ADD that finds
/// the stock empty waits there. Readers, calls of the cloud or a peer, and ADDs for which an API server has to be asked
/// have workers of their own each: none waits for the other. Safe to call from several threads.
class StockService {
 public:
  /// Takes the answers of calls; called by the actor's loop and by threads of this object.
  using Sink = std::function<void(std::vector<os::GrpcAnswer>)>;
  using Maybe = std::optional<os::GrpcAnswer>;  ///< nothing: it is answered later

  StockService(const StockWorld& world, Sink sink);
  ~StockService() { stop(); }

  /// A call. Returns an answer that can be told at once; the rest goes through the sink. Never blocks.
  [[nodiscard]] Maybe take(wire::vpc::Method method, os::GrpcRequest request);
  /// Sends the calls on their way that were taken since the last time: calls that came together are written together.
  void go() { actor_.go(); }
  /// Takes no more calls. Those that wait for the stock are told that the agent ends; all others are still done.
  void stop();

 private:
  [[nodiscard]] Maybe take_add(os::GrpcRequest request);
  [[nodiscard]] Maybe take_del(os::GrpcRequest request);
  [[nodiscard]] Maybe queue(engine::StockCall call);
  /// Has one of them do this, and the bytes sent that it answers, or an error as `refuse` says it; null: as most do.
  using Refuse = os::GrpcAnswer (*)(os::GrpcCallId call, const Error& error);
  [[nodiscard]] Maybe queue(engine::Workers& workers, os::GrpcCallId call, std::function<Result<std::string>()> errand,
                            Refuse refuse = nullptr);
  [[nodiscard]] Maybe write(os::GrpcCallId call, std::function<Result<std::string>()> message);
  [[nodiscard]] os::GrpcAnswer too_many(os::GrpcCallId call) const;
  void send(os::GrpcAnswer answer);

  void ended(std::vector<engine::StockCall> calls);
  void ended_outside(engine::StockCall call, std::optional<Error> error = {});
  [[nodiscard]] os::GrpcAnswer done(engine::StockCall& call, std::vector<std::string>& lines);
  [[nodiscard]] os::GrpcAnswer failed(const engine::StockCall& call, std::vector<std::string>& lines);
  [[nodiscard]] std::optional<Error> obstacle_of(const engine::StockCall& call) const;
  [[nodiscard]] Result<std::optional<engine::FixedAddresses::Promise>> promise_to(engine::StockCall& call);
  void add_fixed(engine::StockCall call);
  void give_promised(engine::StockCall call, const engine::FixedAddresses::Promise& promise);
  void attach(engine::StockCall call);
  [[nodiscard]] Deadline limit_of(const os::GrpcRequest& request, std::chrono::nanoseconds span) const;

  const StockWorld world_;
  const Sink sink_;
  engine::StockActor& actor_ = world_.keeper.actor();

  std::atomic<bool> stopping_ = false;

  engine::Workers reads_{1};  ///< of the store alone
  engine::Workers cloud_;     ///< the cloud or a peer takes part
  engine::Workers fixed_;     ///< the API is asked for ADDs of pods that may keep their address; named by these
};

/// Which methods a door lets in (docs/notes/warm-pool.md#grpc).
struct DoorRules {
  bool plugin = true;     ///< ADD, DEL and the records of pods; ShowStock
  bool operators = true;  ///< DescribePool, ListPodNetworkRecord, PushPool, PopPool, ListUnuse, ReleaseIP
  /// Ping, SupportMultiSubnet and BorrowIP are let in everywhere.
};

/// The gRPC server of a stock: UK8S' protocol, and gRPC's service of health. One door is the Unix socket of the node's
/// plugins and operators; others may be opened for peers.
class StockServer {
 public:
  /// Serves nobody yet.
  explicit StockServer(const StockWorld& world);
  /// As stop() with no patience.
  ~StockServer();

  /// Serves on this listener too, from now on.
  [[nodiscard]] Result<void> open_door(std::unique_ptr<os::GrpcListener> listener, const DoorRules& rules);

  /// Sets what gRPC's service of health says: "not serving" at first.
  void set_serving(bool serving) { health_.set_serving(serving); }
  /// Takes no more connections and calls; ADDs that wait for the stock are told that the agent ends, all others are
  /// done, until the deadline. The sockets' files are gone when it returns.
  void stop(Deadline deadline);

 private:
  class Door;
  void send(std::vector<os::GrpcAnswer> answers);

  const Clock& clock_;
  GrpcHealth health_;
  std::mutex mutex_;  ///< guards the doors
  std::vector<std::unique_ptr<Door>> doors_;
  StockService service_;
};

}  // namespace croft::edge
