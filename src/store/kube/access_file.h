#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/kube/kubeconfig.h"

namespace croft::store::kube {

/// Reads a kubeconfig from its file: one in JSON, or what `to_json` makes JSON of (wire/manifests/kubeconfig_yaml.h,
/// for programs that carry YAML). `context`: as wire::kube::decode_kubeconfig. Errors: as os::read_file; those of
/// `to_json` and decode_kubeconfig, with the path; permission_denied, with the mode to set, when the file holds a token
/// or a key and others can read it.
[[nodiscard]] Result<wire::kube::KubeAccess> read_kubeconfig(
    const std::string& path, std::string_view context,
    const std::function<Result<std::string>(std::string_view)>& to_json = {});

}  // namespace croft::store::kube
