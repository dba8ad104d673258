// How a StockKeeper gets addresses from the cloud, asks the wire about them, and gives them back.

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "vpc/decide/reconcile.h"
#include "vpc/use/stock_keeper_parts.h"

namespace croft::engine {
namespace {

namespace warm = core::warm;
using std::chrono::nanoseconds;

warm::Outcome outcome_of(const Error& error, bool was_throttled) {
  switch (error.code) {
    case ErrorCode::exhausted:
      return warm::Outcome::exhausted;
    case ErrorCode::refused_by_configuration:
      return warm::Outcome::refused;
    default:
      return was_throttled ? warm::Outcome::throttled : warm::Outcome::away;
  }
}

double jitter_of(Random& random) { return static_cast<double>(random.next() % 1024) / 1024; }

std::vector<net::Address> addresses_of(const std::vector<core::WarmAddress>& all) {
  std::vector<net::Address> addresses;
  addresses.reserve(all.size());
  for (const core::WarmAddress& one : all) addresses.push_back(one.address);
  return addresses;
}

}  // namespace

// ---------------------------------------------------------------- in

Result<void> StockKeeper::fetch(std::uint32_t count, Deadline deadline) {
  TRY(auto interface, world_.cloud.interface(deadline));
  {
    const std::lock_guard lock(mutex_);
    interface_ = std::move(interface);
    trouble_.reset();
  }
  TRY(auto view, view_stock(context()));
  const auto is = this->interface();
  if (is_of_other_card(view, *is)) {
    // Its card was replaced while no agent ran: what comes to the new one would be nobody's.
    view.node->mac = is->mac;
    view.node->object = is->object;
    TRY_VOID(describe_node(context(), *view.node));
  }
  const auto free_ones = [&](const StockView& all) {
    const Instant now = world_.clock.now();
    return std::ranges::count_if(all.addresses, [&](const core::WarmAddress& one) {
      return core::is_free_at(one, now) && one.verified.has_value() && one.mac == is->mac;
    });
  };
  const auto before = free_ones(view);
  // What nobody can ask the wire about is no pod's, and more of it would not be either: nothing is asked for.
  if (const auto asked = probe_all(in_state(view, core::WarmState::probing)); !asked) return fail(asked.error());
  TRY(view, view_stock(context()));
  // What another left half done may be what is wanted here.
  settle(view);
  TRY(view, view_stock(context()));
  const auto more = free_ones(view) - before;
  if (more >= static_cast<std::int64_t>(count)) return {};
  warm::Marks marks = options_.marks;
  if (view.node && !view.node->node.empty()) marks.high = view.node->high;
  if (const auto why = warm::why_not_more(view.addresses, marks, world_.clock.now())) {
    return fail(ErrorCode::exhausted, *why);
  }
  grow(count - static_cast<std::uint32_t>(std::max<std::int64_t>(more, 0)));
  const std::lock_guard lock(mutex_);
  if (trouble_) return fail(*trouble_);
  return {};
}

/// Whether what the records count, what is asked for included, is no more than the node may have: as the options say,
/// or the node's record where none do.
Result<void> StockKeeper::check_room() {
  TRY(const auto view, view_stock(context()));
  std::uint64_t node_max = options_.marks.node_max;
  if (node_max == 0 && options_.node.empty() && view.node) node_max = view.node->node_max.value_or(0);
  if (node_max == 0) return {};
  const Instant now = world_.clock.now();
  warm::Counts counts;
  for (const core::WarmAddress& address : view.addresses) warm::count(counts, address, now);
  for (const core::WarmIntent& intent : view.intents) counts.asked += warm::is_rebuild(intent) ? 0 : intent.count;
  if (counts.on_node() <= node_max) return {};
  return fail(ErrorCode::exhausted,
              fmt::format("the node may have {} addresses (--max-addresses), and no more are asked for", node_max));
}

void StockKeeper::grow(std::uint32_t count) {
  const cloud::Interface interface = *this->interface();
  const core::WarmIntent intent = new_intent(core::WarmIntent::What::allocate, count);
  const InFlight in_flight(*this, intent.id);
  const auto done = [&](warm::Outcome outcome) {
    memory_ = warm::after_growing(memory_, outcome, options_.marks, jitter_of(world_.random), world_.clock.now());
  };
  const auto begun =
      decide<bool>([&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_begin(snapshot, intent); });
  if (!begun) {
    note_trouble(begun.error());
    return done(warm::Outcome::away);
  }
  const auto drop = [&] {
    const auto dropped = decide<bool>(
        [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_drop_intent(snapshot, intent.id); });
    if (!dropped) note_trouble(dropped.error());
  };
  // Looked at once the intent is there: of two who ask at once each counts the other's.
  if (const auto room = check_room(); !room) {
    note_trouble(room.error());
    drop();
    return done(warm::Outcome::away);
  }
  const auto since = world_.clock.now().since_boot;
  const std::uint64_t throttled = world_.cloud.throttled();
  const auto given = world_.cloud.allocate(interface, intent.subnet, count, cloud_deadline());
  if (!given) {
    note_trouble(given.error());
    done(outcome_of(given.error(), world_.cloud.throttled() != throttled));
    if (given.error().code == ErrorCode::unknown_outcome) return;  // settle() finds out
    return drop();
  }
  {
    const std::lock_guard lock(mutex_);
    trouble_.reset();  // but for what is found out from here on
  }
  const KeeperTally before = tally();
  const auto taken = take(intent.id, *given, world_.probe == nullptr, "");
  if (!taken) return done(warm::Outcome::away);  // as above
  // What has a record came for a call whose reply was lost: that it is settled, and says nothing of others.
  const std::size_t recorded = tally().known_before - before.known_before;
  const std::size_t came = given->size() - std::min(given->size(), recorded);
  const warm::Outcome outcome = warm::outcome_of_fill(came, *taken);
  done(outcome);
  if (outcome == warm::Outcome::conflict) {
    const bool is_resting = memory_.conflicts >= warm::kConflictsBorne;
    const auto rest = memory_.grow_not_before - world_.clock.now().since_boot;
    note_trouble(
        {ErrorCode::unavailable,
         fmt::format(
             "of {} addresses that the cloud gave {} may be given to pods, the others are quarantined or doubted{}",
             given->size(), *taken,
             is_resting
                 ? fmt::format(", as before: no more are asked for for {} s, but one at a time while an ADD waits",
                               std::chrono::duration_cast<std::chrono::seconds>(rest).count())
                 : std::string()),
         {}});
  }
  const std::lock_guard lock(mutex_);
  tally_.allocated += *taken;
  if (*taken == 0) return;
  tally_.last_fill = world_.clock.now().since_boot - since;
}

/// The range of the node's subnet. What the cloud does not tell now is asked for the next time.
std::optional<net::Prefix> StockKeeper::range(Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (range_) return range_;
  }
  const auto interface = this->interface();
  if (!interface) return std::nullopt;
  const auto asked = world_.cloud.subnet(interface->vpc, subnet_of(*interface), deadline);
  if (!asked) return std::nullopt;
  const std::lock_guard lock(mutex_);
  range_ = asked->range;
  return range_;
}

