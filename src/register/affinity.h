#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/net/prefix.h"
#include "base/result.h"
#include "register/foreign_rest.h"

namespace croft::core {

/// The owner of a block: a node, or a virtual owner such as the load balancer (docs/notes/calico-ipam.md#block,
/// `affinity`).
struct AffinityOwner {
  enum class Type : std::uint8_t { host, virtual_owner } type = Type::host;
  std::string name;
  friend auto operator<=>(const AffinityOwner&, const AffinityOwner&) = default;
};

/// "host:node-a" or "virtual:load-balancer".
[[nodiscard]] std::string to_string(const AffinityOwner& owner);
/// Reads what to_string writes. Error: corrupt.
[[nodiscard]] Result<AffinityOwner> parse_affinity_owner(const std::string& text);

/// How far a claim has come (docs/notes/calico-ipam.md#affinity). A pending claim does not own the block; only the
/// block decides.
enum class AffinityState : std::uint8_t { pending, confirmed, pending_deletion };

/// A node's claim on a block: one row per (owner, block), the index "blocks of this node".
struct Affinity {
  AffinityOwner owner;
  net::Prefix cidr;
  AffinityState state = AffinityState::confirmed;
  bool deleted = false;
  ForeignRestPtr rest{};
  friend bool operator==(const Affinity&, const Affinity&) = default;
};

/// Checks a node name: 1 to 253 bytes of letters, digits, `-`, `.` and `_`, first and last alphanumeric; it becomes
/// part of keys. Error: invalid_argument.
[[nodiscard]] Result<void> check_node_name(const std::string& name);

}  // namespace croft::core
