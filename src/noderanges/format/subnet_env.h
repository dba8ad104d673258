#pragma once

#include <string>
#include <vector>

#include "base/net/address_with_length.h"
#include "base/net/prefix.h"
#include "base/result.h"

namespace croft::wire {

/// What a node's network agent tells flannel's CNI plugin of one family.
struct SubnetEnvFamily {
  std::vector<net::Prefix> networks;  ///< the cluster's: at least one
  net::AddressWithLength subnet;      ///< the first usable address of the node's range, with the range's length
  friend bool operator==(const SubnetEnvFamily&, const SubnetEnvFamily&) = default;
};

/// flannel's `/run/flannel/subnet.env` (docs/notes/node-ranges.md#subnet-env): the node's range for the CNI plugin
/// on it.
struct SubnetEnv {
  std::vector<SubnetEnvFamily> families;  ///< one or two: IPv4, then IPv6
  int mtu = 1450;
  bool ip_masquerade = true;
  friend bool operator==(const SubnetEnv&, const SubnetEnv&) = default;
};
inline constexpr int kMtuMin = 68;  ///< RFC 791
inline constexpr int kMtuMax = 65535;

/// The first usable address of a range, with its length: the one after the network address. Error: invalid_argument for
/// a range of a single address.
[[nodiscard]] Result<net::AddressWithLength> first_usable(const net::Prefix& range);

/// As flanneld writes it: IPv4, IPv6, MTU, masquerading, each value on a line.
[[nodiscard]] std::string encode_subnet_env(const SubnetEnv& env);

}  // namespace croft::wire