/// What the host uses, and what only namespaces of its pods say they have. Nothing where that is not known.
StockKeeper::Used StockKeeper::used_here(Deadline deadline) {
  if (world_.host == nullptr) return {};
  const auto used = world_.host->use(deadline);
  if (!used) {
    log("what the cloud gives is not compared with what the host uses: " + used.error().message);
    return {};
  }
  warm::Look look;
  warm::take_host(look, {used->own.begin(), used->own.end()}, used->namespaces, range(deadline));
  return {{used->own.begin(), used->own.end()}, std::move(look.said_by_pods)};
}

/// Those of them that are for this node's interface, each with what speaks against a pod's having it. What only
/// namespaces of pods say is no reason to put an address aside for good.
std::vector<warm::Given> StockKeeper::checked(std::vector<warm::Given> given, Deadline deadline) {
  const auto interface = this->interface();
  if (given.empty() || !interface) return given;
  const Used used = used_here(deadline);
  std::uint64_t refused = 0;
  for (warm::Given& one : given) {
    if (one.mac != interface->mac) {
      one.unfit = "it was given to another interface, " + one.mac.to_string();
    } else if (used.by_host.contains(one.address)) {
      one.unfit = "the host uses it, though nobody here is said to have it";
    } else if (used.by_pods.contains(one.address)) {
      one.doubts = {core::WarmDoubt::used_by_host};
      log(fmt::format("{} is given to no pod for now: a network namespace of this node has it",
                      one.address.to_string()));
    }
    if (one.unfit.empty()) continue;
    ++refused;
    log(fmt::format("{} is given to no pod: {}", one.address.to_string(), one.unfit));
  }
  // What is another interface's is nobody's to keep or release here.
  std::erase_if(given, [&](const warm::Given& one) { return one.mac != interface->mac; });
  const std::lock_guard lock(mutex_);
  tally_.refused += refused;
  return given;
}

