#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "calico/etcd.h"
#include "register/node.h"
#include "register/pool.h"
#include "register/records.h"

// Calico's v3 resources in etcd (docs/formats/calico.md): pools, reservations and nodes, under the keys of ResourceKey.
// A new one is written byte for byte as Calico's library does; one that was read keeps everything that is not known
// here.
namespace croft::wire::calico {

/// The metadata of a resource besides its name. For a new one: a random UID, the time, and nothing else.
struct Metadata {
  std::string uid;                            ///< empty: not there
  std::optional<WallTime> created;            ///< kept to the second
  std::map<std::string, std::string> labels;  ///< of a node empty: see core::Node
  /// As found: annotations, finalizers, deletionTimestamp and whatever else. Without the revision, which is etcd's own
  /// and never stored.
  RawMembers rest;
  friend bool operator==(const Metadata&, const Metadata&) = default;
};

/// The members that core::Pool has no place for. The default is a pool that Calico just made, v3.30 or newer.
struct PoolRest {
  /// The CIDR where it is no strict one, as with host bits: it is written again as it was found. Empty: it is strict.
  std::string cidr_as_found;
  /// No `assignmentMode`: before v3.30. Only looked at while the mode is automatic.
  bool assignment_mode_absent = false;
  /// The stored `blockSize` of a pool that is smaller than that; Calico lets only a disabled one be so. The
  /// `block_length` of such a pool is the length of its prefix.
  std::optional<int> block_size_too_large;
  /// Entries of `allowedUses` that are not known here; they count as not said.
  std::vector<std::string> other_uses;
  RawMembers spec;
  RawMembers members;  ///< of the resource: `status` above all
  friend bool operator==(const PoolRest&, const PoolRest&) = default;
};

struct PoolRecord {
  /// Without gateway and with a cooldown of 0: they are Croft's own and have no place in this record.
  core::Pool pool;
  Metadata metadata;
  /// It has a `deletionTimestamp`: somebody is deleting it.
  bool terminating = false;
  /// Why Calico's controller doesn't let it be used, for instance "CIDROverlap": the reason beside a false condition
  /// `Allocatable`, "" when none is given.
  std::optional<std::string> not_allocatable;
  PoolRest rest;
  /// Whether new blocks and addresses may be taken from it, were it not disabled: it is neither of the above, and not
  /// smaller than a block.
  /// Then empty, else which of these it is (core::Pool::unallocatable).
  [[nodiscard]] std::string unallocatable() const;
  friend bool operator==(const PoolRecord&, const PoolRecord&) = default;
};

struct ReservationRecord {
  core::Reservation reservation;
  Metadata metadata;
  /// The list as found, with white space, bare addresses and what is neither CIDR nor address.
  std::vector<std::string> entries;
  RawMembers spec;
  RawMembers members;
  friend bool operator==(const ReservationRecord&, const ReservationRecord&) = default;
};

/// The members that core::Node has no place for.
struct NodeRest {
  std::optional<RawMembers> bgp;        ///< nothing: no such object
  std::optional<RawMembers> wireguard;  ///< nothing: no such object
  /// Unknown members of the references that have some. They stay with a reference as long as it is the same.
  std::vector<std::pair<core::OrchestratorRef, RawMembers>> orchestrators;
  RawMembers spec;
  RawMembers members;
  friend bool operator==(const NodeRest&, const NodeRest&) = default;
};

struct NodeRecord {
  core::Node node;
  Metadata metadata;
  NodeRest rest;
  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

// Reading, with `name` from the key. Calico's defaults are applied: a missing `blockSize` is 26 or 122, a missing
// `nodeSelector` is all(), missing modes are Never, missing `allowedUses` are Workload and Tunnel. Errors as those of
// calico_etcd.h; a record of another kind or name is corrupt too, and a pool with a block size that Calico doesn't
// allow. Host bits of a CIDR are dropped, as Calico does since v3.19.

[[nodiscard]] Result<PoolRecord> decode_pool(const std::string& name, std::string_view bytes);
/// Entries are trimmed, a bare address is a whole prefix, host bits are dropped; what is neither is passed over, and
/// written again.
[[nodiscard]] Result<ReservationRecord> decode_reservation(const std::string& name, std::string_view bytes);
/// A tunnel's address that is none, or of the other family, counts as absent, and is written again until it is set.
[[nodiscard]] Result<NodeRecord> decode_node(const std::string& name, std::string_view bytes);

// Writing. Members that Calico knows in its order, then the others as they were found. Defaults are written out, as
// Calico's library does when it updates.

/// An empty `allowed_uses` can't be said: Calico reads it as the default.
[[nodiscard]] std::string encode(const PoolRecord& record);
/// Entries whose prefix is still reserved, and those that are none, stay as they were found; new ones follow.
[[nodiscard]] std::string encode(const ReservationRecord& record);
[[nodiscard]] std::string encode(const NodeRecord& record);

// Calico's records in etcd as core values: what core has no place for travels in core::ForeignRest.

/// The birth of a new resource (pool, reservation, node).
struct Birth {
  std::string uid;
  WallTime at{};
};

/// Reads the bytes under a key that key_of() has. Cooling that is recorded beside a block, and what is beside a pool,
/// are not known here. Errors as above.
[[nodiscard]] Result<core::Value> decode_value(const core::Key& key, std::string_view bytes);

/// The bytes to write. A value that was read here keeps what is not known; of one that was not, `birth` is used.
/// Addresses of a block that cool in Croft's way must have been taken out (core::without_cooling).
[[nodiscard]] std::string encode_value(const core::Value& value, const Birth& birth);

/// The UID in the bytes of a resource; nothing when there is none.
[[nodiscard]] std::optional<std::string> uid_in(const core::Key& key, std::string_view bytes);

}  // namespace croft::wire::calico
