#pragma once

#include "register/service.h"
#include "services/decide/service_refusal.h"

namespace croft::core {

inline constexpr auto kIpFamilyPolicyField = "spec.ipFamilyPolicy";

/// What can be said of the addresses, families and the policy of a Service by themselves, before anything is allocated
/// (docs/notes/service-ranges.md#immutability); nothing for ExternalName.
[[nodiscard]] FieldErrors check_cluster_ip_fields(const Service& service);

/// Whether a Service may have this name in this namespace.
[[nodiscard]] FieldErrors check_service_name(const ServiceName& name);

/// Whether a Service that is complete, its addresses and ports allocated, may be stored as a new one.
[[nodiscard]] FieldErrors check_new_service(const Service& service);

/// The same for one that replaces `before`: what may change, and how.
[[nodiscard]] FieldErrors check_changed_service(const Service& service, const Service& before);

/// Kubernetes bounds the bytes of an object only; this is far beyond what has a use, and keeps a decision short.
inline constexpr std::size_t kServicePortsMax = 2000;
inline constexpr std::size_t kServiceLabelsMax = 1000;

}  // namespace croft::core
