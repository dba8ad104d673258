#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "edge/agent/owner_turns.h"
#include "store/store.h"
#include "wire/agent/messages.h"

namespace croft::edge {

/// What the agent works with; `app` fills it in. References outlive the service.
struct AgentWorld {
  store::Store& cached;  ///< answers from memory, may be behind (engine/with_cache.h)
  store::Store& direct;  ///< the same store itself
  const Clock& clock;
  Random& random;     ///< safe to call from several threads
  std::string store;  ///< the URL, as the plugins' configuration writes it
  std::string node;
  /// Whether the memory is in use, and how much it knows: the members of AgentStatus that have to do with it.
  std::function<void(wire::agent::AgentStatus& status)> describe_cache;
  /// Takes one line for each decision, without newline; never fails. May be called from several threads.
  std::function<void(const std::string& line)> log;
  /// Of a store that is a file, which one it has open, looked at anew until the deadline. Null for other stores.
  std::function<Result<wire::agent::StoreFile>(Deadline deadline)> file = nullptr;
};

/// The calls of the agent, bytes in and bytes out; knows nothing of sockets and gRPC. Runs the same engine on the same
/// records as the plugin alone. Safe to call from several threads.
///
/// The Errors of the calls say that a call was not served at all: invalid_argument, refused_by_configuration (another
/// store or node is meant), deadline_exceeded (the caller has gone its own way). What the engine says is an answer.
///
/// Calls for one owner are served one after the other, so that a DEL sees what the ADD before it, whose plugin may have
/// been killed meanwhile, commits (OwnerTurns).
class AgentService {
 public:
  /// Whether the caller hung up: what it asked for is not begun any more. It may be asked from another thread.
  using HungUp = std::function<bool()>;

  explicit AgentService(const AgentWorld& world) : world_(world) {}

  /// `not_after`: when the caller stops waiting, as the transport knows it; what the message says counts too.
  [[nodiscard]] Result<std::string> assign(std::string_view message, Deadline not_after, const HungUp& hung_up = {});
  [[nodiscard]] Result<std::string> release(std::string_view message, Deadline not_after, const HungUp& hung_up = {});
  [[nodiscard]] Result<std::string> status(std::string_view message) const;

  /// How many calls ended with an error of the store or the decision, so far.
  [[nodiscard]] std::uint64_t failed() const { return failed_; }

 private:
  [[nodiscard]] Result<Deadline> admit(const wire::agent::Caller& caller, Deadline not_after) const;
  /// The turn of a call for the owner with this handle.
  [[nodiscard]] Result<OwnerTurns::Turn> turn_of(const std::string& handle_id, Deadline limit, const HungUp& hung_up);
  void count(bool from_cache, bool failed);

  const AgentWorld& world_;
  OwnerTurns turns_;
  std::atomic<std::uint64_t> from_cache_{0};
  std::atomic<std::uint64_t> from_store_{0};
  std::atomic<std::uint64_t> failed_{0};
};

}  // namespace croft::edge
