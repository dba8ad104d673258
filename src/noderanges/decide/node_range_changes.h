#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/net/prefix.h"
#include "base/result.h"
#include "base/space/free_ordinals.h"
#include "register/address_claims.h"
#include "register/node.h"
#include "register/snapshot.h"

// Decisions about node ranges: the prefixes that nodes take their pods' addresses from
// (docs/notes/node-ranges.md#contract). The records are the truth: one of each range that says who has it, and one
// for all of them with the cluster CIDRs, which every commit here writes. So what one decision saw free, no other gives
// away meanwhile. Where commits are not atomic, two may give one node two: surplus_ranges().

namespace croft::core {

// The cluster CIDRs that node ranges are cut from.

/// The wanted cluster CIDRs.
struct NodeRangeSpec {
  std::vector<ClusterCidr> cluster_cidrs;  ///< 1 to kClusterCidrsMax; tried in this order within a family
  std::vector<net::Prefix> excluded;       ///< at most kExcludedMax; may lie elsewhere
};
inline constexpr std::size_t kClusterCidrsMax = 32;
inline constexpr std::size_t kExcludedMax = 32;

struct NodeRangesConfigured {
  NodeRangeSet set;
  bool changed = false;
  std::vector<NodeRange> outside;  ///< under none of the cluster CIDRs now: their nodes keep them
};

/// Decides what node ranges are cut from, from now on. Ranges given out stay as they are, whatever their length; a
/// cluster CIDR that stays as it was keeps its cursor. Errors: invalid_argument for none or too many cluster CIDRs and
/// what CidrSet::make finds; refused_by_configuration for two cluster CIDRs that overlap, one that overlaps a pool or
/// is excluded whole (the message names both).
[[nodiscard]] Step<NodeRangesConfigured> plan_configure_node_ranges(const Snapshot& snapshot,
                                                                    const NodeRangeSpec& spec);

/// A range that a node got, and how it was found.
struct NodeRangeAdded {
  net::Prefix cidr;
  net::Prefix cluster_cidr;
  std::uint32_t tries = 0;  ///< taken ones that were passed over (docs/notes/node-ranges.md#metrics)
  friend bool operator==(const NodeRangeAdded&, const NodeRangeAdded&) = default;
};

struct NodeRangesAssigned {
  std::string node;
  /// All ranges of the node, of the family of the first cluster CIDR first: the first one is Kubernetes' `podCIDR`.
  std::vector<net::Prefix> cidrs;
  std::vector<NodeRangeAdded> added;
  /// Why nothing was added: exhausted, naming every full cluster CIDR and what to do; not_found for a node without
  /// record where one is demanded; invalid_argument for a name that is none; refused_by_configuration where the object
  /// says a range that is not recorded.
  std::optional<Error> refusal;
};

/// Whether a node without a record gets one, or is refused.
enum class NodeRecord : std::uint8_t { make, demand };

/// Decides ranges for nodes: one for each family that has a cluster CIDR and that the node has no range of yet, from
/// the first cluster CIDR with room; all families of a node or none. One answer a node, in their order; each is
/// named once. A node that has all costs no write. Never from what is excluded, nor from Service
/// ranges and pools that the store knows (register/address_claims.h), nor what overlaps anything that is `said`
/// outside the register to be a node's, with a record or without, whosever it is and however long. A node whose object
/// says a range already gets none: the object takes no other for as long as it lives. Errors: refused_by_configuration
/// without cluster CIDRs; corrupt.
[[nodiscard]] Step<std::vector<NodeRangesAssigned>> plan_assign_node_ranges(const Snapshot& snapshot,
                                                                            const std::vector<std::string>& nodes,
                                                                            NodeRecord record,
                                                                            const std::vector<NodeRange>& said = {});
/// Nodes of one such decision: each may take two writes and its record.
inline constexpr std::size_t kAssignNodesMax = 32;

/// Decides that a node has this range, which it was given elsewhere. The same again costs no write. Errors: the
/// same, and what a refusal says there; invalid_argument when it lies under no cluster CIDR, or the node has one
/// of its family (`may specify no more than one CIDR for each IP family`); refused_by_configuration when it overlaps
/// what is excluded; already_exists when it overlaps a range of another node, or one that is `said` to be another's
/// (named).
[[nodiscard]] Step<NodeRangesAssigned> plan_adopt_node_range(const Snapshot& snapshot, const std::string& node,
                                                             const net::Prefix& cidr, NodeRecord record,
                                                             const std::vector<NodeRange>& said = {});

struct NodeRangesReleased {
  std::string node;
  std::vector<net::Prefix> cidrs;  ///< empty: it had none, or the condition did not hold
};

/// Only if the node has no record, and exactly these ranges, in whichever order; the commit rests on both.
using OnlyIfGone = std::optional<std::vector<net::Prefix>>;

/// Whether a node's record, by which its pods may live in its ranges, keeps them.
enum class IfRecorded : std::uint8_t { refuse, release };

/// Decides that a node gives back all its ranges, or those of them that `only_these` names. Error: refused_for_safety
/// for one with a record, with IfRecorded::refuse and ranges to give back.
[[nodiscard]] Step<NodeRangesReleased> plan_release_node_ranges(
    const Snapshot& snapshot, const std::string& node, const OnlyIfGone& only_if_gone, IfRecorded if_recorded,
    const std::optional<std::vector<net::Prefix>>& only_these = {});

}  // namespace croft::core

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
