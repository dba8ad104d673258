#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/texts.h"
#include "register/foreign_rest.h"

// Kubernetes' Service as the allocation of its addresses and ports sees it (docs/notes/service-ranges.md#service).
// Words and defaults are those of Kubernetes' API; what is absent there is absent here.

namespace croft::core {

enum class ServiceType : std::uint8_t { cluster_ip, node_port, load_balancer, external_name };
enum class IpFamilyPolicy : std::uint8_t { single_stack, prefer_dual_stack, require_dual_stack };
enum class ServiceProtocol : std::uint8_t { tcp, udp, sctp };
enum class TrafficPolicy : std::uint8_t { cluster, local };

/// The text in `clusterIPs` of a Service without an address.
inline constexpr std::string_view kHeadless = "None";

struct ServicePort {
  std::string name;  ///< empty only for the single port of a Service
  ServiceProtocol protocol = ServiceProtocol::tcp;
  std::uint16_t port = 0;
  std::string target_port;      ///< a number or a port's name, as text; empty: the same as `port`
  std::uint16_t node_port = 0;  ///< 0: none, or to be allocated
  std::string app_protocol;
  friend bool operator==(const ServicePort&, const ServicePort&) = default;
};

/// The identity of a Service: `namespace/name`.
struct ServiceName {
  std::string name_space;
  std::string name;
  [[nodiscard]] std::string to_string() const { return name_space + "/" + name; }
  friend auto operator<=>(const ServiceName&, const ServiceName&) = default;
};

struct Service {
  ServiceName name;
  std::string uid;  ///< empty for one that has not been made yet
  WallTime created{};
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> selector;  ///< empty: selectorless

  ServiceType type = ServiceType::cluster_ip;
  /// As written: addresses in their canonical text, or `None` alone. `cluster_ip` is the first of them; the two differ
  /// only in what a caller asks for, never in what is stored.
  std::string cluster_ip;
  std::vector<std::string> cluster_ips;
  std::vector<net::Family> ip_families;
  std::optional<IpFamilyPolicy> ip_family_policy;
  std::vector<ServicePort> ports;

  std::string external_name;
  TrafficPolicy external_traffic_policy = TrafficPolicy::cluster;
  bool external_traffic_policy_given = false;  ///< Kubernetes keeps it absent for types that don't have it
  std::uint16_t health_check_node_port = 0;
  std::optional<bool> allocate_load_balancer_node_ports;
  std::optional<std::string> load_balancer_class;
  bool deleting = false;  ///< it has a deletion time and waits for its finalizers

