#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/net/ranges.h"
#include "hostlocal/decide/assign.h"
#include "hostlocal/reservations.h"
#include "ipam/use/transact.h"
#include "register/node.h"

// The reservations of a host-local network become addresses of pools: the way from node-local ranges to cluster IPAM.

namespace croft::engine {

struct ImportRequest {
  std::string network;  ///< of the owners in the store
  core::AffinityOwner node;
  std::vector<std::string> pools;   ///< names; only addresses inside one of them are imported; at least one
  std::vector<net::Prefix> ranges;  ///< of this node; only addresses inside one of them are imported; at least one
  std::string interface_name;       ///< for reservations of an old plugin, which name none; empty: they are left
  bool dry_run = false;             ///< says what would happen and changes nothing
  /// The gateways of the ranges, where they are not the first addresses. A gateway is the node's own.
  std::vector<net::Address> gateways = {};
  /// The addresses that host-local's configuration lets it give (rangeStart, rangeEnd). The rest of a range belongs to
  /// routers, as a rule, and to hosts with fixed addresses. Empty: not known.
  std::vector<net::AddressRange> given = {};
};

/// The outcome for the addresses of one holder.
struct ImportedHolder {
  enum class Outcome : std::uint8_t {
    imported,  ///< or, in a dry run, could be
    left,      ///< not touched; `reason` says why
    reserved,  ///< no holder's: host-local gives it to nobody, and so do the pools from now on
    clashes,   ///< the pools have it for somebody else, or refused: nothing was changed; `reason` says why
  } outcome = Outcome::left;
  core::host_local::Holder holder;
  std::vector<net::Address> addresses;
  std::vector<net::Prefix> ranges = {};  ///< `reserved`: in place of addresses
  std::string reason;
  /// It stays in the directory and lies in a pool that is not disabled: a pod may get it while its holder lives.
  bool at_risk = false;
  friend bool operator==(const ImportedHolder&, const ImportedHolder&) = default;
};
[[nodiscard]] std::string_view name_of(ImportedHolder::Outcome outcome);

/// First what host-local gives to nobody is reserved. Then each holder's reservations, together, become addresses held
/// in the pools; then their files go. Between the two both sides have them, and the same call goes on where it was
/// interrupted. From then on the directory would hand these addresses out again: the network must be configured for
/// croft-ipam. Errors: not_found for a pool that does not exist; those of the store and of `reservations`, after which
/// what was imported stays so.
[[nodiscard]] Result<std::vector<ImportedHolder>> import_reservations(const Context& context,
                                                                      store::Reservations& reservations,
                                                                      const ImportRequest& request);

}  // namespace croft::engine
