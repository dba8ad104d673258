// How a StockKeeper borrows addresses from other nodes and lends them its own.

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "vpc/decide/promised.h"
#include "vpc/use/stock_keeper_parts.h"

namespace croft::engine {
namespace {

namespace warm = core::warm;

/// Calls that take all of their time, of one round.
constexpr int kBorrowLimits = 3;

}  // namespace

/// Asks one peer after the other, the richest first, until nobody waits. True: somebody still does.
bool StockKeeper::borrow() {
  if (world_.peers == nullptr) return false;
  const cloud::Interface interface = *this->interface();
  const std::string subnet = subnet_of(interface);
  auto peers = world_.peers->peers(subnet, cloud_deadline());
  if (!peers) {
    note_trouble(peers.error().in("no address is borrowed"));
    return true;
  }
  const auto view = view_stock(context());
  if (!view) {
    note_trouble(view.error());
    return true;
  }
  const auto begun = world_.clock.now().since_boot;
  // What a peer may have lent comes or does not: until that is known it is asked for no more.
  const auto may_still_lend = [&](const PeerAgents::Peer& peer) {
    return std::ranges::any_of(view->intents, [&](const core::WarmIntent& intent) {
      return intent.what == core::WarmIntent::What::borrow && intent.peer == peer.address;
    });
  };
  std::string unclear;
  std::erase_if(*peers, [&](const PeerAgents::Peer& peer) {
    if (peer.node == options_.node || peer.free == 0) return true;
    if (!may_still_lend(peer)) return false;
    unclear += fmt::format("; {}: what it was asked for last may still come", peer.node);
    return true;
  });
  std::ranges::stable_sort(*peers, std::greater{}, &PeerAgents::Peer::free);
  std::uint32_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting = waiting_;
  }
  const auto note_unclear = [&](const std::string& why) {
    unclear += "; " + why;
    log("borrowing: " + why);
  };
  for (const PeerAgents::Peer& peer : *peers) {
    if (waiting == 0) return false;
    // Silent ones take a call's time each: other work goes on, and the next round asks the others.
    if (world_.clock.now().since_boot - begun > kBorrowLimits * options_.borrow_limit) return true;
    for (std::uint32_t taken = 0; taken < peer.free && waiting > 0; ++taken) {
      core::WarmIntent intent = new_intent(core::WarmIntent::What::borrow, 1);
      intent.peer = peer.address;
      const InFlight in_flight(*this, intent.id);
      const auto noted = decide<bool>(
          [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_begin(snapshot, intent); });
      if (!noted) {
        note_trouble(noted.error());
        return true;
      }
      auto lent = world_.peers->borrow(peer, interface.mac, subnet, intent.id,
                                       Deadline::after(world_.clock.now(), options_.borrow_limit));
      if (lent) {
        // A peer's word is no proof: the cloud says whose it is, and delivers it there.
        const auto there = world_.cloud.describe_this(interface.vpc, subnet, lent->address, cloud_deadline());
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
        if (*came == 0) break;  // no pod may have it, as the log says
        log(fmt::format("borrowed {} from {}", lent->address.to_string(), peer.node));
        --waiting;
        const std::lock_guard lock(mutex_);
        ++tally_.borrowed;
        continue;
      }
      if (lent.error().code == ErrorCode::unknown_outcome) {
        // The intent stays: the next round asks the cloud whose it is.
        note_unclear(fmt::format("{}: {}", peer.node, lent.error().message));
        break;
      }
      const auto dropped = decide<bool>(
          [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_drop_intent(snapshot, intent.id); });
      if (!dropped) {
        note_trouble(dropped.error());
        return true;
      }
      // A version or a certificate that does not go together: people have to do something.
      const bool is_refusal =
          lent.error().code == ErrorCode::refused_by_configuration || lent.error().code == ErrorCode::permission_denied;
      if (is_refusal) unclear += fmt::format("; {}: {}", peer.node, lent.error().message);
      break;  // this one has none, or is not there
    }
  }
  if (waiting == 0) return false;
  note_trouble({ErrorCode::exhausted,
                fmt::format("{}, and no other node has one to lend{}",
                            memory_.is_exhausted
                                ? fmt::format("subnet {} has no addresses left", subnet)
                                : std::string("of what the cloud gives others answer on the wire for nearly all (it is "
                                              "quarantined)"),
                            unclear),
                {}});
  return true;
}

