#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/duration_histogram.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "ipam/use/batch.h"
#include "ipam/use/transact.h"
#include "vpc/decide/assign.h"
#include "vpc/decide/supply.h"
#include "vpc/provider.h"
#include "vpc/use/stock_calls.h"
#include "vpc/use/stock_sources.h"

// The actor of a node's stock (docs/adr/0016-warm-pool.md#actor): one queue, and one loop that alone decides and
// writes. Threads that ask the cloud, the API, a peer or the wire (Workers) come back into the same queue with what
// they heard.

namespace croft::engine {

/// Threads for what takes as long as the world outside takes, in the order of arrival; each begins when it is needed.
class Workers {
 public:
  explicit Workers(std::size_t threads) : threads_max_(threads) {}
  ~Workers() { stop(); }

  /// A later errand of one name waits for the earlier; empty: none waits. `is_first`: before all that have not begun.
  /// False: too many wait, or the threads end.
  [[nodiscard]] bool run(std::function<void()> errand, std::string name = {}, bool is_first = false);
  /// Takes no more. Whether all were done within this time.
  [[nodiscard]] bool drain(std::chrono::nanoseconds patience);
  /// Takes no more, and returns once all are done.
  void stop();

 private:
  struct Errand {
    std::function<void()> run;
    std::string name;
  };
  void work();

  const std::size_t threads_max_;
  std::mutex mutex_;  ///< guards all below; the threads until it ends
  std::condition_variable comes_, ends_;
  std::deque<Errand> errands_;
  std::set<std::string> named_;  ///< of those under way
  std::size_t under_way_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

/// An ADD, a DEL, and what came of them.
struct StockAdd {
  core::warm::Request request;
  core::warm::Assigned answer{};
};
struct StockDel {
  core::warm::Release release;
  std::vector<core::StockAddress> answer{};
};

/// One of them on its way.
struct StockCall {
  std::uint64_t id = 0;  ///< its caller's number
  std::variant<StockAdd, StockDel> what{};
  Deadline limit;
  std::chrono::nanoseconds since{};
  std::shared_ptr<const std::atomic<bool>> hung_up{};
  bool has_waited = false;
  bool is_old = false;       ///< of a client of version 0, which keeps its node's other calls waiting meanwhile
  bool may_hope = false;     ///< addresses were on their way when it was looked at last
  bool was_deleted = false;  ///< a DEL of its container ended it
  std::optional<FixedAddresses::Wish> fixed{};  ///< of an ADD whose pod keeps its address
  std::optional<Error> error{};                 ///< once it has ended: why nothing came of it
};

/// Counts of this process since its start.
struct StockCallTally {
  std::uint64_t adds = 0, adds_failed = 0, dels = 0, dels_failed = 0;
  std::uint64_t waited = 0;      ///< ADDs that found the stock empty
  std::uint64_t commits = 0;     ///< made for ADDs and DELs
  std::uint32_t waiting = 0;     ///< ADDs that wait now
  DurationHistogram add_delays;  ///< of ADDs that got one
};

/// How often what happened, since it began.
struct KeeperTally {
  std::uint64_t allocated = 0, given_back = 0, borrowed = 0, lent = 0, conflicts = 0, quarantined = 0;
  std::uint64_t collected = 0;           ///< of pods that were gone
  std::uint64_t lost = 0;                ///< of the stock, and the cloud did not have them
  std::chrono::nanoseconds last_fill{};  ///< from the question to the stock, of the last that brought something
};

/// The loop's figures, for readers that do not wait for it.
struct StockSeen {
  StockCallTally calls;
  KeeperTally keeper;
  std::string wish;  ///< of the last round, for people
  std::chrono::nanoseconds grow_not_before{};
  std::optional<Error> last_problem;  ///< what kept the last attempt to get more from bringing any
  std::optional<cloud::Interface> interface;
};

/// Beside the records, what the loop alone reads and writes.
struct StockState {
  /// Epochs of the store (store::Store::epoch), or this: none.
  static constexpr std::uint64_t kNoEpoch = ~std::uint64_t{0};
  StockSeen seen;
  std::uint64_t looked_at = kNoEpoch;            ///< StockActor::may_give()
  std::uint64_t term = 0;                        ///< StockActor::writer()
  std::uint64_t compared_with_cloud = kNoEpoch;  ///< by the last look that the cloud answered
  std::uint32_t waiting = 0;                     ///< attachments that wait because the stock is empty
  std::set<std::string> asking;                  ///< intents of calls that are being made now
  std::set<std::string> leaving;                 ///< addresses of calls that are being made now
  std::optional<net::Prefix> range;              ///< of the subnet, once the cloud told it
  bool is_due = true;                            ///< a round of the keeper
  bool is_looking = false;                       ///< before serving
  bool read_anew = false;                        ///< another one took a term
  bool look_again = false;                       ///< the look before serving has left doubts
  bool gave_back = false;                        ///< the subnet has addresses again
  bool stocked = false;                          ///< something came into the stock: those that wait are looked at
};

class StockActor {
 public:
  /// `world` outlives it. `looks_first`: nothing is given before a look (StockKeeper::look_before_serving).
  StockActor(const KeeperWorld& world, bool looks_first);
  ~StockActor();

  // ---- messages, from any thread

