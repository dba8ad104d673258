#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "calico/crd.h"
#include "cli/stores/open_store.h"
#include "store/kube/format/kubeconfig.h"

namespace croft::app {

/// Where a Kubernetes API is, and how Calico's objects are called there.
struct KubePlace {
  std::string kubeconfig;                                ///< absolute path; empty: see kube_access
  std::string context;                                   ///< of it; empty: its current one
  std::optional<wire::calico::ApiGroup> group;           ///< nothing: the API is asked
  std::optional<wire::kube::KubeOverrides> overrides{};  ///< of what the kubeconfig says
};

/// The group that a text of Calico's configuration means, in any case of letters, as Calico's plugin reads it: what is
/// not v3 is v1; nothing for an empty one.
[[nodiscard]] std::optional<wire::calico::ApiGroup> calico_group(const std::string& text);

/// Reads `kube:` or `kube:/path/kubeconfig?context=NAME&group=projectcalico.org/v3`. A group that is not given comes
/// from CALICO_API_GROUP. Error: invalid_argument naming the part.
[[nodiscard]] Result<KubePlace> parse_kube_url(const std::string& url);

/// The query that names the same group in another URL of this kind: `?group=projectcalico.org/v3`; empty where none was
/// given.
[[nodiscard]] std::string group_part(const KubePlace& place);

/// The URL with what `croft --kubeconfig` and `--context` say; either may be empty. A relative path is one from the
/// current directory. Error: invalid_argument when the URL says otherwise, or can't have it.
[[nodiscard]] Result<std::string> with_kube_flags(const std::string& url, const std::string& kubeconfig,
                                                  const std::string& context);

/// The API and the identity of the kubeconfig. Without one as kubectl chooses: the one file of KUBECONFIG, then
/// ~/.kube/config, then a pod's own access. None is read where the overrides name a server. Errors: of read_kubeconfig
/// and override_access; invalid_argument when there is none of them, or KUBECONFIG names several files.
[[nodiscard]] Result<wire::kube::KubeAccess> kube_access(const KubePlace& place);

}  // namespace croft::app
