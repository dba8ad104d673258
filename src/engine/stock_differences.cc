// How a StockKeeper compares its records with the cloud, the pods and the host, and what it makes of the differences.

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/warm/reconcile.h"
#include "engine/stock_keeper_parts.h"

namespace croft::engine {
namespace {

namespace warm = core::warm;

/// What an operator releases at once.
constexpr std::size_t kReleaseMax = warm::kMovesMax;

core::WarmAddress unused_of(const warm::Given& given) {
  core::WarmAddress address;
  address.address = given.address;
  address.prefix_length = given.prefix_length;
  address.gateway = given.gateway;
  address.mac = given.mac;
  address.vpc = given.vpc;
  address.subnet = given.subnet;
  address.object = given.object;
  address.state = core::WarmState::quarantined;
  return address;
}

}  // namespace

warm::Look StockKeeper::look(bool with_pods, Deadline deadline) {
  warm::Look look;
  look.begun = world_.clock.now();
  const auto interface = this->interface();
  if (interface) {
    if (const auto all = world_.cloud.describe(*interface, subnet_of(*interface), deadline); all) {
      look.cloud.emplace();
      for (const cloud::CloudAddress& one : *all) look.cloud->push_back(given_of(one, false, ""));
    } else {
      note_trouble(all.error());
      look.silent.push_back("what the cloud has is not known: " + all.error().message);
    }
  }
  look_at_host(look, deadline);
  if (with_pods) look_at_pods(look, deadline);
  return look;
}

void StockKeeper::look_at_host(warm::Look& look, Deadline deadline) {
  if (world_.host != nullptr) {
    if (const auto used = world_.host->in_use(deadline); used) {
      look.host.emplace(used->begin(), used->end());
    } else {
      note_trouble(used.error());
      look.silent.push_back("what the host uses is not known: " + used.error().message);
    }
  }
}

void StockKeeper::look_at_pods(warm::Look& look, Deadline deadline) {
  if (world_.pods != nullptr) {
    if (const auto pods = world_.pods->pods(deadline); pods) {
      look.pods.emplace();
      for (const NodePods::Pod& pod : *pods) {
        if (!pod.host_network) look.pods->push_back({pod.pod, pod.addresses, pod.ended});
      }
    } else {
      note_trouble(pods.error());
      look.silent.push_back("which pods live here is not known: " + pods.error().message);
    }
  }
}

/// Of what has no record, what nothing may be concluded of; where it may go back to the cloud, of what is quarantined
/// too. Claims are asked for only where there is such an address: there seldom is one, and the list is the whole
/// cluster's.
void StockKeeper::set_apart(warm::Look& look, const StockView& view, bool may_go, Deadline deadline) {
  if (!look.cloud) return;
  std::set<net::Address> recorded, strays;
  for (const core::WarmAddress& one : view.addresses) {
    const bool is_stray = may_go && one.state == core::WarmState::quarantined;
    if (one.state != core::WarmState::lent && !is_stray) recorded.insert(one.address);
  }
  for (const warm::Given& given : *look.cloud) {
    if (recorded.contains(given.address)) continue;
    if (view.damaged_keys.contains(core::warm_address_key(given.address).name)) {
      look.apart.insert(given.address);
    } else {
      strays.insert(given.address);
    }
  }
  if (strays.empty() || world_.claims == nullptr) return;
  const auto claimed = world_.claims->claimed(deadline);
  if (!claimed) {
    note_trouble(claimed.error().in("whether claims name addresses that have no record is not known"));
    look.apart.merge(strays);
    return;
  }
  for (const net::Address& address : *claimed) {
    if (strays.contains(address)) look.apart.insert(address);
  }
}

void StockKeeper::reconcile() {
  next_reconcile_ = world_.clock.now().since_boot + options_.reconcile_every;
  warm::Look look = this->look(true, cloud_deadline());
  const auto view = view_stock(context());
  if (!view) return note_trouble(view.error());
  const bool may_go = options_.release_unknown_after.count() > 0;
  set_apart(look, *view, may_go, cloud_deadline());
  for (const Error& damage : view->damaged) note_trouble(damage);
  const Instant now = world_.clock.now();
  warm::Judgement judged = warm::judge(view->addresses, view->intents, look, seen_, options_.reconcile, now);
  seen_ = std::move(judged.seen);
  if (judged.brake) log(*judged.brake);
  for (const warm::Finding& finding : judged.findings) {
    if (finding.odd == warm::Odd::held_not_in_cloud) {
      log(fmt::format("{} is held by {}/{}: {}", finding.address.to_string(), finding.record->pod.namespace_name,
                      finding.record->pod.name, finding.detail));
    }
    if (!finding.is_due) continue;
    const auto acted = decide<bool>([&](const core::Snapshot& snapshot, const Instant& moment) {
      return warm::plan_act(snapshot, finding, options_.cooldown, moment);
    });
    if (!acted) {
      note_trouble(acted.error());
      if (acted.error().code == ErrorCode::corrupt) continue;  // one record: the others are as they are
      return;
    }
    if (!*acted) continue;
    log(fmt::format("{}: {}: {}", finding.address.to_string(), warm::name_of(finding.odd), finding.detail));
    const std::lock_guard lock(mutex_);
    tally_.collected += finding.odd == warm::Odd::pod_gone ? 1U : 0U;
    tally_.lost += finding.odd == warm::Odd::not_in_cloud ? 1U : 0U;
    tally_.quarantined += finding.odd == warm::Odd::unknown ? 1U : 0U;
    tally_.rebuilt += finding.odd == warm::Odd::pod_unrecorded ? 1U : 0U;
  }
  if (!may_go || !look.cloud || !look.host || !look.pods) return;
  std::vector<net::Address> unknown;
  for (const core::WarmAddress& one : in_state(*view, core::WarmState::quarantined)) {
    const bool is_old = now.wall - one.since >= options_.release_unknown_after;
    const bool is_used = look.host->contains(one.address) || look.apart.contains(one.address) ||
                         std::ranges::any_of(*look.pods, [&](const warm::LivePod& pod) {
                           return std::ranges::find(pod.addresses, one.address) != pod.addresses.end();
                         });
    if (is_old && !is_used && unknown.size() < warm::kMovesMax) unknown.push_back(one.address);
  }
  if (unknown.empty()) return;
  const std::unique_lock leaving(leaving_, std::try_to_lock);
  if (!leaving.owns_lock()) return;
  const auto moved = decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& moment) {
    return warm::plan_give_back(snapshot, {.addresses = unknown, .quarantined = true}, moment);
  });
  if (!moved) return note_trouble(moved.error());
  if (const auto gone = give_back(moved->addresses, cloud_deadline()); !gone) note_trouble(gone.error());
}

