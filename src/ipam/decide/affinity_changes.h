#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "ipam/decide/draft.h"
#include "register/records.h"
#include "register/snapshot.h"

namespace croft::core {

/// The outcome of one claim.
enum class AffinityOutcome : std::uint8_t {
  released,            ///< the owner no longer has the block; an empty one is gone
  not_there,           ///< there was no such claim
  belonged_to_others,  ///< the claim was stale, the block is somebody else's: only the claim went
  not_empty,           ///< the block holds addresses and was to be released only when empty: nothing was done
  changed,             ///< the block is not the one that was meant (sequence number): nothing was done
};

struct AffinityRelease {
  AffinityOwner owner;
  net::Prefix cidr;
  bool must_be_empty = true;
  /// The block's sequence number as it was seen; absent: whatever it is.
  std::optional<SequenceNumber> sequence_number;
};

/// Decides that an owner gives a block up (docs/notes/calico-ipam.md#affinity-operations): an empty block goes, one
/// with addresses becomes nobody's. Works also when its pool is gone. An address that cools makes a block not empty.
[[nodiscard]] Step<AffinityOutcome> plan_release_affinity(const Snapshot& snapshot, const AffinityRelease& release,
                                                          const Instant& now);

/// The outcome for one block that was to be claimed.
enum class ClaimOutcome : std::uint8_t { claimed, had_already, belongs_to_others };

/// Decides the claim of one exact block of an enabled pool for an owner (docs/notes/calico-ipam.md#claim-affinity).
/// A block of nobody becomes the owner's, with all that is held in it. Errors: invalid_argument when no enabled pool
/// has this block.
[[nodiscard]] Step<ClaimOutcome> plan_claim_affinity(const Snapshot& snapshot, const AffinityOwner& owner,
                                                     const net::Prefix& cidr, const Instant& now);

/// Decides that a block's ended cooldowns are written down (docs/notes/calico-ipam.md#cold-ips); false: there was
/// none.
[[nodiscard]] Step<bool> plan_free_cooled(const Snapshot& snapshot, const net::Prefix& cidr, const Instant& now);

/// How many blocks of one handle are looked at in one decision.
inline constexpr std::size_t kMendBlocksMax = 100;

/// Decides that a handle record agrees with the blocks it names: counts too high go down, blocks without addresses of
/// it go, and without any block the record. Never counts too few: guarded by the handle and all its blocks. False: it
/// was right.
[[nodiscard]] Step<bool> plan_mend_handle(const Snapshot& snapshot, const std::string& handle_id);

/// Labels to set, or, with nothing, to take away.
using LabelChanges = std::map<std::string, std::optional<std::string>>;

/// Decides new labels of a node; a node without a record gets one. The rest of the record stays. Error:
/// invalid_argument for a name or label that Kubernetes would not take; not_found when there is no record and nothing
/// is to be set.
[[nodiscard]] Step<Node> plan_label_node(const Snapshot& snapshot, const std::string& name,
                                         const LabelChanges& changes);

/// Decides that it is written down what a node held that is taken away; adds to what was written down before. False:
/// it was there already.
[[nodiscard]] Step<bool> plan_note_removed(const Snapshot& snapshot, const RemovedNode& removed);

/// Decides that such a record goes, if it still is as it was seen.
[[nodiscard]] Step<bool> plan_forget_removed(const Snapshot& snapshot, const RemovedNode& seen);

/// Decides that a node's record goes; false: there was none.
[[nodiscard]] Step<bool> plan_delete_node(const Snapshot& snapshot, const std::string& name);

}  // namespace croft::core
