#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/mac.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "register/snapshot.h"
#include "register/stock.h"
#include "vpc/decide/stock.h"
#include "vpc/provider.h"

// How addresses come into the stock and leave it. Each step outside (a call of the cloud, a probe, a request of a peer)
// lies between two of these decisions: the first writes what is about to be done, the second what came of it. A crash
// between them leaves the first one's record, and who looks next asks the cloud (reconcile.h).

namespace croft::core::warm {

/// An address as the cloud, or a peer, gave it.
struct Given : cloud::CloudAddress {
  std::string from;                  ///< the node that lent it; empty: the cloud
  bool verified = false;             ///< its wire was asked before it came here
  std::string unfit{};               ///< why no pod may have it; empty: one may
  std::vector<StockDoubt> doubts{};  ///< what speaks against giving it to one for now
};

/// The record of the address itself; its state and times are not set.
[[nodiscard]] StockAddress record_of(const cloud::CloudAddress& given);
/// As the cloud's calls name it.
[[nodiscard]] cloud::CloudAddress cloud_address_of(const StockAddress& address);
/// Its record when it comes: `probing`, or free where it was verified.
[[nodiscard]] StockAddress taken_in(const Given& given, const Instant& now);

// ---- in

/// Writes that addresses are asked for. Error: exhausted, where the node would come to have more than its record allows
/// (StockNode::node_max); what is lent or promised comes all the same.
[[nodiscard]] Step<bool> plan_begin(const Snapshot& snapshot, const StockIntent& intent);
/// Takes in the addresses that an intent has brought, as `probing` (free, where verified; quarantined, where unfit);
/// the intent goes. Addresses that have a record are left as they are, but for one that has come back: `lent`, free and
/// doubted by the cloud alone, or quarantined with nobody else answering for it and no pod to wait for. One that is
/// `releasing` goes on its way: a call to release it may still be done by the cloud. An intent that is gone is no
/// error: the addresses are taken in all the same. Where nothing came of it, for sure, none are given.
[[nodiscard]] Step<Changed> plan_take(const Snapshot& snapshot, const std::string& intent_id,
                                      const std::vector<Given>& given, const Instant& now);

/// A probe's answer.
struct Probed {
  net::Address address;
  std::optional<net::Mac> other;
};
/// The caller gives at most kChangesMax: those that nobody has become free, the others quarantined with the MAC.
/// Addresses that are not `probing` any more are left alone.
[[nodiscard]] Step<Changed> plan_probed(const Snapshot& snapshot, const std::vector<Probed>& probed,
                                        const Instant& now);

// ---- out

/// Addresses to go back to the cloud, of which the caller gives at most kChangesMax: `count` free ones, those that
/// became free last; or the named ones.
struct ReturnToCloud {
  std::uint32_t count = 0;
  std::vector<net::Address> addresses{};
  /// Also those that are quarantined or unsure; else they are left where they are.
  bool unused = false;
};
/// To `releasing`. Held and cooling ones are left alone, and so are those that are on
/// their way elsewhere.
[[nodiscard]] Step<Changed> plan_return_to_cloud(const Snapshot& snapshot, const ReturnToCloud& what,
                                                 const Instant& now);
/// The cloud has taken them back, or they were never there: their records go.
[[nodiscard]] Step<Changed> plan_returned(const Snapshot& snapshot, const std::vector<net::Address>& addresses);
/// The cloud has surely not taken them back: free again, with what speaks against them, where they were verified; else
/// quarantined.
[[nodiscard]] Step<Changed> plan_not_returned(const Snapshot& snapshot, const std::vector<net::Address>& addresses,
                                              const std::vector<StockDoubt>& doubts, const Instant& now);

// ---- to and from other nodes

/// A borrower's request.
struct Lend {
  std::string request;  ///< names it; asked again it gets the same address
  net::Mac to;
  std::string subnet;     ///< empty: any
  std::string node{};     ///< the borrower's, as its certificate says; empty: not known
  std::size_t keeps = 0;  ///< this many of the free ones are for pods of this node that wait
};
/// StockAddress::extra of `lending` and `lent`: the node that borrowed it.
inline constexpr const char* kLentToKey = "lentTo";
/// How many one node gets in a minute from this one, of those that are free; asked again for the same does not count.
/// A node borrows for ADDs that wait a minute, from the richest neighbour first, and goes on to the next: 30 is more
/// than such a node starts pods in that time, and who has another node's key takes half an hour for a subnet of 1,000.
inline constexpr std::size_t kLoansAMinute = 30;
/// To `lending`: the verified free address that has been so the longest. None: there is nothing to lend. Error:
/// exhausted (kLoansAMinute).
[[nodiscard]] Step<std::optional<StockAddress>> plan_lend(const Snapshot& snapshot, const Lend& lend,
                                                          const Instant& now);
/// The cloud has moved it.
[[nodiscard]] Step<Changed> plan_lent(const Snapshot& snapshot, const net::Address& address, const std::string& request,
                                      const Instant& now);
/// It surely has not: free again.
[[nodiscard]] Step<Changed> plan_not_lent(const Snapshot& snapshot, const net::Address& address,
                                          const std::string& request, const Instant& now);

/// Whether the record says of what lies on this node's interface that it lies on another, or is of another of the
/// cloud's objects. An address on its way to somebody else does not.
[[nodiscard]] bool lies_elsewhere(const StockAddress& record, const cloud::CloudAddress& given);

// ---- how many

// How large the stock should be, and when: between two water marks (docs/notes/warm-pool.md#control-loop). Pure
// arithmetic on counts; the stock's scenarios are in vpc/decide/scenarios.

/// An operator's settings.
struct Marks {
  std::uint32_t low = 3;    ///< as many free ones should there be at least
  std::uint32_t high = 50;  ///< and no more than this
  /// The most that a node may hold of all sorts together; 0: no limit. More pods than this it can't run.
  std::uint32_t node_max = 0;
  std::uint32_t batch_max = 110;  ///< asked of the cloud in one call
  friend bool operator==(const Marks&, const Marks&) = default;
};
/// Error: invalid_argument with both values where low > high, or a mark is more than kMarkMax.
[[nodiscard]] Result<void> check_marks(const Marks& marks);
inline constexpr std::uint32_t kMarkMax = 10'000;
/// As many that others answer for may lie in quarantine beside the high mark; then no more are asked for.
inline constexpr std::uint32_t kConflictsMax = 32;

/// The outcome of the last question to the cloud.
enum class Outcome : std::uint8_t {
  done,
  exhausted,
  away,  ///< or it has too many calls
  refused,
  conflict,  ///< most of what came is no pod's to have: somebody else answers for it, or the host uses it
};
/// Why, by the records alone, no more are asked for of what others have: they are too many.
[[nodiscard]] std::optional<std::string> why_not_more(const std::vector<StockAddress>& records, const Marks& marks,
                                                      const Instant& now);

/// The outcome of a question that brought so many, of which pods may have `usable`. One that brought nothing new may
/// have been answered with what an earlier one left.
[[nodiscard]] Outcome judge_fill(std::size_t came, std::size_t usable);

/// The planner's memory from one round to the next; times are since boot, which nobody sets. Begins empty: what it
/// would remember from before a restart costs at the worst one call of the cloud.
struct PlannerMemory {
  std::chrono::nanoseconds grow_not_before{};
  std::chrono::nanoseconds one_not_before{};  ///< the same where somebody waits, and nothing is on its way to him
  std::chrono::nanoseconds shrink_not_before{};
  std::uint32_t failures = 0;    ///< in a row
  Outcome last = Outcome::done;  ///< of the last question for more
  /// The cloud had none for this node: the next question is for one.
  [[nodiscard]] bool is_short() const { return last == Outcome::exhausted || last == Outcome::conflict; }
};

/// The next thing to do. Never both.
struct Wish {
  std::uint32_t grow = 0;
  std::uint32_t shrink = 0;
  /// When to look again if nothing else happens.
  std::chrono::nanoseconds look_again{};
  std::string why;           ///< for people: one line
  bool is_at_limit = false;  ///< more are wanted, and somebody has to do something first: `why`
};

/// `waiting`: attachments that wait for an address because there is none. They are served beside the marks, with both
/// marks 0 too.
[[nodiscard]] Wish plan_stock(const Counts& counts, const Marks& marks, std::uint32_t waiting,
                              const PlannerMemory& memory, const Instant& now);

/// Whether other nodes are asked for what attachments wait for: the cloud has none for this node. Not where the node
/// has as many as it may.
[[nodiscard]] bool may_borrow(const Counts& counts, const Marks& marks, const PlannerMemory& memory);

/// The memory after a question to the cloud for more. `jitter`: 0 to 1, by which rests of many nodes drift apart.
[[nodiscard]] PlannerMemory after_growing(PlannerMemory memory, Outcome outcome, double jitter, const Instant& now);
/// The same after something was given back.
[[nodiscard]] PlannerMemory after_shrinking(PlannerMemory memory, Outcome outcome, double jitter, const Instant& now);
/// Something went back into the subnet, be it by an operator who looked into conflicts: asking is worth while again.
[[nodiscard]] PlannerMemory without_shortage(PlannerMemory memory);

/// "dry", "hungry", "normal" or "overflow", as other agents read it (docs/notes/warm-pool.md#control-loop).
[[nodiscard]] std::string status_of(const Counts& counts, const Marks& marks);

}  // namespace croft::core::warm
