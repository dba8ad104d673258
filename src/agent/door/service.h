#pragma once

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

#include "agent/format/messages.h"
#include "base/clock.h"
#include "base/result.h"
#include "ipam/decide/assign.h"
#include "ipam/use/assign.h"
#include "ipam/use/batch.h"
#include "store/store.h"

namespace croft::edge {

/// The outside of the agent; `app` fills it in. References outlive the service.
struct AgentWorld {
  store::Store& cached;  ///< answers from memory, may be behind (ipam/use/batch.h)
  store::Store& direct;  ///< the same store itself
  const Clock& clock;
  Random& random;     ///< safe to call from several threads
  std::string store;  ///< the URL
  std::string node;
  /// Whether the memory is in use, and how much it knows: the members of AgentStatus that have to do with it.
  std::function<void(wire::agent::AgentStatus& status)> describe_cache;
  /// Takes one line for each decision, without newline; never fails. May be called from several threads.
  std::function<void(const std::string& line)> log;
  /// The identity of the file that a file store has open, looked at anew until the deadline. Null for other stores.
  std::function<Result<wire::agent::StoreFile>(Deadline deadline)> file = nullptr;
  /// The node's next block is claimed when fewer addresses than this are free in its blocks; 0: when an ADD needs it.
  std::uint32_t claim_ahead_below = 8;
  /// How long such a block may stay unused.
  std::chrono::nanoseconds claim_ahead_hold = std::chrono::minutes(5);
  /// Other URLs by which the plugins' configuration names the same store: which credentials a client has, and so the
  /// way to them, need not be the agent's.
  std::vector<std::string> plugin_stores = {};
  /// Takes why a pod got no address, as its runtime is told; never fails. May be called from several threads. Null:
  /// nobody wants to know.
  std::function<void(const core::PodIdentity& pod, const Error& why)> refused = nullptr;
  /// The wishes in the annotations of a pod and its namespace, as far as memory has them; nothing: they have to be
  /// asked for. Null: calls that want them are not served.
  std::function<std::optional<Result<core::AnnotatedWishes>>(const core::PodIdentity& pod)> remembered_wishes = nullptr;
  /// The same, asked of the Kubernetes API. Null as above.
  std::function<Result<core::AnnotatedWishes>(const core::PodIdentity& pod, Deadline deadline)> ask_for_wishes =
      nullptr;
  /// Takes how long an ADD took, from its arrival on, and what it came to; null: it failed. Never fails; may be called
  /// from several threads. Null: nobody counts.
  std::function<void(std::chrono::nanoseconds took, const core::AssignAnswer* answer)> added = nullptr;
  /// How a pause between two tries is made (engine::Context).
  std::function<void(std::chrono::nanoseconds)> wait_by = nullptr;
  /// Asks the kernel of the node.
  engine::Living living = {};
};

/// Whether a URL means the store that an agent serves.
[[nodiscard]] bool serves_store_at(const AgentWorld& world, std::string_view url);

/// Whether the caller hung up: what it asked for is not begun any more. Set by the transport's thread.
using HungUp = std::shared_ptr<const std::atomic<bool>>;
/// When the last sign of life went to the caller, since boot; 0: none did. Set by the transport's thread.
using Told = std::shared_ptr<const std::atomic<std::chrono::nanoseconds>>;

/// An ADD or a DEL on its way through the agent.
struct AgentCall {
  std::uint64_t id = 0;  ///< the transport's name for it
  std::variant<wire::agent::AssignCall, wire::agent::ReleaseCall> what;
  std::string owner;  ///< the handle: calls of one are served in their order
  Deadline limit;     ///< after which nothing may be begun
  Deadline first;     ///< the same, of one that no sign of life was given to
  HungUp hung_up;     ///< may be null
  Told told;          ///< likewise
  std::chrono::nanoseconds came_since_boot{};

  /// Whether its caller has gone its own way, or may have: then nothing is begun for it. A process that was stopped
  /// for a while finds its calls so, until the transport's thread has met their callers.
  [[nodiscard]] bool is_left(const Instant& now) const;
  /// Whether its caller wants signs of life.
  [[nodiscard]] bool wants_signs_of_life() const;
};

/// The Error says that a call was not served at all: invalid_argument, refused_by_configuration (another store or node
/// is meant), deadline_exceeded (the caller has gone its own way). A result of the engine is an answer.
struct AgentAnswer {
  std::uint64_t id = 0;
  Result<std::string> message;
};

/// The calls of the agent, bytes in and bytes out; knows nothing of sockets and gRPC. Runs the same engine on the same
/// records as the plugin alone. Safe to call from several threads; who keeps the order of one owner's calls is Lanes.
class AgentService {
 public:
  explicit AgentService(const AgentWorld& world) : world_(world) {}

  /// Takes a message in, without a look at the store. `not_after`: when the caller stops waiting, as the transport
  /// knows it; what the message says counts too. Errors: as AgentAnswer has them.
  [[nodiscard]] Result<AgentCall> take_assign(std::string_view message, Deadline not_after) const;
  [[nodiscard]] Result<AgentCall> take_release(std::string_view message, Deadline not_after) const;

