// How a StockKeeper brings an address that is promised to a pod by name to this node, and gives it to the pod.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "vpc/decide/promised.h"
#include "vpc/use/stock_keeper_parts.h"

namespace croft::engine {
namespace {

namespace warm = core::warm;

}  // namespace

std::optional<bool> StockKeeper::is_known_as_fixed(const core::PodIdentity& pod) {
  if (pod.uid.empty()) return std::nullopt;
  const auto view = view_stock(context());
  if (!view) return std::nullopt;
  const auto found = std::ranges::find_if(view->addresses, [&](const core::WarmAddress& one) {
    // What was taken in from the pod's own status has no container, and tells nothing of it.
    return one.state == core::WarmState::held && one.pod == pod && !one.owner.container_id.empty();
  });
  if (found == view->addresses.end()) return std::nullopt;
  if (found->extra.contains(warm::kPromisedKey)) return true;
  // A plugin that worked alone asked nobody: its record says nothing of it.
  return found->extra.contains(warm::kKeepsNoneKey) ? std::optional(false) : std::nullopt;
}

std::optional<net::Address> StockKeeper::kept_for(const core::PodIdentity& pod) {
  const auto view = view_stock(context());
  if (!view) return std::nullopt;
  const auto found = std::ranges::find_if(view->addresses, [&](const core::WarmAddress& one) {
    const auto promise = one.extra.find(warm::kPromisedKey);
    return warm::is_waiting_for(one, pod) || (promise != one.extra.end() && promise->second == warm::promise_of(pod));
  });
  return found == view->addresses.end() ? std::nullopt : std::optional(found->address);
}

/// Has the other node's agent move it here; it alone knows whether somebody there lives by it. Error:
/// refused_for_safety, naming who has it; what the agent said.
Result<void> StockKeeper::ask_for_kept(const cloud::CloudAddress& there, const FixedAddresses::Promise& promise,
                                       const std::string& pod, const core::WarmIntent& intent, Deadline deadline) {
  const cloud::Interface interface = *this->interface();
  const bool is_named = promise.mac == there.mac;
  std::string where = fmt::format("the cloud has it on the interface {}", there.mac.to_string());
  if (is_named && !promise.node.empty()) where += fmt::format(" of node {}", promise.node);
  if (!is_named) {
    where += fmt::format(", and the VpcIpClaim names {}", promise.mac ? promise.mac->to_string() : std::string("none"));
  }
  std::string unclear;  // of whom nobody knows whether they moved it: to here, whoever of them did
  const auto or_unclear = [&](Error error) {
    if (unclear.empty()) return error;
    error.code = ErrorCode::unknown_outcome;  // asked again it finds out
    error.message += unclear;
    return error;
  };
  const auto refused = [&](const std::string& why) {
    return fail(
        or_unclear({ErrorCode::refused_for_safety, fmt::format("{}; it is not taken from there: {}", where, why), {}}));
  };
  std::string why = "no agent of that node is known";
  bool is_heard = false;  // the agent of the node that the promise names
  int others = 0;
  auto peers = world_.peers != nullptr ? world_.peers->peers(intent.subnet, deadline)
                                       : Result<std::vector<PeerAgents::Peer>>(std::vector<PeerAgents::Peer>());
  if (!peers) why = peers.error().message;
  if (!peers) peers = std::vector<PeerAgents::Peer>();
  std::ranges::stable_partition(*peers, [&](const PeerAgents::Peer& peer) { return peer.node == promise.node; });
  for (const PeerAgents::Peer& peer : *peers) {
    const Instant now = world_.clock.now();
    if (peer.node == options_.node) continue;
    if (deadline.passed(now)) break;
    const Deadline limit{std::min(deadline.at_since_boot, Deadline::after(now, options_.borrow_limit).at_since_boot)};
    const auto lent =
        world_.peers->borrow_kept(peer, {there.address, pod, is_named}, interface.mac, intent.subnet, intent.id, limit);
    if (lent) return {};
    const ErrorCode code = lent.error().code;
    const std::string said = fmt::format("{}: {}", peer.node, lent.error().message);
    if (code == ErrorCode::conflict) return refused(said);
    const bool is_of_promise = is_named && peer.node == promise.node;
    if (is_of_promise && code == ErrorCode::unknown_outcome) return fail(code, said);  // asked again it finds out
    is_heard = is_heard || (is_of_promise && code != ErrorCode::unavailable);
    if (is_of_promise) why = said;
    if (is_of_promise) continue;
    ++others;
    if (code == ErrorCode::unknown_outcome) unclear += "; " + said;
  }
  if (!is_named && others > 0)
    why = fmt::format("none of the {} agents asked says that it keeps it for the pod", others);
  if (!is_named || promise.node.empty() || is_heard || world_.fixed == nullptr) return refused(why);
  // Nobody can say there any more who lives by it, and the cluster has no pods there: Kubernetes deletes them with
  // their node.
  const auto gone = world_.fixed->is_gone(promise.node, deadline);
  if (!gone || !*gone) return refused(why);
  log(fmt::format("{} is taken from the interface {}: the cluster has no node {} any more", there.address.to_string(),
                  there.mac.to_string(), promise.node));
  const auto moved = world_.cloud.move(there, interface.mac, deadline);
  if (!moved) return fail(or_unclear(moved.error()));
  return {};
}

/// The cloud's word that this very address is on the interface now. `there` is where the cloud had it.
Result<cloud::CloudAddress> StockKeeper::bring_here(const std::optional<cloud::CloudAddress>& there,
                                                    const FixedAddresses::Promise& promise, const std::string& pod,
                                                    const core::WarmIntent& intent, Deadline deadline) {
  const cloud::Interface interface = *this->interface();
  if (!there) return world_.cloud.allocate_this(interface, intent.subnet, promise.address, deadline);
  if (there->mac == interface.mac) return *there;
  TRY_VOID(ask_for_kept(*there, promise, pod, intent, deadline));
  // As with what is borrowed: the other's word is no proof.
  const auto now = world_.cloud.describe_this(interface.vpc, intent.subnet, promise.address, deadline);
  if (now && *now && (*now)->mac == interface.mac) return **now;
  return fail(ErrorCode::unknown_outcome, fmt::format("it was moved here, and the cloud does not say so: {}",
                                                      !now   ? now.error().message
                                                      : *now ? "it is at " + (*now)->mac.to_string()
                                                             : std::string("nobody has it")));
}

/// Error: refused_for_safety, where somebody but `except` answers for it; those of the probe.
Result<void> StockKeeper::check_wire(const net::Address& address, const std::string& pod,
                                     const std::optional<net::Mac>& except, Deadline deadline) {
  if (world_.probe == nullptr) return {};
  TRY(const auto answers, world_.probe->probe({address}, deadline));
  if (answers.size() != 1) return fail(ErrorCode::internal, "no answer of the wire");
  const auto& other = answers.front().other;
  if (!other || other == except) return {};
  return fail(ErrorCode::refused_for_safety, fmt::format("{} is promised to pod {}, and {} answers for it on the wire",
                                                         address.to_string(), pod, other->to_string()));
}

Result<warm::Assigned> StockKeeper::give_promised(const FixedAddresses::Promise& promise, const warm::Request& request,
                                                  Deadline deadline) {
  const net::Address& address = promise.address;
  const std::string pod = warm::promise_of(request.pod);
  const auto interface = this->interface();
  if (!interface) return fail(trouble().value_or(Error{ErrorCode::unavailable, "the agent is still starting", {}}));
  {
    TRY(const auto view, view_stock(context()));
    const auto known = std::ranges::find(view.addresses, address, &core::WarmAddress::address);
    if (known != view.addresses.end() && warm::is_holder(*known, request.owner)) {
      return warm::Assigned{*known, true};
    }
    // Before anything is asked for: what is refused has to stay where it is.
    auto why = known != view.addresses.end() ? warm::obstacle_of(*known, request) : std::nullopt;
    if (why) return fail(*std::move(why));
  }
  const Used used = used_here(deadline);
  if (used.by_host.contains(address) || used.by_pods.contains(address)) {
    return fail(ErrorCode::refused_for_safety,
                fmt::format("{} is promised to pod {}, and no pod may have it: the host or a network namespace uses it",
                            address.to_string(), pod));
  }
  const auto promised = [&](const Error& error) {
    return fail(Error(error).in(fmt::format("{}, promised to pod {}", address.to_string(), pod)));
  };
  core::WarmIntent intent = new_intent(core::WarmIntent::What::allocate, 1);
  intent.address = address;
  warm::promise_to(intent, pod);
  const auto there = world_.cloud.describe_this(interface->vpc, intent.subnet, address, deadline);
  if (!there) return promised(there.error());
  const bool is_elsewhere = *there && (*there)->mac != interface->mac;
  // Who answers would lose it by the move. A cloud may answer itself, for the interface that has it; whether a pod does
  // there, its agent is asked.
  if (is_elsewhere) TRY_VOID(check_wire(address, pod, (*there)->mac, deadline));
  const InFlight in_flight(*this, intent.id);
  TRY_VOID(
      decide<bool>([&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_begin(snapshot, intent); }));
  const auto drop = [&] {
    return decide<bool>(
        [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_drop_intent(snapshot, intent.id); });
  };
  const auto here = bring_here(*there, promise, pod, intent, deadline);
  if (!here) {
    // What may have come is asked for again with the next ADD, which begins by asking where it is.
    if (here.error().code != ErrorCode::unknown_outcome) TRY_VOID(drop());
    return promised(here.error());
  }
  const warm::Given given = given_of(*here, true, "");
  // What this call has brought and does not give stays for the pod, and is told so to the agent of another node.
  const auto leave = [&]() -> Result<void> {
    const bool lay_here = *there && !is_elsewhere;
    if (lay_here) {
      TRY_VOID(drop());
      return {};
    }
    TRY_VOID(decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
      return warm::plan_take(snapshot, intent.id, {warm::kept_for(given, pod)}, now);
    }));
    return {};
  };
  if (!is_elsewhere) {
    if (const auto silent = check_wire(address, pod, std::nullopt, deadline); !silent) {
      TRY_VOID(leave());
      return fail(silent.error());
    }
  }
  auto assigned = decide_giving<warm::Assigned>([&](const core::Snapshot& snapshot, const Instant& now) {
    return warm::plan_give_promised(snapshot, intent.id, given, request, now);
  });
  if (!assigned) {
    TRY_VOID(leave());
    return fail(assigned.error());
  }
  if (world_.probe != nullptr) world_.probe->announce({address});
  log(fmt::format("{} is given to pod {}, to which it is promised", address.to_string(), pod));
  return assigned;
}

}  // namespace croft::engine
