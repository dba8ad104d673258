#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ipam/use/transact.h"
#include "register/stock.h"
#include "vpc/decide/assign.h"
#include "vpc/decide/reconcile.h"
#include "vpc/decide/supply.h"

// Use cases on a node's stock of cloud addresses that need the store alone: what an ADD or a DEL does, be it by the
// agent or by a plugin that works without it. vpc/use/stock_keeper.h keeps the stock filled.

namespace croft::engine {

/// The writer of a commit. All of the following fail with term_is_over() where the writer's term is
/// (core::warm::in_term).
struct Writer {
  /// Whether an address may be given by what the store says now (StockActor::may_give); asked within the decision.
  /// Null: it may. Where it may not, the stock looks empty to who has no address yet.
  std::function<bool()> may_give = nullptr;
  /// The term that it took. Null, or 0: none, as a plugin, whose every commit takes the next one.
  std::function<std::uint64_t()> term = nullptr;

  /// A plan in its term.
  template <class Answer>
  [[nodiscard]] core::Step<Answer> in_term(const core::Snapshot& snapshot, core::Step<Answer> step) const {
    return core::warm::in_term(snapshot, term ? term() : 0, std::move(step));
  }
};

/// An ADD's step; where nothing may be given it finds the stock empty.
[[nodiscard]] core::Step<core::warm::Answer> plan_giving(const core::Snapshot& snapshot,
                                                         const core::warm::Request& request, const Instant& now,
                                                         const Writer& writer);
/// An ADD (core::warm::plan_assign). An empty stock is an answer, not an error.
[[nodiscard]] Result<core::warm::Answer> assign_from_stock(const Context& context, const core::warm::Request& request,
                                                           const Writer& writer = {});

/// A DEL (core::warm::plan_release): what was let go. Nothing held is a success; a plugin alone takes the term all the
/// same.
[[nodiscard]] Result<std::vector<core::StockAddress>> release_to_stock(const Context& context,
                                                                       const core::warm::Release& release,
                                                                       const Writer& writer = {});

/// The damage of a store that is `corrupt`, without how a register is brought back (store/sqlite): a
/// stock begins anew.
[[nodiscard]] std::string damage_of_stock(const Error& error);

/// All of the stock, as of one moment.
struct StockView {
  std::vector<core::StockAddress> addresses;
  std::vector<core::StockIntent> intents;
  std::optional<core::StockNode> node;
  std::map<std::string, Error> damaged{};  ///< records that cannot be read, by the names of their keys
  /// Null: there is no record of it.
  [[nodiscard]] const core::StockAddress* find(const net::Address& address) const {
    const auto found = std::ranges::find(addresses, address, &core::StockAddress::address);
    return found == addresses.end() ? nullptr : &*found;
  }
};
[[nodiscard]] Result<StockView> view_stock(const Context& context);

}  // namespace croft::engine
