#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/net/prefix.h"
#include "register/snapshot.h"

namespace croft::core {

/// Everybody who hands out addresses of a part of the address space: pools, node ranges and what they are cut from, the
/// ranges of Services in either form, bitmaps and ServiceCIDR objects, and blocks whose pool is gone, or can't be read:
/// their addresses are held. Whichever of them is to begin handing out some asks here first. Where the store does not
/// see Kubernetes' records (Snapshot::lacks) those are left out.
///
/// A claim that is made meanwhile is seen as a conflict: a commit that makes or moves any of these writes the set of
/// pools (`next_pool_set`). A node range is the exception; it is cut only where nothing else can be made.
class AddressClaims {
 public:
  /// `to_look` leaves damaged pools and ranges of Services out, whose CIDR is not known: nobody may claim anything by
  /// that.
  enum class For : std::uint8_t { to_claim, to_look };
  /// Asks for what it needs; meaningful once the reader is complete.
  explicit AddressClaims(Reader& reader, For purpose = For::to_claim);

  // The claim that stands against another one, with its CIDR, ready for a message: "pool web (10.1.0.0/24)". Nothing:
  // none.

  /// Against a pool: all but other pools and blocks, which the pool's own rules look at.
  [[nodiscard]] std::optional<std::string> against_pool(const net::Prefix& cidr) const;
  /// Against a range of Services: pools, stray blocks, node ranges, and what node ranges are cut from, unless it is
  /// left out there.
  [[nodiscard]] std::optional<std::string> against_services(const net::Prefix& cidr) const;
  /// Against a CIDR that node ranges are cut from: pools, stray blocks. Ranges of Services in it are left out.
  [[nodiscard]] std::optional<std::string> against_cluster_cidr(const net::Prefix& cidr) const;
  /// The prefixes that no node may get a range of, whatever the configuration leaves out: ranges of Services, pools
  /// that other programs have made, and stray blocks.
  [[nodiscard]] std::vector<net::Prefix> prefixes_kept_from_nodes() const;

 private:
  struct Claim {
    std::string text;  ///< for a message
    net::Prefix cidr;
  };
  using Claims = std::vector<Claim>;

  void read_stray_blocks(Reader& reader);
  void read_node_ranges(Reader& reader);
  void read_services(Reader& reader, For purpose);
  [[nodiscard]] static std::optional<std::string> first_over(const Claims& claims, const net::Prefix& cidr);

  Claims pools_, stray_blocks_, clusters_, excluded_, node_ranges_, services_;
};

/// The write of the set of pools in a commit that makes or moves a claim. Asks for the record.
[[nodiscard]] PlannedWrite next_pool_set(Reader& reader);

/// Whether the prefix is one of IPv4-mapped IPv6 addresses (::ffff:10.0.0.0/104), or contains them all. Nobody may
/// claim one: its addresses are IPv4's in other words, and would have two holders.
[[nodiscard]] bool is_v4_mapped(const net::Prefix& cidr);

}  // namespace croft::core
