#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/grpc_handler.h"
#include "register/owner.h"
#include "vpc/door/stock_shown.h"
#include "vpc/format/messages.h"
#include "vpc/format/methods.h"
#include "vpc/use/stock_actor.h"
#include "vpc/use/stock_keeper.h"

// UK8S' protocol on a stock of cloud addresses (docs/notes/warm-pool.md#grpc), without sockets.

namespace croft::edge {

/// The service's world. References outlive it.
struct StockWorld {
  const Clock& clock;
  Random& random;  ///< safe to call from several threads
  engine::StockKeeper& keeper;
  /// Takes one line for each ADD and DEL, without newline; never fails. From several threads.
  std::function<void(const std::string& line)> log = nullptr;
  /// A pod has its address; told once it is durable. Never blocks. May be null.
  std::function<void(const core::PodIdentity& pod, const net::Address& address)> assigned = nullptr;
  /// Why a pod got none. Never blocks. May be null.
  std::function<void(const core::PodIdentity& pod, const Error& why)> refused = nullptr;
  engine::FixedAddresses* fixed = nullptr;                       ///< null: no pod keeps its address
  std::chrono::nanoseconds wait_max = std::chrono::seconds{60};  ///< of an ADD that finds the stock empty
  /// Shows the agent; the calls that the service itself has heard are put to it. Null: nothing is shown.
  std::function<Result<wire::vpc::ShowAnswer>(std::deque<StockHeard> heard)> show = nullptr;
  /// Callers of Ping, AddPodNetwork and BorrowIP that speak an older version are refused; 0: nobody is
  /// (vpc/format/methods.h). DELs never are.
  std::uint32_t oldest_speech = 0;
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
  StockService(const StockService&) = delete;
  StockService& operator=(const StockService&) = delete;

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
  /// Has one of them do this, and its answer sent.
  [[nodiscard]] Maybe queue(engine::Workers& workers, os::GrpcCallId call, std::function<Maybe()> errand,
                            std::string name = {});
  [[nodiscard]] Maybe write(os::GrpcCallId call, std::function<os::GrpcAnswer()> message);
  void send(os::GrpcAnswer answer);

  /// The refusal of a caller whose version does not go together with ours.
  [[nodiscard]] Maybe check_speech(os::GrpcCallId call, wire::vpc::Method method, const wire::vpc::Speech& other);
  [[nodiscard]] Maybe check_node(const os::GrpcRequest& request, const wire::vpc::BorrowRequest& read);
  void heard(std::string call, std::string who, std::string outcome);
  [[nodiscard]] os::GrpcAnswer show(os::GrpcCallId call);
  void ended(std::vector<engine::StockCall> calls);
  void ended_outside(engine::StockCall call, std::optional<Error> error = {});
  [[nodiscard]] os::GrpcAnswer done(engine::StockCall& call);
  [[nodiscard]] os::GrpcAnswer failed(const engine::StockCall& call);
  void add_fixed(engine::StockCall call);
  void queue_again(engine::StockCall call);
  void attach(engine::StockCall call);
  [[nodiscard]] engine::Context direct(Deadline limit) const;
  [[nodiscard]] Deadline limit_of(const os::GrpcRequest& request, std::chrono::nanoseconds span) const;

  [[nodiscard]] os::GrpcAnswer record(os::GrpcCallId call, const core::WarmAddress& told);
  [[nodiscard]] os::GrpcAnswer forget(os::GrpcCallId call, const wire::vpc::RecordKey& key);
  [[nodiscard]] os::GrpcAnswer get_record(os::GrpcCallId call, const wire::vpc::RecordKey& key);
  [[nodiscard]] os::GrpcAnswer list_records(os::GrpcCallId call);
  [[nodiscard]] os::GrpcAnswer describe(os::GrpcCallId call);
  [[nodiscard]] os::GrpcAnswer borrow(os::GrpcCallId call, const wire::vpc::BorrowRequest& request,
                                      const std::string& certified, Deadline limit);
  [[nodiscard]] os::GrpcAnswer push(os::GrpcCallId call, const std::string& ip, Deadline limit);
  [[nodiscard]] os::GrpcAnswer pop(os::GrpcCallId call, const std::string& ip, Deadline limit);
  [[nodiscard]] os::GrpcAnswer list_unused(os::GrpcCallId call, Deadline limit);
  [[nodiscard]] os::GrpcAnswer release(os::GrpcCallId call, const std::vector<std::string>& ips, Deadline limit);

  const StockWorld world_;
  const Sink sink_;
  engine::StockActor& actor_ = world_.keeper.actor();

  std::mutex told_mutex_;  ///< guards the four below, which decide nothing
  std::string told_skew_, told_stranger_;
  std::deque<StockHeard> heard_;                         ///< the last one first
  std::set<std::shared_ptr<engine::StockCall>> asking_;  ///< ADDs that wait to be looked at by a worker of fixed_
  std::atomic<bool> stopping_ = false;

  engine::Workers reads_{1};  ///< of the store alone
  engine::Workers cloud_;     ///< the cloud or a peer takes part
  engine::Workers fixed_;     ///< ADDs of pods that may keep their address by name; named by these
};

}  // namespace croft::edge
