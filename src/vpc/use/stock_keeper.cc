#include "vpc/use/stock_keeper.h"

#include <fmt/format.h>

// A keeper's rounds and its interface; how it gets addresses from the cloud, asks the wire about them, and gives them
// back.

namespace croft::engine {
namespace {

namespace warm = core::warm;
using std::chrono::nanoseconds;

constexpr nanoseconds kFindAgain = std::chrono::seconds{2};

warm::Outcome outcome_of(ErrorCode code) {
  return code == ErrorCode::exhausted                  ? warm::Outcome::exhausted
         : code == ErrorCode::refused_by_configuration ? warm::Outcome::refused
                                                       : warm::Outcome::away;
}

double jitter_of(Random& random) { return static_cast<double>(random.next() % 1024) / 1024; }

}  // namespace

StockKeeper::StockKeeper(const KeeperWorld& world, KeeperOptions options)
    : world_(world), options_(std::move(options)), actor_(world_, options_.looks_first) {}

/// Takes a note that a message has left for the next round.
bool StockKeeper::take(bool StockState::*flag) {
  return ask([&] { return std::exchange(actor_.state.*flag, false); });
}

nanoseconds StockKeeper::step() {
  if (!find_interface()) return world_.clock.now().since_boot + kFindAgain;
  auto view = noted(view_stock(context()));
  if (!view) return world_.clock.now().since_boot + kFindAgain;
  if (take(&StockState::read_anew)) {
    seen_ = {};
    next_reconcile_ = nanoseconds{0};
  }
  seen_.note(view->addresses, world_.clock.now());
  settle(*view);
  view = view_stock(context());
  if (!view) return world_.clock.now().since_boot + kFindAgain;
  // The records may be an older copy: loans since then are found out before seconds are spent on asking for more.
  const bool is_any_ours = std::ranges::any_of(view->addresses, is_on_interface);
  if (take(&StockState::look_again)) next_reconcile_ = nanoseconds{0};
  if (is_any_ours && ask([this] { return actor_.state.compared_with_cloud; }) != world_.store.epoch()) {
    reconcile();
    view = view_stock(context());
    if (!view) return world_.clock.now().since_boot + kFindAgain;
  }

  if (take(&StockState::gave_back)) memory_ = warm::without_shortage(memory_);
  const Instant now = world_.clock.now();
  seen_.note(view->addresses, now);
  warm::Counts counts = warm::counts_of(view->addresses, now);
  std::uint32_t waiting = 0;
  ask([&] {
    for (const core::StockIntent& intent : view->intents) {
      (actor_.state.asking.contains(intent.id) ? counts.asked : counts.unheard) += intent.count;
    }
    waiting = actor_.state.waiting;
  });
  const warm::Wish wish = warm::plan_stock(counts, options_.marks, waiting, memory_, now);
  if (wish.why != told_wish_ && (wish.grow > 0 || wish.shrink > 0)) {
    log(fmt::format(
        "{}: {}", wish.grow > 0 ? fmt::format("asking for {}", wish.grow) : fmt::format("giving back {}", wish.shrink),
        wish.why));
  }
  if (wish.is_at_limit && (waiting > 0 || wish.why != told_wish_)) note_problem({ErrorCode::exhausted, wish.why, {}});
  told_wish_ = wish.why;
  nanoseconds next = wish.look_again;
  if (wish.grow > 0) {
    grow(wish.grow);
    // The next batch, or the rest after a failure, is looked at at once.
    next = std::max(world_.clock.now().since_boot, waiting > 0 ? memory_.one_not_before : memory_.grow_not_before);
  } else if (wish.shrink > 0 && !ask([this] { return actor_.may_give(); })) {
    next = world_.clock.now().since_boot + kLookIsOver;
  } else if (wish.shrink > 0) {
    shrink(wish.shrink);
    next = memory_.shrink_not_before;
  }
  if (waiting > 0 && warm::may_borrow(counts, options_.marks, memory_) && borrow()) {
    next = std::min(next, world_.clock.now().since_boot + kSettleAgain);
  }
  const bool is_unsettled = !view->intents.empty() || !in_state(*view, core::StockAddressState::releasing).empty() ||
                            !in_state(*view, core::StockAddressState::lending).empty() ||
                            !in_state(*view, core::StockAddressState::probing).empty();
  if (is_unsettled) next = std::min(next, world_.clock.now().since_boot + kSettleAgain);
  if (world_.clock.now().since_boot >= next_reconcile_) reconcile();
  ask([&] {
    actor_.state.seen.wish = wish.why;
    actor_.state.seen.grow_not_before = memory_.grow_not_before;
  });
  return std::min(next, next_reconcile_);
}

bool StockKeeper::find_interface() {
  if (const auto known = interface()) return begin_here(*known);
  auto found = noted(world_.cloud.interface(cloud_deadline()));
  if (!found || !begin_here(*found)) return false;
  log(fmt::format("interface {} in subnet {} of {}", found->mac.to_string(), subnet_of(*found), found->vpc));
  ask([&] { actor_.state.seen.interface = *std::move(found); });
  return true;
}

/// Writes what the node is, for who works without the agent, and for what an ADD may get.
Result<void> StockKeeper::describe_here(const cloud::Interface& interface) {
  core::StockNode node{options_.node,    interface.mac,  interface.vpc,    subnet_of(interface),
                       interface.object, interface.zone, interface.region, interface.project};
  node.low = options_.marks.low;
  node.high = options_.marks.high;
  if (options_.marks.node_max > 0) node.node_max = options_.marks.node_max;
  node.cooldown_seconds = static_cast<std::uint32_t>(options_.reconcile.cooldown.count());
  TRY_VOID(actor_.decide_in_any_term(warm::plan_describe, node));
  return {};
}

/// Most rounds find that nothing is to be written.
bool StockKeeper::begin_here(const cloud::Interface& interface) {
  return noted(describe_here(interface)) && noted(decide(warm::plan_mark_clocks));
}

core::StockIntent StockKeeper::new_intent(core::StockIntent::What what, std::uint32_t count) const {
  const Instant now = world_.clock.now();
  core::StockIntent intent;
  const std::uint64_t half = world_.random.next();
  intent.id = fmt::format("{:016x}{:016x}", half, world_.random.next());
  intent.what = what;
  intent.count = count;
  const auto interface = this->interface();
  intent.mac = interface ? interface->mac : net::Mac{};
  intent.subnet = interface ? subnet_of(*interface) : "";
  intent.begun = now.wall;
  intent.begun_at = {now.boot, now.since_boot};
  return intent;
}

// ---------------------------------------------------------------- in

Result<void> StockKeeper::fetch(Deadline deadline) {
  TRY(auto interface, world_.cloud.interface(deadline));
  ask([&] {
    actor_.state.seen.interface = std::move(interface);
    actor_.state.seen.last_problem.reset();
  });
  TRY(auto view, view_stock(context()));
  const auto is = this->interface();
  if (is_of_other_card(view, *is)) {
    // Its card was replaced while no agent ran: what comes to the new one would be nobody's.
    view.node->mac = is->mac;
    view.node->object = is->object;
    TRY_VOID(decide(warm::plan_describe, *view.node));
  }
  const auto free_ones = [&](const StockView& all) {
    const Instant now = world_.clock.now();
    return std::ranges::count_if(all.addresses, [&](const core::StockAddress& one) {
      return core::is_free_at(one, now) && one.verified.has_value() && one.mac == is->mac;
    });
  };
  const auto before = free_ones(view);
  // An address that the wire cannot be asked about is no pod's, and more of them would not be either: nothing is asked
  // for.
  if (const auto asked = probe_all(in_state(view, core::StockAddressState::probing)); !asked)
    return fail(asked.error());
  TRY(view, view_stock(context()));
  // A call that another left half done may have brought what is wanted here.
  settle(view);
  TRY(view, view_stock(context()));
  if (free_ones(view) > before) return {};
  warm::Marks marks = options_.marks;
  if (view.node && !view.node->node.empty()) marks.high = view.node->high;
  if (const auto why = warm::why_not_more(view.addresses, marks, world_.clock.now())) {
    return fail(ErrorCode::exhausted, *why);
  }
  grow(1);
  if (const auto trouble = this->last_problem()) return fail(*trouble);
  return {};
}

Result<cloud::Interface> StockKeeper::known_interface() const {
  if (const auto interface = this->interface()) return *interface;
  return fail(last_problem().value_or(Error{ErrorCode::unavailable, "the agent is still starting", {}}));
}

void StockKeeper::grow(std::uint32_t count) {
  const cloud::Interface interface = *this->interface();
  const core::StockIntent intent = new_intent(core::StockIntent::What::allocate, count);
  const UnderWay under_way(*this, intent.id);
  const auto done = [&](warm::Outcome outcome) {
    memory_ = warm::after_growing(memory_, outcome, jitter_of(world_.random), world_.clock.now());
  };
  if (!noted(begin(intent))) return done(warm::Outcome::away);
  const auto since = world_.clock.now().since_boot;
  const auto given = noted(world_.cloud.allocate(interface, intent.subnet, count, cloud_deadline()));
  if (!given) {
    done(outcome_of(given.error().code));
    if (given.error().code == ErrorCode::unknown_outcome) return;  // settle() finds out
    static_cast<void>(noted(drop(intent.id)));
    return;
  }
  ask([this] { actor_.state.seen.last_problem.reset(); });  // but for what is found out from here on
  const auto taken = take(intent.id, *given, world_.probe == nullptr, "");
  if (!taken) return done(warm::Outcome::away);  // as above
  // An address with a record came for a call whose reply was lost: it is settled so, and says nothing of others.
  const std::size_t came = given->size() - std::min(given->size(), taken->recorded);
  const warm::Outcome outcome = warm::judge_fill(came, taken->usable);
  done(outcome);
  if (outcome == warm::Outcome::conflict) {
    note_problem({ErrorCode::unavailable,
                  fmt::format("of {} addresses that the cloud gave {} may be given to pods, the others are quarantined "
                              "or doubted: one more is asked for after a rest",
                              given->size(), taken->usable),
                  {}});
  }
  ask([&] {
    KeeperTally& tally = actor_.state.seen.keeper;
    tally.allocated += taken->usable;
    if (taken->usable > 0) tally.last_fill = world_.clock.now().since_boot - since;
  });
}

/// Learns the range of the node's subnet, by which a look knows whose word counts. A range that the cloud does not tell
/// now is asked for the next time.
void StockKeeper::learn_range(Deadline deadline) {
  const auto interface = this->interface();
  if (!interface || ask([this] { return actor_.state.range.has_value(); })) return;
  const auto asked = world_.cloud.subnet(interface->vpc, subnet_of(*interface), deadline);
  if (asked) ask([&] { actor_.state.range = asked->range; });
}

/// Those of them that are for this node's interface, each with what speaks against a pod's having it. The word of a
/// pod's namespace is no reason to put an address aside for good.
std::vector<warm::Given> StockKeeper::checked(std::vector<warm::Given> given, Deadline deadline) {
  const auto interface = this->interface();
  if (given.empty() || !interface) return given;
  const warm::Look look = look_here(deadline);
  for (warm::Given& one : given) {
    if (one.mac != interface->mac) {
      one.unfit = "it was given to another interface, " + one.mac.to_string();
    } else if (look.said_by_pods.contains(one.address)) {
      one.doubts = {core::StockDoubt::used_by_host};
      log(fmt::format("{} is given to no pod for now: a network namespace of this node has it",
                      one.address.to_string()));
    } else if (warm::is_used_by_host(look, one.address)) {
      one.unfit = "the host uses it, though nobody here is said to have it";
    }
    if (one.unfit.empty()) continue;
    log(fmt::format("{} is given to no pod: {}", one.address.to_string(), one.unfit));
  }
  // Another interface's address is nobody's to keep or release here.
  std::erase_if(given, [&](const warm::Given& one) { return one.mac != interface->mac; });
  return given;
}

Result<StockKeeper::Taken> StockKeeper::take(const std::string& intent, const std::vector<cloud::CloudAddress>& came,
                                             bool verified, const std::string& from) {
  std::vector<warm::Given> given;
  given.reserve(came.size());
  for (const cloud::CloudAddress& one : came) given.push_back({one, from, verified});
  given = checked(std::move(given), cloud_deadline());
  TRY(const auto moved, noted(decide(warm::plan_take, intent, given)));
  Taken taken;
  for (const warm::Given& one : given) {
    if (std::ranges::find(moved, one.address, &core::StockAddress::address) != moved.end()) continue;
    ++taken.recorded;
    log(fmt::format("{} was said to be new, and has a record, which stays as it is", one.address.to_string()));
  }
  std::vector<core::StockAddress> fit = moved;
  std::erase_if(fit, [](const core::StockAddress& one) { return one.state == core::StockAddressState::quarantined; });
  // An address that a pod's namespace says it has comes to nobody as long as it does; else a pod that says so of more
  // and more would get the subnet for this node.
  const auto doubted = static_cast<std::size_t>(
      std::ranges::count_if(fit, [](const core::StockAddress& one) { return !one.doubts.empty(); }));
  count(&KeeperTally::quarantined, moved.size() - fit.size());
  if (fit.empty()) return taken;
  std::size_t unusable = doubted;
  if (!verified) {
    const auto conflicts = probe_all(fit);
    unusable += conflicts ? *conflicts : 0;  // those that cannot be probed may be, later
  } else {
    stocked();
  }
  taken.usable = fit.size() - std::min(fit.size(), unusable);
  return taken;
}

/// How many of them are quarantined now. Error: they could not be probed, and stay as they are; it is the trouble, too.
Result<std::size_t> StockKeeper::probe_all(const std::vector<core::StockAddress>& addresses) {
  if (addresses.empty()) return 0;
  std::vector<warm::Probed> probed;
  if (world_.probe == nullptr) {
    for (const core::StockAddress& one : addresses) probed.push_back({one.address, std::nullopt});
  } else {
    std::vector<net::Address> asked;
    for (const core::StockAddress& one : addresses) asked.push_back(one.address);
    const auto answers = world_.probe->probe(asked, cloud_deadline());
    if (!answers) {
      const Error error = answers.error().in("addresses are not probed and so not given to pods");
      note_problem(error);
      return fail(error);
    }
    probed = *answers;
  }
  std::vector<net::Address> good;
  std::size_t conflicts = 0;
  for (const std::vector<warm::Probed>& part : parts_of(probed)) {
    TRY(const auto moved, noted(decide(warm::plan_probed, part)));
    for (const core::StockAddress& one : moved) {
      if (one.state == core::StockAddressState::free) {
        good.push_back(one.address);
        continue;
      }
      log(fmt::format("{} is quarantined: {}", text_of(one), one.why));
      if (world_.conflicted) world_.conflicted(one);
      ++conflicts;
    }
  }
  count(&KeeperTally::conflicts, conflicts);
  count(&KeeperTally::quarantined, conflicts);
  if (good.empty()) return conflicts;
  stocked();
  if (world_.probe != nullptr) world_.probe->announce(good);
  return conflicts;
}

Result<core::StockAddress> StockKeeper::push(const std::optional<net::Address>& address, Deadline deadline) {
  TRY(const cloud::Interface interface, known_interface());
  if (address) {
    TRY(const auto view, view_stock(context()));
    const core::StockAddress* known = view.find(*address);
    if (known != nullptr && known->state == core::StockAddressState::held) {
      return fail(ErrorCode::conflict, fmt::format("{} is a pod's already", address->to_string()));
    }
    if (known != nullptr && known->state == core::StockAddressState::quarantined) {
      return fail(ErrorCode::refused_for_safety,
                  fmt::format("{} is quarantined: {}", address->to_string(), known->why));
    }
    if (known != nullptr && known->state != core::StockAddressState::lent) return *known;
    if (view.damaged.contains(core::warm_address_key(*address).name)) {
      return fail(ErrorCode::corrupt,
                  fmt::format("the record of {} is damaged: whose it is is not known", address->to_string()));
    }
    TRY_VOID(check_nobodys(*address, deadline));
  }
  core::StockIntent intent = new_intent(core::StockIntent::What::allocate, 1);
  intent.address = address;
  const UnderWay under_way(*this, intent.id);
  TRY_VOID(begin(intent));
  const auto asked = [&]() -> Result<cloud::CloudAddress> {
    if (!address) {
      TRY(auto given, world_.cloud.allocate(interface, intent.subnet, 1, deadline));
      return std::move(given.front());
    }
    auto given = world_.cloud.allocate_address(interface, intent.subnet, *address, deadline);
    if (given || given.error().code != ErrorCode::already_exists) return given;
    // Ours already, perhaps.
    TRY(const auto there, world_.cloud.describe_address(interface.vpc, intent.subnet, *address, deadline));
    if (there && there->mac == interface.mac) return *there;
    return fail(given.error());
  }();
  if (!asked) {
    if (asked.error().code != ErrorCode::unknown_outcome) TRY_VOID(drop(intent.id));
    return fail(asked.error());
  }
  const auto given = checked({{*asked, "", world_.probe == nullptr}}, deadline);
  TRY(const auto moved, decide(warm::plan_take, intent.id, given));
  ask([&] {
    actor_.state.seen.keeper.allocated += moved.size();
    actor_.state.is_due = true;  // to be probed
  });
  if (world_.probe == nullptr) stocked();
  if (moved.empty()) {
    // A fill has brought it meanwhile.
    TRY(const auto view, view_stock(context()));
    if (const auto* known = view.find(asked->address)) return *known;
    return fail(ErrorCode::conflict, asked->address.to_string() + " has left the stock again");
  }
  if (moved.front().state == core::StockAddressState::quarantined) {
    return fail(ErrorCode::refused_for_safety,
                fmt::format("{} is quarantined: {}", asked->address.to_string(), moved.front().why));
  }
  return moved.front();
}

// ---------------------------------------------------------------- out

void StockKeeper::shrink(std::uint32_t count) {
  const Deadline deadline = cloud_deadline();
  UnderWay under_way(*this);
  const auto done = [&](warm::Outcome outcome) {
    memory_ = warm::after_shrinking(memory_, outcome, jitter_of(world_.random), world_.clock.now());
  };
  const auto moved = noted(under_way.decide_leaving({.count = count}));
  if (!moved) return done(warm::Outcome::away);
  const auto gone = noted(give_back(*moved, deadline));
  done(gone ? warm::Outcome::done : outcome_of(gone.error().code));
}

/// Has the cloud take back addresses that are `releasing`. One whose fate is not known stays so; behind the first that
/// surely was not taken back all are kept. The error of the first that did not go.
Result<void> StockKeeper::give_back(std::vector<core::StockAddress> addresses, Deadline deadline) {
  std::vector<net::Address> gone, kept, used;
  std::optional<Error> trouble;
  const warm::Look look = look_here(deadline);
  if (!look.silent.empty()) trouble = Error{ErrorCode::unavailable, look.silent.front() + "; no address goes back", {}};
  for (const core::StockAddress& address : addresses) {
    // docs/notes/warm-pool.md#states: the record is no witness against the host.
    if (warm::is_used_by_host(look, address.address)) {
      used.push_back(address.address);
      continue;
    }
    if (trouble && trouble->code != ErrorCode::unknown_outcome) {
      kept.push_back(address.address);
      continue;
    }
    const auto released = world_.cloud.release(warm::cloud_address_of(address), deadline);
    if (released) {
      gone.push_back(address.address);
      continue;
    }
    if (!trouble || released.error().code != ErrorCode::unknown_outcome) trouble = released.error();
    if (released.error().code != ErrorCode::unknown_outcome) kept.push_back(address.address);
  }
  if (!gone.empty()) {
    TRY_VOID(decide(warm::plan_returned, gone));
    ask([&] {
      actor_.state.gave_back = true;
      actor_.state.seen.keeper.given_back += gone.size();
      actor_.state.is_due = actor_.state.is_due || actor_.state.waiting > 0;
    });
  }
  if (!kept.empty()) {
    TRY_VOID(decide(warm::plan_not_returned, kept, std::vector<core::StockDoubt>()));
  }
  if (!used.empty()) {
    TRY_VOID(decide(warm::plan_not_returned, used, std::vector{core::StockDoubt::used_by_host}));
    trouble = Error{ErrorCode::refused_for_safety,
                    fmt::format("{} is in use: an interface or a route of this node has it; it was not given back",
                                used.front().to_string()),
                    {}};
  }
  if (trouble) return fail(*std::move(trouble));
  return {};
}

Result<core::StockAddress> StockKeeper::pop(const std::optional<net::Address>& address, Deadline deadline) {
  UnderWay under_way(*this);
  warm::ReturnToCloud what;
  what.count = 1;
  if (address) what.addresses = {*address};
  TRY(const auto moved, under_way.decide_leaving(what));
  if (moved.empty()) {
    return fail(ErrorCode::not_found, address ? address->to_string() + " is not free in the stock"
                                              : std::string("the stock has no free address"));
  }
  TRY_VOID(give_back(moved, deadline));
  return moved.front();
}

}  // namespace croft::engine
