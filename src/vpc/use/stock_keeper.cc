#include "vpc/use/stock_keeper.h"

#include <array>

#include <fmt/format.h>

#include "base/hex.h"

// Its rounds, its interface, and what it tells.

namespace croft::engine {
namespace {

namespace warm = core::warm;
using std::chrono::nanoseconds;

constexpr nanoseconds kFindAgain = std::chrono::seconds{2};

}  // namespace

StockKeeper::StockKeeper(const KeeperWorld& world, KeeperOptions options)
    : world_(world),
      options_(std::move(options)),
      actor_({world.store, world.clock, world.random, world.log, world.warn, options_.looks_first}) {}

std::string StockKeeper::subnet_of(const cloud::Interface& interface) const {
  return options_.subnet.empty() ? interface.subnet : options_.subnet;
}

/// Takes a note that a message has left for the next round.
bool StockKeeper::take(bool StockState::*flag) {
  return ask([&] { return std::exchange(actor_.state.*flag, false); });
}

nanoseconds StockKeeper::step() {
  if (!find_interface()) return world_.clock.now().since_boot + kFindAgain;
  auto view = view_stock(context());
  if (!view) {
    note_problem(view.error());
    return world_.clock.now().since_boot + kFindAgain;
  }
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
  warm::Counts counts;
  for (const core::StockAddress& address : view->addresses) warm::count(counts, address, now);
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
  auto interface = this->interface();
  const bool is_new = !interface;
  if (is_new) {
    auto found = world_.cloud.interface(cloud_deadline());
    if (!found) {
      note_problem(found.error());
      return false;
    }
    interface = *std::move(found);
  }
  if (!begin_here(*interface)) return false;
  if (!is_new) return true;
  log(fmt::format("interface {} in subnet {} of {}", interface->mac.to_string(), subnet_of(*interface),
                  interface->vpc));
  ask([&] { actor_.state.seen.interface = std::move(interface); });
  return true;
}

/// Writes what the node is, for who works without the agent, and for what an ADD may get.
Result<void> StockKeeper::describe_here(const cloud::Interface& interface) {
  core::StockNode node;
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
  node.cooldown_seconds = static_cast<std::uint32_t>(options_.reconcile.cooldown.count());
  TRY_VOID(actor_.decide_in_any_term<bool>(
      [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_describe(snapshot, node); }));
  return {};
}

/// Most rounds find that nothing is to be written.
bool StockKeeper::begin_here(const cloud::Interface& interface) {
  if (const auto described = describe_here(interface); !described) {
    note_problem(described.error());
    return false;
  }
  const auto marked = decide<std::size_t>(
      [](const core::Snapshot& snapshot, const Instant& now) { return warm::plan_mark_clocks(snapshot, now); });
  if (!marked) note_problem(marked.error());
  return marked.has_value();
}

core::StockIntent StockKeeper::new_intent(core::StockIntent::What what, std::uint32_t count) const {
  const Instant now = world_.clock.now();
  core::StockIntent intent;
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
  return intent;
}

}  // namespace croft::engine