  /// Has the loop do this, and does not wait for it.
  void post(std::function<void()> message) const;
  /// Has the loop do this, and waits for its answer. Within the loop it is done at once.
  template <class F>
  auto ask(F message) const;
  /// Decides by a plan with its arguments (core::warm::planned) and commits in the loop, in this actor's term. Where
  /// that is over the decision fails, and the next one is taken.
  template <class Plan, class... Arguments>
  [[nodiscard]] auto decide(Plan plan, const Arguments&... arguments);
  /// The same of what rests on the records alone: it is done again in the next term.
  template <class Plan, class... Arguments>
  [[nodiscard]] auto decide_in_any_term(Plan plan, const Arguments&... arguments);
  /// The same where may_give(); else unavailable.
  template <class Plan, class... Arguments>
  [[nodiscard]] auto decide_giving(Plan plan, const Arguments&... arguments);
  /// As of the loop's last pass.
  [[nodiscard]] StockSeen seen() const;

  // ---- ADDs and DELs

  /// Takes calls that have ended; called in the loop.
  using Ended = std::function<void(std::vector<StockCall> calls)>;
  void serve(Ended ended);
  /// Queues a call; go() sends what was queued on its way, so that calls that came together are written together.
  /// Error: too many wait, or the agent ends; the call is left as it was.
  [[nodiscard]] std::optional<Error> take(StockCall& call);
  void go();
  /// Those that wait for the stock are told that the agent ends, all others are done; no more are taken.
  void end_calls();
  /// The refusal of what comes while the agent ends.
  [[nodiscard]] static Error ends() { return {ErrorCode::unavailable, "the agent ends", {}}; }

  // ---- rounds

  /// Has a worker do `round` when it is due: at the time that the last one returned (since boot), or sooner where
  /// StockState::is_due. tick() has another do `look` where may_give() is false.
  void start_rounds(std::function<std::chrono::nanoseconds()> round, std::function<void()> look);
  void tick();
  /// Begins no more of them. Whether none was under way any more within this time.
  [[nodiscard]] bool end_rounds(std::chrono::nanoseconds patience);

  // ---- of the loop alone: by post() and ask()

  StockState state;
  /// Whether a look was at the records that are there now (StockKeeper::look_before_serving). False from the moment
  /// that the store's files are found to be others: nothing is given to a pod, lent or given back then until there was
  /// one. Asked within a decision, it holds for what that has read: the commit of one that rests on the files of before
  /// is refused.
  [[nodiscard]] bool may_give() const { return world_.store.epoch() == state.looked_at; }
  /// Takes the next term: everything is read anew.
  void take_term();
  void note_problem(const Error& error);
  [[nodiscard]] Context context() const { return {world_.store, world_.clock, world_.random}; }
  /// For whoever commits beside the loop. An agent has a term once it has looked; before that, and where there is no
  /// agent, each commit takes the next one.
  [[nodiscard]] Writer writer() const;

 private:
  using Batch = std::vector<StockCall>;

  void run();
  [[nodiscard]] bool wait_for_messages(std::deque<std::function<void()>>& messages);
  void begin_round();
  void serve_next_batch();
  void serve_batch(Batch batch);
  [[nodiscard]] Result<bool> serve_alone(StockCall& call);
  [[nodiscard]] Error none_in_time() const;
  void log(const std::string& line) const { world_.log(line); }

  const KeeperWorld& world_;

  // The loop's.
  Ended ended_;
  std::deque<StockCall> queue_;    ///< in the order of their arrival
  std::deque<StockCall> waiting_;  ///< ADDs, for the stock; in the order of their arrival
  std::chrono::nanoseconds look_again_{std::chrono::nanoseconds::max()};  ///< at the waiting ones, since boot
  std::function<std::chrono::nanoseconds()> round_;
  std::function<void()> look_;
  std::chrono::nanoseconds next_round_{};
  BatchMemory memory_;  ///< the stock as after the last batch: this loop is its one writer while its term stands
  bool is_round_under_way_ = false;
  bool are_calls_ending_ = false;

  mutable std::mutex mutex_;  ///< the queue's: guards what others hand to the loop and what it shows
  mutable std::condition_variable comes_;
  mutable std::deque<std::function<void()>> messages_;
  std::vector<StockCall> came_;
  std::size_t held_ = 0;  ///< calls that the loop has
  bool may_go_ = false;   ///< came_ is to be taken
  bool takes_calls_ = false;
  bool stopping_ = false;
  StockSeen shown_;

  std::thread loop_;
  Workers outside_{2};
};

template <class F>
auto StockActor::ask(F message) const {
  if (std::this_thread::get_id() == loop_.get_id()) return message();
  // Shared: the loop is still in it when the answer is there.
  const auto task = std::make_shared<std::packaged_task<decltype(message())()>>(std::move(message));
  auto answer = task->get_future();
  post([task] { (*task)(); });
  return answer.get();
}

template <class Plan, class... Arguments>
auto StockActor::decide(Plan plan, const Arguments&... arguments) {
  return ask([&] {
    auto answer =
        transact(context(), TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant& now) {
          return core::warm::in_term(snapshot, state.term, core::warm::planned(plan, snapshot, now, arguments...));
        });
    if (!answer && core::warm::is_term_over(answer.error())) take_term();
    return answer;
  });
}

template <class Plan, class... Arguments>
auto StockActor::decide_giving(Plan plan, const Arguments&... arguments) {
  const auto giving = [&](const core::Snapshot& snapshot,
                          const Instant& now) -> decltype(core::warm::planned(plan, snapshot, now, arguments...)) {
    if (may_give()) return core::warm::planned(plan, snapshot, now, arguments...);
    return Error{ErrorCode::unavailable,
                 "the store was just opened, or its files were replaced: host, pods and cloud are looked at first",
                 {}};
  };
  return decide(giving);
}

template <class Plan, class... Arguments>
auto StockActor::decide_in_any_term(Plan plan, const Arguments&... arguments) {
  return ask([&] {
    auto answer = decide(plan, arguments...);
    if (answer || !core::warm::is_term_over(answer.error())) return answer;
    return decide(plan, arguments...);
  });
}

}  // namespace croft::engine
