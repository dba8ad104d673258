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
};

/// Reads the Services of a file: YAML or JSON, one document or more, lists (`kind: List`, `ServiceList`) included.
/// Members that Croft has no place for (`spec.sessionAffinity`) are passed over, as is what only the server says.
/// Error: invalid_argument naming the document and the member; also for an object that is no Service of apiVersion v1.
[[nodiscard]] Result<std::vector<ServiceManifest>> parse_service_manifests(std::string_view text);

}  // namespace croft::wire
