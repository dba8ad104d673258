#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

}  // namespace croft::core
