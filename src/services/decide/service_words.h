#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/net/address.h"
#include "base/net/lenient.h"
#include "register/service.h"

// The words of Kubernetes' API for the values of a Service: one table for manifests, records in etcd and output.

namespace croft::core {

template <class T, std::size_t N>
using Words = std::array<std::pair<std::string_view, T>, N>;

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

template <class T, std::size_t N>
[[nodiscard]] constexpr std::string_view word_in(const Words<T, N>& words, T value) {
  for (const auto& [word, of_value] : words) {
    if (of_value == value) return word;
  }
  return {};
}
template <class T, std::size_t N>
[[nodiscard]] constexpr std::optional<T> value_in(const Words<T, N>& words, std::string_view text) {
  for (const auto& [word, value] : words) {
    if (word == text) return value;
  }
  return std::nullopt;
}

/// All of them, for a message.
template <class T, std::size_t N>
[[nodiscard]] std::string listed(const Words<T, N>& words) {
  std::string text;
  for (const auto& [word, value] : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

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

/// The addresses it holds, as a kube-apiserver reads them (base/net/lenient.h); texts that are none are left out.
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
