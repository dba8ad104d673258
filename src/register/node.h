#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "base/texts.h"
#include "register/foreign_rest.h"

namespace croft::core {

/// The kind of a node's tunnel; each kind has one family.
enum class TunnelKind : std::uint8_t { ipip, vxlan_v4, vxlan_v6, wireguard_v4, wireguard_v6 };

[[nodiscard]] net::Family family_of(TunnelKind kind);

/// An address that a node took from a pool for its own end of a tunnel (docs/notes/calico-ipam.md#tunnels).
struct TunnelAddress {
  TunnelKind kind = TunnelKind::ipip;
  net::Address address;
  friend bool operator==(const TunnelAddress&, const TunnelAddress&) = default;
};

/// Under which name an orchestrator knows the node. Kubernetes calls itself `k8s`.
struct OrchestratorRef {
  std::string orchestrator;
  std::string node_name;
  friend bool operator==(const OrchestratorRef&, const OrchestratorRef&) = default;
};

/// A node as the allocation of addresses sees it: what pools select it by, and what says that it is still there.
struct Node {
  std::string name;
  std::map<std::string, std::string> labels;
  std::vector<OrchestratorRef> orchestrators;
  /// Each kind at most once.
  std::vector<TunnelAddress> tunnels;
  ForeignRestPtr rest{};
  friend bool operator==(const Node&, const Node&) = default;
};

/// Checks a label by Kubernetes' rules, so that it can move there: the key has 1 to 63 letters, digits, `-`, `_` and
/// `.`, first and last alphanumeric, behind an optional DNS name of at most 253 bytes and a slash; the value is empty
/// or as the key's last part. Error: invalid_argument.
[[nodiscard]] Result<void> check_label(const std::string& key, const std::string& value);

/// The prefix that a node's pods get their addresses from (docs/notes/node-ranges.md#contract). The key says which;
/// the record, who has it. At most one node has a prefix, because the key is made by create-if-absent.
struct NodeRange {
  std::string node;
  net::Prefix cidr;
  friend bool operator==(const NodeRange&, const NodeRange&) = default;
};

/// A cluster CIDR that node ranges are cut from, and how long their prefixes are.
struct ClusterCidr {
  net::Prefix cidr;
  int node_length = 24;
  friend bool operator==(const ClusterCidr&, const ClusterCidr&) = default;
};

/// The one record that says what node ranges are cut from. It is written by every commit that gives or takes one, so
/// that two that overlap without being equal can't be made at once, and so that the cursor moves on.
struct NodeRangeSet {
  std::uint64_t generation = 0;
  /// Those of one family are tried in this order: several of a family let a cluster grow.
  std::vector<ClusterCidr> cluster_cidrs;
  std::vector<net::Prefix> excluded;  ///< Service ranges and others that no node may get
  /// For each cluster CIDR, the index of its node range that is looked at next: given back ones come round again last.
  std::vector<std::uint64_t> cursors;
  friend bool operator==(const NodeRangeSet&, const NodeRangeSet&) = default;
};

/// The owner of a block: a node, or a virtual owner such as the load balancer (docs/notes/calico-ipam.md#block,
/// `affinity`).
struct AffinityOwner {
  enum class Type : std::uint8_t { host, virtual_owner } type = Type::host;
  std::string name;
  friend auto operator<=>(const AffinityOwner&, const AffinityOwner&) = default;
};
inline constexpr Words<AffinityOwner::Type, 2> kOwnerTypes{
    {{"host", AffinityOwner::Type::host}, {"virtual", AffinityOwner::Type::virtual_owner}}};

/// "host:node-a" or "virtual:load-balancer".
[[nodiscard]] std::string to_string(const AffinityOwner& owner);
/// Reads what to_string writes. Error: corrupt.
[[nodiscard]] Result<AffinityOwner> parse_affinity_owner(const std::string& text);

/// How far a claim has come (docs/notes/calico-ipam.md#affinity). A pending claim does not own the block; only the
/// block decides.
enum class AffinityState : std::uint8_t { pending, confirmed, pending_deletion };
inline constexpr Words<AffinityState, 3> kAffinityStates{{{"pending", AffinityState::pending},
                                                          {"confirmed", AffinityState::confirmed},
                                                          {"pendingDeletion", AffinityState::pending_deletion}}};

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