  ForeignRestPtr rest{};
  friend bool operator==(const Service&, const Service&) = default;
};

/// Kubernetes' ServiceCIDR object (docs/notes/service-ranges.md#ip-address): where there is one, addresses of Services
/// are objects, and no bitmap counts.
struct ServiceCidrObject {
  std::string name;
  std::vector<net::Prefix> cidrs;  ///< one or two, each of another family
  ForeignRestPtr rest{};
  friend bool operator==(const ServiceCidrObject&, const ServiceCidrObject&) = default;
};

// The names of the three ranges, which are the ends of their keys in etcd (docs/notes/service-ranges.md#keys).
inline constexpr std::string_view kServiceIps = "serviceips";
inline constexpr std::string_view kSecondaryServiceIps = "secondaryserviceips";
inline constexpr std::string_view kServiceNodePorts = "servicenodeports";

/// Kubernetes' RangeAllocation: which addresses or ports of one range are taken. As stored;
/// services/decide/service_bitmap reads and writes the bits.
struct RangeAllocation {
  /// The exact identity of the range, compared byte for byte: `10.96.0.0/12`, `30000-32767`.
  std::string range;
  /// The big-endian magnitude of an integer whose bit `o` is offset `o`, without leading zero bytes
  /// (docs/notes/service-ranges.md#bit-order).
  std::string data;
  ForeignRestPtr rest{};
  friend bool operator==(const RangeAllocation&, const RangeAllocation&) = default;
};

// The words of Kubernetes' API for the values of a Service: one table for manifests, records in etcd and output.

inline constexpr Words<ServiceType, 4> kServiceTypes{{{"ClusterIP", ServiceType::cluster_ip},
                                                      {"NodePort", ServiceType::node_port},
                                                      {"LoadBalancer", ServiceType::load_balancer},
                                                      {"ExternalName", ServiceType::external_name}}};
inline constexpr Words<IpFamilyPolicy, 3> kFamilyPolicies{{{"SingleStack", IpFamilyPolicy::single_stack},
                                                           {"PreferDualStack", IpFamilyPolicy::prefer_dual_stack},
                                                           {"RequireDualStack", IpFamilyPolicy::require_dual_stack}}};
inline constexpr Words<net::Family, 2> kFamilies{{{"IPv4", net::Family::v4}, {"IPv6", net::Family::v6}}};
inline constexpr Words<TrafficPolicy, 2> kTrafficPolicies{
    {{"Cluster", TrafficPolicy::cluster}, {"Local", TrafficPolicy::local}}};
inline constexpr Words<ServiceProtocol, 3> kProtocols{
    {{"TCP", ServiceProtocol::tcp}, {"UDP", ServiceProtocol::udp}, {"SCTP", ServiceProtocol::sctp}}};

[[nodiscard]] constexpr std::string_view word_of(ServiceType type) { return word_in(kServiceTypes, type); }
[[nodiscard]] constexpr std::string_view word_of(IpFamilyPolicy policy) { return word_in(kFamilyPolicies, policy); }
[[nodiscard]] constexpr std::string_view word_of(ServiceProtocol protocol) { return word_in(kProtocols, protocol); }
[[nodiscard]] constexpr std::string_view word_of(TrafficPolicy policy) { return word_in(kTrafficPolicies, policy); }
[[nodiscard]] constexpr std::string_view word_of(net::Family family) { return word_in(kFamilies, family); }

// Questions about one Service, in the words of docs/notes/service-ranges.md#service.

/// No address, and one that says so.
[[nodiscard]] inline bool is_headless(const Service& service) {
  return !service.cluster_ips.empty() && service.cluster_ips.front() == kHeadless;
}
[[nodiscard]] inline bool is_external_name(const Service& service) {
  return service.type == ServiceType::external_name;
}
[[nodiscard]] inline bool may_have_node_ports(const Service& service) {
  return service.type == ServiceType::node_port || service.type == ServiceType::load_balancer;
}
/// Whether ports without a number get one.
[[nodiscard]] inline bool wants_node_ports(const Service& service) {
  return service.type == ServiceType::node_port ||
         (service.type == ServiceType::load_balancer && service.allocate_load_balancer_node_ports.value_or(true));
}
[[nodiscard]] inline bool needs_health_check_port(const Service& service) {
  return service.type == ServiceType::load_balancer && service.external_traffic_policy_given &&
         service.external_traffic_policy == TrafficPolicy::local;
}

/// The node ports it holds, each once: those of its ports if its type has any, and its health check's. An ExternalName
/// may name some; they are nobody's.
[[nodiscard]] inline std::set<std::uint16_t> held_node_ports_of(const Service& service) {
  std::set<std::uint16_t> result;
  if (may_have_node_ports(service)) {
    for (const ServicePort& port : service.ports) {
      if (port.node_port != 0) result.insert(port.node_port);
    }
  }
  if (needs_health_check_port(service) && service.health_check_node_port != 0) {
    result.insert(service.health_check_node_port);
  }
  return result;
}

/// The addresses it holds, as a kube-apiserver reads them (base/net/prefix.h); texts that are none are left out.
[[nodiscard]] inline std::vector<net::Address> addresses_of(const Service& service) {
  std::vector<net::Address> result;
  if (is_external_name(service) || is_headless(service)) return result;
  for (const std::string& text : service.cluster_ips) {
    if (const auto address = net::parse_address_leniently(text)) result.push_back(*address);
  }
  return result;
}

[[nodiscard]] inline bool has_unreadable_address(const Service& service) {
  return !is_external_name(service) && !is_headless(service) &&
         std::ranges::any_of(service.cluster_ips, [](const std::string& text) {
           return !text.empty() && !net::parse_address_leniently(text);
         });
}

}  // namespace croft::core
