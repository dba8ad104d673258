#include "engine/stock_keeper.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"

namespace croft::engine {
namespace {

namespace warm = core::warm;
using std::chrono::nanoseconds;

constexpr nanoseconds kFindAgain = std::chrono::seconds{2};
constexpr nanoseconds kSettleAgain = std::chrono::seconds{5};
constexpr std::chrono::seconds kLentKept{3600};
/// What an operator releases at once.
constexpr std::size_t kReleaseMax = warm::kMovesMax;

warm::Given given_of(const cloud::CloudAddress& address, bool verified, const std::string& from) {
  return {address.address, address.prefix_length, address.gateway, address.mac,
          address.vpc,     address.subnet,        address.object,  from,
          verified};
}

cloud::CloudAddress cloud_address_of(const core::WarmAddress& address) {
  return {address.address, address.prefix_length, address.gateway, address.mac,
          address.vpc,     address.subnet,        address.object};
}

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

std::vector<core::WarmAddress> in_state(const StockView& view, core::WarmState state) {
  std::vector<core::WarmAddress> found;
  std::ranges::copy_if(view.addresses, std::back_inserter(found),
                       [&](const core::WarmAddress& one) { return one.state == state; });
  return found;
}

std::string text_of(const core::WarmAddress& address) { return address.address.to_string(); }

Error busy() {
  return {ErrorCode::deadline_exceeded, "other addresses are on their way out of the stock; try again", {}};
}

}  // namespace

/// While it lives the intent is nobody's to settle.
class StockKeeper::InFlight {
 public:
  InFlight(StockKeeper& keeper, std::string id) : keeper_(keeper), id_(std::move(id)) {
    const std::lock_guard lock(keeper_.mutex_);
    keeper_.in_flight_.insert(id_);
  }
  ~InFlight() {
    const std::lock_guard lock(keeper_.mutex_);
    keeper_.in_flight_.erase(id_);
  }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  StockKeeper& keeper_;
  const std::string id_;
};

StockKeeper::StockKeeper(const KeeperWorld& world, KeeperOptions options)
    : world_(world), options_(std::move(options)) {}

template <class Answer, class Plan>
Result<Answer> StockKeeper::decide(Plan plan) {
  auto answer = transact(context(), TurnTaking::before_writing, plan);
  if (!answer) {
    const std::lock_guard lock(mutex_);
    ++tally_.store_failures;
  }
  return answer;
}

// ---------------------------------------------------------------- the thread of rounds

bool StockKeeper::wait_until(nanoseconds since_boot) {
  std::unique_lock lock(mutex_);
  while (!stopping_ && !is_due_) {
    const nanoseconds left = since_boot - world_.clock.now().since_boot;
    if (left <= nanoseconds{0}) break;
    wake_.wait_for(lock, std::min<nanoseconds>(left, std::chrono::seconds{60}));
  }
  is_due_ = false;
  return !stopping_;
}

void StockKeeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
}

void StockKeeper::set_waiting(std::uint32_t waiting) {
  {
    const std::lock_guard lock(mutex_);
    const bool is_more = waiting > waiting_;
    waiting_ = waiting;
    if (!is_more) return;
    is_due_ = true;
  }
  wake_.notify_all();
}

std::optional<Error> StockKeeper::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

KeeperTally StockKeeper::tally() const {
  const std::lock_guard lock(mutex_);
  return tally_;
}

std::optional<cloud::Interface> StockKeeper::interface() const {
  const std::lock_guard lock(mutex_);
  return interface_;
}

std::string StockKeeper::subnet_of(const cloud::Interface& interface) const {
  return options_.subnet.empty() ? interface.subnet : options_.subnet;
}

void StockKeeper::note_trouble(const Error& error) {
  bool is_news = false;
  {
    const std::lock_guard lock(mutex_);
    is_news = !trouble_ || trouble_->message != error.message;
    trouble_ = error;
  }
  if (is_news) log(fmt::format("trouble: {}", error.message));
}

