#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/net/address.h"
#include "cni/format/config.h"
#include "cni/format/environment.h"
#include "cni/format/network.h"
#include "cni/format/result.h"
#include "register/owner.h"

// The network configuration of the personality `croft-vpc`. docs/formats/cni.md has the table of members.

namespace croft::wire::cni {

inline constexpr const char* kDefaultVpcSocket = "/run/cni-vpc-ipamd.sock";
inline constexpr const char* kDefaultVpcStore = "sqlite:/var/lib/croft/vpc.db";

struct VpcConfig {
  std::string name;
  std::string agent = kDefaultVpcSocket;  ///< a path, or "none"
  std::string store = kDefaultVpcStore;
  std::optional<std::string> log_file;
  std::string subnet;  ///< empty: the node's own
  /// The target of the pod's traffic: an address of the host's side of its link. Absent: the node's own address in the
  /// subnet.
  net::PerFamily<std::optional<net::Address>> gateways;
  std::vector<Route> routes;           ///< absent: the default route
  std::int64_t cooldown_seconds = 30;  ///< where no agent has been to say
  // For who has to ask the cloud itself.
  std::string api, metadata;  ///< URLs with numeric addresses; empty: UCloud's own
  std::string interface;      ///< to probe on; empty: the one with the cloud's MAC
  bool probe = true;
  std::int64_t probe_unit_milliseconds = 1000;
  core::PodIdentity pod;
  /// The addresses of `prevResult`, for CHECK.
  std::vector<net::AddressWithLength> previous_addresses;
  ValidAttachments valid_attachments;  ///< for GC
};

/// Decodes a configuration as decode_croft_ipam_config() does, with the same kinds of errors. For DEL whatever is not
/// needed counts as absent when it has a fault.
[[nodiscard]] Checked<VpcConfig> decode_vpc_config(const Network& network, const std::string& args, Command command);

}  // namespace croft::wire::cni
