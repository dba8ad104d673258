#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "agent/door/client.h"
#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "cni/decision_log.h"
#include "cni/door/skeleton.h"
#include "cni/format/environment.h"
#include "cni/format/result.h"

// The common part of the plugin's personalities: how a call is decoded, how it ends in the log and before the runtime,
// and how it goes to the node's agent. A personality is what is left: its mapping and its words.

namespace croft::edge {

// A call that begins in one file of the plugin and goes on in its sibling (docs/adr/0019-plugin-files.md). The small
// file has asked the node's agent; an etcd or a Kubernetes API is the sibling's. It does everything anew, without harm:
// a call that is asked again has the same answer.

/// The first file's knowledge of the call.
struct CallSoFar {
  Instant began;           ///< its time limit counts from here
  std::string agent_said;  ///< why the agent did not serve; empty: there is none, or it served
  friend bool operator==(const CallSoFar&, const CallSoFar&) = default;
};

/// Between two files on one machine, which an upgrade replaces one after the other.
[[nodiscard]] std::string encode_call_so_far(const CallSoFar& call);
/// Nothing: it is none, or of another version.
[[nodiscard]] std::optional<CallSoFar> parse_call_so_far(std::string_view text);

/// Goes on in the sibling; comes back only where that can't be, with unavailable. Empty: this file can do all of it.
using HandOver = std::function<Error(const CallSoFar& call)>;

/// One call of a personality, from the decoded configuration on: its line in the log. The objects that a personality
/// makes for each call derive from it.
class CniCall {
 public:
  /// Takes one line, without newline; never fails. Empty: nothing is logged.
  using WriteLine = std::function<void(const std::string& line)>;
  enum class Logs { every_outcome, failures_only };

  /// `subject` is the command and what names its target (DecisionLine). `so_far`: the call began with it, not now.
  CniCall(const Clock& clock, std::string subject, WriteLine write, Logs logs = Logs::every_outcome,
          const std::optional<CallSoFar>& so_far = {});

  void log_success(const std::string& words) const;
  /// With the number that the runtime sees, as it is in its own log.
  void log_failure(wire::cni::Code code, const std::string& words) const;
  /// Something that does not keep the call from going on.
  void warn(const std::string& what) const;

  // How a failure is told in the log and to the runtime. A personality that tells it otherwise has its own.
  [[nodiscard]] static std::string failure_text(const Error& error) { return text_of(error); }
  [[nodiscard]] static wire::cni::Error cni_error(const Error& error);

 private:
  WriteLine write_;
  Logs logs_;
  std::optional<DecisionLine> line_;  ///< without when nothing is logged
};

/// " container=… ifname=…" for a subject; nothing for GC and STATUS, which are of no container.
[[nodiscard]] std::string attachment_text(const CniRequest& request);

/// The answer of an ADD, and its line in the log.
struct Added {
  wire::cni::AddResult result;
  std::string words;
};

/// The addresses that a DEL gave back.
struct GivenBack {
  std::vector<net::Address> addresses;
  std::string deferred = {};  ///< that it is left for later; behind a space

  [[nodiscard]] std::string words() const { return "released=" + list_of(addresses) + deferred; }
};

/// How a call finds the agent of its node, and how it introduces itself.
struct AgentDoor {
  std::function<std::unique_ptr<Agent>(const std::string& socket)> find;  ///< may be empty: there is no agent
  std::string socket;                                                     ///< empty or kNoAgent: none is asked
  std::string store;                                                      ///< the URL of the store the call is about
  std::string node;

  [[nodiscard]] std::unique_ptr<Agent> open() const;
};

/// Asks the node's agent, if there is one. Nothing: the plugin goes to the store itself; when an agent is there and did
/// not serve, `not_served` gets the reason. An agent that goes on with a call that was given up here does no harm: it
/// decides on the same records, and the owner has one answer.
template <class Ask, class NotServed>
auto through_agent(const AgentDoor& door, Ask ask, NotServed not_served)
    -> std::optional<typename decltype(ask(std::declval<Agent&>(), std::declval<wire::agent::Caller>()))::value_type> {
  const auto agent = door.open();
  if (agent == nullptr) return {};
  wire::agent::Caller self;
  self.store = door.store;
  self.node = door.node;
  auto answer = ask(*agent, std::move(self));
  if (answer) return *std::move(answer);
  not_served(answer.error().message);
  return {};
}

/// The failure in the log; what the runtime gets.
template <class Call>
wire::cni::Error failed(const Call& call, const Error& error) {
  wire::cni::Error told = Call::cni_error(error);
  call.log_failure(told.code, Call::failure_text(error));
  return told;
}

/// A handler that decodes as much of the configuration as its command needs, then does its work.
template <class Call, class World, class Work>
auto decoded(const World& world, Work work) {
  return [&world, work](const CniRequest& request) -> std::invoke_result_t<Work, const Call&> {
    auto config = Call::decode(world, request);
    if (!config) return config.error();
    return work(Call(world, request, *std::move(config)));
  };
}

/// The handlers of a personality, which is a class derived from CniCall with
///   static Checked<Config> decode(const World&, const CniRequest&);
///   Call(const World&, const CniRequest&, Config);
///   Result<Added> add() const;          what is done, and the words for the log
///   Result<std::string> del() const;    the words for the log; check() and gc() likewise, where it has them
///   Result<void> status() const;        where it has it
/// A command that it has not succeeds silently. `world` must outlive the handlers.
template <class Call, class World>
CniHandlers handlers_of(const World& world) {
  const auto silent = [&world](auto command) {
    return decoded<Call>(world, [command](const Call& call) -> std::optional<wire::cni::Error> {
      const Result<std::string> words = (call.*command)();
      if (!words) return failed(call, words.error());
      call.log_success(*words);
      return {};
    });
  };
  CniHandlers handlers;
  handlers.add = decoded<Call>(world, [](const Call& call) -> wire::cni::Checked<wire::cni::AddResult> {
    Result<Added> added = call.add();
    if (!added) return failed(call, added.error());
    call.log_success(added->words);
    return std::move(added->result);
  });
  handlers.del = silent(&Call::del);
  if constexpr (requires(const Call& call) { call.check(); }) handlers.check = silent(&Call::check);
  if constexpr (requires(const Call& call) { call.gc(); }) handlers.gc = silent(&Call::gc);
  if constexpr (requires(const Call& call) { call.status(); }) {
    handlers.status = decoded<Call>(world, [](const Call& call) -> std::optional<wire::cni::Error> {
      const Result<void> able = call.status();
      if (able) return {};  // asked every few seconds: only failures are worth a line
      return failed(call, able.error());
    });
  }
  return handlers;
}

}  // namespace croft::edge