nanoseconds StockKeeper::step() {
  if (!find_interface()) return world_.clock.now().since_boot + kFindAgain;
  auto view = view_stock(context());
  if (!view) {
    note_trouble(view.error());
    return world_.clock.now().since_boot + kFindAgain;
  }
  settle(*view);
  view = view_stock(context());
  if (!view) return world_.clock.now().since_boot + kFindAgain;

  const Instant now = world_.clock.now();
  warm::Counts counts;
  for (const core::WarmAddress& address : view->addresses) warm::count(counts, address, now);
  std::uint32_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    // What an intent that was left may still bring is not counted on.
    for (const core::WarmIntent& intent : view->intents) {
      if (in_flight_.contains(intent.id)) counts.asked += intent.count;
    }
    waiting = waiting_;
  }
  const warm::Wish wish = warm::plan_stock(counts, options_.marks, waiting, memory_, now);
  if (wish.why != told_wish_ && (wish.grow > 0 || wish.shrink > 0)) {
    log(fmt::format(
        "{}: {}", wish.grow > 0 ? fmt::format("asking for {}", wish.grow) : fmt::format("giving back {}", wish.shrink),
        wish.why));
  }
  told_wish_ = wish.why;
  nanoseconds next = wish.look_again;
  if (wish.grow > 0) {
    grow(wish.grow);
    // The next batch, or the rest after a failure, is looked at at once.
    next = std::max(world_.clock.now().since_boot, memory_.grow_not_before);
  } else if (wish.shrink > 0) {
    shrink(wish.shrink);
    next = memory_.shrink_not_before;
  }
  if (memory_.is_exhausted && waiting > 0) borrow();
  const bool is_unsettled = !view->intents.empty() || !in_state(*view, core::WarmState::releasing).empty() ||
                            !in_state(*view, core::WarmState::lending).empty() ||
                            !in_state(*view, core::WarmState::probing).empty();
  if (is_unsettled) next = std::min(next, world_.clock.now().since_boot + kSettleAgain);
  if (world_.clock.now().since_boot >= next_reconcile_) reconcile();
  publish(counts);
  return std::min(next, std::min(next_reconcile_, next_publish_));
}

bool StockKeeper::find_interface() {
  auto interface = this->interface();
  if (!interface) {
    auto found = world_.cloud.interface(cloud_deadline());
    if (!found) {
      note_trouble(found.error());
      return false;
    }
    interface = *std::move(found);
  }
  if (!has_begun_) {
    core::WarmNode node;
    node.node = options_.node;
    node.mac = interface->mac;
    node.vpc = interface->vpc;
    node.subnet = subnet_of(*interface);
    node.object = interface->object;
    node.zone = interface->zone;
    node.region = interface->region;
    node.project = interface->project;
    node.low = options_.marks.low;
    node.high = options_.marks.high;
    node.cooldown_seconds = static_cast<std::uint32_t>(options_.cooldown.count());
    if (const auto described = describe_node(context(), std::move(node)); !described) {
      note_trouble(described.error());
      return false;
    }
    const auto marked = decide<std::size_t>(
        [](const core::Snapshot& snapshot, const Instant& now) { return warm::plan_mark_clocks(snapshot, now); });
    if (!marked) {
      note_trouble(marked.error());
      return false;
    }
    has_begun_ = *marked < warm::kMovesMax;  // else there are more
    log(fmt::format("interface {} in subnet {} of {}", interface->mac.to_string(), subnet_of(*interface),
                    interface->vpc));
  }
  const std::lock_guard lock(mutex_);
  interface_ = std::move(interface);
  return true;
}

core::WarmIntent StockKeeper::new_intent(core::WarmIntent::What what, std::uint32_t count) const {
  const Instant now = world_.clock.now();
  core::WarmIntent intent;
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t number = world_.random.next();
    for (std::size_t k = 0; k < 8; ++k) bytes[i + k] = static_cast<std::uint8_t>(number >> (8 * k));
  }
  intent.id = hex_of(bytes);
  intent.what = what;
  intent.count = count;
  const auto interface = this->interface();
  intent.mac = interface ? interface->mac : net::Mac{};
  intent.subnet = interface ? subnet_of(*interface) : "";
  intent.begun = now.wall;
  intent.begun_at = {now.boot, now.since_boot};
  intent.process = options_.process;
  intent.process_started = options_.process_started;
  return intent;
}

