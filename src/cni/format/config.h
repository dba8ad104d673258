#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json/document.h"
#include "base/net/address.h"
#include "base/net/address_with_length.h"
#include "base/net/per_family.h"
#include "base/net/prefix.h"
#include "cni/format/environment.h"
#include "cni/format/error.h"
#include "cni/format/network.h"
#include "cni/format/result.h"
#include "register/owner.h"
#include "register/pod_wishes.h"
#include "register/pool.h"

// The network configuration of the personality `croft-ipam`. docs/formats/cni.md has the table of members.

namespace croft::wire::cni {

inline constexpr std::size_t kConfiguredPoolsMax = 64;
inline constexpr std::size_t kAskedPoolsMax = 64;
inline constexpr std::size_t kRequestedAddressesMax = 16;
inline constexpr std::size_t kConfiguredRoutesMax = 256;
inline constexpr std::size_t kAttachmentsMax = 100'000;
inline constexpr std::size_t kPreviousAddressesMax = 256;
inline constexpr std::size_t kPathBytesMax = 4096;  ///< store URL and log file
inline constexpr std::size_t kSocketPathBytesMax = 107;

/// One entry of the runtime's list of attachments that still exist.
struct Attachment {
  std::string container_id;
  std::string interface_name;
  friend auto operator<=>(const Attachment&, const Attachment&) = default;
};

/// `cni.dev/valid-attachments` and its older name `cni.dev/attachments`. Three different things: not given (nothing may
/// be freed), null (the same, but somebody meant to say something), and given, where an empty list means that nothing
/// lives.
struct ValidAttachments {
  enum class Presence : std::uint8_t { absent, null, given } presence = Presence::absent;
  /// Sorted, without duplicates. The union when both names are given: an attachment lives when either says so.
  std::vector<Attachment> entries;
  friend bool operator==(const ValidAttachments&, const ValidAttachments&) = default;
};

/// The section `ipam`. Members without a default of their own are optional here and decided by `app`.
struct IpamSection {
  std::optional<std::string> store;     ///< a store URL, unchecked
  std::optional<std::string> log_file;  ///< `log_file_path`
  std::optional<std::string> agent;     ///< socket of the node's agent, an absolute path or "none"
  std::vector<core::PoolSpec> pools;    ///< each passes core::make_pool; no two share a name or an address
  bool assign_v4 = true;                ///< the pod's annotation, or else `assign_ipv4`; likewise of IPv6
  bool assign_v6 = false;
  /// The pod's annotation, or else `ipv4_pools`, `ipv6_pools`.
  net::PerFamily<std::vector<core::AskedPool>> asked_pools;
  /// For ADD's result, in this order: the main plugin makes them. Only those of a family that the pod gets an address
  /// of are of use to it.
  std::vector<Route> routes;
  bool status_when_full = false;
  /// The wishes to take from annotations in the Kubernetes API (`annotations`: "api"); absent: none.
  std::optional<core::WishesWanted> annotations;
  friend bool operator==(const IpamSection&, const IpamSection&) = default;
};

/// A network configuration together with CNI_ARGS, decoded as far as the command needs it (ConfigNeeds).
struct NetworkConfig {
  std::string name;
  /// `ipam.nodename`, else the top-level `nodename` (Calico's place); absent when neither is given or both are empty.
  std::optional<std::string> nodename;
  IpamSection ipam;
  /// CNI_ARGS `IP`, `args.cni.ips`, `runtimeConfig.ips`, the pod's annotation (pod_annotations.h), `ipam.ips`, in this
  /// order, without duplicates, IPv4-mapped ones unmapped.
  std::vector<net::Address> requested_addresses;
  /// From CNI_ARGS; members the runtime did not say are empty.
  core::PodIdentity pod;
  /// The addresses of `prevResult`.
  std::vector<net::AddressWithLength> previous_addresses;
  ValidAttachments valid_attachments;
  friend bool operator==(const NetworkConfig&, const NetworkConfig&) = default;
};

/// Which parts of the configuration are looked at. A member that is not needed is not even checked for its type.
struct ConfigNeeds {
  bool assignment = false;       ///< pools, families, choices of pools, requested addresses, CNI_ARGS
  bool previous_result = false;  ///< the addresses of prevResult
  bool attachments = false;      ///< the list of valid attachments
  /// Everything else than the network's name, `ipam` itself and `ipam.store` counts as absent when it has a fault: a
  /// release must not fail because of what it does not need.
  bool lenient = false;
};

/// ADD and STATUS: assignment. CHECK: previous_result. GC: attachments. DEL: lenient, nothing else.
[[nodiscard]] ConfigNeeds needs_of(Command command);

/// Decodes a configuration. The errors name the member and its value:
/// - code 999 for a JSON type that does not fit (docs/notes/cni.md#json-rules), e.g. `ipam.store: an integer (5)
///   where a string is wanted`;
/// - code 7 for a value that is not allowed;
/// - code 4 for CNI_ARGS, with the texts of docs/notes/cni.md#cni-args.
Checked<NetworkConfig> decode_network_config(const Network& network, const std::string& args, const ConfigNeeds& needs);

}  // namespace croft::wire::cni
