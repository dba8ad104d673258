#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "register/block.h"
#include "register/records.h"
#include "register/snapshot.h"

// Calico's data in etcd (docs/formats/calico.md): keys, and the JSON under them. It writes byte for byte what Calico's
// library writes for the same value. A value that was read is written again with all members that are not known here:
// they travel in core::ForeignRest.
namespace croft::wire::calico {

// ---------------------------------------------------------------- keys

/// The key in etcd of a record of a kind that Calico has. Calico escapes nothing in these keys, so a name that would
/// make another key of it has none. A block's key may have its CIDR in another spelling (core::block_cidr_of).
/// Errors: corrupt for a name without CIDR or owner. Invalid_argument for other kinds, an IPv4-mapped prefix, a name
/// that core::check_node_name or check_pool_name refuses, and a handle that is empty, longer than 1024 bytes or no
/// plain text. Slashes are not allowed in a handle; CR and LF are, which old migrations of Calico left there.
[[nodiscard]] Result<std::string> place_of(const core::Key& key);

/// The inverse, by the form of the key alone: place_of() tells whether the record can be. Nothing for a key that has
/// no such form.
[[nodiscard]] std::optional<core::Key> record_at(std::string_view place);

/// The prefixes of keys, ascending, under which a list's records are, and maybe others.
[[nodiscard]] std::vector<std::string> places_of(const core::Listing& listing);

// ---------------------------------------------------------------- values

/// Reads the bytes under a key. Members may come in any order, with white space; null is the same as absence. Calico's
/// defaults are applied: a missing `blockSize` is 26 or 122, a missing `nodeSelector` is all(). Missing modes are
/// Never, missing `allowedUses` are Workload and Tunnel; no bytes at all are an old confirmed affinity. Host bits of a
/// CIDR are dropped, as Calico does since v3.19. Entries of a reservation are trimmed, a bare address is a whole
/// prefix, and what is neither is passed over. A tunnel's address that is none, or of the other family, counts as
/// absent. A cooling address has its wall clock alone. Records of Croft's own beside a block or pool are not read.
///
/// Error: corrupt, naming the key and the member. There are more than kRecordBytesMax bytes, or they are no JSON; a
/// member has a type or a value that Calico doesn't write, is there twice or in another case (Go would read it, and
/// another member be lost); a value contradicts itself or its key, or is of another kind.
[[nodiscard]] Result<core::Value> decode_value(const core::Key& key, std::string_view bytes);

/// The birth of a new resource (pool, reservation, node).
struct Birth {
  std::string uid;
  WallTime at{};
};

/// The bytes to write: members that Calico knows in its order, defaults written out as its library does, then the
/// others as they were found. A value that was read here keeps its unknown members; a new one gets `birth`. Times are
/// cut to the second. Entries of a reservation stay as they were found, as long as their prefix is reserved or they are
/// none. Unknown members of a block's attribute go with its allocation, as long as its handle and one sequence number
/// of its ordinals are the same. Croft's own knowledge has no place here: a pool's gateway and cooldown, clock and
/// holder of a cooling address. Addresses that cool in Croft's way must have been taken out (core::without_cooling). An
/// empty `allowed_uses` can't be said: Calico reads it as the default.
[[nodiscard]] std::string encode_value(const core::Value& value, const Birth& birth);

/// The UID in the bytes of a resource; nothing when there is none.
[[nodiscard]] std::optional<std::string> uid_in(const core::Key& key, std::string_view bytes);

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
