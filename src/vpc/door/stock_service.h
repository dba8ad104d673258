#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/grpc_handler.h"
#include "register/owner.h"
#include "store/store.h"
#include "vpc/decide/assign.h"
#include "vpc/decide/stock.h"
#include "vpc/door/stock_shown.h"
#include "vpc/format/messages.h"
#include "vpc/format/methods.h"
#include "vpc/use/stock_keeper.h"
#include "vpc/use/warm_stock.h"

// What UK8S' protocol asks of a stock of cloud addresses (docs/notes/warm-pool.md#grpc), without sockets.

namespace croft::edge {

/// What the service works with. References outlive it.
struct StockWorld {
  store::Store& cached;  ///< answers from memory, may be behind (ipam/use/batch.h)
  store::Store& direct;  ///< the same store itself
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
  /// What there is to show of the agent; what the service itself has heard is put to it. Null: nothing is shown.
  std::function<Result<wire::vpc::ShowAnswer>(std::deque<StockHeard> heard)> show = nullptr;
  /// Callers of Ping, AddPodNetwork and BorrowIP that speak an older version are refused; 0: nobody is
  /// (vpc/format/speech.h). DELs never are.
  std::uint32_t oldest_speech = 0;
};

/// How long ADDs took, in powers of two, from a quarter of a millisecond on; the last one takes all that are longer.
inline constexpr std::size_t kDelayBuckets = 18;
inline constexpr std::chrono::microseconds kDelayFirst{250};

/// Counts of this process since its start.
struct StockServiceTally {
  std::uint64_t adds = 0, adds_failed = 0, dels = 0, dels_failed = 0;
  std::uint64_t waited = 0;   ///< ADDs that found the stock empty
  std::uint64_t commits = 0;  ///< made for ADDs and DELs
  std::uint32_t waiting = 0;  ///< ADDs that wait now
  std::uint32_t waiting_max = 0;
  std::array<std::uint64_t, kDelayBuckets> add_delays{};  ///< of ADDs that got one, by how long they took
  std::chrono::nanoseconds add_delay_sum{};
};

/// An ADD, a DEL, and what came of them.
struct StockAdd {
  core::warm::Request request;
  core::warm::Assigned answer{};
};
struct StockDel {
  core::warm::Release release;
  std::vector<core::WarmAddress> answer{};
};

/// The calls of the protocol. ADDs and DELs that wait are decided one after the other and written in one commit, in the
/// order of their arrival; an ADD that finds the stock empty waits for the keeper. What only reads or writes records,
/// what the cloud or a peer takes part in, and ADDs for which an API server has to be asked have threads of their own
/// each: none waits for the other. Safe to call from several threads.
class StockService {
 public:
  /// Takes the answers of calls; called by threads of this object.
  using Sink = std::function<void(std::vector<os::GrpcAnswer>)>;

  StockService(const StockWorld& world, Sink sink);
  ~StockService() { stop(); }
  StockService(const StockService&) = delete;
  StockService& operator=(const StockService&) = delete;

  /// A call. What can be told at once is returned; the rest is answered through the sink. Never blocks.
  [[nodiscard]] std::optional<os::GrpcAnswer> take(wire::vpc::Method method, os::GrpcRequest request);
  /// What was taken since the last time goes on its way: calls that came together are written together.
  void go();

  /// Something came into the stock. Never blocks.
  void stocked();
  /// Takes no more calls. Those that wait for the stock are told that the agent ends; all others are still done.
  void stop();

  [[nodiscard]] StockServiceTally tally() const;