// ---------------------------------------------------------------- in

Result<void> StockKeeper::fetch(std::uint32_t count, Deadline deadline) {
  TRY(auto interface, world_.cloud.interface(deadline));
  {
    const std::lock_guard lock(mutex_);
    interface_ = std::move(interface);
    trouble_.reset();
  }
  // What another left half done may be what is wanted here.
  TRY(const auto view, view_stock(context()));
  settle(view);
  grow(count);
  const std::lock_guard lock(mutex_);
  if (trouble_) return fail(*trouble_);
  return {};
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
  const auto since = world_.clock.now().since_boot;
  const std::uint64_t throttled = world_.cloud.throttled();
  const auto given = world_.cloud.allocate(interface, intent.subnet, count, cloud_deadline());
  if (!given) {
    note_trouble(given.error());
    done(outcome_of(given.error(), world_.cloud.throttled() != throttled));
    if (given.error().code == ErrorCode::unknown_outcome) return;  // settle() finds out
    const auto dropped = decide<bool>(
        [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_drop_intent(snapshot, intent.id); });
    if (!dropped) note_trouble(dropped.error());
    return;
  }
  const auto taken = take(intent.id, *given, world_.probe == nullptr, "");
  if (!taken) return done(warm::Outcome::away);  // as above
  done(warm::Outcome::done);
  const std::lock_guard lock(mutex_);
  trouble_.reset();
  tally_.allocated += *taken;
  tally_.last_fill = world_.clock.now().since_boot - since;
}

Result<std::size_t> StockKeeper::take(const std::string& intent, const std::vector<cloud::CloudAddress>& given,
                                      bool verified, const std::string& from) {
  std::vector<warm::Given> into;
  into.reserve(given.size());
  for (const cloud::CloudAddress& one : given) into.push_back(given_of(one, verified, from));
  const auto moved = decide<warm::Moved>(
      [&](const core::Snapshot& snapshot, const Instant& now) { return warm::plan_take(snapshot, intent, into, now); });
  if (!moved) {
    note_trouble(moved.error());
    return fail(moved.error());
  }
  if (verified) {
    world_.stocked();
  } else {
    probe_all(moved->addresses);
  }
  return moved->addresses.size();
}

void StockKeeper::probe_all(const std::vector<core::WarmAddress>& addresses) {
  if (addresses.empty()) return;
  std::vector<warm::Probed> probed;
  if (world_.probe == nullptr) {
    for (const core::WarmAddress& one : addresses) probed.push_back({one.address, std::nullopt});
  } else {
    const auto answers = world_.probe->probe(addresses_of(addresses), cloud_deadline());
    if (!answers) return note_trouble(answers.error().in("addresses are not probed and so not given to pods"));
    for (const AddressProbe::Answer& answer : *answers) probed.push_back({answer.address, answer.other});
  }
  std::vector<net::Address> good;
  for (std::size_t begin = 0; begin < probed.size(); begin += warm::kMovesMax) {
    const std::vector<warm::Probed> part(
        probed.begin() + static_cast<std::ptrdiff_t>(begin),
        probed.begin() + static_cast<std::ptrdiff_t>(std::min(begin + warm::kMovesMax, probed.size())));
    const auto moved = decide<warm::Moved>(
        [&](const core::Snapshot& snapshot, const Instant& now) { return warm::plan_probed(snapshot, part, now); });
    if (!moved) return note_trouble(moved.error());
    for (const core::WarmAddress& one : moved->addresses) {
      if (one.state == core::WarmState::free) {
        good.push_back(one.address);
        continue;
      }
      log(fmt::format("{} is quarantined: {}", text_of(one), one.why));
      const std::lock_guard lock(mutex_);
      ++tally_.conflicts;
      ++tally_.quarantined;
    }
  }
  if (good.empty()) return;
  world_.stocked();
  if (world_.probe != nullptr) world_.probe->announce(good);
}

