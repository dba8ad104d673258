#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/net/range.h"
#include "hostlocal/decide/holder.h"
#include "hostlocal/reservations.h"
#include "ipam/use/transact.h"
#include "register/affinity.h"

// Moving the reservations of a host-local network into a pool and back: the way from node-local ranges to cluster IPAM.

namespace croft::engine {

struct MoveRequest {
  std::string network;             ///< the CNI network, also the name of the directory
  core::AffinityOwner node;        ///< who claims the blocks; coming back, whose addresses are moved
  std::vector<std::string> pools;  ///< names; only addresses inside one of them are moved; at least one
  std::string interface_name;      ///< for reservations of an old plugin, which name none; empty: they are left
  bool dry_run = false;            ///< says what would happen and changes nothing
  /// Coming back: networks beside the first whose addresses go into the directory too.
  std::vector<std::string> more_networks = {};
  /// Into pools: addresses that are left where they are, and why. Nobody lives by one of them: it is not at risk.
  std::map<net::Address, std::string> gone = {};
  /// Only addresses in one of these; empty: all. For a node whose directory must have its own range's only. Coming back
  /// they are what host-local gives from then on; empty: that is what the node's blocks have.
  std::vector<net::Prefix> only_in = {};
  /// Into pools: of the ranges in `only_in`, where they are not the first addresses. What host-local gives to nobody of
  /// a range, as its gateway, which is the node's own, the pools give to nobody either: it is reserved.
  std::vector<net::Address> gateways = {};
  /// Into pools: what host-local's configuration lets it give (rangeStart, rangeEnd). What else a range in `only_in`
  /// has beside some of these is reserved too: it is of routers, as a rule, and of hosts with fixed addresses. Empty:
  /// not known.
  std::vector<net::AddressRange> given = {};
};

/// What became of the addresses of one holder.
struct MovedHolder {
  enum class Outcome : std::uint8_t {
    moved,     ///< or, in a dry run, could be
    left,      ///< not touched; `reason` says why
    reserved,  ///< no holder's: kept out of the pools' use, or in a dry run could be
    clashes,   ///< the other side has it for somebody else, or refused: nothing was changed; `reason` says why
  } outcome = Outcome::left;
  core::host_local::Holder holder;
  std::vector<net::Address> addresses;
  std::vector<net::Prefix> ranges = {};  ///< `reserved`: whole ones, in place of addresses
  std::string reason;
  /// Somebody else may be given one of the addresses while the holder lives. By a pool that is not disabled: it stays
  /// in the directory and lies in such a pool, or it came back out of one. By host-local: it stays in the register.
  bool at_risk = false;
  friend bool operator==(const MovedHolder&, const MovedHolder&) = default;
};
[[nodiscard]] std::string_view name_of(MovedHolder::Outcome outcome);

/// First what host-local gives to nobody is reserved: of one that somebody holds already, that is told. Then
/// each holder's reservations, together, become addresses held in the pools; then their files go. Between the two both
/// sides have them, never neither, and doing it again goes on where it was interrupted. From then on the directory
/// would hand these addresses out again: the network must be configured for the pool before.
/// Errors: not_found for a pool that does not exist; those of the store and of `reservations`, after which what was
/// moved stays moved.
[[nodiscard]] Result<std::vector<MovedHolder>> move_into_pools(const Context& context,
                                                               store::Reservations& reservations,
                                                               const MoveRequest& request);

/// The other way: what the network holds on this node in the pools becomes reservations, then is released in the pool,
/// into cooling. No cursor is moved. From then on the pool may hand these addresses out again: it must be disabled
/// before, or the directory's ranges be kept out of it. Whatever else lives by an address that host-local gives from
/// then on, of another network, of another node's pod, in a pool that is not named, is `left` and at risk. What the
/// network holds in another node's block stays too: that node's way back would know nothing of it.
[[nodiscard]] Result<std::vector<MovedHolder>> move_out_of_pools(const Context& context,
                                                                 store::Reservations& reservations,
                                                                 const MoveRequest& request);

}  // namespace croft::engine
