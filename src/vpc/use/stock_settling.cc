// How a StockKeeper finds out what became of what a crash or a lost reply has left.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "vpc/decide/promised.h"
#include "vpc/decide/reconcile.h"
#include "vpc/use/stock_keeper_parts.h"

namespace croft::engine {
namespace {

namespace warm = core::warm;
using std::chrono::nanoseconds;

}  // namespace

void StockKeeper::settle(const StockView& first) {
  StockView view = first;
  if (!view.intents.empty()) settle_intents(view);
  static_cast<void>(probe_all(in_state(view, core::WarmState::probing)));  // told as the trouble
  const auto releasing = in_state(view, core::WarmState::releasing);
  const auto lending = in_state(view, core::WarmState::lending);
  if (!releasing.empty() || !lending.empty()) {
    const std::unique_lock leaving(leaving_, std::try_to_lock);
    if (leaving.owns_lock()) {
      // Those of before the lock: who made them has let go of it.
      const auto now = view_stock(context());
      if (!now) return;
      auto rest = in_state(*now, core::WarmState::releasing);
      // A call that nobody heard of may still come, and would take the address from under a pod.
      const auto may_still_come = [&](const core::WarmAddress& one) {
        return seen_.seen_for(one, world_.clock.now()) < options_.doubt;
      };
      if (!rest.empty()) release_again(std::move(rest), may_still_come);
      for (const core::WarmAddress& one : in_state(*now, core::WarmState::lending)) {
        settle_lending(one, may_still_come(one));
      }
    }
  }
}

/// With leaving_ held, of addresses whose release nobody heard of. The cloud is asked for each by name. One that it
/// does not have here goes at once. One that it still has, and that no call may take any more, is kept where an ADD
/// waits, and else released again, unless something here uses it.
void StockKeeper::release_again(std::vector<core::WarmAddress> rest,
                                const std::function<bool(const core::WarmAddress&)>& may_still_come) {
  if (world_.host == nullptr) return;  // a plugin alone leaves it to the agent
  std::vector<net::Address> gone;
  std::vector<core::WarmAddress> ours;
  const auto interface = this->interface();
  if (!interface) return;
  for (const core::WarmAddress& one : rest) {
    const auto there = world_.cloud.describe_this(one.vpc, one.subnet, one.address, cloud_deadline());
    if (!there) {
      note_trouble(there.error());
      break;
    }
    // Where a card was replaced, or the records are those of another node, the one of then is not ours to take from.
    if (*there && (*there)->mac == interface->mac) {
      if (may_still_come(one)) continue;
      core::WarmAddress here = one;
      here.mac = interface->mac;
      ours.push_back(std::move(here));
    } else {
      gone.push_back(one.address);
    }
  }
  if (!gone.empty()) {
    const auto done = decide<warm::Moved>(
        [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_gone(snapshot, gone); });
    if (!done) return note_trouble(done.error());
    // The subnet has it again, perhaps for a pod that waits.
    gave_back_ = true;
  }
  if (ours.empty()) return;
  warm::Look look;
  look.begun = world_.clock.now();
  look_at_host(look, cloud_deadline());
  look_at_pods(look, cloud_deadline());
  if (!look.silent.empty()) return;
  std::erase_if(ours, [&](const core::WarmAddress& one) {
    return look.host->contains(one.address) || warm::is_used_by_pod(look, one.address);
  });
  if (ours.empty()) return;
  bool is_waited_for = false;
  {
    const std::lock_guard lock(mutex_);
    is_waited_for = waiting_ > 0;
  }
  if (is_waited_for) {
    std::vector<net::Address> kept;
    for (const core::WarmAddress& one : ours) kept.push_back(one.address);
    const auto done = decide<warm::Moved>(
        [&](const core::Snapshot& snapshot, const Instant& now) { return warm::plan_keep(snapshot, kept, {}, now); });
    if (!done) return note_trouble(done.error());
    return world_.stocked();
  }
  if (const auto done = give_back(std::move(ours), cloud_deadline()); !done) note_trouble(done.error());
}

void StockKeeper::settle_intents(StockView& view) {
  const std::vector<core::WarmIntent> intents = view.intents;
  // Until a rebuild has ended nobody can tell what an intent brought from what a pod has just let go of.
  const bool is_rebuilding = std::ranges::any_of(intents, warm::is_rebuild);
  for (const core::WarmIntent& intent : intents) {
    if (is_rebuilding) return;
    {
      const std::lock_guard lock(mutex_);
      if (in_flight_.contains(intent.id)) continue;
    }
    const Instant begun = world_.clock.now();
    const bool is_of_this_boot = intent.begun_at.boot == begun.boot;
    const bool is_old = !is_of_this_boot || begun.since_boot - intent.begun_at.since_boot >= options_.doubt;
    // Another process may be making the call still: it finds the records of what it brought.
    // What went to another node between the look and the records would seem to have come: it would be given twice.
    const std::unique_lock leaving(leaving_, std::try_to_lock);
    if (!leaving.owns_lock()) return;
    warm::Look look = this->look(true, cloud_deadline());
    auto now_there = view_stock(context());
    if (!now_there || !look.cloud || !look.host || !look.silent.empty()) return;
    set_apart(look, *now_there, false, cloud_deadline());
    if (!look.silent.empty()) return;
    const auto brought = warm::brought_by(intent, now_there->addresses, look);
    const bool is_whole = brought.size() >= intent.count;
    if (brought.empty() && !is_old) continue;
    auto fit = checked(brought, cloud_deadline());
    // What is promised is no pod's but that one's, on whatever node it is by now: its agent asks for it by name.
    const std::string promise = warm::promise_of(intent);
    if (!promise.empty()) {
      for (warm::Given& one : fit) one = warm::kept_for(std::move(one), promise);
    }
    const auto moved = decide<warm::Moved>([&](const core::Snapshot& snapshot, const Instant& moment) {
      return warm::plan_take(snapshot, is_whole || is_old ? intent.id : std::string(), fit, moment);
    });
    if (!moved) return note_trouble(moved.error());
    log(fmt::format("what was asked for at {} and not heard of brought {} of {} addresses{}{}", intent.id,
                    moved->addresses.size(), intent.count, is_whole || is_old ? "" : " so far",
                    promise.empty() ? "" : ", " + warm::waits_for(promise)));
    {
      const std::lock_guard lock(mutex_);
      (intent.what == core::WarmIntent::What::borrow ? tally_.borrowed : tally_.allocated) += moved->addresses.size();
    }
    auto after = view_stock(context());
    if (!after) return;
    view = *std::move(after);
  }
}

}  // namespace croft::engine