/// How many of them a pod may come to have, once the wire was asked.
Result<std::size_t> StockKeeper::take(const std::string& intent, const std::vector<cloud::CloudAddress>& given,
                                      bool verified, const std::string& from) {
  std::vector<warm::Given> into;
  into.reserve(given.size());
  for (const cloud::CloudAddress& one : given) into.push_back(given_of(one, verified, from));
  return take_checked(intent, checked(std::move(into), cloud_deadline()), verified);
}

Result<std::size_t> StockKeeper::take_checked(const std::string& intent, const std::vector<warm::Given>& given,
                                              bool verified) {
  if (given.size() > warm::kMovesMax) {
    // More than was asked for, or than one commit takes. The intent goes with the last of them.
    std::size_t fit = 0;
    for (std::size_t begin = 0; begin < given.size(); begin += warm::kMovesMax) {
      const std::size_t end = std::min(begin + warm::kMovesMax, given.size());
      const std::vector<warm::Given> part(given.begin() + static_cast<std::ptrdiff_t>(begin),
                                          given.begin() + static_cast<std::ptrdiff_t>(end));
      TRY(const std::size_t more, take_checked(end == given.size() ? intent : std::string(), part, verified));
      fit += more;
    }
    return fit;
  }
  const auto moved = decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
    return warm::plan_take(snapshot, intent, given, now);
  });
  if (!moved) {
    note_trouble(moved.error());
    return fail(moved.error());
  }
  std::uint64_t recorded = 0;
  for (const warm::Given& one : given) {
    if (std::ranges::find(moved->addresses, one.address, &core::WarmAddress::address) != moved->addresses.end())
      continue;
    ++recorded;
    log(fmt::format("{} was said to be new, and has a record, which stays as it is", one.address.to_string()));
  }
  std::vector<core::WarmAddress> fit = moved->addresses;
  std::erase_if(fit, [](const core::WarmAddress& one) { return one.state == core::WarmState::quarantined; });
  {
    const std::lock_guard lock(mutex_);
    tally_.refused += recorded;
    tally_.known_before += recorded;
    tally_.quarantined += moved->addresses.size() - fit.size();
  }
  // What a pod's namespace says it has comes to nobody as long as it does; else who says so of more and more would get
  // the subnet for this node.
  const auto doubted = static_cast<std::size_t>(
      std::ranges::count_if(fit, [](const core::WarmAddress& one) { return !one.doubts.empty(); }));
  {
    const std::lock_guard lock(mutex_);
    tally_.doubted += doubted;
  }
  if (fit.empty()) return fit.size();
  std::size_t unusable = doubted;
  if (!verified) {
    const auto conflicts = probe_all(fit);
    unusable += conflicts ? *conflicts : 0;  // those that cannot be probed may be, later
  } else {
    world_.stocked();
  }
  return fit.size() - std::min(fit.size(), unusable);
}

/// How many of them are quarantined now. Error: they could not be probed, and stay as they are; it is the trouble, too.
Result<std::size_t> StockKeeper::probe_all(const std::vector<core::WarmAddress>& addresses) {
  if (addresses.empty()) return 0;
  std::vector<warm::Probed> probed;
  if (world_.probe == nullptr) {
    for (const core::WarmAddress& one : addresses) probed.push_back({one.address, std::nullopt});
  } else {
    const auto answers = world_.probe->probe(addresses_of(addresses), cloud_deadline());
    if (!answers) {
      const Error error = answers.error().in("addresses are not probed and so not given to pods");
      note_trouble(error);
      return fail(error);
    }
    for (const AddressProbe::Answer& answer : *answers) probed.push_back({answer.address, answer.other});
  }
  std::vector<net::Address> good;
  std::size_t conflicts = 0;
  for (std::size_t begin = 0; begin < probed.size(); begin += warm::kMovesMax) {
    const std::vector<warm::Probed> part(
        probed.begin() + static_cast<std::ptrdiff_t>(begin),
        probed.begin() + static_cast<std::ptrdiff_t>(std::min(begin + warm::kMovesMax, probed.size())));
    const auto moved = decide<warm::Moved>(
        [&](const core::Snapshot& snapshot, const Instant& now) { return warm::plan_probed(snapshot, part, now); });
    if (!moved) {
      note_trouble(moved.error());
      return fail(moved.error());
    }
    for (const core::WarmAddress& one : moved->addresses) {
      if (one.state == core::WarmState::free) {
        good.push_back(one.address);
        continue;
      }
      log(fmt::format("{} is quarantined: {}", text_of(one), one.why));
      if (world_.conflicted) world_.conflicted(one);
      ++conflicts;
      const std::lock_guard lock(mutex_);
      ++tally_.conflicts;
      ++tally_.quarantined;
    }
  }
  if (good.empty()) return conflicts;
  world_.stocked();
  if (world_.probe != nullptr) world_.probe->announce(good);
  return conflicts;
}

