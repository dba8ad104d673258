#pragma once

#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ipam/use/transact.h"
#include "register/warm.h"
#include "vpc/decide/moves.h"
#include "vpc/provider.h"
#include "vpc/use/stock_keeper.h"
#include "vpc/use/warm_stock.h"

// What the files of StockKeeper share, and nobody else includes.

namespace croft::engine {

/// How soon what is half done is looked at again.
inline constexpr std::chrono::nanoseconds kSettleAgain = std::chrono::seconds{5};
/// Who would give something back while look_before_serving() is under way, as at each start, asks again then.
inline constexpr std::chrono::nanoseconds kLookIsOver = std::chrono::seconds{1};

/// As the stock takes it in; `from` is the node that lent it, empty: the cloud.
[[nodiscard]] inline core::warm::Given given_of(const cloud::CloudAddress& address, bool verified,
                                                const std::string& from) {
  return {address.address, address.prefix_length, address.gateway, address.mac,
          address.vpc,     address.subnet,        address.object,  from,
          verified};
}

/// As the cloud's calls name it.
[[nodiscard]] inline cloud::CloudAddress cloud_address_of(const core::WarmAddress& address) {
  return {address.address, address.prefix_length, address.gateway, address.mac,
          address.vpc,     address.subnet,        address.object};
}

[[nodiscard]] inline std::vector<core::WarmAddress> in_state(const StockView& view, core::WarmState state) {
  std::vector<core::WarmAddress> found;
  std::ranges::copy_if(view.addresses, std::back_inserter(found),
                       [&](const core::WarmAddress& one) { return one.state == state; });
  return found;
}

/// Of what a look can show that it is not as the record says: what may be given to a pod, now or later.
[[nodiscard]] inline bool is_on_interface(const core::WarmAddress& address) {
  return address.state != core::WarmState::quarantined && address.state != core::WarmState::lent;
}

/// Whether the records name another interface as this node's.
[[nodiscard]] inline bool is_of_other_card(const StockView& view, const cloud::Interface& interface) {
  return view.node && !view.node->node.empty() && view.node->mac != interface.mac;
}

[[nodiscard]] inline std::string text_of(const core::WarmAddress& address) { return address.address.to_string(); }

/// Of one that found `leaving_` held for as long as it may wait.
[[nodiscard]] inline Error busy() {
  return {ErrorCode::deadline_exceeded, "other addresses are on their way out of the stock; try again", {}};
}

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

template <class Answer, class Plan>
Result<Answer> StockKeeper::decide(Plan plan) {
  auto answer =
      transact(context(), TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant& now) {
        return core::warm::in_term<Answer>(snapshot, term_, plan(snapshot, now));
      });
  if (!answer && core::warm::is_term_over(answer.error())) take_term();
  if (!answer) {
    const std::lock_guard lock(mutex_);
    ++tally_.store_failures;
  }
  return answer;
}

template <class Answer, class Plan>
Result<Answer> StockKeeper::decide_giving(Plan plan) {
  return decide<Answer>([&](const core::Snapshot& snapshot, const Instant& now) -> core::Step<Answer> {
    if (may_give()) return plan(snapshot, now);
    return Error{ErrorCode::unavailable,
                 "the store was just opened, or its files were replaced: host, pods and cloud are looked at first",
                 {}};
  });
}

}  // namespace croft::engine
