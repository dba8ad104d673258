#pragma once

#include <rapidcheck.h>

#include <chrono>
#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "ipam/use/test_world.h"

namespace croft::engine {

/// What must be true, told by the dumbest means: who holds what, and until when a released address must rest.
struct Ledger {
  std::map<std::string, std::string> held;  // address -> container
  std::map<std::string, std::chrono::nanoseconds> rests_until;
  /// Containers whose DEL is under way: their addresses may be free before it is acknowledged, as its reply may be
  /// lost, or it is written record by record.
  std::set<std::string> leaving;

  void took(const std::string& address, const std::string& container, const Instant& now) {
    // RC_ASSERT evaluates both sides of an `||` for its message: conditions are made before.
    const auto holder = held.find(address);
    const bool is_left = holder != held.end() && leaving.contains(holder->second);
    const bool no_other_holder = holder == held.end() || holder->second == container || is_left;
    RC_ASSERT(no_other_holder);
    if (holder != held.end() && !is_left) return;
    const auto rest = rests_until.find(address);
    const bool rested = rest == rests_until.end() || rest->second <= now.since_boot;
    RC_ASSERT(rested);
    held[address] = container;
  }
  void took(const core::AssignAnswer& answer, const std::string& container, const Instant& now) {
    const auto* assigned = std::get_if<core::Assigned>(&answer);
    if (assigned == nullptr) return;
    for (const auto& one : assigned->addresses) took(one.address.to_string(), container, now);
  }
  /// What was acknowledged is recorded.
  void expect_recorded(const Context& context) const {
    for (const auto& [address, holder] : held) {
      const auto view = show_address(context, World::ip(address.c_str()));
      const bool recorded = view.has_value() && view->state == core::AddressState::held && view->owner &&
                            view->owner->container_id == holder;
      RC_ASSERT(recorded);
    }
  }
  /// Its DEL failed: nobody knows whether it holds.
  void forget(const std::string& container) {
    std::erase_if(held, [&](const auto& entry) { return entry.second == container; });
  }
  void let_go(const std::string& container, std::chrono::nanoseconds until) {
    std::erase_if(held, [&](const auto& entry) {
      if (entry.second != container) return false;
      rests_until[entry.first] = until;
      return true;
    });
  }
};

/// Of a commit.
inline store::Fault any_fault() {
  return *rc::gen::element(store::Fault::lose_reply, store::Fault::lose_request, store::Fault::conflict,
                           store::Fault::unavailable, store::Fault::storage_full);
}

}  // namespace croft::engine