 private:
  /// An ADD or a DEL on its way.
  struct Moving {
    os::GrpcCallId id = 0;
    std::variant<StockAdd, StockDel> what{};
    Deadline limit;
    std::chrono::nanoseconds since{};
    std::shared_ptr<const std::atomic<bool>> hung_up;
    bool has_waited = false;
    bool is_old = false;    ///< of a client of version 0, which keeps its node's other calls waiting meanwhile
    bool may_hope = false;  ///< addresses were on their way when it was looked at last
    std::optional<engine::FixedAddresses::Wish> fixed{};  ///< of an ADD whose pod keeps its address
  };
  /// Anything else: answered by what it returns, or later where it returns nothing.
  struct Errand {
    std::function<std::optional<os::GrpcAnswer>()> run{};
    std::string name{};             ///< of two with one name the later one waits for the earlier; empty: none waits
    std::shared_ptr<Moving> add{};  ///< one that has not been looked at
  };
  /// Errands of a kind, for threads that do nothing else.
  struct Lane {
    std::deque<Errand> errands{};
    std::set<std::string> under_way{};  ///< names
    std::condition_variable comes{};
  };

  [[nodiscard]] std::optional<os::GrpcAnswer> take_add(os::GrpcRequest request);
  [[nodiscard]] std::optional<os::GrpcAnswer> take_del(os::GrpcRequest request);
  [[nodiscard]] std::optional<os::GrpcAnswer> queue(Moving moving);
  [[nodiscard]] std::optional<os::GrpcAnswer> queue(Lane& lane, os::GrpcCallId call, Errand errand);

  /// The refusal of a caller whose version does not go together with ours.
  [[nodiscard]] std::optional<os::GrpcAnswer> check_speech(os::GrpcCallId call, wire::vpc::Method method,
                                                           const wire::vpc::Speech& other);
  [[nodiscard]] std::optional<os::GrpcAnswer> check_node(const os::GrpcRequest& request,
                                                         const wire::vpc::BorrowRequest& read);
  void heard(std::string call, std::string who, std::string outcome);
  [[nodiscard]] os::GrpcAnswer show(os::GrpcCallId call);
  void move_on();
  void run_errands(Lane& lane);
  [[nodiscard]] static std::deque<Errand>::iterator next_of(Lane& lane);
  void serve(std::vector<std::unique_ptr<Moving>> batch);
  [[nodiscard]] std::optional<Result<void>> serve_alone(Moving& moving);
  [[nodiscard]] Error none_in_time() const;
  [[nodiscard]] static bool is_without_hope(const Moving& add, const Instant& now);
  void finish(std::unique_ptr<Moving>& moving, std::vector<os::GrpcAnswer>& answers);
  [[nodiscard]] os::GrpcAnswer done(Moving& moving);
  [[nodiscard]] std::optional<os::GrpcAnswer> add_fixed(Moving moving);
  void refuse_fixed();
  [[nodiscard]] os::GrpcAnswer attach(Moving& moving);
  [[nodiscard]] os::GrpcAnswer failed(const Moving& moving, const Error& error);
  [[nodiscard]] std::vector<std::unique_ptr<Moving>> next_batch();
  void tell_waiting();
  [[nodiscard]] engine::Context direct(Deadline limit) const;
  [[nodiscard]] engine::Context cached() const { return {world_.cached, world_.clock, world_.random}; }
  [[nodiscard]] Deadline limit_of(const os::GrpcRequest& request, std::chrono::nanoseconds span) const;

  template <class Write>
  [[nodiscard]] auto in_new_term(Write write);
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
  const engine::Writer writer_ = world_.keeper.writer();

  mutable std::mutex mutex_;  ///< guards all below but the threads
  std::condition_variable moving_comes_;
  bool stopping_ = false;
  bool stocked_ = false;
  bool is_serving_ = false;                      ///< a batch is being written: what comes meanwhile is the next one
  std::deque<std::unique_ptr<Moving>> queue_;    ///< in the order of their arrival
  std::deque<std::unique_ptr<Moving>> waiting_;  ///< ADDs, for the stock; in the order of their arrival
  std::chrono::nanoseconds look_again_{std::chrono::nanoseconds::max()};  ///< at the waiting ones, since boot
  Lane records_;                                                          ///< of the store alone
  Lane cloud_;                                                            ///< the cloud or a peer takes part
  Lane fixed_;  ///< ADDs of pods that may keep their address by name; named by these
  std::string told_skew_, told_stranger_;
  StockServiceTally tally_;
  std::deque<StockHeard> heard_;  ///< the last one first
  std::vector<std::thread> threads_;
};

}  // namespace croft::edge
