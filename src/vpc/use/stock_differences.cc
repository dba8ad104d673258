// How a StockKeeper compares its records with the cloud, the pods and the host, and what it makes of the differences.

#include <algorithm>
#include <iterator>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "vpc/decide/reconcile.h"
#include "vpc/use/stock_keeper_parts.h"

namespace croft::engine {
namespace {

namespace warm = core::warm;

/// What an operator releases at once.
constexpr std::size_t kReleaseMax = warm::kMovesMax;
/// Addresses that one look asks the cloud for by name.
constexpr std::size_t kNamedMax = 64;

}  // namespace

warm::Look StockKeeper::look(bool with_pods, Deadline deadline) {
  warm::Look look;
  look.begun = world_.clock.now();
  const auto interface = this->interface();
  if (interface) {
    look.card = interface->mac;
    if (const auto all = world_.cloud.describe(*interface, subnet_of(*interface), deadline); all) {
      look.cloud.emplace();
      for (const cloud::CloudAddress& one : *all) look.cloud->push_back(given_of(one, false, ""));
    } else {
      note_trouble(all.error());
      look.silent.push_back("what the cloud has is not known: " + all.error().message);
    }
  }
  // The others are not to blame where the cloud took all of the time.
  if (deadline.passed(world_.clock.now())) {
    look.silent.emplace_back("host and pods were not asked: the cloud took all of the time");
    return look;
  }
  look_at_host(look, deadline);
  if (with_pods) look_at_pods(look, deadline);
  return look;
}

void StockKeeper::look_at_host(warm::Look& look, Deadline deadline) {
  if (world_.host != nullptr) {
    if (const auto used = world_.host->use(deadline); used) {
      std::optional<net::Prefix> range;
      bool is_news = false;
      {
        const std::lock_guard lock(mutex_);
        if (subnet_) range = look.range = subnet_->range;
        warm::take_host(look, {used->own.begin(), used->own.end()}, used->namespaces, range);
        is_news = std::exchange(told_unheard_, look.namespaces_unheard) != look.namespaces_unheard;
      }
      if (is_news && look.namespaces_unheard > 0) {
        log(
            fmt::format("{} network namespaces say that they have more than {} addresses of the subnet each: what they "
                        "say counts for none",
                        look.namespaces_unheard, warm::kSaidByOnePodMax));
      }
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
    const Error error = claimed.error().in("whether claims name addresses that have no record is not known");
    note_trouble(error);
    look.silent.push_back(error.message);
    look.apart.merge(strays);
    return;
  }
  for (const net::Address& address : *claimed) {
    if (strays.contains(address)) look.apart.insert(address);
  }
}

/// Asks the cloud by name for what its list leaves out. A list may be cut, late or wrong; what it leaves out though the
/// cloud has it is added to it. What can be given to pods comes first; the others are asked for another time.
void StockKeeper::confirm_missing(warm::Look& look, const StockView& view, const warm::Standing& standing,
                                  Deadline deadline) {
  const auto interface = this->interface();
  if (!look.cloud || !interface) return;
  std::set<net::Address> shown;
  for (const warm::Given& given : *look.cloud) shown.insert(given.address);
  std::vector<const core::WarmAddress*> missing;
  for (const core::WarmAddress& one : view.addresses) {
    const bool is_elsewhere = one.state == core::WarmState::releasing || one.state == core::WarmState::lending ||
                              one.state == core::WarmState::lent;
    if (!is_elsewhere && standing.stood_at(one, look.begun) && !shown.contains(one.address)) missing.push_back(&one);
  }
  const auto may_be_given = [](const core::WarmAddress* one) {
    return one->state == core::WarmState::free || one->state == core::WarmState::cooling;
  };
  std::ranges::stable_partition(missing, may_be_given);
  if (missing.size() > kNamedMax) missing.resize(kNamedMax);
  std::size_t left_out = 0;
  for (const core::WarmAddress* one : missing) {
    const auto there = world_.cloud.describe_this(one->vpc, one->subnet, one->address, deadline);
    if (!there) {
      note_trouble(there.error());
      break;
    }
    if (*there && (*there)->mac == interface->mac) {
      look.cloud->push_back(given_of(**there, false, ""));
      ++left_out;
    } else {
      look.denied.insert(one->address);
    }
  }
  if (left_out == 0) return;
  log(
      fmt::format("the cloud's list leaves out {} of the stock's addresses, which it has when it is asked for them by "
                  "name",
                  left_out));
}

/// A card that was replaced may have brought its addresses along: what the cloud has on the interface of now is
/// recorded as that one's, or it could be neither lent nor given back.
void StockKeeper::follow_interface(const warm::Look& look, StockView& view) {
  if (!look.cloud) return;
  bool is_any = false;
  for (std::size_t begin = 0; begin < look.cloud->size(); begin += warm::kMovesMax) {
    const std::vector<warm::Given> part(
        look.cloud->begin() + static_cast<std::ptrdiff_t>(begin),
        look.cloud->begin() + static_cast<std::ptrdiff_t>(std::min(begin + warm::kMovesMax, look.cloud->size())));
    const auto differs = [&](const core::WarmAddress& one) {
      return std::ranges::any_of(part, [&](const warm::Given& given) { return warm::lies_elsewhere(one, given); });
    };
    if (std::ranges::none_of(view.addresses, differs)) continue;
    const auto moved = decide<warm::Moved>(
        [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_follow(snapshot, part); });
    if (!moved) return note_trouble(moved.error());
    if (moved->addresses.empty()) continue;
    is_any = true;
    log(fmt::format("{} addresses lie on the interface {} by now, and are recorded so", moved->addresses.size(),
                    part.front().mac.to_string()));
  }
  if (!is_any) return;
  auto after = view_stock(context());
  if (after) view = *std::move(after);
}

/// Writes what speaks against addresses, or does not any more: nobody is given one of them meanwhile.
Result<void> StockKeeper::note_doubts(const std::vector<warm::DoubtChange>& changes) {
  bool is_any_free_again = false;
  for (std::size_t begin = 0; begin < changes.size(); begin += warm::kMovesMax) {
    const std::vector<warm::DoubtChange> part(
        changes.begin() + static_cast<std::ptrdiff_t>(begin),
        changes.begin() + static_cast<std::ptrdiff_t>(std::min(begin + warm::kMovesMax, changes.size())));
    const auto written = decide<warm::Moved>(
        [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_doubts(snapshot, part); });
    if (!written) {
      note_trouble(written.error());
      return fail(written.error());
    }
    for (const core::WarmAddress& one : written->addresses) {
      const auto change = std::ranges::find(part, one.address, [](const auto& all) { return all.record.address; });
      is_any_free_again |= one.doubts.empty();
      // What a pod has is told with each look.
      if (one.state == core::WarmState::held) continue;
      log(one.doubts.empty() ? fmt::format("{} may be given to pods again", text_of(one))
                             : fmt::format("{} is given to no pod for now: {}", text_of(one), change->detail));
    }
  }
  if (is_any_free_again) world_.stocked();
  return {};
}

/// Beside step(), which may not have found the interface yet: the answer is what was found.
std::optional<cloud::Interface> StockKeeper::look_at_cloud(warm::Look& look, Deadline deadline) {
  auto interface = this->interface();
  if (!interface) {
    auto found = world_.cloud.interface(deadline);
    if (!found) {
      look.silent.push_back("what the cloud has is not known: " + found.error().message);
      return std::nullopt;
    }
    interface = *std::move(found);
  }
  const auto all = world_.cloud.describe(*interface, subnet_of(*interface), deadline);
  if (!all) {
    look.silent.push_back("what the cloud has is not known: " + all.error().message);
    return interface;
  }
  look.cloud.emplace();
  for (const cloud::CloudAddress& one : *all) look.cloud->push_back(given_of(one, false, ""));
  return interface;
}

bool StockKeeper::tell_if_another(std::uint64_t epoch) {
  if (looked_at_ == kNoEpoch || looked_at_ == epoch) return false;
  if (told_another_.exchange(epoch) != epoch) {
    log("the store's files are others, perhaps an older copy: no address is given to a pod until host, pods and cloud "
        "were looked at");
  }
  return true;
}

void StockKeeper::look_before_serving(Deadline host_deadline, std::chrono::nanoseconds pods_limit,
                                      std::chrono::nanoseconds cloud_limit) {
  const std::unique_lock alone(first_look_, std::try_to_lock);
  if (!alone.owns_lock()) return;
  // Reading finds out whether the files are others; what is read after that is of this epoch, or the next is another.
  if (const auto first = view_stock(context()); !first) return note_trouble(first.error());
  const std::uint64_t epoch = world_.store.epoch();
  const auto view = view_stock(context());
  if (!view) return note_trouble(view.error());
  const auto looked = [&] {
    looked_at_ = epoch;
    world_.stocked();
  };
  const bool is_another = tell_if_another(epoch);
  if (std::ranges::none_of(view->addresses, is_on_interface)) return looked();
  warm::Look look, of_cloud;
  look.begun = of_cloud.begun = world_.clock.now();
  warm::Standing standing;
  standing.note(view->addresses, look.begun);
  const Deadline cloud_deadline = Deadline::after(look.begun, cloud_limit);
  std::optional<cloud::Interface> found;
  std::thread asks_cloud;
  if (cloud_limit.count() > 0) {
    asks_cloud = std::thread([&] { found = look_at_cloud(of_cloud, cloud_deadline); });
  }
  look_at_host(look, host_deadline);
  look_at_pods(look, Deadline::after(world_.clock.now(), pods_limit));
  if (asks_cloud.joinable()) asks_cloud.join();
  look.cloud = std::move(of_cloud.cloud);
  std::ranges::move(of_cloud.silent, std::back_inserter(look.silent));
  if (const auto by_a_round = interface()) found = by_a_round;
  if (found) look.card = found->mac;
  const bool is_other_card = found && is_of_other_card(*view, *found);
  if (is_other_card) {
    // A machine was made anew on its old disk, or from an image of another one. What is recorded of another interface
    // than the node's record names is given to no pod (core::warm::plan_assign).
    if (const auto described = describe_here(*found); !described) return note_trouble(described.error());
    log(fmt::format("the records are of the interface {}, and the node's is {} now", view->node->mac.to_string(),
                    found->mac.to_string()));
  }
  confirm_missing(look, *view, standing, cloud_deadline);
  if (is_another && cloud_limit.count() > 0 && !look.cloud) {
    // What was lent or given back since the copy was made only the cloud knows.
    return note_trouble({ErrorCode::unavailable,
                         "the store's files are others, perhaps an older copy, and no address is given to a pod before "
                         "the cloud has said what it has on this interface: " +
                             (look.silent.empty() ? std::string("it has another interface") : look.silent.back()),
                         {}});
  }
  for (const std::string& why : look.silent) log("addresses are given to pods without that having been seen: " + why);
  const Instant now = world_.clock.now();
  const warm::Judgement judged =
      warm::judge(view->addresses, view->intents, look, standing, warm::Seen{}, options_.reconcile, now);
  // What is not written is given to nobody: it is looked at again.
  if (!note_doubts(judged.doubts)) return;
  if (is_other_card) {
    StockView along = *view;
    follow_interface(look, along);
  }
  if (look.cloud) compared_with_cloud_ = epoch;
  if (!judged.doubts.empty()) look_again_ = true;
  looked();
}

void StockKeeper::reconcile() {
  next_reconcile_ = world_.clock.now().since_boot + options_.reconcile_every;
  const std::uint64_t epoch = world_.store.epoch();
  const bool is_another = tell_if_another(epoch);
  warm::Look look = this->look(true, cloud_deadline());
  auto view = view_stock(context());
  if (!view) return note_trouble(view.error());
  // Where the cloud does not answer the round goes on, and does not ask it again at once.
  compared_with_cloud_ = epoch;
  confirm_missing(look, *view, standing_, cloud_deadline());
  follow_interface(look, *view);
  const bool may_go = options_.release_unknown_after.count() > 0;
  set_apart(look, *view, may_go, cloud_deadline());
  for (const Error& damage : view->damaged) note_trouble(damage);
  const Instant now = world_.clock.now();
  warm::Judgement judged = warm::judge(view->addresses, view->intents, look, standing_, seen_, options_.reconcile, now);
  seen_ = std::move(judged.seen);
  if (judged.brake) log(*judged.brake);
  if (judged.cloud_brake) log(*judged.cloud_brake);
  if (judged.left_out && told_left_out_ != judged.left_out) log(*judged.left_out);
  told_left_out_ = std::move(judged.left_out);
  if (!note_doubts(judged.doubts)) return;
  // It had more time than the look before serving, for which the cloud may be too slow.
  if (is_another && look.cloud && look.host) {
    looked_at_ = epoch;
    world_.stocked();
  }
  const bool is_any_doubted = std::ranges::any_of(view->addresses, [&](const core::WarmAddress& one) {
    const auto changed =
        std::ranges::find(judged.doubts, one.address, [](const auto& all) { return all.record.address; });
    return one.state != core::WarmState::held &&
           !(changed != judged.doubts.end() ? changed->doubts : one.doubts).empty();
  });
  // A pod may be waiting for it, and mostly the next look has it right; less often where it stays so.
  doubt_look_ =
      is_any_doubted ? std::max<std::chrono::nanoseconds>(doubt_look_ * 2, kSettleAgain) : std::chrono::nanoseconds{0};
  doubt_look_ = std::min<std::chrono::nanoseconds>(doubt_look_, options_.reconcile_every);
  if (is_any_doubted) next_reconcile_ = std::min(next_reconcile_, world_.clock.now().since_boot + doubt_look_);
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
    const bool is_quarantined = finding.odd == warm::Odd::unknown || finding.odd == warm::Odd::used_by_host;
    tally_.quarantined += is_quarantined ? 1U : 0U;
    const bool is_rebuilt = finding.odd == warm::Odd::pod_unrecorded || finding.odd == warm::Odd::used_by_pod;
    tally_.rebuilt += is_rebuilt ? 1U : 0U;
  }
  if (!may_go || !look.cloud || !look.host || !look.pods) return;
  std::vector<net::Address> unknown;
  for (const core::WarmAddress& one : in_state(*view, core::WarmState::quarantined)) {
    const bool is_old = standing_.age(one, now) >= options_.release_unknown_after;
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
  if (!look.silent.empty()) {
    return fail(ErrorCode::unavailable, "no address is known to be unused: " + look.silent.front());
  }
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
    unused.push_back(is_recorded ? *known : warm::record_of(given));  // as good as quarantined
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
  const auto gone = give_back(moved.addresses, deadline);
  // Who releases them has looked into it: asking is worth while again.
  const bool was_conflicting = std::ranges::any_of(addresses, [&](const net::Address& address) {
    return std::ranges::find(unused, address, &core::WarmAddress::address)->other_mac.has_value();
  });
  if (gone && was_conflicting) {
    released_conflicts_ = true;
    {
      const std::lock_guard lock(mutex_);
      is_due_ = true;
    }
    wake_.notify_all();
  }
  return gone;
}

}  // namespace croft::engine
