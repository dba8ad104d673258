#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/block/foreign_rest.h"
#include "net/address.h"

namespace croft::core {

/// What another system calls a node (sheet §6: `k8s` and the name of the Kubernetes node).
struct NodeReference {
  std::string orchestrator;
  std::string node_name;
  friend bool operator==(const NodeReference&, const NodeReference&) = default;
};

/// A node of the cluster, as far as address management looks at it: its labels decide which pools select it. `name` is
/// the key and the name of its affinities' owner.
struct Node {
  std::string name;
  std::map<std::string, std::string> labels;
  std::vector<NodeReference> references;
  /// Addresses that the node's daemon uses for tunnels (sheet §3.13); in use as long as the node is there.
  std::vector<net::Address> tunnel_addresses;
  ForeignRestPtr rest{};

  friend bool operator==(const Node&, const Node&) = default;
};

}  // namespace croft::core
