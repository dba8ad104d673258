#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "collector/decide/facts.h"
#include "os/host_addresses.h"
#include "vpc/use/warm_ports.h"

namespace croft::edge {

/// The addresses that the kernel of this host has (os/host_addresses.h). Needs CAP_SYS_ADMIN, the host's network
/// namespace, and its /run/netns.
class HostView final : public engine::HostAddresses {
 public:
  /// `clock` outlives it.
  explicit HostView(const Clock& clock, std::string namespaces_directory = os::kNamedNamespaces)
      : clock_(clock), namespaces_directory_(std::move(namespaces_directory)) {}

  /// Errors: permission_denied, unavailable, deadline_exceeded.
  [[nodiscard]] Result<Use> use(Deadline deadline) override;

 private:
  const Clock& clock_;
  const std::string namespaces_directory_;
};

/// A list of pods, as the stock's keeper needs it. The list is the program's: store::kube::for_each_pod_of_node() of
/// this node.
class ApiPods final : public engine::NodePods {
 public:
  /// No node runs as many; more are an error (corrupt).
  static constexpr std::size_t kPodsMax = 10'000;

  /// Asks anew and takes every pod of this node, as engine::PodSource::pods() does.
  using List = std::function<Result<void>(Deadline deadline, const std::function<void()>& begin,
                                          const std::function<void(const core::collect::PodFact&)>& take)>;
  explicit ApiPods(List list) : list_(std::move(list)) {}

  /// Addresses that cannot be understood, as an annotation may hold any, are left out; the pod is not. Errors: of the
  /// list.
  [[nodiscard]] Result<std::vector<core::warm::LivePod>> pods(Deadline deadline) override;

 private:
  const List list_;
};

}  // namespace croft::edge