void StockKeeper::borrow() {
  if (world_.peers == nullptr) return;
  const cloud::Interface interface = *this->interface();
  const std::string subnet = subnet_of(interface);
  auto peers = world_.peers->peers(subnet, cloud_deadline());
  if (!peers) return note_trouble(peers.error().in("no address is borrowed"));
  std::erase_if(*peers, [&](const PeerAgents::Peer& peer) { return peer.node == options_.node || peer.free == 0; });
  std::ranges::stable_sort(*peers, std::greater{}, &PeerAgents::Peer::free);
  std::uint32_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting = waiting_;
  }
  for (const PeerAgents::Peer& peer : *peers) {
    for (std::uint32_t taken = 0; taken < peer.free && waiting > 0; ++taken) {
      core::WarmIntent intent = new_intent(core::WarmIntent::What::borrow, 1);
      intent.peer = peer.address;
      const InFlight in_flight(*this, intent.id);
      const auto begun = decide<bool>(
          [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_begin(snapshot, intent); });
      if (!begun) return note_trouble(begun.error());
      auto lent = world_.peers->borrow(peer, interface.mac, subnet, intent.id,
                                       Deadline::after(world_.clock.now(), options_.borrow_limit));
      if (lent) {
        lent->mac = interface.mac;  // older peers tell their own
        // Its wire was asked before the peer took it in.
        if (!take(intent.id, {*lent}, true, peer.node)) return;
        log(fmt::format("borrowed {} from {}", lent->address.to_string(), peer.node));
        --waiting;
        const std::lock_guard lock(mutex_);
        ++tally_.borrowed;
        continue;
      }
      if (lent.error().code == ErrorCode::unknown_outcome) {
        // The next round asks the cloud whose it is.
        note_trouble(lent.error().in("borrowing from " + peer.node));
        return;
      }
      const auto dropped = decide<bool>(
          [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_drop_intent(snapshot, intent.id); });
      if (!dropped) return note_trouble(dropped.error());
      break;  // this one has none, or is not there
    }
    if (waiting == 0) return;
  }
  if (waiting > 0) {
    note_trouble({ErrorCode::exhausted,
                  fmt::format("subnet {} has no addresses left, and no other node has one to lend", subnet),
                  {}});
  }
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
  const auto moved = decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
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

/// With leaving_ held, of addresses that are `releasing`. One whose fate is not known stays so; behind the first that
/// surely was not taken back all are kept. The error of the first that did not go.
Result<void> StockKeeper::give_back(std::vector<core::WarmAddress> addresses, Deadline deadline) {
  std::vector<net::Address> gone, kept;
  std::optional<Error> trouble;
  for (const core::WarmAddress& address : addresses) {
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
    const std::lock_guard lock(mutex_);
    tally_.given_back += gone.size();
  }
  if (!kept.empty()) {
    TRY_VOID(decide<warm::Moved>(
        [&](const core::Snapshot& snapshot, const Instant& now) { return warm::plan_keep(snapshot, kept, now); }));
  }
  if (trouble) return fail(*std::move(trouble));
  return {};
}

// ---------------------------------------------------------------- what was left

void StockKeeper::settle(const StockView& first) {
  StockView view = first;
  if (!view.intents.empty()) settle_intents(view);
  probe_all(in_state(view, core::WarmState::probing));
  const auto releasing = in_state(view, core::WarmState::releasing);
  const auto lending = in_state(view, core::WarmState::lending);
  if (!releasing.empty() || !lending.empty()) {
    const std::unique_lock leaving(leaving_, std::try_to_lock);
    if (leaving.owns_lock()) {
      // Those of before the lock: who made them has let go of it.
      const auto now = view_stock(context());
      if (!now) return;
      auto rest = in_state(*now, core::WarmState::releasing);
      // A call that nobody heard of may still come: were the address given to us anew before that, it would be taken
      // from under a pod.
      std::erase_if(rest, [&](const auto& one) { return world_.clock.now().wall - one.since < options_.doubt; });
      if (!rest.empty()) {
        if (const auto gone = give_back(rest, cloud_deadline()); !gone) note_trouble(gone.error());
      }
      for (const core::WarmAddress& one : in_state(*now, core::WarmState::lending)) settle_lending(one);
    }
  }
  if (!in_state(view, core::WarmState::lent).empty()) {
    static_cast<void>(decide<std::size_t>([](const core::Snapshot& snapshot, const Instant& now) {
      return warm::plan_forget_lent(snapshot, kLentKept, now);
    }));
  }
}

