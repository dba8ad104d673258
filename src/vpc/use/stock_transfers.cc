// How addresses come to a StockKeeper from other nodes and go to them: borrowed, lent, and brought here since they are
// promised to a pod by name.

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "vpc/decide/assign.h"
#include "vpc/use/stock_keeper.h"

namespace croft::engine {
namespace {

namespace warm = core::warm;

/// Calls that take all of their time, of one round.
constexpr int kBorrowLimits = 3;
constexpr std::chrono::nanoseconds kBorrowLimit = std::chrono::seconds{10};

}  // namespace

/// Asks one peer after the other, the richest first, until nobody waits. True: somebody still does.
bool StockKeeper::borrow() {
  if (!world_.peers.list) return false;
  const cloud::Interface interface = *this->interface();
  const std::string subnet = subnet_of(interface);
  auto peers = world_.peers.list(subnet, cloud_deadline());
  if (!peers) {
    note_problem(peers.error().in("no address is borrowed"));
    return true;
  }
  const auto view = noted(view_stock(context()));
  if (!view) return true;
  const auto begun = world_.clock.now().since_boot;
  // A peer may have lent something that comes or does not: until that is known it is asked for no more.
  const auto may_still_lend = [&](const Peer& peer) {
    return std::ranges::any_of(view->intents, [&](const core::StockIntent& intent) {
      return intent.what == core::StockIntent::What::borrow && intent.peer == peer.address;
    });
  };
  std::string unclear;
  std::erase_if(*peers, [&](const Peer& peer) {
    if (peer.node == options_.node || peer.free == 0) return true;
    if (!may_still_lend(peer)) return false;
    unclear += fmt::format("; {}: what it was asked for last may still come", peer.node);
    return true;
  });
  std::ranges::stable_sort(*peers, std::greater{}, &Peer::free);
  std::uint32_t waiting = ask([this] { return actor_.state.waiting; });
  const auto note_unclear = [&](const std::string& why) {
    unclear += "; " + why;
    log("borrowing: " + why);
  };
  for (const Peer& peer : *peers) {
    if (waiting == 0) return false;
    // Silent ones take a call's time each: other work goes on, and the next round asks the others.
    if (world_.clock.now().since_boot - begun > kBorrowLimits * kBorrowLimit) return true;
    for (std::uint32_t taken = 0; taken < peer.free && waiting > 0; ++taken) {
      core::StockIntent intent = new_intent(core::StockIntent::What::borrow, 1);
      intent.peer = peer.address;
      const UnderWay under_way(*this, intent.id);
      if (!noted(begin(intent))) return true;
      auto lent = world_.peers.borrow(peer, interface.mac, subnet, intent.id,
                                      Deadline::after(world_.clock.now(), kBorrowLimit));
      if (lent) {
        // A peer's word is no proof: the cloud says whose it is, and delivers it there.
        const auto there = world_.cloud.describe_address(interface.vpc, subnet, lent->address, cloud_deadline());
        if (!there || !*there || (*there)->mac != interface.mac) {
          // The next round asks the cloud what came.
          const std::string why = !there ? there.error().message
                                         : fmt::format("the cloud has it {}", *there ? "at " + (*there)->mac.to_string()
                                                                                     : std::string("nowhere"));
          note_unclear(fmt::format("{} says that it lent {}, which is not taken in: {}", peer.node,
                                   lent->address.to_string(), why));
          break;
        }
        lent->mac = interface.mac;  // older peers tell their own
        // Its wire was asked before the peer took it in.
        const auto came = take(intent.id, {*lent}, true, peer.node);
        if (!came) return true;
        if (came->usable == 0) break;  // no pod may have it, as the log says
        log(fmt::format("borrowed {} from {}", lent->address.to_string(), peer.node));
        --waiting;
        count(&KeeperTally::borrowed);
        continue;
      }
      if (lent.error().code == ErrorCode::unknown_outcome) {
        // The intent stays: the next round asks the cloud whose it is.
        note_unclear(fmt::format("{}: {}", peer.node, lent.error().message));
        break;
      }
      if (!noted(drop(intent.id))) return true;
      // A version, a certificate or an address that does not go together: people have to do something.
      const ErrorCode code = lent.error().code;
      const bool is_refusal = code == ErrorCode::refused_by_configuration || code == ErrorCode::permission_denied ||
                              code == ErrorCode::invalid_argument;
      if (is_refusal) unclear += fmt::format("; {}: {}", peer.node, lent.error().message);
      break;  // this one has none, or is not there
    }
  }
  if (waiting == 0) return false;
  note_problem({ErrorCode::exhausted,
                fmt::format("{}, and no other node has one to lend{}",
                            memory_.last == warm::Outcome::exhausted
                                ? fmt::format("subnet {} has no addresses left", subnet)
                                : std::string("of what the cloud gives others answer on the wire for nearly all (it is "
                                              "quarantined)"),
                            unclear),
                {}});
  return true;
}

Result<core::StockAddress> StockKeeper::lend(const warm::Lend& asked, Deadline deadline) {
  warm::Lend lend = asked;
  lend.keeps = ask([this] { return actor_.state.waiting; });
  const auto interface = this->interface();
  // Whatever says so before the cloud is called has surely moved nothing, and the borrower is to know that.
  const auto none = [](Error error) {
    const bool is_for_now = error.code == ErrorCode::unavailable || error.code == ErrorCode::deadline_exceeded;
    if (is_for_now) error.code = ErrorCode::exhausted;
    return error;
  };
  if (!interface) return fail(none({ErrorCode::unavailable, "the agent is still starting", {}}));
  if (lend.to == interface->mac) return fail(invalid_argument("the MAC address is this node's own"));
  if (!lend.subnet.empty() && lend.subnet != subnet_of(*interface)) {
    return fail(
        invalid_argument(fmt::format("subnet {} is not this node's, which is {}", lend.subnet, subnet_of(*interface))));
  }
  UnderWay under_way(*this);
  const auto choice = ask([&]() -> Result<std::optional<core::StockAddress>> {
    auto made = actor_.decide_giving(warm::plan_lend, lend);
    if (!made) return fail(none(made.error()));
    if (!*made || (*made)->state == core::StockAddressState::lent) return made;
    if (actor_.state.leaving.contains(text_of(**made))) {
      return fail(ErrorCode::unknown_outcome, text_of(**made) + " is on its way by this request already");
    }
    under_way.leave({**made});
    return made;
  });
  if (!choice) return fail(choice.error());
  const std::optional<core::StockAddress>& chosen = *choice;
  if (!chosen) return fail(ErrorCode::exhausted, "the stock has no free address to lend");
  if (chosen->state == core::StockAddressState::lent) return *chosen;
  const auto moved = world_.cloud.move(warm::cloud_address_of(*chosen), lend.to, deadline);
  if (!moved && moved.error().code == ErrorCode::unknown_outcome) return fail(moved.error());  // settle() finds out
  if (!moved) {
    // Not ours any more, perhaps, or where it was to go already: the cloud knows.
    if (moved.error().code == ErrorCode::not_found) {
      std::optional<warm::Look> look;
      static_cast<void>(settle_leaving(*chosen, true, look));
      TRY(const auto settled, decide(warm::plan_lend, lend));
      const bool went =
          settled && settled->address == chosen->address && settled->state == core::StockAddressState::lent;
      if (went) return *settled;
      return fail(moved.error());
    }
    TRY_VOID(decide(warm::plan_not_lent, chosen->address, chosen->request));
    return fail(moved.error());
  }
  TRY(const auto lent, decide(warm::plan_lent, chosen->address, chosen->request));
  log(fmt::format("lent {} to {}{}", text_of(*chosen), lend.to.to_string(),
                  lend.node.empty() ? "" : " of " + lend.node));
  count(&KeeperTally::lent);
  if (lent.empty()) return fail(ErrorCode::conflict, text_of(*chosen) + " went another way meanwhile");
  return lent.front();
}

// ---------------------------------------------------------------- promised to a pod by name

std::optional<bool> StockKeeper::is_known_as_fixed(const core::PodIdentity& pod) {
  if (pod.uid.empty()) return std::nullopt;
  const auto view = view_stock(context());
  if (!view) return std::nullopt;
  const auto found = std::ranges::find_if(view->addresses, [&](const core::StockAddress& one) {
    // A record that was taken in from the pod's own status has no container, and tells nothing of it.
    return one.state == core::StockAddressState::held && one.pod == pod && !one.owner.container_id.empty();
  });
  if (found == view->addresses.end()) return std::nullopt;
  if (found->extra.contains(warm::kPromisedKey)) return true;
  // A plugin that worked alone asked nobody: its record says nothing of it.
  return found->extra.contains(warm::kKeepsNoneKey) ? std::optional(false) : std::nullopt;
}

std::optional<net::Address> StockKeeper::kept_for(const core::PodIdentity& pod) {
  const auto view = view_stock(context());
  if (!view) return std::nullopt;
  const auto found = std::ranges::find_if(view->addresses, [&](const core::StockAddress& one) {
    const auto promise = one.extra.find(warm::kPromisedKey);
    return warm::is_waiting_for(one, pod) ||
           (promise != one.extra.end() && promise->second == warm::promised_pod_name(pod));
  });
  return found == view->addresses.end() ? std::nullopt : std::optional(found->address);
}

/// The cloud's word that this very address is on the interface now. `there` is where the cloud had it: as UK8S' agents
/// do it, this one moves it itself from the interface that the claim names, and from no other, nor from under another
/// pod that lives by it. Error also: refused_for_safety.
Result<cloud::CloudAddress> StockKeeper::bring_here(const std::optional<cloud::CloudAddress>& there,
                                                    const FixedAddresses::Promise& promise,
                                                    const core::StockIntent& intent, Deadline deadline) {
  const cloud::Interface interface = *this->interface();
  if (!there) return world_.cloud.allocate_address(interface, intent.subnet, promise.address, deadline);
  if (there->mac == interface.mac) return *there;
  if (promise.mac != there->mac) {
    return fail(ErrorCode::refused_for_safety,
                fmt::format("the cloud has it on the interface {}, and the VpcIpClaim names {}; it is not taken from "
                            "there: delete the VpcIpClaim, and the pod gets another",
                            there->mac.to_string(), promise.mac ? promise.mac->to_string() : std::string("none")));
  }
  if (world_.fixed != nullptr) {
    // A claim may be older than what has become of the address since, and tenants write them.
    const std::string pod = warm::promised_pod_name(intent);
    const auto living = world_.fixed->living_with(promise.address, deadline);
    if (!living) return fail(living.error().in("whether a pod lives by it is not known: it is not moved"));
    for (const core::PodIdentity& one : *living) {
      if (warm::promised_pod_name(one) == pod) continue;  // its predecessor, deleted by force
      return fail(ErrorCode::refused_for_safety,
                  fmt::format("pod {} has it, and lives: it is not taken from there; delete the VpcIpClaim, and the "
                              "pod gets another",
                              echo(warm::promised_pod_name(one))));
    }
  }
  TRY_VOID(world_.cloud.move(*there, interface.mac, deadline));
  cloud::CloudAddress here = *there;
  here.mac = interface.mac;
  here.object = interface.object;
  return here;
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
  const std::string pod = warm::promised_pod_name(request.pod);
  TRY(const cloud::Interface interface, known_interface());
  {
    TRY(const auto view, view_stock(context()));
    const core::StockAddress* known = view.find(address);
    if (known != nullptr && warm::is_holder(*known, request.owner)) return warm::Assigned{*known, true};
    // Before anything is asked for: what is refused has to stay where it is.
    auto why = known != nullptr ? warm::obstacle_of(*known, request) : std::nullopt;
    if (why) return fail(*std::move(why));
  }
  if (warm::is_used_by_host(look_here(deadline), address)) {
    return fail(ErrorCode::refused_for_safety,
                fmt::format("{} is promised to pod {}, and no pod may have it: the host or a network namespace uses it",
                            address.to_string(), pod));
  }
  const auto promised = [&](const Error& error) {
    return fail(Error(error).in(fmt::format("{}, promised to pod {}", address.to_string(), pod)));
  };
  core::StockIntent intent = new_intent(core::StockIntent::What::allocate, 1);
  intent.address = address;
  intent.peer = pod;
  const auto there = world_.cloud.describe_address(interface.vpc, intent.subnet, address, deadline);
  if (!there) return promised(there.error());
  const bool is_elsewhere = *there && (*there)->mac != interface.mac;
  // A neighbour that answers would lose it by the move. A cloud may answer itself, for the interface that has it.
  if (is_elsewhere) TRY_VOID(check_wire(address, pod, (*there)->mac, deadline));
  const UnderWay under_way(*this, intent.id);
  TRY_VOID(begin(intent));
  const auto here = bring_here(*there, promise, intent, deadline);
  if (!here) {
    // The next ADD asks for it again, and begins by asking where it is.
    if (here.error().code != ErrorCode::unknown_outcome) TRY_VOID(drop(intent.id));
    return promised(here.error());
  }
  const auto give = [&]() -> Result<warm::Assigned> {
    if (!is_elsewhere) TRY_VOID(check_wire(address, pod, std::nullopt, deadline));
    return actor_.decide_giving(warm::plan_give_promised, intent.id, warm::Given{*here, "", true}, request);
  };
  auto assigned = give();
  if (!assigned) {
    // An address that this call has brought and does not give stays for the pod.
    std::vector<warm::Given> kept;
    if (!*there || is_elsewhere) kept.push_back({*here, "", true, warm::waits_for(pod)});
    TRY_VOID(decide(warm::plan_take, intent.id, kept));
    return assigned;
  }
  if (world_.probe != nullptr) world_.probe->announce({address});
  log(fmt::format("{} is given to pod {}, to which it is promised", address.to_string(), pod));
  return assigned;
}

}  // namespace croft::engine
