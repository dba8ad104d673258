#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/net/prefix.h"
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

/// Kubernetes' IPAddress object (docs/notes/service-ranges.md#ip-address): who holds one Service address where
/// bitmaps are no longer used.
struct IpAddressObject {
  std::string address;  ///< its name: the canonical text
  WallTime created{};
  std::map<std::string, std::string> labels;
  std::string parent_group;
  std::string parent_resource;
  ServiceName parent;
  ForeignRestPtr rest{};
  friend bool operator==(const IpAddressObject&, const IpAddressObject&) = default;
};

/// Kubernetes' ServiceCIDR object (docs/notes/service-ranges.md#ip-address).
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
/// services/decide/mapped_range reads and writes the bits.
struct RangeAllocation {
  /// The exact identity of the range, compared byte for byte: `10.96.0.0/12`, `30000-32767`.
  std::string range;
  /// The big-endian magnitude of an integer whose bit `o` is offset `o`, without leading zero bytes
  /// (docs/notes/service-ranges.md#bit-order).
  std::string data;
  ForeignRestPtr rest{};
  friend bool operator==(const RangeAllocation&, const RangeAllocation&) = default;
};

}  // namespace croft::core