void StockKeeper::settle_intents(StockView& view) {
  const std::vector<core::WarmIntent> intents = view.intents;
  // Until a rebuild has ended nobody can tell what an intent brought from what a pod has just let go of.
  const bool is_rebuilding = std::ranges::any_of(intents, warm::is_rebuild);
  for (const core::WarmIntent& intent : intents) {
    if (warm::is_rebuild(intent)) {
      settle_rebuild(intent);
      auto after = view_stock(context());
      if (!after) return;
      view = *std::move(after);
      continue;
    }
    if (is_rebuilding) continue;
    {
      const std::lock_guard lock(mutex_);
      if (in_flight_.contains(intent.id)) continue;
    }
    const bool is_own = intent.process == options_.process && intent.process_started == options_.process_started;
    if (!is_own && world_.is_alive(intent.process, intent.process_started)) continue;
    // What went to another node between the look and the records would seem to have come: it would be given twice.
    const std::unique_lock leaving(leaving_, std::try_to_lock);
    if (!leaving.owns_lock()) return;
    warm::Look look = this->look(true, cloud_deadline());
    auto now_there = view_stock(context());
    if (!now_there || !look.cloud || !look.host) return;
    set_apart(look, *now_there, cloud_deadline());
    const auto brought = warm::brought_by(intent, now_there->addresses, look);
    const Instant now = world_.clock.now();
    const bool is_of_this_boot = intent.begun_at.boot == now.boot;
    const bool is_old = !is_of_this_boot || now.since_boot - intent.begun_at.since_boot >= options_.doubt;
    const bool is_whole = brought.size() >= intent.count;
    if (brought.empty() && !is_old) continue;
    const auto moved = decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& moment) {
      return warm::plan_take(snapshot, is_whole || is_old ? intent.id : std::string(), brought, moment);
    });
    if (!moved) return note_trouble(moved.error());
    log(fmt::format("what was asked for at {} and not heard of brought {} of {} addresses{}", intent.id,
                    moved->addresses.size(), intent.count, is_whole || is_old ? "" : " so far"));
    {
      const std::lock_guard lock(mutex_);
      (intent.what == core::WarmIntent::What::borrow ? tally_.borrowed : tally_.allocated) += moved->addresses.size();
    }
    auto after = view_stock(context());
    if (!after) return;
    view = *std::move(after);
  }
}

void StockKeeper::settle_rebuild(const core::WarmIntent& intent) {
  if (world_.clock.now().since_boot < next_rebuild_look_) return;
  warm::Look look = this->look(true, cloud_deadline());
  const auto view = view_stock(context());
  next_rebuild_look_ = world_.clock.now().since_boot + kSettleAgain;
  if (!view) return note_trouble(view.error());
  // One source that is silent may be the one that would say that somebody has it.
  if (!look.cloud || !look.host || (world_.pods != nullptr && !look.pods)) return;
  set_apart(look, *view, cloud_deadline());
  const bool is_first = !rebuild_.begun;
  const nanoseconds rest = std::max(options_.doubt, options_.cooldown);
  const warm::RebuildStep step = warm::step_rebuild(rebuild_, view->addresses, look, rest, world_.clock.now());
  if (is_first) {
    log(
        fmt::format("the records of this stock are lost: of {} addresses that the cloud has on the interface, {} are "
                    "used by pods, {} by the host and no pod known, {} by nobody so far",
                    look.cloud->size(), step.of_pods, step.of_host, step.resting + step.take.size()));
  }
  for (std::size_t begin = 0; begin < step.take.size(); begin += warm::kMovesMax) {
    const std::vector<warm::Given> part(
        step.take.begin() + static_cast<std::ptrdiff_t>(begin),
        step.take.begin() + static_cast<std::ptrdiff_t>(std::min(begin + warm::kMovesMax, step.take.size())));
    const auto moved = decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
      return warm::plan_take(snapshot, std::string(), part, now);
    });
    if (!moved) return note_trouble(moved.error());
    log(fmt::format("{} addresses that nothing has used for {} s are taken in again", moved->addresses.size(),
                    std::chrono::duration_cast<std::chrono::seconds>(rest).count()));
    const std::lock_guard lock(mutex_);
    tally_.rebuilt += moved->addresses.size();
  }
  if (!step.is_done) return;
  const auto dropped = decide<bool>(
      [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_drop_intent(snapshot, intent.id); });
  if (!dropped) return note_trouble(dropped.error());
  rebuild_ = {};
  log(fmt::format("the stock is known again; {} addresses are used by the host, and no pod says that it has them",
                  step.of_host));
}