/// Of an address that is asked for by name: that nothing here uses it. The answer is what the cloud says of it, where
/// no record says for whom it is kept. Error: conflict, saying who has it, or that it is not known.
Result<std::optional<warm::Given>> StockKeeper::look_at_kept(const warm::Lend& lend, const cloud::Interface& interface,
                                                             Deadline deadline) {
  const net::Address& address = *lend.address;
  TRY(const auto view, view_stock(context()));
  const auto found = std::ranges::find(view.addresses, address, &core::WarmAddress::address);
  const core::WarmAddress* known = found == view.addresses.end() ? nullptr : &*found;
  const bool is_asked_again = known != nullptr && !lend.request.empty() && known->request == lend.request;
  if (is_asked_again) return std::optional<warm::Given>();
  const std::string text = address.to_string();
  warm::Look look;
  look.begun = world_.clock.now();
  look_at_host(look, deadline);
  if (look.host && look.host->contains(address)) {
    return fail(ErrorCode::conflict, fmt::format("{} is in use: an interface or a route of this node has it", text));
  }
  const bool may_be_stray =
      lend.is_named && (known == nullptr || known->state == core::WarmState::lent ||
                        (known->state == core::WarmState::quarantined && known->why != warm::waits_for(lend.kept_for)));
  if (may_be_stray) look_at_pods(look, deadline);
  if (!look.silent.empty()) {
    return fail(ErrorCode::conflict, fmt::format("whether {} is in use is not known: {}", text, look.silent.front()));
  }
  if (!may_be_stray || !look.host || !look.pods) return std::optional<warm::Given>();
  if (warm::is_used_by_pod(look, address)) {
    return fail(ErrorCode::conflict, fmt::format("{} is in use: a pod of this node says that it has it", text));
  }
  TRY(const auto there, world_.cloud.describe_this(interface.vpc, subnet_of(interface), address, deadline));
  if (!there || there->mac != interface.mac) return std::optional<warm::Given>();
  return std::optional(given_of(*there, true, ""));
}

Result<core::WarmAddress> StockKeeper::lend(const warm::Lend& asked, Deadline deadline) {
  warm::Lend lend = asked;
  {
    const std::lock_guard lock(mutex_);
    lend.keeps = waiting_;
  }
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
  const std::unique_lock leaving(leaving_, std::chrono::seconds{5});
  if (!leaving.owns_lock()) return fail(none(busy()));
  std::optional<warm::Given> stray;
  if (lend.address) {
    auto looked = look_at_kept(lend, *interface, deadline);
    if (!looked) return fail(none(looked.error()));
    stray = *std::move(looked);
  }
  const auto choose = [&](const core::Snapshot& snapshot, const Instant& now) {
    return lend.address ? warm::plan_lend_kept(snapshot, lend, stray, now) : warm::plan_lend(snapshot, lend, now);
  };
  const auto choice = decide_giving<std::optional<core::WarmAddress>>(choose);
  if (!choice) return fail(none(choice.error()));
  const std::optional<core::WarmAddress>& chosen = *choice;
  if (!chosen) return fail(ErrorCode::exhausted, "the stock has no free address to lend");
  if (chosen->state == core::WarmState::lent) return *chosen;
  const auto moved = world_.cloud.move(cloud_address_of(*chosen), lend.to, deadline);
  if (!moved && moved.error().code == ErrorCode::unknown_outcome) return fail(moved.error());  // settle() finds out
  if (!moved) {
    // Not ours any more, perhaps, or where it was to go already: the cloud knows.
    if (moved.error().code == ErrorCode::not_found) {
      settle_lending(*chosen, true);
      TRY(const auto settled, decide<std::optional<core::WarmAddress>>(choose));
      const bool went = settled && settled->address == chosen->address && settled->state == core::WarmState::lent;
      if (went) return *settled;
      return fail(moved.error());
    }
    TRY_VOID(decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
      return warm::plan_not_lent(snapshot, chosen->address, chosen->request, now);
    }));
    return fail(moved.error());
  }
  TRY(const auto lent, decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
        return warm::plan_lent(snapshot, chosen->address, chosen->request, now);
      }));
  log(fmt::format("lent {} to {}{}", text_of(*chosen), lend.to.to_string(),
                  lend.node.empty() ? "" : " of " + lend.node));
  {
    const std::lock_guard lock(mutex_);
    ++tally_.lent;
  }
  if (lent.addresses.empty()) return fail(ErrorCode::conflict, text_of(*chosen) + " went another way meanwhile");
  return lent.addresses.front();
}

/// With leaving_ held.
void StockKeeper::settle_lending(const core::WarmAddress& address, bool may_still_come) {
  const auto there = world_.cloud.describe_this(address.vpc, address.subnet, address.address, cloud_deadline());
  if (!there) return note_trouble(there.error());
  const bool is_moved = *there && (*there)->mac.to_string() == address.peer;
  const auto interface = this->interface();  // not of the record, which may be of another card or node
  const bool is_here = *there && interface && (*there)->mac == interface->mac;
  // A move that was sent may still be done.
  if (!is_moved && may_still_come) return;
  if (is_here) {
    // In an older copy of the records it may be on its way still, and a pod have it since.
    const auto on_host = used_by_host(cloud_deadline());
    if (!on_host) return note_trouble(on_host.error());
    if (on_host->contains(address.address)) return;
  }
  const auto moved = decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
    return is_here ? warm::plan_not_lent(snapshot, address.address, address.request, now)
                   : warm::plan_lent(snapshot, address.address, address.request, now);
  });
  if (!moved) return note_trouble(moved.error());
  log(fmt::format("{}, which was being lent to {}, {}", text_of(address), address.peer, is_here ? "stayed" : "went"));
  if (is_here) world_.stocked();
}

}  // namespace croft::engine
