#include "services/decide/families.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "services/decide/questions.h"
#include "services/decide/validation.h"

namespace croft::core {
namespace {

[[nodiscard]] bool has(const std::vector<net::Family>& families, net::Family family) {
  return std::find(families.begin(), families.end(), family) != families.end();
}

[[nodiscard]] net::Family other(net::Family family) {
  return family == net::Family::v4 ? net::Family::v6 : net::Family::v4;
}

[[nodiscard]] bool is_selectorless_headless(const Service& service) {
  return service.cluster_ip == kHeadless && service.selector.empty();
}

template <class T>
[[nodiscard]] bool is_reduced(const std::vector<T>& after, const std::vector<T>& before) {
  return !after.empty() && after.size() < before.size();
}

[[nodiscard]] IpFamilyPolicy default_policy(const Service& service, const Service* before) {
  if (before != nullptr && before->ip_family_policy) return *before->ip_family_policy;
  return is_selectorless_headless(service) ? IpFamilyPolicy::require_dual_stack : IpFamilyPolicy::single_stack;
}

/// Going from two to one is said by the policy, and by nothing else.
void settle_reduction(Service& service, const Service& before, FieldErrors& errors) {
  const auto& [ips, families] = std::tie(before.cluster_ips, before.ip_families);
  if (service.ip_family_policy == IpFamilyPolicy::single_stack) {
    if (service.cluster_ips == ips && ips.size() > 1) service.cluster_ips.resize(1);
    if (service.ip_families == families && families.size() > 1) service.ip_families.resize(1);
    return;
  }
  const std::string policy = printed(service.ip_family_policy);
  if (is_reduced(service.cluster_ips, ips)) {
    errors.push_back(
        invalid(kIpFamilyPolicyField, policy, "must be 'SingleStack' to release the secondary cluster IP"));
  }
  if (is_reduced(service.ip_families, families)) {
    errors.push_back(invalid(kIpFamilyPolicyField, policy, "must be 'SingleStack' to release the secondary IP family"));
  }
}

void check_single_stack(const Service& service, FieldErrors& errors) {
  if (service.ip_family_policy != IpFamilyPolicy::single_stack) return;
  const std::string policy = printed(service.ip_family_policy);
  const auto check = [&](std::size_t size, const char* what) {
    if (size != 2) return;
    errors.push_back(
        invalid(kIpFamilyPolicyField, policy,
                fmt::format("must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified", what)));
  };
  check(service.cluster_ips.size(), "cluster IPs");
  check(service.ip_families.size(), "IP families");
}

/// The families of the addresses that were asked for.
void infer_families(Service& service, const std::vector<net::Family>& cluster, FieldErrors& errors) {
  if (is_headless(service)) return;
  for (std::size_t i = service.ip_families.size(); i < service.cluster_ips.size(); ++i) {
    const net::Family family = net::parse_address(service.cluster_ips[i]).value().family();
    if (has(cluster, family)) {
      service.ip_families.push_back(family);
    } else {
      errors.push_back(invalid(fmt::format("spec.clusterIPs[{}]", i), printed(service.cluster_ips),
                               fmt::format("{} is not configured on this cluster", word_of(family))));
    }
  }
}

[[nodiscard]] FieldErrors check_cluster(const Service& service, const std::vector<net::Family>& cluster) {
  FieldErrors errors;
  if (service.ip_family_policy == IpFamilyPolicy::require_dual_stack && cluster.size() < 2) {
    errors.push_back(invalid(kIpFamilyPolicyField, printed(service.ip_family_policy),
                             "this cluster is not configured for dual-stack services"));
  }
  for (std::size_t i = 0; i < service.ip_families.size(); ++i) {
    if (has(cluster, service.ip_families[i])) continue;
    errors.push_back(invalid(fmt::format("spec.ipFamilies[{}]", i), printed(service.ip_families[i]),
                             "not configured on this cluster"));
  }
  return errors;
}

}  // namespace

bool keeps_preferred_families(const Service& service, const Service* before) {
  const auto prefers = IpFamilyPolicy::prefer_dual_stack;
  return before != nullptr && service.ip_family_policy == prefers && before->type == service.type &&
         !is_external_name(service) && before->ip_family_policy.value_or(prefers) == prefers &&
         before->cluster_ips == service.cluster_ips && before->ip_families == service.ip_families;
}

FieldErrors settle_families(Service& service, const Service* before, const std::vector<net::Family>& cluster) {
  if (is_external_name(service) || keeps_preferred_families(service, before)) return {};
  if (!service.ip_family_policy) service.ip_family_policy = default_policy(service, before);
  FieldErrors errors = check_cluster_ip_fields(service);
  if (!errors.empty()) return errors;

  if (before != nullptr) settle_reduction(service, *before, errors);
  check_single_stack(service, errors);
  infer_families(service, cluster, errors);
  if (!errors.empty()) return errors;

  const bool wants_two = service.ip_family_policy != IpFamilyPolicy::single_stack;
  const auto complete = [&](bool two) {
    if (service.ip_families.empty()) service.ip_families.push_back(cluster.front());
    if (two && service.ip_families.size() == 1) service.ip_families.push_back(other(service.ip_families.front()));
  };
  // Where its endpoints are is not known, nor bound to what the cluster has.
  if (is_selectorless_headless(service)) {
    complete(wants_two);
    return {};
  }
  errors = check_cluster(service, cluster);
  if (errors.empty()) complete(wants_two && cluster.size() == 2);
  return errors;
}

}  // namespace croft::core
