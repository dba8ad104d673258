#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/net/prefix.h"
#include "base/result.h"
#include "base/space/dense_bitmap.h"
#include "register/address_claims.h"
#include "register/node.h"
#include "register/snapshot.h"

namespace croft::core::node_range {

/// One cluster CIDR cut into node ranges of one length, some of them taken (docs/notes/node-ranges.md#cidr-set). It
/// behaves as kube-controller-manager's CidrSet: round robin, so that a range given back comes again only when the
/// others had their turn; what is occupied may be longer or shorter than a node range, or contain the whole cluster
/// CIDR. Unlike there, the next free one is found without a scan, and each decision makes the set anew from the
/// records.
class CidrSet {
 public:
  /// Past these a set is refused: IPv6 as in the reference; IPv4, where that has no limit, at 2 MiB of bits.
  static constexpr int kIndexBitsMaxV6 = 16;
  static constexpr int kIndexBitsMaxV4 = 24;

  /// All free. `cursor` is the index looked at first; one past the end counts from 0 again. Errors, invalid_argument:
  /// the node length is shorter than the cluster's or longer than the family's; too many node ranges
  /// (`New CIDR set failed; the node CIDR size is too big`, which IPv4 says with its own limit).
  [[nodiscard]] static Result<CidrSet> make(const ClusterCidr& cluster, std::uint64_t cursor = 0);

  [[nodiscard]] const ClusterCidr& cluster() const { return cluster_; }
  [[nodiscard]] std::uint32_t size() const { return bits_.size(); }
  [[nodiscard]] std::uint32_t taken() const { return bits_.size() - bits_.free_count(); }
  [[nodiscard]] bool is_full() const { return bits_.free_count() == 0; }
  /// The node ranges that are excluded, each counted once.
  [[nodiscard]] std::uint32_t excluded_count() const { return excluded_; }
  [[nodiscard]] std::uint64_t cursor() const { return cursor_; }

  /// The node range number `index`, which must be below size().
  [[nodiscard]] net::Prefix at(std::uint32_t index) const {
    return cluster_.cidr.subprefix(index, cluster_.node_length);
  }

  struct Found {
    net::Prefix cidr;
    std::uint32_t tries = 0;  ///< taken ones between the cursor and this one
    friend bool operator==(const Found&, const Found&) = default;
  };
  /// Takes the first free node range at or after the cursor, round to the cursor again; nullopt when all are taken.
  [[nodiscard]] std::optional<Found> take_next();

  /// The first and last index of the node ranges that a prefix overlaps: one when it is longer than a node range, all
  /// when it contains the cluster CIDR. Error: invalid_argument, `cidr <a> is out the range of cluster cidr <b>`.
  [[nodiscard]] Result<std::pair<std::uint32_t, std::uint32_t>> indices_of(const net::Prefix& cidr) const;

  /// Takes every node range that the prefix overlaps; the cursor stays. Returns how many were free. Errors as
  /// indices_of.
  [[nodiscard]] Result<std::uint32_t> occupy(const net::Prefix& cidr);
  /// Likewise what no node may have, before anything else is taken. A prefix elsewhere changes nothing.
  void exclude(const net::Prefix& cidr);

 private:
  CidrSet(const ClusterCidr& cluster, std::uint32_t size, std::uint32_t cursor)
      : cluster_(cluster), bits_(size), cursor_(cursor) {}

  ClusterCidr cluster_;
  space::DenseBitmap bits_;
  std::uint32_t cursor_;
  std::uint32_t excluded_ = 0;
};

}  // namespace croft::core::node_range

namespace croft::core {

/// The families of the cluster CIDRs, in the order of their first.
[[nodiscard]] std::vector<net::Family> families_of(const std::vector<ClusterCidr>& cluster_cidrs);

/// The one that contains the range; nothing: it is of a configuration before.
[[nodiscard]] std::optional<net::Prefix> cluster_cidr_of(const net::Prefix& cidr,
                                                         const std::vector<ClusterCidr>& cluster_cidrs);

/// The node ranges of a snapshot, as every decision looks at them.
class NodeRangeTable {
 public:
  /// Asks for what it needs; meaningful once checked.
  explicit NodeRangeTable(Reader& reader, AddressClaims::For purpose = AddressClaims::For::to_claim);
  /// That it has been read, and is sound.
  [[nodiscard]] Flow<void> check(const Reader& reader) const;

  [[nodiscard]] const std::optional<NodeRangeSet>& stored() const { return stored_; }
  /// Whether there are cluster CIDRs to cut ranges from.
  [[nodiscard]] bool is_configured() const { return stored_ && !stored_->cluster_cidrs.empty(); }
  /// Ascending by CIDR.
  [[nodiscard]] const std::vector<NodeRange>& ranges() const { return ranges_; }
  [[nodiscard]] const AddressClaims& claims() const { return *claims_; }
  /// Prefixes that no node may get.
  [[nodiscard]] std::vector<net::Prefix> excluded() const;

  /// The ranges of a node: of the first family first, then by CIDR.
  [[nodiscard]] std::vector<net::Prefix> ranges_of(const std::string& node) const;
  void put_in_order(std::vector<net::Prefix>& cidrs) const;

  /// The cluster CIDRs with what is excluded, somebody's, or `said` to be somebody's taken. Error: corrupt.
  [[nodiscard]] Result<std::vector<node_range::CidrSet>> sets(const std::vector<NodeRange>& said = {}) const;
  /// The record as it is to be written: with the cursors of these sets.
  [[nodiscard]] PlannedWrite next_set(const std::vector<node_range::CidrSet>& sets) const;

 private:
  std::optional<NodeRangeSet> stored_;
  std::optional<AddressClaims> claims_;
  std::vector<NodeRange> ranges_;
  std::map<std::string, std::vector<net::Prefix>> by_node_;
  std::optional<Error> fault_;
};

}  // namespace croft::core
