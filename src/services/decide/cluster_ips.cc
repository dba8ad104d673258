#include "services/decide/cluster_ips.h"

#include <fmt/format.h>

#include "services/decide/families.h"
#include "services/decide/questions.h"

namespace croft::core {
namespace {

constexpr auto kField = "spec.clusterIPs";

void make_canonical(std::string& text) {
  if (const auto address = net::parse_address(text)) text = address->to_string();
}

[[nodiscard]] std::optional<ServiceRefusal> take_one(Service& service, std::size_t index, Allocators& allocators) {
  std::string& text = service.cluster_ips[index];
  if (text.empty()) {
    TakenOr<net::Address> taken = allocators.take_next(service.ip_families[index]);
    if (const auto* why = std::get_if<NotTaken>(&taken)) {
      if (why->full) {
        return refuse_internal(service, fmt::format("failed to allocate a serviceIP for Service {}: {}",
                                                    printed(service.name.name), why->text));
      }
      const std::string detail = "failed to allocate IP: " + why->text;
      return refuse_invalid(service, {invalid(kField, printed(service.cluster_ips), detail)});
    }
    text = std::get<net::Address>(taken).to_string();
    return std::nullopt;
  }
  const auto address = net::parse_address(text);
  if (!address) return refuse_internal(service, fmt::format("failed to parse service IP {}", printed(text)));
  if (const auto why = allocators.take(*address)) {
    const std::string detail = fmt::format("failed to allocate IP {}: {}", text, why->text);
    return refuse_invalid(service, {invalid(kField, printed(service.cluster_ips), detail)});
  }
  return std::nullopt;
}

}  // namespace

void normalize_cluster_ips(Service& service, const Service* before) {
  make_canonical(service.cluster_ip);
  for (std::string& text : service.cluster_ips) make_canonical(text);
  std::string& singular = service.cluster_ip;
  std::vector<std::string>& plural = service.cluster_ips;
  if (before == nullptr) {
    if (!singular.empty() && plural.empty()) plural = {singular};
    return;
  }
  const bool same_singular = singular == before->cluster_ip;
  if (plural.empty() && same_singular) plural = before->cluster_ips;
  if (same_singular || plural != before->cluster_ips) return;
  // Who changes or clears the one and repeats the other knows only the one.
  if (singular.empty()) {
    plural.clear();
  } else {
    plural = {singular};
  }
}

std::optional<ServiceRefusal> take_cluster_ips(Service& service, Allocators& allocators) {
  if (is_external_name(service) || is_headless(service)) return std::nullopt;
  service.cluster_ips.resize(std::max(service.cluster_ips.size(), service.ip_families.size()));
  for (std::size_t i = 0; i < service.ip_families.size(); ++i) {
    if (auto refusal = take_one(service, i, allocators)) return refusal;
  }
  service.cluster_ip = service.cluster_ips.front();
  return std::nullopt;
}

std::optional<ServiceRefusal> change_cluster_ips(Service& service, const Service& before, Allocators& allocators) {
  if (keeps_preferred_families(service, &before)) return std::nullopt;
  if (is_external_name(before)) return take_cluster_ips(service, allocators);
  if (is_headless(before)) return std::nullopt;
  const std::vector<net::Address> held = addresses_of(before);
  if (is_external_name(service)) {
    for (const net::Address& address : held) allocators.give_back(address);
    return std::nullopt;
  }
  const std::size_t had = before.ip_families.size();
  const std::size_t has = service.ip_families.size();
  if (had == 1 && has == 2) {
    if (service.cluster_ips.size() < 2) service.cluster_ips.resize(2);
    return take_one(service, 1, allocators);
  }
  if (had == 2 && has == 1 && held.size() == 2) allocators.give_back(held[1]);
  return std::nullopt;
}

}  // namespace croft::core
