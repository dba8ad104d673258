#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "register/service.h"

namespace croft::wire {

/// A Service as it stands in a manifest for kubectl.
struct ServiceManifest {
  core::Service service;  ///< the namespace is empty when the manifest names none
  std::string resource_version;
  /// Members that Croft has no place for, as paths (`spec.sessionAffinity`); what is no plain word stands in quotes, as
  /// net::echo has it. They were not taken over.
  std::vector<std::string> unknown;
};

/// Reads the Services of a file: YAML or JSON, one document or more, lists (`kind: List`, `ServiceList`) included. What
/// is only the server's to say (status, uid, times, managed fields) is passed over in silence. Error: invalid_argument
/// naming the document and the member; also for an object that is no Service of apiVersion v1.
[[nodiscard]] Result<std::vector<ServiceManifest>> parse_service_manifests(std::string_view text);

// The words of flags that have a manifest's values. Errors: invalid_argument, naming what is possible.
[[nodiscard]] Result<core::ServiceType> parse_service_type(std::string_view text);
[[nodiscard]] Result<core::IpFamilyPolicy> parse_ip_family_policy(std::string_view text);
[[nodiscard]] Result<net::Family> parse_ip_family(std::string_view text);
[[nodiscard]] Result<core::TrafficPolicy> parse_traffic_policy(std::string_view text);
[[nodiscard]] Result<core::ServiceProtocol> parse_service_protocol(std::string_view text);

}  // namespace croft::wire