Result<std::vector<core::WarmAddress>> StockKeeper::unused(Deadline deadline) {
  warm::Look look = this->look(true, deadline);
  if (!look.cloud) return fail(trouble().value_or(Error{ErrorCode::unavailable, "the cloud does not answer", {}}));
  // What a silent source would have said is that somebody lives by it.
  if (!look.silent.empty()) {
    return fail(ErrorCode::unavailable, "no address is known to be unused: " + look.silent.front());
  }
  TRY(const auto view, view_stock(context()));
  set_apart(look, view, true, deadline);
  std::vector<core::WarmAddress> unused;
  const auto is_used = [&](const net::Address& address) {
    if (look.apart.contains(address)) return true;
    if (look.host && look.host->contains(address)) return true;
    return look.pods && std::ranges::any_of(*look.pods, [&](const warm::LivePod& pod) {
             return !pod.ended && std::ranges::find(pod.addresses, address) != pod.addresses.end();
           });
  };
  for (const warm::Given& given : *look.cloud) {
    const auto known = std::ranges::find(view.addresses, given.address, &core::WarmAddress::address);
    const bool is_recorded = known != view.addresses.end() && known->state != core::WarmState::lent;
    if (is_recorded && known->state != core::WarmState::quarantined) continue;
    // What a call that is under way brings has no record yet.
    if (!is_recorded && !view.intents.empty()) continue;
    if (is_used(given.address)) continue;
    unused.push_back(is_recorded ? *known : unused_of(given));
  }
  return unused;
}

Result<void> StockKeeper::release_unused(const std::vector<net::Address>& addresses, Deadline deadline) {
  if (addresses.empty()) return {};
  if (addresses.size() > kReleaseMax) {
    return fail(invalid_argument(fmt::format("{} addresses at once are more than {}", addresses.size(), kReleaseMax)));
  }
  const std::unique_lock leaving(leaving_, std::chrono::seconds{5});
  if (!leaving.owns_lock()) return fail(busy());
  const auto looked = this->unused(deadline);
  if (!looked) {
    return fail(ErrorCode::refused_for_safety, looked.error().message + "; nothing was released, try again");
  }
  const std::vector<core::WarmAddress>& unused = *looked;
  for (const net::Address& address : addresses) {
    if (std::ranges::find(unused, address, &core::WarmAddress::address) == unused.end()) {
      return fail(
          ErrorCode::refused_for_safety,
          fmt::format("{} is in use, in the stock, or not this node's: nothing was released", address.to_string()));
    }
  }
  for (const net::Address& address : addresses) {
    const auto& found = *std::ranges::find(unused, address, &core::WarmAddress::address);
    warm::Finding finding{address, warm::Odd::unknown, "an operator released it", true};
    finding.given = given_of(cloud_address_of(found), false, "");
    TRY_VOID(decide<bool>([&](const core::Snapshot& snapshot, const Instant& now) {
      return warm::plan_act(snapshot, finding, options_.cooldown, now);
    }));
  }
  TRY(const auto moved, decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
        return warm::plan_give_back(snapshot, {.addresses = addresses, .quarantined = true}, now);
      }));
  return give_back(moved.addresses, deadline);
}

}  // namespace croft::engine
