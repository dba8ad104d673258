#include "store/kube/access_file.h"

#include <optional>
#include <utility>
#include <vector>

#include "os/files.h"
#include "os/secret_file.h"

namespace croft::store::kube {
namespace {

using wire::kube::KubeconfigFile;
using ToJson = std::function<Result<std::string>(std::string_view)>;

[[nodiscard]] Result<std::string> json_of(std::string text, const std::string& path, const ToJson& to_json) {
  if (!to_json) return text;
  auto json = to_json(text);
  if (!json) return fail(json.error().in(path));
  return json;
}

/// Only now is it known whether there is anything to hide.
[[nodiscard]] Result<void> check_mode(const wire::kube::KubeAccess& access, const std::string& path) {
  if (access.carries_secret()) TRY_VOID(os::read_secret_file(path, wire::kube::kKubeconfigBytesMax));
  return {};
}

}  // namespace

Result<wire::kube::KubeAccess> read_kubeconfig(const std::string& path, std::string_view context,
                                               const ToJson& to_json) {
  TRY(std::string text, os::read_file(path, wire::kube::kKubeconfigBytesMax));
  TRY(const std::string json, json_of(std::move(text), path, to_json));
  auto access = wire::kube::decode_kubeconfig(json, os::directory_of(path), context);
  if (!access) return fail(access.error().in(path));
  TRY_VOID(check_mode(*access, path));
  return access;
}

Result<wire::kube::KubeAccess> read_kubeconfigs(std::span<const std::string> paths, std::string_view context,
                                                const ToJson& to_json) {
  std::vector<KubeconfigFile> files;
  std::optional<Error> absent;
  for (const std::string& path : paths) {
    auto text = os::read_file(path, wire::kube::kKubeconfigBytesMax);
    if (!text && text.error().code == ErrorCode::not_found) {
      if (!absent) absent = text.error();
      continue;
    }
    if (!text) return fail(text.error());
    std::string json;
    if (!text->empty()) {
      TRY(json, json_of(*std::move(text), path, to_json));
    }
    files.push_back({path, std::move(json), os::directory_of(path)});
  }
  if (files.empty() && absent) return fail(*absent);
  TRY(auto merged, wire::kube::merge_kubeconfigs(files, context));
  TRY_VOID(check_mode(merged.access, files[merged.user_file].name));
  return std::move(merged.access);
}

}  // namespace croft::store::kube
