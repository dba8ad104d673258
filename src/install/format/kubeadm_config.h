#pragma once

#include <string_view>
#include <vector>

#include "base/net/prefix.h"
#include "base/result.h"

namespace croft::wire {

/// The `networking` of a kubeadm ClusterConfiguration (kubeadm.k8s.io/v1beta3 and v1beta4), as kubeadm keeps it in the
/// ConfigMap kubeadm-config of kube-system.
struct KubeadmNetworking {
  std::vector<net::Prefix> pod_subnets;      ///< `podSubnet`; empty: not said
  std::vector<net::Prefix> service_subnets;  ///< `serviceSubnet`; empty: not said
  friend bool operator==(const KubeadmNetworking&, const KubeadmNetworking&) = default;
};

/// Reads the text `data.ClusterConfiguration` of the ConfigMap; an empty one says nothing. The first YAML document of
/// the kind counts. Error: invalid_argument, naming the member, also for host bits, for two subnets of one
/// family, and for more than 1 MiB, 20,000 values or 32 of them inside each other.
[[nodiscard]] Result<KubeadmNetworking> parse_kubeadm_config(std::string_view yaml);

}  // namespace croft::wire
