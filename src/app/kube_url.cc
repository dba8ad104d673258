#include "app/kube_url.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "app/environment.h"
#include "net/echo.h"
#include "store/kube/access_file.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

using wire::calico::ApiGroup;

constexpr std::string_view kV3 = "projectcalico.org/v3";
constexpr std::string_view kV1 = "crd.projectcalico.org/v1";

std::string lowered(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

[[nodiscard]] Result<void> set(KubePlace& place, std::string_view name, std::string value) {
  if (name == "context") {
    place.context = std::move(value);
    return {};
  }
  if (name == "group") {
    if (value != kV3 && value != kV1) {
      return fail(ErrorCode::invalid_argument, "store: group= is " + net::echo(value) +
                                                   "; it can be crd.projectcalico.org/v1 or projectcalico.org/v3");
    }
    place.group = value == kV3 ? ApiGroup::v3 : ApiGroup::crd_v1;
    return {};
  }
  return fail(ErrorCode::invalid_argument,
              "store: kube knows no option " + net::echo(std::string(name)) + "; it has context and group");
}

}  // namespace

Result<KubePlace> parse_kube_url(const std::string& url) {
  KubePlace place;
  std::string_view rest = store::behind_scheme(url);
  const std::size_t question = rest.find('?');
  place.kubeconfig = rest.substr(0, question);
  if (!place.kubeconfig.empty() && !place.kubeconfig.starts_with('/')) {
    return fail(ErrorCode::invalid_argument,
                "store " + net::echo(url) + " names no file: give kube:/absolute/path/kubeconfig, or kube: alone");
  }
  if (question != rest.npos) {
    std::string_view options = rest.substr(question + 1);
    while (!options.empty()) {
      const std::size_t end = std::min(options.find('&'), options.size());
      const std::string_view option = options.substr(0, end);
      options.remove_prefix(std::min(end + 1, options.size()));
      const std::size_t equals = option.find('=');
      TRY_VOID(set(place, option.substr(0, equals),
                   std::string(equals == option.npos ? std::string_view() : option.substr(equals + 1))));
    }
  }
  if (!place.group) {
    const std::string group = lowered(from_environment("CALICO_API_GROUP"));
    if (!group.empty()) place.group = group == kV3 ? ApiGroup::v3 : ApiGroup::crd_v1;
  }
  return place;
}

Result<wire::kube::KubeAccess> kube_access(const KubePlace& place, KubeconfigReader reader) {
  const auto read = [&](const std::string& path) -> Result<wire::kube::KubeAccess> {
    if (reader == nullptr) return store::kube::read_kubeconfig(path, place.context);
    return store::kube::read_kubeconfig(path, place.context, reader);
  };
  if (!place.kubeconfig.empty()) return read(place.kubeconfig);
  const std::string listed = from_environment("KUBECONFIG");
  if (!listed.empty()) return read(listed.substr(0, listed.find(':')));
  const std::string host = from_environment("KUBERNETES_SERVICE_HOST");
  if (!host.empty()) return wire::kube::in_cluster_access(host, from_environment("KUBERNETES_SERVICE_PORT"));
  const std::string home = from_environment("HOME");
  if (!home.empty()) return read(home + "/.kube/config");
  return fail(ErrorCode::invalid_argument,
              "store kube: names no kubeconfig, and neither KUBECONFIG nor HOME is set, nor is this a pod: give "
              "kube:/path/kubeconfig");
}

}  // namespace croft::app