/// Whether somebody lives by an address that has no record. Error: refused_for_safety, naming who, or the source that
/// does not tell.
Result<void> StockKeeper::check_nobodys(const net::Address& address, Deadline deadline) {
  const std::string text = address.to_string();
  warm::Look look;
  look.begun = world_.clock.now();
  look_at_host(look, deadline);
  look_at_pods(look, deadline);
  if (look.pods) {
    for (const warm::LivePod& pod : *look.pods) {
      if (pod.ended || std::ranges::find(pod.addresses, address) == pod.addresses.end()) continue;
      return fail(ErrorCode::refused_for_safety,
                  fmt::format("{} is in use: pod {}/{} has it", text, pod.pod.namespace_name, pod.pod.name));
    }
  }
  if (look.host && look.host->contains(address)) {
    return fail(ErrorCode::refused_for_safety,
                fmt::format("{} is in use: an interface or a route of this node has it", text));
  }
  if (!look.silent.empty()) {
    return fail(ErrorCode::refused_for_safety,
                fmt::format("whether {} is in use is not known: {}; try again", text, look.silent.front()));
  }
  if (world_.claims == nullptr) return {};
  const auto claimed = world_.claims->claimed(deadline);
  if (!claimed) {
    return fail(ErrorCode::refused_for_safety, fmt::format("whether a VpcIpClaim names {} is not known: {}; try again",
                                                           text, claimed.error().message));
  }
  if (std::ranges::find(*claimed, address) == claimed->end()) return {};
  return fail(ErrorCode::refused_for_safety, fmt::format("{} is promised to a pod: a VpcIpClaim names it", text));
}

Result<core::WarmAddress> StockKeeper::push(const std::optional<net::Address>& address, Deadline deadline) {
  const auto interface = this->interface();
  if (!interface) return fail(trouble().value_or(Error{ErrorCode::unavailable, "the agent is still starting", {}}));
  if (address) {
    TRY(const auto view, view_stock(context()));
    const auto known = std::ranges::find(view.addresses, *address, &core::WarmAddress::address);
    if (known != view.addresses.end() && known->state != core::WarmState::lent) return *known;
    if (view.damaged_keys.contains(core::warm_address_key(*address).name)) {
      return fail(ErrorCode::corrupt,
                  fmt::format("the record of {} is damaged: whose it is is not known", address->to_string()));
    }
    TRY_VOID(check_nobodys(*address, deadline));
  }
  core::WarmIntent intent = new_intent(core::WarmIntent::What::allocate, 1);
  intent.address = address;
  const InFlight in_flight(*this, intent.id);
  TRY_VOID(
      decide<bool>([&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_begin(snapshot, intent); }));
  if (auto room = check_room(); !room) {
    TRY_VOID(decide<bool>(
        [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_drop_intent(snapshot, intent.id); }));
    return fail(std::move(room).error());
  }
  const auto asked = [&]() -> Result<cloud::CloudAddress> {
    if (!address) {
      TRY(auto given, world_.cloud.allocate(*interface, intent.subnet, 1, deadline));
      return std::move(given.front());
    }
    auto given = world_.cloud.allocate_this(*interface, intent.subnet, *address, deadline);
    if (given || given.error().code != ErrorCode::already_exists) return given;
    // Ours already, perhaps.
    TRY(const auto there, world_.cloud.describe_this(interface->vpc, intent.subnet, *address, deadline));
    if (there && there->mac == interface->mac) return *there;
    return fail(given.error());
  }();
  if (!asked) {
    if (asked.error().code != ErrorCode::unknown_outcome) {
      TRY_VOID(decide<bool>(
          [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_drop_intent(snapshot, intent.id); }));
    }
    return fail(asked.error());
  }
  const auto given = checked({given_of(*asked, world_.probe == nullptr, "")}, deadline);
  TRY(const auto moved, decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
        return warm::plan_take(snapshot, intent.id, given, now);
      }));
  {
    const std::lock_guard lock(mutex_);
    tally_.allocated += moved.addresses.size();
    is_due_ = true;  // to be probed
  }
  wake_.notify_all();
  if (world_.probe == nullptr) world_.stocked();
  if (moved.addresses.empty())
    return fail(ErrorCode::conflict, asked->address.to_string() + " is in the stock already");
  if (moved.addresses.front().state == core::WarmState::quarantined) {
    return fail(ErrorCode::refused_for_safety,
                fmt::format("{} is quarantined: {}", asked->address.to_string(), moved.addresses.front().why));
  }
  return moved.addresses.front();
}