/// With leaving_ held.
void StockKeeper::settle_lending(const core::WarmAddress& address) {
  const auto there = world_.cloud.describe_this(address.vpc, address.subnet, address.address, cloud_deadline());
  if (!there) return note_trouble(there.error());
  const bool is_moved = *there && (*there)->mac.to_string() == address.peer;
  const bool is_here = *there && (*there)->mac == address.mac;
  // A move that was sent may still be done.
  if (!is_moved && world_.clock.now().wall - address.since < options_.doubt) return;
  const auto moved = decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
    return is_here ? warm::plan_not_lent(snapshot, address.address, address.request, now)
                   : warm::plan_lent(snapshot, address.address, address.request, now);
  });
  if (!moved) return note_trouble(moved.error());
  log(fmt::format("{}, which was being lent to {}, {}", text_of(address), address.peer, is_here ? "stayed" : "went"));
  if (is_here) world_.stocked();
}

// ---------------------------------------------------------------- differences

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
    }
  }
  if (world_.host != nullptr) {
    if (const auto used = world_.host->in_use(deadline); used) {
      look.host.emplace(used->begin(), used->end());
    } else {
      note_trouble(used.error());
    }
  }
  if (with_pods && world_.pods != nullptr) {
    if (const auto pods = world_.pods->pods(deadline); pods) {
      look.pods.emplace();
      for (const NodePods::Pod& pod : *pods) {
        if (!pod.host_network) look.pods->push_back({pod.pod, pod.addresses, pod.ended});
      }
    } else {
      note_trouble(pods.error());
    }
  }
  return look;
}

