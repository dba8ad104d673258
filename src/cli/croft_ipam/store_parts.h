#pragma once

#include "cli/stores/open_store.h"
#include "store/kube/format/kubeconfig_yaml.h"

namespace croft::app {

/// The plugin reads the kubeconfigs that installers write, Calico's in YAML; a static program can look up no names.
inline constexpr StoreParts kPluginParts{nullptr, wire::kubeconfig_json, nullptr};

}  // namespace croft::app
