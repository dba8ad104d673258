#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/net/address.h"
#include "base/result.h"
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

}  // namespace croft::core
