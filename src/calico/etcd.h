#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "register/cooling_beside.h"
#include "register/records.h"

// Calico's data in etcd (docs/formats/calico.md): keys, and the JSON under them. It writes byte for
// byte what Calico's library writes for the same value; members that are not known here survive reading and writing.
namespace croft::wire::calico {

// ---------------------------------------------------------------- keys

struct BlockKey {
  net::Prefix cidr;
  friend auto operator<=>(const BlockKey&, const BlockKey&) = default;
};
struct AffinityKey {
  core::AffinityOwner owner;
  net::Prefix cidr;
  friend auto operator<=>(const AffinityKey&, const AffinityKey&) = default;
};
/// An empty record that Calico once made for a node and still deletes with it.
struct HostMarkerKey {
  std::string node;
  friend auto operator<=>(const HostMarkerKey&, const HostMarkerKey&) = default;
};
struct HandleKey {
  std::string id;
  friend auto operator<=>(const HandleKey&, const HandleKey&) = default;
};
struct IpamConfigKey {
  friend auto operator<=>(const IpamConfigKey&, const IpamConfigKey&) = default;
};
struct ResourceKey {
  enum class Kind : std::uint8_t { pool, reservation, node } kind = Kind::pool;
  std::string name;
  friend auto operator<=>(const ResourceKey&, const ResourceKey&) = default;
};
using Key = std::variant<BlockKey, AffinityKey, HostMarkerKey, HandleKey, IpamConfigKey, ResourceKey>;

/// The key in etcd. Calico escapes nothing in these keys, so a name that would make another key of it has none.
/// Error: invalid_argument when a prefix is invalid or IPv4-mapped, a handle is empty, longer than 1024 bytes, not
/// UTF-8 or holds `/` or a control character (but CR and LF, which old migrations of Calico left in handles), a name
/// of a node or owner is none (core::check_node_name), or that of a pool or reservation is none (check_pool_name).
[[nodiscard]] Result<std::string> print_key(const Key& key);

/// The inverse: reads exactly what print_key writes.
/// Errors: not_found for a key that is none of these; corrupt for one in their places that print_key would not write.
[[nodiscard]] Result<Key> parse_key(std::string_view text);

/// The key of a record. Error: invalid_argument for kinds that Calico doesn't have, corrupt for a damaged name.
[[nodiscard]] Result<Key> key_of(const core::Key& key);
/// The record that a key belongs to; nothing for those of host markers and nodes.
[[nodiscard]] std::optional<core::Key> record_of(const Key& key);

// Prefixes for lists, each ending with `/`.
[[nodiscard]] std::string blocks_prefix(std::optional<net::Family> family = {});
/// The affinities of all owners of a type. Under `host` the host markers are found too.
[[nodiscard]] std::string affinities_prefix(core::AffinityOwner::Type type);
/// Those of one owner; with `family` only those of a family. Error: invalid_argument as print_key.
[[nodiscard]] Result<std::string> affinities_prefix(const core::AffinityOwner& owner,
                                                    std::optional<net::Family> family = {});
[[nodiscard]] std::string handles_prefix();
[[nodiscard]] std::string resources_prefix(ResourceKey::Kind kind);

// ---------------------------------------------------------------- values

/// A member that is not known here: its name and its value as compact JSON.
struct RawMember {
  std::string name;
  std::string json;
  friend bool operator==(const RawMember&, const RawMember&) = default;
};
using RawMembers = std::vector<RawMember>;

/// Unknown members of an entry of a block's `attributes`, and what tells that entry again after the block changed: who
/// held which ordinals, by which sequence numbers.
struct AttributeRest {
  std::map<std::uint32_t, core::SequenceNumber> holders;
  std::optional<std::string> handle_id;
  bool cooling = false;
  RawMembers members;
  friend bool operator==(const AttributeRest&, const AttributeRest&) = default;
};

/// The members that core::Block has no place for. The default is a block that Calico just made.
struct BlockRest {
  // Go tells an absent list from an empty one. Only looked at while the list is empty.
  bool attributes_null = true;
  bool unallocated_null = false;
  bool sequence_numbers_null = false;
  /// The owner's old form, which Calico keeps and doesn't read.
  std::optional<std::string> host_affinity;
  std::vector<AttributeRest> attributes;
  RawMembers members;
  friend bool operator==(const BlockRest&, const BlockRest&) = default;
};

struct BlockRecord {
  core::Block block;
  BlockRest rest;
  friend bool operator==(const BlockRecord&, const BlockRecord&) = default;
};

struct AffinityRecord {
  core::Affinity affinity;
  /// Old rows have no state, which means confirmed. Only looked at while the affinity is confirmed.
  bool state_empty = false;
  RawMembers rest;
  friend bool operator==(const AffinityRecord&, const AffinityRecord&) = default;
};

struct HandleRecord {
  core::Handle handle;
  bool blocks_null = false;  ///< only looked at while the handle has no blocks
  RawMembers rest;
  friend bool operator==(const HandleRecord&, const HandleRecord&) = default;
};

struct IpamConfigRecord {
  core::IpamConfig config;
  /// `kubeVirtVMAddressPersistence` is there and empty. Only looked at while it is empty.
  bool persistence_empty = false;
  RawMembers rest;
  friend bool operator==(const IpamConfigRecord&, const IpamConfigRecord&) = default;
};

// Reading. Members may come in any order, with white space; null is the same as absence. Error: corrupt, naming the key
// and the member, when there are more than kRecordBytesMax bytes or they are no JSON, a member has a type or a value
// that Calico doesn't write, is there twice or in another case (Go would read it, and another member be lost), or a
// value contradicts itself or its key.

/// Times keep what is written; of a cooling address only the wall clock is known. See core::check_block for what a
/// block must not be.
[[nodiscard]] Result<BlockRecord> decode_block(const BlockKey& key, std::string_view bytes);
/// No bytes at all are an old confirmed affinity.
[[nodiscard]] Result<AffinityRecord> decode_affinity(const AffinityKey& key, std::string_view bytes);
[[nodiscard]] Result<HandleRecord> decode_handle(const HandleKey& key, std::string_view bytes);
[[nodiscard]] Result<IpamConfigRecord> decode_ipam_config(std::string_view bytes);

// Writing. Members that Calico knows first and in its order, then the others as they were found.

/// Times are cut to the second, as Calico does. Croft's own knowledge of a cooling address (clock since boot, previous
/// holder) has no place here. Unknown members of an attribute go with the allocation they belonged to, as long as its
/// handle and one sequence number of its ordinals are the same.
[[nodiscard]] std::string encode(const BlockRecord& record);
[[nodiscard]] std::string encode(const AffinityRecord& record);
[[nodiscard]] std::string encode(const HandleRecord& record);
[[nodiscard]] std::string encode(const IpamConfigRecord& record);

}  // namespace croft::wire::calico

// The data that Croft keeps in records of its own beside Calico's, where those have no place for it
// (docs/formats/calico.md).
namespace croft::wire {

/// Beside a pool. `cidr` tells whether it is of this pool, or of one before it with the same name.
struct PoolBeside {
  net::Prefix cidr;
  std::optional<net::Address> gateway;
  std::chrono::seconds cooldown{0};
  bool being_made = false;
  bool being_deleted = false;
  int priority = 0;
  friend bool operator==(const PoolBeside&, const PoolBeside&) = default;
};

[[nodiscard]] std::string encode_pool_beside(const PoolBeside& beside);
[[nodiscard]] std::string encode_cooling_beside(const std::vector<core::CoolingBeside>& beside);

// Reading. `key` is for messages. Errors: newer_version; corrupt for everything that is not written here.
[[nodiscard]] Result<PoolBeside> decode_pool_beside(std::string_view key, std::string_view bytes);
[[nodiscard]] Result<std::vector<core::CoolingBeside>> decode_cooling_beside(std::string_view key,
                                                                             std::string_view bytes);

}  // namespace croft::wire
