// How a StockKeeper compares its records with the cloud, the pods and the host, what it makes of the differences, and
// how it finds out what became of what a crash or a lost reply has left.

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "vpc/decide/assign.h"
#include "vpc/decide/reconcile.h"
#include "vpc/use/stock_keeper.h"

namespace croft::engine {
namespace {

namespace warm = core::warm;
using std::chrono::nanoseconds;

/// The most that an operator releases at once.
constexpr std::size_t kReleaseMax = warm::kChangesMax;
/// Addresses that one look asks the cloud for by name.
constexpr std::size_t kNamedMax = 64;

/// Calls are taken before the first look has ended, and a plugin waits a second before it works alone. A cloud that is
/// away says so at once; only one that hangs costs its time, once.
constexpr StockKeeper::LookLimits kFirstLook{std::chrono::seconds{5}, std::chrono::milliseconds{700},
                                             std::chrono::seconds{5}};
constexpr StockKeeper::LookLimits kRoundsLook{kCloudLimit, kCloudLimit, kCloudLimit};
constexpr StockKeeper::LookLimits kUsersLook{kCloudLimit, kCloudLimit, {}};
constexpr StockKeeper::LookLimits kHostLook{kCloudLimit, {}, {}};

}  // namespace

warm::Look StockKeeper::look(const LookLimits& limits, Deadline last) {
  const auto until = [&](nanoseconds span) {
    return Deadline{std::min(Deadline::after(world_.clock.now(), span).at_since_boot, last.at_since_boot)};
  };
  warm::Look look;
  look.begun = world_.clock.now();
  if (limits.cloud > nanoseconds{0}) {
    look.card = look_at_cloud(look, until(limits.cloud));
    // The others are not to blame where the cloud took all of the time.
    if (last.passed(world_.clock.now())) {
      look.silent.emplace_back("host and pods were not asked: the cloud took all of the time");
      return look;
    }
  }
  if (world_.host) {
    if (const auto used = world_.host(until(limits.host)); used) {
      const auto range = ask([this] { return actor_.state.range; });
      warm::take_host(look, {used->own.begin(), used->own.end()}, used->namespaces, range);
    } else {
      note_silent(look, "what the host uses is not known: ", used.error());
    }
  }
  if (world_.pods && limits.pods > nanoseconds{0}) {
    if (auto pods = world_.pods(until(limits.pods)); pods) {
      look.pods = *std::move(pods);
    } else {
      note_silent(look, "which pods live here is not known: ", pods.error());
    }
  }
  return look;
}

/// A look at the host alone.
warm::Look StockKeeper::look_here(Deadline deadline) {
  if (world_.host) learn_range(deadline);
  return look(kHostLook, deadline);
}

/// Whether somebody lives by an address that has no record. Error: refused_for_safety, naming who, or the source that
/// does not tell.
Result<void> StockKeeper::check_nobodys(const net::Address& address, Deadline deadline) {
  const std::string text = address.to_string();
  const auto refuse = [](std::string why) { return fail(ErrorCode::refused_for_safety, std::move(why)); };
  const warm::Look look = this->look(kUsersLook, deadline);
  if (const warm::LivePod* user = warm::user_of(look, address)) {
    return refuse(fmt::format("{} is in use: pod {}/{} has it", text, user->pod.namespace_name, user->pod.name));
  }
  if (warm::is_used_by_host(look, address)) {
    return refuse(fmt::format("{} is in use: an interface or a route of this node has it", text));
  }
  if (!look.silent.empty()) {
    return refuse(fmt::format("whether {} is in use is not known: {}; try again", text, look.silent.front()));
  }
  if (world_.fixed == nullptr) return {};
  const auto claimed = world_.fixed->all_fixed(deadline);
  if (!claimed) {
    return refuse(
        fmt::format("whether a VpcIpClaim names {} is not known: {}; try again", text, claimed.error().message));
  }
  if (std::ranges::find(*claimed, address) == claimed->end()) return {};
  return refuse(fmt::format("{} is promised to a pod: a VpcIpClaim names it", text));
}

/// One of its sources does not speak.
void StockKeeper::note_silent(warm::Look& look, const std::string& what, const Error& error) {
  note_problem(error);
  look.silent.push_back(what + error.message);
}

/// Sets the addresses without a record apart of which nothing may be concluded; where they may go back to the cloud,
/// quarantined ones too. Claims are asked for only where there is such an address: there seldom is one, and the list is
/// the whole cluster's.
void StockKeeper::set_apart(warm::Look& look, const StockView& view, bool may_go, Deadline deadline) {
  if (!look.cloud) return;
  std::set<net::Address> recorded, strays;
  for (const core::StockAddress& one : view.addresses) {
    const bool is_stray = may_go && one.state == core::StockAddressState::quarantined;
    if (one.state != core::StockAddressState::lent && !is_stray) recorded.insert(one.address);
  }
  for (const cloud::CloudAddress& given : *look.cloud) {
    if (recorded.contains(given.address)) continue;
    if (view.damaged.contains(core::warm_address_key(given.address).name)) {
      look.apart.insert(given.address);
    } else {
      strays.insert(given.address);
    }
  }
  if (strays.empty() || world_.fixed == nullptr) return;
  const auto claimed = world_.fixed->all_fixed(deadline);
  if (!claimed) {
    note_silent(look, "", claimed.error().in("whether claims name addresses that have no record is not known"));
    look.apart.merge(strays);
    return;
  }
  for (const net::Address& address : *claimed) {
    if (strays.contains(address)) look.apart.insert(address);
  }
}

/// Asks the cloud by name for what its list leaves out. A list may be cut, late or wrong; what it leaves out though the
/// cloud has it is added to it. Addresses that pods may get come first; the others are asked for another time.
void StockKeeper::confirm_missing(warm::Look& look, const StockView& view, const warm::Memory& memory,
                                  Deadline deadline) {
  const auto interface = this->interface();
  if (!look.cloud || !interface) return;
  std::set<net::Address> shown;
  for (const cloud::CloudAddress& given : *look.cloud) shown.insert(given.address);
  std::vector<const core::StockAddress*> missing;
  for (const core::StockAddress& one : view.addresses) {
    const bool is_elsewhere = is_leaving(one) || one.state == core::StockAddressState::lent;
    if (!is_elsewhere && memory.stood_at(one, look.begun) && !shown.contains(one.address)) missing.push_back(&one);
  }
  const auto rank = [](const core::StockAddress* one) {
    const bool may_be_given =
        one->state == core::StockAddressState::free || one->state == core::StockAddressState::cooling;
    return !may_be_given ? 2 : one->doubts.empty() ? 0 : 1;
  };
  std::ranges::stable_sort(missing, {}, rank);
  if (missing.size() > kNamedMax) missing.resize(kNamedMax);
  std::size_t left_out = 0;
  for (const core::StockAddress* one : missing) {
    const auto there = noted(world_.cloud.describe_address(one->vpc, one->subnet, one->address, deadline));
    if (!there) {
      // One that cannot be asked for keeps the others from no answer.
      if (deadline.passed(world_.clock.now())) break;
      continue;
    }
    if (*there && (*there)->mac == interface->mac) {
      look.cloud->push_back(**there);
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

void StockKeeper::tell(const warm::Correction& done) {
  using What = warm::Correction::What;
  const std::string address = done.address.to_string();
  switch (done.what) {
    case What::unsure:
      if (done.after->state == core::StockAddressState::held) {
        if (done.after->doubts.empty()) return;
        const core::PodIdentity& pod = done.after->pod;
        return log(fmt::format("{} is held by {}/{}: {}", address, pod.namespace_name, pod.name, done.why));
      }
      log(done.after->doubts.empty() ? fmt::format("{} may be given to pods again", address)
                                     : fmt::format("{} is given to no pod for now: {}", address, done.why));
      return;
    case What::follows:
      return log(
          fmt::format("{} lies on the interface {} by now, and is recorded so", address, done.after->mac.to_string()));
    case What::forgotten:
      return;
    default:
      log(fmt::format("{}: {}", address, done.why));
  }
  if (done.what == What::let_go) count(&KeeperTally::collected);
  if (done.what == What::gone) count(&KeeperTally::lost);
  if (done.what == What::set_aside) count(&KeeperTally::quarantined);
}

/// Writes what a pass found.
Result<void> StockKeeper::apply(const std::vector<warm::Correction>& corrections) {
  bool is_any_free_again = false;
  for (const std::vector<warm::Correction>& part : parts_of(corrections)) {
    TRY(const auto written, noted(decide(warm::plan_corrections, part)));
    for (const warm::Correction& done : written) {
      is_any_free_again =
          is_any_free_again || (done.what == warm::Correction::What::unsure && done.after->doubts.empty());
      tell(done);
    }
  }
  if (is_any_free_again) stocked();
  return {};
}

/// Beside step(), which may not have found the interface yet: the answer is what was found.
std::optional<cloud::Interface> StockKeeper::look_at_cloud(warm::Look& look, Deadline deadline) {
  constexpr const char* kSilent = "what the cloud has is not known: ";
  auto interface = this->interface();
  if (!interface) {
    auto found = world_.cloud.interface(deadline);
    if (!found) note_silent(look, kSilent, found.error());
    if (!found) return std::nullopt;
    interface = *std::move(found);
  }
  auto all = world_.cloud.describe(*interface, subnet_of(*interface), deadline);
  if (!all) note_silent(look, kSilent, all.error());
  if (all) look.cloud = *std::move(all);
  return interface;
}

void StockKeeper::look_before_serving() {
  // Reading finds out whether the files are others; what is read after that is of this epoch, or the next is another.
  if (const auto first = view_stock(context()); !first) return note_problem(first.error());
  const std::uint64_t epoch = world_.store.epoch();
  const auto view = view_stock(context());
  if (!view) return note_problem(view.error());
  const auto looked = [&] {
    ask([&] {
      StockState& state = actor_.state;
      if (options_.looks_first) actor_.take_term();
      if (options_.looks_first && state.term == 0) return;
      state.looked_at = epoch;
      state.stocked = true;
    });
  };
  if (std::ranges::none_of(view->addresses, is_on_interface)) return looked();
  warm::Memory memory;
  memory.note(view->addresses, world_.clock.now());
  const bool is_exchanged = ask([&] {
    const std::uint64_t before = actor_.state.looked_at;
    return before != StockState::kNoEpoch && before != epoch;
  });
  warm::Look look = this->look(is_exchanged ? kRoundsLook : kFirstLook, {});
  look.is_first = true;
  if (is_exchanged && !look.cloud) {
    // Unlike at a start there is evidence: only the cloud knows what was lent or given back since a copy was made.
    return note_problem({ErrorCode::unavailable,
                         "the store's files are others, perhaps an older copy, and no address is given to a pod before "
                         "the cloud has said what it has on this interface: " +
                             look.silent.front(),
                         {}});
  }
  if (look.card && is_of_other_card(*view, *look.card)) {
    // A machine was made anew on its old disk, or from an image of another one. Addresses recorded for another
    // interface than the node's record names are given to no pod (core::warm::plan_assign).
    if (const auto described = describe_here(*look.card); !described) return note_problem(described.error());
    log(fmt::format("the records are of the interface {}, and the node's is {} now", view->node->mac.to_string(),
                    look.card->mac.to_string()));
  }
  confirm_missing(look, *view, memory, Deadline::after(world_.clock.now(), kFirstLook.cloud));
  for (const std::string& why : look.silent) log("addresses are given to pods without that having been seen: " + why);
  set_apart(look, *view, false, Deadline::after(world_.clock.now(), kFirstLook.cloud));
  warm::Findings first =
      warm::reconcile(look, view->addresses, view->intents, std::move(memory), options_.reconcile, world_.clock.now());
  // The first look is enough to give an address to no pod, and to know the pods that got theirs without an agent.
  std::erase_if(first.corrections, [](const warm::Correction& one) {
    return one.what != warm::Correction::What::unsure && one.what != warm::Correction::What::follows &&
           one.what != warm::Correction::What::held;
  });
  const bool is_any = !first.corrections.empty();
  // Nothing is given before it is written: it is looked at again.
  if (!apply(first.corrections)) return;
  ask([&] {
    if (look.cloud) actor_.state.compared_with_cloud = epoch;
    if (is_any) actor_.state.look_again = true;
  });
  looked();
}

void StockKeeper::reconcile() {
  next_reconcile_ = world_.clock.now().since_boot + options_.reconcile_every;
  const std::uint64_t epoch = world_.store.epoch();
  warm::Look look = this->look(kRoundsLook, {});
  // Where the cloud does not answer the round goes on, and does not ask it again at once.
  look.is_first = ask([&] { return std::exchange(actor_.state.compared_with_cloud, epoch) != epoch; });
  auto view = view_stock(context());
  if (!view) return note_problem(view.error());
  confirm_missing(look, *view, seen_, cloud_deadline());
  set_apart(look, *view, false, cloud_deadline());
  for (const auto& [key, damage] : view->damaged) note_problem(damage);
  warm::Findings found =
      warm::reconcile(look, view->addresses, view->intents, seen_, options_.reconcile, world_.clock.now());
  seen_ = std::move(found.memory);
  if (found.kept_by_brake > 0) {
    note_problem({ErrorCode::unavailable,
                  fmt::format("the pods of {} held addresses, more than half of all, seem to be gone at once: what is "
                              "so for an hour is let go",
                              found.kept_by_brake),
                  {}});
  }
  if (!apply(found.corrections)) return;
  // A pod may be waiting for it, and mostly the next look has it right; less often where it stays so.
  doubt_look_ = found.is_any_unsure ? std::max<std::chrono::nanoseconds>(doubt_look_ * 2, kSettleAgain)
                                    : std::chrono::nanoseconds{0};
  doubt_look_ = std::min<std::chrono::nanoseconds>(doubt_look_, options_.reconcile_every);
  const auto now = world_.clock.now().since_boot;
  if (found.is_any_unsure) next_reconcile_ = std::min(next_reconcile_, now + doubt_look_);
}

Result<std::vector<core::StockAddress>> StockKeeper::unused(Deadline deadline) {
  warm::Look look = this->look(kRoundsLook, deadline);
  if (!look.cloud) return fail(last_problem().value_or(Error{ErrorCode::unavailable, "the cloud does not answer", {}}));
  const Now now = look_at_records();
  if (!now.view) return fail(now.view.error());
  const StockView& view = *now.view;
  if (look.silent.empty()) set_apart(look, view, true, deadline);
  // A silent source might have said that somebody lives by it.
  if (!look.silent.empty()) {
    return fail(ErrorCode::unavailable, "no address is known to be unused: " + look.silent.front());
  }
  std::vector<core::StockAddress> unused;
  const auto is_used = [&](const net::Address& address) {
    return look.apart.contains(address) || warm::is_used(look, address);
  };
  // A release or a loan that nobody heard the end of.
  const auto is_unsure = [&](const core::StockAddress& one) {
    return warm::is_unsure(one) || (is_leaving(one) && !now.leaving.contains(text_of(one)));
  };
  std::set<net::Address> listed;
  for (const cloud::CloudAddress& given : *look.cloud) {
    listed.insert(given.address);
    const core::StockAddress* known = view.find(given.address);
    const bool is_recorded = known != nullptr && known->state != core::StockAddressState::lent;
    // An address that a call under way brings has no record yet.
    if (is_recorded || !view.intents.empty() || is_used(given.address)) continue;
    unused.push_back(warm::record_of(given));  // as good as quarantined
    unused.back().why = "the cloud has it on this node's interface, and there is no record";
  }
  for (const core::StockAddress& one : view.addresses) {
    const bool is_aside = one.state == core::StockAddressState::quarantined && listed.contains(one.address);
    if ((is_aside || is_unsure(one)) && !is_used(one.address)) unused.push_back(one);
  }
  return unused;
}

Result<void> StockKeeper::release_unused(std::vector<net::Address> addresses, Deadline deadline) {
  if (addresses.empty()) return {};
  std::ranges::sort(addresses);
  addresses.erase(std::ranges::unique(addresses).begin(), addresses.end());
  if (addresses.size() > kReleaseMax) {
    return fail(invalid_argument(fmt::format("{} addresses at once are more than {}", addresses.size(), kReleaseMax)));
  }
  if (!ask([this] { return actor_.may_give(); })) {
    return fail(ErrorCode::unavailable,
                "host, pods and cloud have not been looked at since the store was opened, or its files were replaced; "
                "nothing was released: try again");
  }
  const auto looked = this->unused(deadline);
  if (!looked) {
    return fail(ErrorCode::refused_for_safety, looked.error().message + "; nothing was released: try again");
  }
  std::vector<warm::Correction> set_aside;  // those that have a record are quarantined already
  for (const net::Address& address : addresses) {
    const auto found = std::ranges::find(*looked, address, &core::StockAddress::address);
    if (found == looked->end()) {
      return fail(
          ErrorCode::refused_for_safety,
          fmt::format("{} is in use, in the stock, or not this node's: nothing was released", address.to_string()));
    }
    core::StockAddress record = warm::with_state(*found, core::StockAddressState::quarantined, world_.clock.now());
    record.created = record.since;
    record.why = "an operator released it";
    set_aside.push_back({address, warm::Correction::What::set_aside, std::nullopt, record, record.why});
  }
  TRY_VOID(apply(set_aside));
  UnderWay under_way(*this);
  TRY(const auto moved, under_way.decide_leaving({.addresses = addresses, .unused = true}));
  const auto gone = give_back(moved, deadline);
  // The operator who releases them has looked into what others answer for: asking is worth while again.
  ask([this] { actor_.state.is_due = true; });
  return gone;
}

// ---------------------------------------------------------------- what was left half done

void StockKeeper::settle(const StockView& first) {
  StockView view = first;
  if (!view.intents.empty()) settle_intents(view);
  static_cast<void>(probe_all(in_state(view, core::StockAddressState::probing)));  // told as the trouble
  if (!world_.host) return;  // a plugin alone leaves the rest to the agent
  const Now now = look_at_records();
  if (!now.view) return;
  std::optional<warm::Look> look;
  for (const core::StockAddress& one : now.view->addresses) {
    if (!is_leaving(one) || now.leaving.contains(text_of(one))) continue;
    // A call that nobody heard of may still come, and would take the address from under a pod.
    // A cloud that hangs keeps the round for one call, and not for each.
    if (!settle_leaving(one, seen_.seen_for(one, world_.clock.now()) < options_.doubt, look)) return;
  }
}

/// The records, and what calls of this process are making of them at the same moment: what is half done and no such
/// call's was left by one that ended.
StockKeeper::Now StockKeeper::look_at_records() {
  return ask([this] { return Now{view_stock(context()), actor_.state.leaving}; });
}

/// Finds out about an address whose release or move nobody heard of: the cloud is asked by name. One that it does not
/// have here has gone. One that it still has, and that no call may take any more, is free again, unless something here
/// uses it; the marks decide whether it is released once more. `look` is what host and pods said, once they were asked.
/// False: the cloud does not say.
bool StockKeeper::settle_leaving(const core::StockAddress& address, bool may_still_come,
                                 std::optional<warm::Look>& look) {
  const auto interface = this->interface();  // not of the record, which may be of another card or node
  if (!interface) return false;
  const auto there =
      noted(world_.cloud.describe_address(address.vpc, address.subnet, address.address, cloud_deadline()));
  if (!there) return false;
  const bool is_loan = address.state == core::StockAddressState::lending;
  const bool is_here = *there && (*there)->mac == interface->mac;
  const bool is_done = is_loan ? *there && (*there)->mac.to_string() == address.peer : !is_here;
  if (!is_done && may_still_come) return true;
  if (is_here) {
    // In an older copy of the records it may be on its way still, and a pod have it since.
    if (!look) {
      // Each has its own time: the subnet of a cloud that hangs is no trouble of the host's.
      learn_range(cloud_deadline());
      look = this->look(kUsersLook, {});
    }
    if (!look->silent.empty() || warm::is_used(*look, address.address)) return true;
  }
  const auto moved = ask([&]() -> Result<warm::Changed> {
    // Asked for again since, it may be on its way again.
    TRY(const auto view, view_stock(context()));
    if (std::ranges::find(view.addresses, address) == view.addresses.end()) return warm::Changed{};
    return decide([&](const core::Snapshot& snapshot, const Instant& now) {
      if (!is_loan) {
        return is_here ? warm::plan_not_returned(snapshot, {address.address}, {}, now)
                       : warm::plan_returned(snapshot, {address.address});
      }
      return is_here ? warm::plan_not_lent(snapshot, address.address, address.request, now)
                     : warm::plan_lent(snapshot, address.address, address.request, now);
    });
  });
  if (!noted(moved) || moved->empty()) return true;
  log(fmt::format("{}, which was being {}, {}", text_of(address), is_loan ? "lent to " + address.peer : "given back",
                  is_here ? "stayed" : "went"));
  if (is_here) stocked();
  // The subnet has it again, perhaps for a pod that waits.
  if (!is_here && !is_loan) ask([this] { actor_.state.gave_back = true; });
  return true;
}

/// Takes out what the cloud does not have here when it is asked by name. A record goes only after the cloud has let its
/// address go: asked for later than the records are read, no address that has left seems to have come. False: the cloud
/// does not say.
bool StockKeeper::leave_those_here(std::vector<warm::Given>& brought) {
  const auto interface = this->interface();
  if (!interface) return false;
  const Deadline deadline = cloud_deadline();
  std::vector<warm::Given> here;
  for (warm::Given& one : brought) {
    const auto there = noted(world_.cloud.describe_address(one.vpc, one.subnet, one.address, deadline));
    if (!there) return false;
    if (*there && (*there)->mac == interface->mac) here.push_back(std::move(one));
  }
  brought = std::move(here);
  return true;
}

void StockKeeper::settle_intents(StockView& view) {
  const std::vector<core::StockIntent> intents = view.intents;
  for (const core::StockIntent& intent : intents) {
    if (ask([&] { return actor_.state.asking.contains(intent.id); })) continue;
    const Instant begun = world_.clock.now();
    const bool is_of_this_boot = intent.begun_at.boot == begun.boot;
    const bool is_old = !is_of_this_boot || begun.since_boot - intent.begun_at.since_boot >= options_.doubt;
    // Another process may be making the call still: it finds the records of what it brought.
    warm::Look look = this->look(kRoundsLook, {});
    const auto now_there = view_stock(context());
    if (!now_there || !look.cloud || !look.host || !look.silent.empty()) return;
    set_apart(look, *now_there, false, cloud_deadline());
    if (!look.silent.empty()) return;
    auto brought = warm::brought_by(intent, now_there->addresses, look);
    if (!leave_those_here(brought)) return;
    const bool is_whole = brought.size() >= intent.count;
    if (brought.empty() && !is_old) continue;
    auto fit = checked(brought, cloud_deadline());
    // A promised address is no pod's but that one's, on whatever node it is by now: its agent asks for it by name.
    const std::string promise = warm::promised_pod_name(intent);
    if (!promise.empty()) {
      for (warm::Given& one : fit) one.unfit = warm::waits_for(promise);
    }
    const auto moved = decide(warm::plan_take, is_whole || is_old ? intent.id : std::string(), fit);
    if (!moved) return note_problem(moved.error());
    log(fmt::format("what was asked for at {} and not heard of brought {} of {} addresses{}{}", intent.id,
                    moved->size(), intent.count, is_whole || is_old ? "" : " so far",
                    promise.empty() ? "" : ", " + warm::waits_for(promise)));
    const bool is_loan = intent.what == core::StockIntent::What::borrow;
    count(is_loan ? &KeeperTally::borrowed : &KeeperTally::allocated, moved->size());
    auto after = view_stock(context());
    if (!after) return;
    view = *std::move(after);
  }
}

}  // namespace croft::engine
