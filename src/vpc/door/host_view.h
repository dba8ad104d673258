#pragma once

#include <string>
#include <utility>

#include "base/clock.h"
#include "os/host_addresses.h"
#include "vpc/use/warm_ports.h"

namespace croft::edge {

/// What the kernel of this host has (os/host_addresses.h). Needs CAP_SYS_ADMIN, the host's network namespace, and its
/// /run/netns.
class HostView final : public engine::HostAddresses {
 public:
  /// `clock` outlives it.
  explicit HostView(const Clock& clock, std::string namespaces_directory = os::kNamedNamespaces)
      : clock_(clock), namespaces_directory_(std::move(namespaces_directory)) {}

  /// Errors: permission_denied, unavailable, deadline_exceeded.
  [[nodiscard]] Result<std::vector<net::Address>> in_use(Deadline deadline) override;
  [[nodiscard]] Result<Use> use(Deadline deadline) override;

 private:
  const Clock& clock_;
  const std::string namespaces_directory_;
};

}  // namespace croft::edge
