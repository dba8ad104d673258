#pragma once

#include <cstdint>
#include <string>

#include "store/kube/format/kubeconfig.h"

namespace croft::app {

/// Whether two ways to an API lead to one cluster, as far as they say.
enum class OneCluster : std::uint8_t {
  yes,
  by_its_ca,  ///< no server is the same, but who signed their certificates
  no,         ///< neither
  not_said,   ///< one of both can't be read
};

/// Of the kubeconfig that an installation left at `file`, as where another cluster's API takes its name. A CA in a file
/// is read.
[[nodiscard]] OneCluster compare_cluster(const std::string& file, const wire::kube::KubeAccess& now);

}  // namespace croft::app
