#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/kube/format/kubeconfig.h"

namespace croft::store::kube {

/// Reads a kubeconfig from its file: one in JSON, or what `to_json` makes JSON of (store/kube/format/kubeconfig_yaml.h,
/// for programs that carry YAML). `context`: as wire::kube::decode_kubeconfig. Errors: as os::read_file; those of
/// `to_json` and decode_kubeconfig, with the path; permission_denied, with the mode to set, when the file holds a token
/// or a key and others can read it.
[[nodiscard]] Result<wire::kube::KubeAccess> read_kubeconfig(
    const std::string& path, std::string_view context,
    const std::function<Result<std::string>(std::string_view)>& to_json = {});

/// The same out of several, which wire::kube::merge_kubeconfigs puts together. Those that are not there are passed
/// over; of the others each has to be a kubeconfig, or empty, and the one that says who asks is the one whose mode
/// counts. Error: not_found, too, where none is there.
[[nodiscard]] Result<wire::kube::KubeAccess> read_kubeconfigs(
    std::span<const std::string> paths, std::string_view context,
    const std::function<Result<std::string>(std::string_view)>& to_json = {});

}  // namespace croft::store::kube