/// Of what has no record, what nothing may be concluded of. Claims are asked for only where there is such an address:
/// there seldom is one, and the list is the whole cluster's.
void StockKeeper::set_apart(warm::Look& look, const StockView& view, Deadline deadline) {
  if (!look.cloud) return;
  std::set<net::Address> recorded, strays;
  for (const core::WarmAddress& one : view.addresses) {
    if (one.state != core::WarmState::lent) recorded.insert(one.address);
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
  set_apart(look, *view, cloud_deadline());
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
  if (options_.release_unknown_after.count() == 0 || !look.cloud || !look.host || !look.pods) return;
  std::vector<net::Address> unknown;
  for (const core::WarmAddress& one : in_state(*view, core::WarmState::quarantined)) {
    const bool is_old = now.wall - one.since >= options_.release_unknown_after;
    const bool is_used =
        look.host->contains(one.address) || std::ranges::any_of(*look.pods, [&](const warm::LivePod& pod) {
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

void StockKeeper::publish(const warm::Counts& counts) {
  const auto interface = this->interface();
  const StockBoard::Status status{counts.free, options_.marks.low, options_.marks.high,
                                  warm::status_of(counts, options_.marks)};
  const Instant now = world_.clock.now();
  const bool is_same = published_ && published_->free == status.free && published_->status == status.status;
  if (world_.board == nullptr || (is_same && now.since_boot < next_publish_)) {
    if (world_.board == nullptr) next_publish_ = nanoseconds::max();
    return;
  }
  next_publish_ = now.since_boot + options_.publish_every;
  const auto said = world_.board->publish(*interface, status, cloud_deadline());
  if (!said) return note_trouble(said.error());
  published_ = status;
}

// ---------------------------------------------------------------- operators and peers

Result<core::WarmAddress> StockKeeper::push(const std::optional<net::Address>& address, Deadline deadline) {
  const auto interface = this->interface();
  if (!interface) return fail(trouble().value_or(Error{ErrorCode::unavailable, "the agent is still starting", {}}));
  if (address) {
    TRY(const auto view, view_stock(context()));
    const auto known = std::ranges::find(view.addresses, *address, &core::WarmAddress::address);
    if (known != view.addresses.end() && known->state != core::WarmState::lent) return *known;
  }
  core::WarmIntent intent = new_intent(core::WarmIntent::What::allocate, 1);
  intent.address = address;
  const InFlight in_flight(*this, intent.id);
  TRY_VOID(
      decide<bool>([&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_begin(snapshot, intent); }));
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
  const warm::Given given = given_of(*asked, world_.probe == nullptr, "");
  TRY(const auto moved, decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
        return warm::plan_take(snapshot, intent.id, {given}, now);
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
  return moved.addresses.front();
}

Result<core::WarmAddress> StockKeeper::pop(const std::optional<net::Address>& address, Deadline deadline) {
  const std::unique_lock leaving(leaving_, std::chrono::seconds{5});
  if (!leaving.owns_lock()) return fail(busy());
  warm::GiveBack what;
  what.count = 1;
  if (address) what.addresses = {*address};
  TRY(const auto moved, decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& now) {
        return warm::plan_give_back(snapshot, what, now);
      }));
  if (moved.addresses.empty()) {
    return fail(ErrorCode::not_found, address ? address->to_string() + " is not free in the stock"
                                              : std::string("the stock has no free address"));
  }
  TRY_VOID(give_back(moved.addresses, deadline));
  return moved.addresses.front();
}

Result<std::vector<core::WarmAddress>> StockKeeper::unused(Deadline deadline) {
  warm::Look look = this->look(true, deadline);
  if (!look.cloud) return fail(trouble().value_or(Error{ErrorCode::unavailable, "the cloud does not answer", {}}));
  TRY(const auto view, view_stock(context()));
  set_apart(look, view, deadline);
  std::vector<core::WarmAddress> unused;
  const auto is_used = [&](const net::Address& address) {
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
    if (!is_recorded && (!view.intents.empty() || look.apart.contains(given.address))) continue;
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
  TRY(const auto unused, this->unused(deadline));
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

Result<core::WarmAddress> StockKeeper::lend(const warm::Lend& lend, Deadline deadline) {
  const auto interface = this->interface();
  if (!interface) return fail(ErrorCode::unavailable, "the agent is still starting");
  if (lend.to == interface->mac) return fail(invalid_argument("the MAC address is this node's own"));
  if (!lend.subnet.empty() && lend.subnet != subnet_of(*interface)) {
    return fail(
        invalid_argument(fmt::format("subnet {} is not this node's, which is {}", lend.subnet, subnet_of(*interface))));
  }
  const std::unique_lock leaving(leaving_, std::chrono::seconds{5});
  if (!leaving.owns_lock()) return fail(busy());
  TRY(const auto chosen,
      decide<std::optional<core::WarmAddress>>(
          [&](const core::Snapshot& snapshot, const Instant& now) { return warm::plan_lend(snapshot, lend, now); }));
  if (!chosen) return fail(ErrorCode::exhausted, "the stock has no free address to lend");
  if (chosen->state == core::WarmState::lent) return *chosen;
  const auto moved = world_.cloud.move(cloud_address_of(*chosen), lend.to, deadline);
  if (!moved && moved.error().code == ErrorCode::unknown_outcome) return fail(moved.error());  // settle() finds out
  if (!moved) {
    // Not ours any more, perhaps, or where it was to go already: the cloud knows.
    if (moved.error().code == ErrorCode::not_found) {
      settle_lending(*chosen);
      TRY(const auto settled,
          decide<std::optional<core::WarmAddress>>([&](const core::Snapshot& snapshot, const Instant& now) {
            return warm::plan_lend(snapshot, lend, now);
          }));
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
  log(fmt::format("lent {} to {}", text_of(*chosen), lend.to.to_string()));
  {
    const std::lock_guard lock(mutex_);
    ++tally_.lent;
  }
  if (lent.addresses.empty()) return fail(ErrorCode::conflict, text_of(*chosen) + " went another way meanwhile");
  return lent.addresses.front();
}

}  // namespace croft::engine
