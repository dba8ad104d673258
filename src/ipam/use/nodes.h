#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ipam/decide/affinity_changes.h"
#include "ipam/use/transact.h"

namespace croft::engine {

/// Gives up one block of an owner (core::plan_release_affinity). Without `apply` it only says what would come of it.
[[nodiscard]] Result<core::AffinityOutcome> release_affinity(const Context& context,
                                                             const core::AffinityRelease& release, bool apply = true);

/// The outcome of several claims.
struct AffinitiesReleased {
  std::vector<net::Prefix> released;
  std::vector<net::Prefix> not_empty;  ///< kept: they hold addresses
  /// The last failure; what could be done was done all the same.
  std::optional<Error> failure;
};

/// Gives up all blocks of an owner, of both families, also when their pools are gone
/// (docs/notes/calico-ipam.md#release-host-affinities): empty ones go; others become nobody's, or stay with
/// `must_be_empty`. Addresses stay held: those of a node that is gone are collected when their holders are proven gone.
[[nodiscard]] Result<AffinitiesReleased> release_host_affinities(const Context& context,
                                                                 const core::AffinityOwner& owner, bool must_be_empty,
                                                                 bool apply = true);

/// The outcome of a claim of several blocks.
struct AffinitiesClaimed {
  std::vector<net::Prefix> claimed;  ///< also those that the owner had already
  std::vector<net::Prefix> others;   ///< belong to somebody else
};

/// Claims every block of `cidr` for an owner (ClaimAffinity); one that is nobody's too, with the addresses held in it,
/// which Calico leaves alone. Errors: invalid_argument when no enabled pool contains
/// it, or it is smaller than a block, or holds more than kClaimBlocksMax.
[[nodiscard]] Result<AffinitiesClaimed> claim_affinity(const Context& context, const core::AffinityOwner& owner,
                                                       const net::Prefix& cidr);
inline constexpr std::uint64_t kClaimBlocksMax = 4096;

/// A node as the register knows it: by its record, its blocks, or addresses held on it.
struct NodeView {
  core::Node node;
  bool recorded = false;  ///< it has a Node record; without one no label selects it
  std::size_t blocks = 0;
  std::uint64_t held = 0;      ///< addresses held on it, in whosever block
  std::uint64_t borrowed = 0;  ///< of these, in blocks that are not its own
};

/// All of them, ascending by name.
[[nodiscard]] Result<std::vector<NodeView>> list_nodes(const Context& context);

/// Changes labels of a node (core::plan_label_node).
[[nodiscard]] Result<core::Node> label_node(const Context& context, const std::string& name,
                                            const core::LabelChanges& changes);

/// Whether the register knows a node: by its record, a block, or an address held on it. Error: not_found, naming some
/// that it knows.
[[nodiscard]] Result<void> check_node_known(const Context& context, const std::string& name);

struct NodeRemoval {
  std::string name;
  bool force = false;    ///< also when addresses are held on it, or it has a record and a node range
  bool dry_run = false;  ///< only say what would come
};
struct NodeRemoved {
  std::uint64_t held = 0;  ///< addresses held on it, which stay held
  AffinitiesReleased affinities;
  bool record_deleted = false;
};
/// Gives up the blocks of a node that is gone (release_host_affinities), and its record. Refused for safety, in a dry
/// run too, when addresses are held on it, or a damaged block leaves that open, or when it has a record and a node
/// range (whoever gives ranges back does so behind this). With `force` they stay held, and the removal is written down
/// (core::RemovedNode). So the collector may free them as it frees those of a node that is gone. A node that the
/// register does not know is no error: its ranges may be somebody else's to give back. When some blocks could not be
/// given up the record stays, so that doing it again goes on. It stays too on a store shared with foreign writers, who
/// keep records of nodes themselves.
[[nodiscard]] Result<NodeRemoved> remove_node(const Context& context, const NodeRemoval& removal);

}  // namespace croft::engine
