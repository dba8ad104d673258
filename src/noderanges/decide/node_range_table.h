#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/net/prefix.h"
#include "base/result.h"
#include "noderanges/decide/cidr_set.h"
#include "register/address_claims.h"
#include "register/node_range.h"
#include "register/snapshot.h"

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
