#include "services/decide/node_port_rules.h"

#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "services/decide/questions.h"

namespace croft::core {
namespace {

using Refused = std::optional<ServiceRefusal>;

[[nodiscard]] Refused take_named(const Service& service, std::size_t index, std::uint16_t number,
                                 Allocators& allocators) {
  const auto why = allocators.take_port(number);
  if (!why) return std::nullopt;
  const std::string field = fmt::format("spec.ports[{}].nodePort", index);
  return refuse_invalid(service, {invalid(field, std::to_string(number), why->text)});
}

[[nodiscard]] Refused take_any(const Service& service, std::uint16_t& number, Allocators& allocators) {
  const TakenOr<std::uint16_t> taken = allocators.take_next_port();
  if (const auto* why = std::get_if<NotTaken>(&taken)) {
    return refuse_internal(service, "failed to allocate a nodePort: " + why->text);
  }
  number = std::get<std::uint16_t>(taken);
  return std::nullopt;
}

/// The node port that some entry for the port names; 0: none does.
[[nodiscard]] std::uint16_t named_for(const Service& service, std::uint16_t port) {
  for (const ServicePort& entry : service.ports) {
    if (entry.port == port && entry.node_port != 0) return entry.node_port;
  }
  return 0;
}

[[nodiscard]] Refused take_ports(Service& service, Allocators& allocators) {
  std::map<std::uint16_t, std::uint16_t> shared;  // node port by port
  // Ports of two protocols may share a number, as they do for an update. (The reference refuses that here.)
  std::map<std::uint16_t, ServiceProtocol> named;
  const auto take_once = [&](std::size_t index, std::uint16_t number) {
    const ServiceProtocol protocol = service.ports[index].protocol;
    const auto [first, is_new] = named.try_emplace(number, protocol);
    const bool is_shared = !is_new && first->second != protocol;
    return is_shared ? Refused() : take_named(service, index, number, allocators);
  };
  for (std::size_t i = 0; i < service.ports.size(); ++i) {
    ServicePort& entry = service.ports[i];
    if (entry.node_port == 0 && !wants_node_ports(service)) continue;
    std::uint16_t& number = shared[entry.port];
    if (number == 0) {
      number = named_for(service, entry.port);
      auto refused = number != 0 ? take_once(i, number) : take_any(service, number, allocators);
      if (refused) return refused;
      entry.node_port = number;
    } else if (entry.node_port == 0) {
      entry.node_port = number;
    } else if (entry.node_port != number) {
      if (auto refused = take_once(i, entry.node_port)) return refused;
    }
  }
  return std::nullopt;
}

[[nodiscard]] Refused take_health_check_port(Service& service, Allocators& allocators) {
  std::uint16_t& number = service.health_check_node_port;
  if (number != 0) {
    const auto why = allocators.take_port(number);
    if (!why) return std::nullopt;
    return refuse_internal(service,
                           fmt::format("failed to allocate requested HealthCheck NodePort {}: {}", number, why->text));
  }
  const TakenOr<std::uint16_t> taken = allocators.take_next_port();
  if (const auto* why = std::get_if<NotTaken>(&taken)) {
    return refuse_internal(service, "failed to allocate a HealthCheck NodePort 0: " + why->text);
  }
  number = std::get<std::uint16_t>(taken);
  return std::nullopt;
}

[[nodiscard]] Refused change_ports(Service& service, const Service& before, Allocators& allocators) {
  // What an ExternalName named was never taken.
  const std::vector<std::uint16_t> had =
      may_have_node_ports(before) ? node_ports_of(before) : std::vector<std::uint16_t>();
  std::set<std::uint16_t> taken_now;
  std::set<std::pair<ServiceProtocol, std::uint16_t>> seen;
  for (std::size_t i = 0; i < service.ports.size(); ++i) {
    ServicePort& entry = service.ports[i];
    if (entry.node_port == 0 && !wants_node_ports(service)) continue;
    if (entry.node_port == 0) {
      if (auto refused = take_any(service, entry.node_port, allocators)) return refused;
    } else if (!contains(had, entry.node_port) && taken_now.insert(entry.node_port).second) {
      if (auto refused = take_named(service, i, entry.node_port, allocators)) return refused;
    }
    if (!seen.emplace(entry.protocol, entry.node_port).second) {
      const std::string text = fmt::format("duplicate nodePort: {{{} {}}}", word_of(entry.protocol), entry.node_port);
      return ServiceRefusal{500, "", service.name.name, {}, text};
    }
  }
  const std::vector<std::uint16_t> has = node_ports_of(service);
  for (const std::uint16_t number : had) {
    if (!contains(has, number)) allocators.give_back_port(number);
  }
  return std::nullopt;
}

}  // namespace

Refused take_node_ports(Service& service, Allocators& allocators) {
  if (may_have_node_ports(service)) {
    if (auto refused = take_ports(service, allocators)) return refused;
  }
  return needs_health_check_port(service) ? take_health_check_port(service, allocators) : std::nullopt;
}

Refused change_node_ports(Service& service, const Service& before, Allocators& allocators) {
  if (may_have_node_ports(service)) {
    if (auto refused = change_ports(service, before, allocators)) return refused;
  } else if (may_have_node_ports(before)) {
    for (const std::uint16_t number : node_ports_of(before)) allocators.give_back_port(number);
  }
  const bool needed = needs_health_check_port(before);
  const bool needs = needs_health_check_port(service);
  if (!needed && needs) return take_health_check_port(service, allocators);
  if (needed && !needs) allocators.give_back_port(before.health_check_node_port);
  return std::nullopt;
}

}  // namespace croft::core
