#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "register/snapshot.h"
#include "register/stock.h"

// A node's stock of cloud addresses as one look at the store shows it. IPv4 and IPv6, and all subnets, are in one
// stock.

namespace croft::core::warm {

/// How many addresses are in which state at one moment. An address is counted once.
struct Counts {
  std::uint32_t free = 0;     ///< a pod may have it now
  std::uint32_t cooling = 0;  ///< not free yet
  std::uint32_t held = 0;
  std::uint32_t probing = 0;
  std::uint32_t asked = 0;    ///< by open intents: the cloud or a peer may have given them
  std::uint32_t unheard = 0;  ///< the same by calls that ended without an answer: they are not counted on
  std::uint32_t leaving = 0;  ///< releasing, lending
  std::uint32_t quarantined = 0;
  std::uint32_t conflicting = 0;   ///< of these, what somebody else answers for on the wire
  std::uint32_t doubted = 0;       ///< nobody's, and something speaks against giving it away (StockAddress::doubts)
  std::uint32_t used_by_host = 0;  ///< of these, what the host or a pod's namespace says it has
  /// Addresses on this node's interface or on their way there.
  [[nodiscard]] std::uint32_t on_node() const {
    return free + cooling + held + probing + asked + unheard + leaving + quarantined + doubted;
  }
  friend bool operator==(const Counts&, const Counts&) = default;
};

[[nodiscard]] Counts counts_of(const std::vector<StockAddress>& records, const Instant& now);

/// Addresses that the caller gives one decision at most; a commit has room for as many, and one fill brings fewer.
inline constexpr std::size_t kChangesMax = 120;

/// The stock. It points into the snapshot it was read from, and is valid as long as that.
class Stock {
 public:
  /// Asks for all of it. A damaged record is left out and its address is nobody's to give (is_damaged).
  [[nodiscard]] static Flow<Stock> read(Reader& reader);

  [[nodiscard]] const std::vector<const StockAddress*>& addresses() const { return addresses_; }  ///< by key
  [[nodiscard]] const std::vector<const StockIntent*>& intents() const { return intents_; }
  /// Null when the agent has not been here yet.
  [[nodiscard]] const StockNode* node() const { return node_; }

  /// Null when there is no record of it.
  [[nodiscard]] const StockAddress* find(const net::Address& address) const;
  [[nodiscard]] bool is_damaged(const net::Address& address) const;
  /// Records that cannot be read, by the names of their keys.
  [[nodiscard]] const std::map<std::string, Error>& damaged() const { return damaged_; }
  /// Null when there is no such intent.
  [[nodiscard]] const StockIntent* intent(const std::string& id) const;

 private:
  std::vector<const StockAddress*> addresses_;
  std::vector<const StockIntent*> intents_;
  std::map<std::string, Error> damaged_;
  const StockNode* node_ = nullptr;
};

/// Whether the holder is this attachment's. An old client knows no network and no interface: what is empty on either
/// side matches any. The container has to be the same.
[[nodiscard]] bool is_holder(const StockAddress& address, const Owner& owner);

/// The record as it is once it entered a state: without what belongs to another one.
[[nodiscard]] StockAddress with_state(StockAddress address, StockAddressState state, const Instant& now);

/// As it is when its holder lets go: cooling, or free where the cooldown is 0; quarantined for its pod where it is
/// promised to that (assign.h).
[[nodiscard]] StockAddress let_go(StockAddress address, std::chrono::seconds cooldown, const Instant& now);

/// Whether it is of a subnet; empty on either side: not known, or any.
[[nodiscard]] bool is_of_subnet(const StockAddress& address, const std::string& subnet);

/// Whether no pod has an address in this state, and it may come to one.
[[nodiscard]] bool has_no_holder(StockAddressState state);

/// Whether it is nobody's, and something speaks against giving it to a pod.
[[nodiscard]] bool is_unsure(const StockAddress& address);

/// Its record as it is to be, where it was read.
[[nodiscard]] PlannedWrite put_of(StockAddress address);

/// The records that a decision changed, as they are now; it may find nothing to do.
using Changed = std::vector<StockAddress>;
/// One more of them, and one that goes.
void add(Plan<Changed>& plan, StockAddress after);
void add_gone(Plan<Changed>& plan, const StockAddress& before);
/// Decides by each record alone: `change` adds to the plan what becomes of it, if anything does.
template <class Change>
[[nodiscard]] Step<Changed> change_each(const Snapshot& snapshot, Change change) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Changed>> {
    TRY(const Stock stock, Stock::read(reader));
    Plan<Changed> plan;
    for (const StockAddress* known : stock.addresses()) change(plan, *known);
    return plan;
  });
}

// ---- the term

// The stock has one writer at a time. A plugin that gets no sign of life from the agent takes the next term with its
// commit; the agent's own commit then fails, it reads everything anew, and takes the next.

/// 0: nobody has taken one.
[[nodiscard]] std::uint64_t term_of(const StockNode* node);
/// The error of a commit in a term that is over.
[[nodiscard]] Error term_is_over();
[[nodiscard]] bool is_term_over(const Error& error);
/// Puts writes under a term: `own` is the one that their writer took, 0 has them take the next one. Error:
/// term_is_over.
[[nodiscard]] Result<void> put_under_term(std::vector<PlannedWrite>& writes, const StockNode* node, std::uint64_t own);
/// The term after `own`, or after the one that another took since; `own` itself where that still stands.
[[nodiscard]] Step<std::uint64_t> plan_term(const Snapshot& snapshot, std::uint64_t own);

/// Writes what the node is to its cloud, but for the term, which stays. Nothing is written where it is so (false).
[[nodiscard]] Step<bool> plan_describe(const Snapshot& snapshot, StockNode node);

/// A plan in the term `own`, or the next one (0), also one that writes nothing. A stock that no agent has begun has no
/// terms for that. `step` must be a plan.
template <class Answer>
[[nodiscard]] Step<Answer> put_in_term(const Snapshot& snapshot, std::uint64_t own, Step<Answer> step) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Answer>> {
    auto& plan = std::get<Plan<Answer>>(step);
    const StockNode* node = reader.sound(warm_node_key());
    TRY_VOID(reader.ready());
    if (node != nullptr || !plan.writes.empty()) TRY_VOID(put_under_term(plan.writes, node, own));
    return std::move(plan);
  });
}
/// A decision of a writer in its term. A plan that writes nothing needs none.
template <class Answer>
[[nodiscard]] Step<Answer> in_term(const Snapshot& snapshot, std::uint64_t own, Step<Answer> step) {
  const auto* plan = std::get_if<Plan<Answer>>(&step);
  if (plan == nullptr || plan->writes.empty()) return step;
  return put_in_term(snapshot, own, std::move(step));
}

/// `plan` with its arguments. Most plans take the moment as their last one.
template <class P, class... Arguments>
[[nodiscard]] auto planned(const P& plan, const Snapshot& snapshot, const Instant& now, const Arguments&... arguments) {
  if constexpr (std::is_invocable_v<const P&, const Snapshot&, const Arguments&..., const Instant&>) {
    return plan(snapshot, arguments..., now);
  } else {
    return plan(snapshot, arguments...);
  }
}

}  // namespace croft::core::warm
