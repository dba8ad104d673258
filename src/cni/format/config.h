#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/reader.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "cni/format/environment.h"
#include "cni/format/network.h"
#include "cni/format/result.h"
#include "register/owner.h"
#include "register/pool.h"

// The network configurations of the personalities `croft-ipam` and `croft-vpc`. docs/formats/cni.md has the tables of
// their members.

namespace croft::wire::cni {

inline constexpr std::size_t kConfiguredPoolsMax = 64;
inline constexpr std::size_t kAskedPoolsMax = 64;
inline constexpr std::size_t kRequestedAddressesMax = 16;
inline constexpr std::size_t kPreviousAddressesMax = 256;
inline constexpr std::size_t kPathBytesMax = 4096;  ///< store URL and log file

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
  /// CNI_ARGS `IP`, `args.cni.ips`, `runtimeConfig.ips`, the pod's annotation (read_pod_annotations), `ipam.ips`, in
  /// this order, without duplicates, IPv4-mapped ones unmapped.
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
Checked<NetworkConfig> decode_croft_ipam_config(const Network& network, const std::string& args,
                                                const ConfigNeeds& needs);

// ---------------------------------------------------------------- parts, for the decoders of all personalities

/// Reads the lists of attachments that still exist, under both names, from the top level of a configuration.
[[nodiscard]] MaybeFault read_valid_attachments(const JsonAt& root, ValidAttachments& out);

/// Reads the addresses of `prevResult` from the top level of a configuration.
[[nodiscard]] MaybeFault read_previous_addresses(const JsonAt& root, std::vector<net::AddressWithLength>& out);

/// Takes a string of at most `bytes_max` bytes without control characters; null leaves `out`.
[[nodiscard]] MaybeFault read_plain_text(const JsonAt& at, std::size_t bytes_max, std::string& out);

/// Takes the name of a node, or an empty text; null leaves `out`.
[[nodiscard]] MaybeFault read_nodename(const JsonAt& at, std::string& out);

/// Takes a boolean, or a string: "true" and "false" are Calico's form, where anything but the opposite of `fallback`
/// means `fallback`. Null leaves `out`.
[[nodiscard]] MaybeFault read_switch(const JsonAt& at, bool fallback, bool& out);

/// Takes an IP address as runtimes write one they ask for: with or without a prefix length, IPv4-mapped ones unmapped.
[[nodiscard]] MaybeFault read_requested_address(const JsonAt& at, net::Address& out);

/// Takes a route for ADD's result: `dst`, `gw`, `mtu`, `priority`, and nothing else.
[[nodiscard]] MaybeFault read_route(const JsonAt& at, Route& out);

/// The fault as a runtime gets it: code 999 for a JSON type that does not fit, 7 for a value that is not allowed.
[[nodiscard]] Error config_error_of(const JsonFault& fault);

/// Takes what CNI_ARGS says about the pod. Error: code 4, naming the key.
[[nodiscard]] std::optional<Error> take_pod(const Args& args, core::PodIdentity& pod);

/// Reads names and CIDRs; a text with a slash is a CIDR (host bits are dropped, as Calico does) and must be of
/// `family`.
[[nodiscard]] MaybeFault read_asked_pools(const JsonAt& at, net::Family family, std::vector<core::AskedPool>& out);

using core::PodWishes;

// The wishes in a pod's annotations, as containerd 2 hands them over: `runtimeConfig` with the capability
// `io.kubernetes.cri.pod-annotations`, which the configuration has to declare; and as the Kubernetes API has them.

/// Reads the annotations of one pod, an object of texts. `ipam.croft.dev/ipv4pools`, `ipv6pools`, `ipAddrs` and
/// `ipFamilies`, or `cni.projectcalico.org/` and these, hold JSON lists: of names or CIDRs of pools, of addresses, of
/// `IPv4` and `IPv6`. Others are passed over. `cni.projectcalico.org/ipAddrsNoIpam` is refused: it means to do without
/// what is called here.
[[nodiscard]] MaybeFault read_pod_annotations(const JsonAt& at, PodWishes& out);
/// The same of a namespace, which asks for no addresses of its own.
[[nodiscard]] MaybeFault read_namespace_annotations(const JsonAt& at, PodWishes& out);

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
