#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/mac.h"
#include "register/block.h"
#include "register/owner.h"

// One node's stock of cloud addresses (docs/notes/warm-pool.md): what the agent, the plugin when it works alone,
// and the operator's commands share in a store of the node's own. `vpc/decide` decides by it.

namespace croft::core {

/// Where a cloud address is on its way. It is in exactly one state; what is done outside (a call of the cloud, an
/// answer to a runtime) is done after the state was written that says so.
enum class StockAddressState : std::uint8_t {
  probing,      ///< the cloud gave it; whether somebody else uses it on the wire is not known yet
  free,         ///< for the next pod
  held,         ///< by a pod
  cooling,      ///< released; free once the cooldown has ended (is_free_at)
  releasing,    ///< goes back to the cloud, which may have been told
  lending,      ///< goes to another node's interface; the cloud may have been told
  lent,         ///< is another node's; kept so that the same request gets the same answer
  quarantined,  ///< the cloud says that it is ours, and `why` it is not used
};

/// A sign that speaks against giving an address to a pod. It lasts until a look in which the same source speaks shows
/// nothing of it (vpc/decide/reconcile.h).
enum class StockDoubt : std::uint8_t {
  not_in_cloud,  ///< the cloud did not show it on this node's interface
  used_by_host,  ///< an interface or a route of the host has it, and the stock knows of nobody who does
  used_by_pod,   ///< a live pod of this node says so, and the stock has it for nobody or for another
};

/// An address that the cloud has given to an interface of this node, besides the node's own.
struct StockAddress {
  net::Address address;
  std::uint32_t prefix_length = 0;  ///< of its subnet
  std::optional<net::Address> gateway;
  net::Mac mac;     ///< of the interface that the cloud delivers it to
  std::string vpc;  ///< the cloud's names
  std::string subnet;
  std::string object;  ///< what the interface is to the cloud; empty: not known
  StockAddressState state = StockAddressState::quarantined;
  WallTime since{};        ///< in this state
  WallTime created{};      ///< when it came to this node
  bool recycled = false;   ///< a pod has had it before
  WallTime recycled_at{};  ///< when that pod let go; the epoch when none has
  /// When it was last known to be nobody else's on the wire; absent: it was not probed, which it has to be before use.
  std::optional<WallTime> verified{};
  // With `held`; else empty.
  Owner owner{};
  PodIdentity pod{};
  std::string netns{};
  /// Further values that an agent's client recorded with the pod and reads back: `dedicatedUNI`, `interfaceID`,
  /// `eipID`.
  std::map<std::string, std::string> extra{};
  std::optional<Cooling> cooling{};     ///< of `cooling`
  std::optional<net::Mac> other_mac{};  ///< who answered for it on the wire
  /// Ascending. An address that no pod has is given to nobody meanwhile. With `held` it stays when the holder lets go.
  std::vector<StockDoubt> doubts{};
  std::string peer{};     ///< of `lending` and `lent`: whose it becomes, a MAC; of one that was borrowed: who lent it
  std::string request{};  ///< of `lending` and `lent`: the borrower's name for its request
  std::string why{};      ///< of `quarantined`
  friend bool operator==(const StockAddress&, const StockAddress&) = default;
};

/// A request to the cloud or another node that is made, or about to be, and brings addresses that have no record yet.
/// Written before the call, and gone in the commit that records the outcome: one that is there at a start tells that
/// the outcome has to be looked up. It is settled once the cloud has what was asked for, or no call takes so long.
struct StockIntent {
  enum class What : std::uint8_t { allocate, borrow };
  std::string id;  ///< 32 hexadecimal digits, random; the idempotency key of what is asked
  What what = What::allocate;
  std::uint32_t count = 0;              ///< how many addresses at most
  std::optional<net::Address> address;  ///< this very one
  net::Mac mac;                         ///< for this interface
  std::string subnet;
  std::string peer;  ///< the lender; of what is allocated: the pod that it is promised to (vpc/decide/assign.h)
  WallTime begun{};
  ClockMark begun_at{};  ///< by a clock that nobody sets
  // 0; older versions wrote the caller.
  std::uint32_t process = 0;
  std::uint64_t process_started = 0;  ///< ticks since boot, tells two processes of one number apart
  friend bool operator==(const StockIntent&, const StockIntent&) = default;
};

/// The facts that the node's agent found out about the node and goes by, for plugins without the agent. One record; a
/// node where no agent has been has one that says nothing but its term.
struct StockNode {
  std::string node;
  net::Mac mac;
  std::string vpc;
  std::string subnet;
  std::string object;
  std::string zone;
  std::string region;
  std::string project;
  std::uint32_t low = 0;   ///< free addresses below which more are asked for
  std::uint32_t high = 0;  ///< free addresses above which some go back
  std::uint32_t cooldown_seconds = 0;
  std::uint64_t term = 0;  ///< of the writer (vpc/decide/stock.h)
  /// The most that the node may have of all sorts together, at least 1; nothing: no limit.
  std::optional<std::uint32_t> node_max{};
  friend bool operator==(const StockNode&, const StockNode&) = default;
};

/// Whether a pod may be given it now, as far as its record says: free, or cooled off, and nothing speaks against it.
[[nodiscard]] inline bool is_free_at(const StockAddress& address, const Instant& now) {
  if (!address.doubts.empty()) return false;
  if (address.state == StockAddressState::free) return true;
  return address.state == StockAddressState::cooling && address.cooling &&
         cooldown_ended(*address.cooling, address.cooling->cooldown, now);
}

}  // namespace croft::core