  /// The outcome of calls that were served together.
  struct Together {
    std::vector<AgentAnswer> answers;
    std::vector<AgentCall> alone;    ///< for serve_alone()
    std::vector<AgentCall> waiting;  ///< nothing was done for them yet; in their order
  };
  /// Serves calls, in the order of their arrival, by one commit.
  [[nodiscard]] Together serve_together(std::vector<AgentCall> calls);
  /// Serves a call by itself, on the store.
  [[nodiscard]] AgentAnswer serve_alone(const AgentCall& call);

  /// Claims the node's next block where the calls that were served together have left few free addresses. To be called
  /// after their answers are out.
  void claim_ahead();
  /// Gives back what claim_ahead() claimed and nobody has used for AgentWorld::claim_ahead_hold; all of it at the
  /// `end`.
  void give_back(bool end);

  /// Reads no more than memory: it never waits for the store.
  [[nodiscard]] std::string status() const;

  /// How many calls ended with an error of the store or the decision, so far.
  [[nodiscard]] std::uint64_t failed() const { return failed_; }

  /// The network namespace of the last call that said it (wire::agent::Caller); 0: none has.
  [[nodiscard]] std::uint64_t network_of_callers() const { return network_of_callers_; }

 private:
  [[nodiscard]] Result<AgentCall> admit(decltype(AgentCall::what) what, std::string owner, Deadline not_after) const;
  /// A refusal that only shows once it is a call's turn: whether its caller is still there, and means this file.
  [[nodiscard]] std::optional<Error> refusal_of(const AgentCall& call);
  [[nodiscard]] Result<bool> means_this_file(const AgentCall& call);
  [[nodiscard]] Result<core::AssignAnswer> assign_alone(const wire::agent::AssignCall& call,
                                                        const engine::Context& context, Deadline limit) const;
  void count(bool from_cache, bool failed);
  /// Tells who counts ADDs; `answer`: as AgentWorld::added has it.
  void tell_added(const AgentCall& call, const core::AssignAnswer* answer) const;
  /// Puts what annotations ask for into a call, if it wants them. False: memory does not have them, and the call goes
  /// alone.
  [[nodiscard]] Result<bool> apply_remembered_wishes(wire::agent::AssignCall& call) const;
  void note_shape(const core::AssignRequest& request);
  [[nodiscard]] engine::Context context_until(Deadline limit) const;

  const AgentWorld& world_;
  std::atomic<std::uint64_t> from_cache_{0};
  std::atomic<std::uint64_t> from_store_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<std::uint64_t> commits_{0};
  std::atomic<std::size_t> batch_most_{store::kCommitWritesMax};  ///< engine::BatchDone::most of the last batch
  mutable std::atomic<std::uint64_t> network_of_callers_{0};
  std::mutex file_mutex_;
  std::optional<wire::agent::StoreFile> file_;  ///< that the store had open when that was last looked at

  struct Ahead {
    core::AffinityOwner node;
    core::ClaimedAhead claimed;
    std::chrono::nanoseconds since_boot{};
  };
  mutable std::mutex ahead_mutex_;           ///< guards both below
  std::vector<core::AssignRequest> shapes_;  ///< of the ADDs since the last claim_ahead(), one for each set of pools
  std::vector<Ahead> ahead_;
};

/// ADDs, and DELs, that may wait: each kind has its own room, so that neither keeps the other out.
inline constexpr std::size_t kLanesRoom = 1024;

/// The order of an agent's calls. One thread commits together what waits; a few serve, one by one, what has to be
/// decided by itself, so that it delays nobody. Calls for one owner are served in the order in which they came. A
/// runtime that kills an ADD sends its DEL at once, and the DEL must see what the ADD, whose plugin may be gone,
/// commits. Safe to call from several threads.
class Lanes {
 public:
  /// Takes the answers of calls that were served at once; called by threads of this object.
  using Sink = std::function<void(std::vector<AgentAnswer>)>;

  /// `service` must outlive this object.
  Lanes(AgentService& service, Sink sink, std::size_t room = kLanesRoom);
  ~Lanes() { stop(); }
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  /// Takes calls in the order of their arrival. Those for which there is no room come back.
  [[nodiscard]] std::vector<AgentCall> add(std::vector<AgentCall> calls);

  /// Takes no more; everything that waits is still done.
  void stop();

 private:
  [[nodiscard]] bool take_in(AgentCall& call);
  [[nodiscard]] std::vector<AgentCall> next_batch();
  void put_back(AgentService::Together& served);
  void commit();
  void serve_alone();

  AgentService& service_;
  const Sink sink_;
  const std::size_t room_;
  std::mutex mutex_;  ///< guards all below but the threads
  std::condition_variable something_waits_;
  std::condition_variable something_is_alone_;
  std::deque<AgentCall> waiting_;  ///< in the order of their arrival
  std::size_t releases_waiting_ = 0;
  std::deque<AgentCall> alone_;
  std::set<std::string> at_work_;  ///< owners of the calls in `alone_`, and of those that are served alone now
  bool stopping_ = false;
  bool committing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace croft::edge