// ---------------------------------------------------------------- out

void StockKeeper::shrink(std::uint32_t count) {
  const Deadline deadline = cloud_deadline();
  const std::unique_lock leaving(leaving_, std::chrono::seconds{1});
  const auto done = [&](warm::Outcome outcome) {
    memory_ = warm::after_shrinking(memory_, outcome, options_.marks, jitter_of(world_.random), world_.clock.now());
  };
  if (!leaving.owns_lock()) return done(warm::Outcome::done);
  const std::uint64_t throttled = world_.cloud.throttled();
  const auto moved = decide_giving<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
    return warm::plan_give_back(snapshot, {.count = count}, now);
  });
  if (!moved) {
    note_trouble(moved.error());
    return done(warm::Outcome::away);
  }
  const auto gone = give_back(moved->addresses, deadline);
  done(gone ? warm::Outcome::done : outcome_of(gone.error(), world_.cloud.throttled() != throttled));
  if (!gone) note_trouble(gone.error());
}

/// What interfaces and routes of the host have; nothing where there is no host to look at. An error: nothing is known.
Result<std::set<net::Address>> StockKeeper::used_by_host(Deadline deadline) {
  if (world_.host == nullptr) return std::set<net::Address>();
  auto used = world_.host->in_use(deadline);
  if (!used) return fail(used.error().in("what the host uses is not known, and no address goes back or is free again"));
  return std::set<net::Address>(used->begin(), used->end());
}

/// With leaving_ held, of addresses that are `releasing`. One whose fate is not known stays so; behind the first that
/// surely was not taken back all are kept. The error of the first that did not go.
Result<void> StockKeeper::give_back(std::vector<core::WarmAddress> addresses, Deadline deadline) {
  std::vector<net::Address> gone, kept, used;
  std::optional<Error> trouble;
  const auto on_host = used_by_host(deadline);
  if (!on_host) trouble = on_host.error();
  for (const core::WarmAddress& address : addresses) {
    // docs/notes/warm-pool.md#states: the record is no witness against the host.
    if (on_host && on_host->contains(address.address)) {
      used.push_back(address.address);
      continue;
    }
    if (trouble && trouble->code != ErrorCode::unknown_outcome) {
      kept.push_back(address.address);
      continue;
    }
    const auto released = world_.cloud.release(cloud_address_of(address), deadline);
    if (released) {
      gone.push_back(address.address);
      continue;
    }
    if (!trouble || released.error().code != ErrorCode::unknown_outcome) trouble = released.error();
    if (released.error().code != ErrorCode::unknown_outcome) kept.push_back(address.address);
  }
  if (!gone.empty()) {
    TRY_VOID(decide<warm::Moved>(
        [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_gone(snapshot, gone); }));
    gave_back_ = true;
    {
      const std::lock_guard lock(mutex_);
      tally_.given_back += gone.size();
      is_due_ = is_due_ || waiting_ > 0;
    }
    wake_.notify_all();
  }
  if (!kept.empty()) {
    TRY_VOID(decide<warm::Moved>(
        [&](const core::Snapshot& snapshot, const Instant& now) { return warm::plan_keep(snapshot, kept, {}, now); }));
  }
  if (!used.empty()) {
    TRY_VOID(decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
      return warm::plan_keep(snapshot, used, {core::WarmDoubt::used_by_host}, now);
    }));
    trouble = Error{ErrorCode::refused_for_safety,
                    fmt::format("{} is in use: an interface or a route of this node has it; it was not given back",
                                used.front().to_string()),
                    {}};
  }
  if (trouble) return fail(*std::move(trouble));
  return {};
}

Result<core::WarmAddress> StockKeeper::pop(const std::optional<net::Address>& address, Deadline deadline) {
  const std::unique_lock leaving(leaving_, std::chrono::seconds{5});
  if (!leaving.owns_lock()) return fail(busy());
  warm::GiveBack what;
  what.count = 1;
  if (address) what.addresses = {*address};
  TRY(const auto moved, decide_giving<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
        return warm::plan_give_back(snapshot, what, now);
      }));
  if (moved.addresses.empty()) {
    return fail(ErrorCode::not_found, address ? address->to_string() + " is not free in the stock"
                                              : std::string("the stock has no free address"));
  }
  TRY_VOID(give_back(moved.addresses, deadline));
  return moved.addresses.front();
}

}  // namespace croft::engine
