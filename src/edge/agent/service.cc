#include "edge/agent/service.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "edge/decision_log.h"
#include "engine/assign.h"
#include "engine/pools.h"
#include "engine/release.h"
#include "engine/with_cache.h"
#include "store/store_url.h"

namespace croft::edge {
namespace {

namespace agent = wire::agent;

std::string owner_text(const core::Owner& owner) {
  return fmt::format("network={} container={} ifname={}", owner.network, owner.container_id, owner.interface_name);
}

const char* source_of(bool from_cache) { return from_cache ? "cache" : "store"; }

}  // namespace

/// The moment after which the call must not write any more. It is kept in the clock that plugin and agent share, and
/// not as a span from now: a call that lay in the socket while this process was stopped is old, whatever its span.
Result<Deadline> AgentService::admit(const agent::Caller& caller, Deadline not_after) const {
  if (!store::name_one_store(caller.store, world_.store)) {
    return fail(ErrorCode::refused_by_configuration,
                fmt::format("this agent serves the store {}, not {}", world_.store, caller.store));
  }
  if (caller.node != world_.node) {
    return fail(ErrorCode::refused_by_configuration,
                fmt::format("this agent serves node {}, not {}", world_.node, caller.node));
  }
  const Instant now = world_.clock.now();
  if (caller.boot != now.boot) {
    return fail(ErrorCode::refused_by_configuration, "the call is of another boot, or of another machine");
  }
  const Deadline limit{std::min(caller.expires.at_since_boot, not_after.at_since_boot)};
  if (limit.passed(now)) return fail(ErrorCode::deadline_exceeded, "the call came too late");
  if (world_.file && caller.file) {
    TRY(const agent::StoreFile ours, world_.file(limit));
    if (ours != *caller.file) {
      return fail(ErrorCode::refused_by_configuration,
                  fmt::format("this agent has another file open at {}: the store was replaced, or the path leads "
                              "elsewhere for the agent",
                              world_.store));
    }
  }
  return limit;
}

/// Only behind its turn a call knows that its caller is still there: a DEL that came after the caller was killed may
/// have been served before.
Result<OwnerTurns::Turn> AgentService::turn_of(const std::string& handle_id, Deadline limit, const HungUp& hung_up) {
  TRY(OwnerTurns::Turn turn, turns_.take(handle_id, world_.clock, limit));
  if (hung_up && hung_up()) return fail(ErrorCode::deadline_exceeded, "the caller has hung up");
  return turn;
}

void AgentService::count(bool from_cache, bool failed) {
  ++(failed ? failed_ : from_cache ? from_cache_ : from_store_);
}

Result<std::string> AgentService::assign(std::string_view message, Deadline not_after, const HungUp& hung_up) {
  TRY(const agent::AssignCall call, agent::decode_assign_call(message));
  TRY(const Deadline limit, admit(call.caller, not_after));
  TRY(const OwnerTurns::Turn turn, turn_of(core::handle_of(call.request.owner), limit, hung_up));
  const DecisionLine line(world_.clock, "ADD " + owner_text(call.request.owner));
  const engine::Context direct{world_.direct, world_.clock, world_.random, std::chrono::seconds(15), limit};
  auto served = engine::with_cache(
      direct, world_.cached,
      [&](const engine::Context& context) { return engine::assign(context, call.request, call.pools); },
      [](const core::AssignAnswer& answer) { return std::holds_alternative<core::Assigned>(answer); });
  count(served.from_cache, !served.answer);
  agent::AssignOutcome outcome;
  if (!served.answer) {
    world_.log(line.ended("error", text_of(served.answer.error())));
    outcome = std::move(served.answer).error();
  } else if (auto* refusal = std::get_if<core::Refusal>(&*served.answer)) {
    world_.log(line.ended("error", text_of(core::to_error(*refusal))));
    outcome = std::move(*refusal);
  } else {
    auto& assigned = std::get<core::Assigned>(*served.answer);
    world_.log(line.ended("ok", fmt::format("from={} {}", source_of(served.from_cache), text_of(assigned))));
    outcome = std::move(assigned);
  }
  return agent::encode(outcome);
}

Result<std::string> AgentService::release(std::string_view message, Deadline not_after, const HungUp& hung_up) {
  TRY(const agent::ReleaseCall call, agent::decode_release_call(message));
  TRY(const Deadline limit, admit(call.caller, not_after));
  const auto* owner = std::get_if<core::Owner>(&call.what);
  const std::string handle_id = owner != nullptr ? core::handle_of(*owner) : std::get<std::string>(call.what);
  TRY(const OwnerTurns::Turn turn, turn_of(handle_id, limit, hung_up));
  const DecisionLine line(
      world_.clock, "DEL " + (owner != nullptr ? owner_text(*owner) : "handle=" + std::get<std::string>(call.what)));
  const engine::Context direct{world_.direct, world_.clock, world_.random, std::chrono::seconds(15), limit};
  auto served = engine::with_cache(
      direct, world_.cached,
      [&](const engine::Context& context) {
        return owner != nullptr ? engine::release_owner(context, *owner)
                                : engine::release_old_handle(context, std::get<std::string>(call.what));
      },
      [](const core::Released&) { return true; });
  count(served.from_cache, !served.answer);
  if (!served.answer) {
    world_.log(line.ended("error", text_of(served.answer.error())));
    return agent::encode(agent::ReleaseOutcome(std::move(served.answer).error()));
  }
  world_.log(line.ended(
      "ok", fmt::format("from={} released={}", source_of(served.from_cache), list_of(served.answer->addresses))));
  return agent::encode(agent::ReleaseOutcome(std::move(served.answer->addresses)));
}

Result<std::string> AgentService::status(std::string_view) const {
  agent::AgentStatus status;
  status.version = CROFT_VERSION;
  status.store = world_.store;
  status.node = world_.node;
  if (world_.describe_cache) world_.describe_cache(status);
  status.served_from_cache = from_cache_;
  status.served_from_store = from_store_;
  status.failed = failed_;
  return agent::encode(status);
}

}  // namespace croft::edge
