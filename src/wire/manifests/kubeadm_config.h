#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/prefix.h"

namespace croft::wire {

/// The `networking` of a kubeadm ClusterConfiguration (kubeadm.k8s.io/v1beta3 and v1beta4), as kubeadm keeps it in the
/// ConfigMap kubeadm-config of kube-system.
struct KubeadmNetworking {
  std::vector<net::Prefix> pod_subnets;      ///< `podSubnet`; empty: not said
  std::vector<net::Prefix> service_subnets;  ///< `serviceSubnet`; empty: not said
};

/// Reads `data.ClusterConfiguration` of the ConfigMap, in JSON as the API answers it. Where it is absent nothing is
/// said. Error: invalid_argument, naming the member; also for host bits, and for two subnets of one family.
[[nodiscard]] Result<KubeadmNetworking> parse_kubeadm_config_map(std::string_view json);

}  // namespace croft::wire
