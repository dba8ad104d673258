#include "store/kube/access_file.h"

#include "os/files.h"
#include "os/secret_file.h"

namespace croft::store::kube {

Result<wire::kube::KubeAccess> read_kubeconfig(const std::string& path, std::string_view context,
                                               const std::function<Result<std::string>(std::string_view)>& to_json) {
  TRY(std::string text, os::read_file(path, wire::kube::kKubeconfigBytesMax));
  if (to_json) {
    auto json = to_json(text);
    if (!json) return fail(json.error().in(path));
    text = *std::move(json);
  }
  auto access = wire::kube::decode_kubeconfig(text, os::directory_of(path), context);
  if (!access) return fail(access.error().in(path));
  // Only now is it known whether there is anything to hide.
  if (access->carries_secret()) TRY_VOID(os::read_secret_file(path, wire::kube::kKubeconfigBytesMax));
  return access;
}

}  // namespace croft::store::kube
