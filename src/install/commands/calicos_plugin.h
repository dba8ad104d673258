#pragma once

#include <vector>

#include "base/result.h"
#include "install/commands/install_options.h"
#include "install/door/installation.h"

namespace croft::app {

/// Under --main-plugin calico: that Calico's plugin works by the configuration that is to be written, which has it ask
/// the Kubernetes API with --calico-kubeconfig. `networks`: what is on the node. What can't be seen from here, as in a
/// container, is told. Errors: refused_by_configuration, where Calico's own configuration there has it ask an etcd, and
/// where the kubeconfig is not there (not with --no-probe); invalid_argument, of its path.
[[nodiscard]] Result<void> check_calicos_plugin(const InstallOptions& options,
                                                const std::vector<edge::NodeNetwork>& networks, ToldOnce& told);

}  // namespace croft::app
