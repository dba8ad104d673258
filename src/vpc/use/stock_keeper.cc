#include "vpc/use/stock_keeper.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "vpc/use/stock_keeper_parts.h"

// Its rounds, its interface, and what it tells.

namespace croft::engine {
namespace {

namespace warm = core::warm;
using std::chrono::nanoseconds;

constexpr nanoseconds kFindAgain = std::chrono::seconds{2};
constexpr nanoseconds kLookAtInterface = std::chrono::seconds{5};

/// What others set decides what a pass may conclude.
KeeperOptions with_policy(KeeperOptions options) {
  options.reconcile.cooldown = options.cooldown;
  options.reconcile.rest = std::max(options.doubt, options.cooldown);
  return options;
}

}  // namespace

StockKeeper::StockKeeper(const KeeperWorld& world, KeeperOptions options)
    : world_(world),
      options_(with_policy(std::move(options))),
      looked_at_(options_.looks_first ? kNoEpoch : world.store.epoch()) {}

void StockKeeper::take_term() {
  const std::uint64_t before = term_;
  const auto taken =
      transact(context(), TurnTaking::before_writing,
               [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_term(snapshot, before); });
  if (!taken) return note_trouble(taken.error());
  if (*taken == before) return;
  term_ = *taken;
  if (before == 0) return;
  log("a plugin of this node wrote to the stock meanwhile: everything is read anew");
  read_anew_ = true;
  {
    const std::lock_guard lock(mutex_);
    is_due_ = true;
  }
  wake_.notify_all();
}

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

KeeperOutlook StockKeeper::outlook() const {
  const std::lock_guard lock(mutex_);
  return outlook_;
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
    outlook_.trouble = error;
    outlook_.trouble_at = world_.clock.now().since_boot;
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
  // The store's files may be others since, which know another card.
  const bool is_described = begun_with_ == world_.store.epoch() && !is_of_other_card(*view, *interface());
  if (!is_described && !begin_here(*interface())) return world_.clock.now().since_boot + kFindAgain;
  if (read_anew_.exchange(false)) {
    seen_ = {};
    next_reconcile_ = nanoseconds{0};
  }
  seen_.note(view->addresses, world_.clock.now());
  settle(*view);
  view = view_stock(context());
  if (!view) return world_.clock.now().since_boot + kFindAgain;
  // What was lent since the copy that the records may be is found out before seconds are spent on asking for more.
  const bool is_any_ours = std::ranges::any_of(view->addresses, is_on_interface);
  if (look_again_.exchange(false)) next_reconcile_ = nanoseconds{0};
  if (is_any_ours && compared_with_cloud_ != world_.store.epoch()) {
    reconcile();
    view = view_stock(context());
    if (!view) return world_.clock.now().since_boot + kFindAgain;
  }

  if (gave_back_.exchange(false)) memory_ = warm::without_exhaustion(memory_);
  if (released_conflicts_.exchange(false)) memory_ = warm::without_conflicts(memory_);
  const Instant now = world_.clock.now();
  seen_.note(view->addresses, now);
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
  if (wish.is_at_limit && (waiting > 0 || wish.why != told_wish_)) note_trouble({ErrorCode::exhausted, wish.why, {}});
  told_wish_ = wish.why;
  nanoseconds next = wish.look_again;
  if (wish.grow > 0) {
    grow(wish.grow);
    // The next batch, or the rest after a failure, is looked at at once.
    next = std::max(world_.clock.now().since_boot, waiting > 0 ? memory_.one_not_before : memory_.grow_not_before);
  } else if (wish.shrink > 0 && !may_give()) {
    next = world_.clock.now().since_boot + kLookIsOver;
  } else if (wish.shrink > 0) {
    shrink(wish.shrink);
    next = memory_.shrink_not_before;
  }
  if (waiting > 0 && warm::may_borrow(counts, options_.marks, memory_) && borrow()) {
    next = std::min(next, world_.clock.now().since_boot + kSettleAgain);
  }
  const bool is_unsettled = !view->intents.empty() || !in_state(*view, core::WarmState::releasing).empty() ||
                            !in_state(*view, core::WarmState::lending).empty() ||
                            !in_state(*view, core::WarmState::probing).empty();
  if (is_unsettled) next = std::min(next, world_.clock.now().since_boot + kSettleAgain);
  if (world_.clock.now().since_boot >= next_reconcile_) reconcile();
  publish(counts);
  next = std::min({next, next_reconcile_, next_publish_, next_interface_look_});
  const std::lock_guard lock(mutex_);
  outlook_.memory = memory_;
  outlook_.why = wish.why;
  outlook_.next_round = next;
  return next;
}

/// Asked for again now and then: a card may be replaced while the agent runs.
bool StockKeeper::find_interface() {
  auto interface = this->interface();
  const nanoseconds begun = world_.clock.now().since_boot;
  if (!interface) {
    auto found = world_.cloud.interface(cloud_deadline());
    if (!found) {
      note_trouble(found.error());
      return false;
    }
    interface = *std::move(found);
    next_interface_look_ = begun + options_.reconcile_every;
  } else if (begun >= next_interface_look_) {
    next_interface_look_ = begun + options_.reconcile_every;
    auto found = world_.cloud.interface(Deadline::after(world_.clock.now(), kLookAtInterface));
    const bool is_another = found && *found != *interface;
    // One look is not enough; without one the interface is as it was.
    if (is_another && other_interface_ == *found) {
      log(fmt::format("the interface {} is replaced", interface->mac.to_string()));
      interface = *std::move(found);
      begun_with_ = kNoEpoch;
      const std::lock_guard lock(mutex_);
      range_.reset();
    } else if (is_another) {
      other_interface_ = *std::move(found);
      next_interface_look_ = begun + kSettleAgain;
    } else if (found) {
      other_interface_.reset();
    }
  }
  if (begun_with_ == kNoEpoch && !begin_here(*interface)) return false;
  const std::lock_guard lock(mutex_);
  interface_ = std::move(interface);
  return true;
}

/// Writes what the node is, for who works without the agent, and for what an ADD may get.
Result<void> StockKeeper::describe_here(const cloud::Interface& interface) {
  core::WarmNode node;
  node.node = options_.node;
  node.mac = interface.mac;
  node.vpc = interface.vpc;
  node.subnet = subnet_of(interface);
  node.object = interface.object;
  node.zone = interface.zone;
  node.region = interface.region;
  node.project = interface.project;
  node.low = options_.marks.low;
  node.high = options_.marks.high;
  if (options_.marks.node_max > 0) node.node_max = options_.marks.node_max;
  node.cooldown_seconds = static_cast<std::uint32_t>(options_.cooldown.count());
  auto described = describe_node(context(), std::move(node), writer());
  if (!described && warm::is_term_over(described.error())) take_term();
  return described;
}

bool StockKeeper::begin_here(const cloud::Interface& interface) {
  const std::uint64_t epoch = world_.store.epoch();
  if (const auto described = describe_here(interface); !described) {
    note_trouble(described.error());
    return false;
  }
  const auto marked = decide<std::size_t>(
      [](const core::Snapshot& snapshot, const Instant& now) { return warm::plan_mark_clocks(snapshot, now); });
  if (!marked) {
    note_trouble(marked.error());
    return false;
  }
  begun_with_ = *marked < warm::kMovesMax ? epoch : kNoEpoch;  // else there are more
  log(fmt::format("interface {} in subnet {} of {}", interface.mac.to_string(), subnet_of(interface), interface.vpc));
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

}  // namespace croft::engine
