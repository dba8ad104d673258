#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/etcd/registry.h"

namespace croft::store::etcd {

/// Where kube-apiservers keep their records when nobody says else; Croft's own Services take from the ranges there.
inline constexpr std::string_view kKubernetesPrefix = "/registry";

struct KubernetesOptions {
  std::string prefix{kKubernetesPrefix};  ///< --etcd-prefix of the kube-apiservers
  /// Services are Kubernetes' own too, and read-only: who writes them past a kube-apiserver goes past its defaults,
  /// its admission and the locks of its allocators. Else they are Croft's own records. The Services of the other kind
  /// are foreign_service then.
  bool services = false;
};

/// Kubernetes' ranges, IPAddresses and ServiceCIDRs (docs/formats/kubernetes.md): range allocations are read and
/// written, IPAddresses made and deleted, ServiceCIDRs read. Error: invalid_argument for a prefix that is none.
[[nodiscard]] Result<std::unique_ptr<Registry>> make_kubernetes_registry(KubernetesOptions options);

}  // namespace croft::store::etcd
