#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/letters.h"
#include "base/printable.h"
#include "base/texts.h"
#include "cli/stores/open_store.h"
#include "os/files.h"
#include "os/process.h"
#include "store/kube/client.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

constexpr std::string_view kKubernetes = "kubernetes";
constexpr std::size_t kEndpointsMax = 16;

[[nodiscard]] Result<void> set(EtcdPlace& place, std::string_view name, std::string value);
[[nodiscard]] Result<void> set(KubePlace& place, std::string_view name, std::string value);

/// Sets each `name=value` behind the question mark of a URL.
template <class Place>
[[nodiscard]] Result<void> set_all(Place& place, std::string_view options) {
  for (const std::string_view option : split(options, '&')) {
    const std::size_t equals = std::min(option.find('='), option.size());
    const std::string value(option.substr(std::min(equals + 1, option.size())));
    if (!option.empty()) TRY_VOID(set(place, option.substr(0, equals), value));
  }
  return {};
}

Result<void> set(EtcdPlace& place, std::string_view name, std::string value) {
  const std::pair<std::string_view, std::string*> options[] = {
      {"ca", &place.ca_file},
      {"cert", &place.certificate_file},
      {"key", &place.key_file},
      {"name", &place.server_name},
      {"user", &place.user},
      {"password-file", &place.password_file},
      {kKubernetes, &place.kubernetes_prefix},
  };
  for (const auto& [option, target] : options) {
    if (option != name) continue;
    if (option == kKubernetes && value.empty()) {
      return fail(ErrorCode::invalid_argument, "store: kubernetes= names no prefix: give kubernetes=/registry");
    }
    *target = std::move(value);
    return {};
  }
  return fail(ErrorCode::invalid_argument,
              "store: etcd knows no option {}; it has ca, cert, key, name, user, password-file and kubernetes",
              echo(std::string(name)));
}

}  // namespace

Result<EtcdPlace> parse_etcd_url(const std::string& url) {
  EtcdPlace place;
  std::string_view rest = store::behind_scheme(url);
  const std::size_t question = rest.find('?');
  for (const std::string_view endpoint : split(rest.substr(0, question), ',')) {
    if (endpoint.empty()) {
      return fail(ErrorCode::invalid_argument, "store {} names no endpoint: give etcd:https://10.0.0.1:2379,…",
                  echo(store::without_user(url)));
    }
    if (last_at_sign(endpoint) != endpoint.npos) {  // what stands before it may be a secret: it is not shown
      return fail(ErrorCode::invalid_argument,
                  "store: an etcd endpoint has no user and no password in it: give ?user=NAME&password-file=FILE");
    }
    place.endpoints.emplace_back(endpoint);
  }
  if (place.endpoints.size() > kEndpointsMax) {
    return fail(ErrorCode::invalid_argument, "store {} names more than 16 endpoints", echo(store::without_user(url)));
  }
  if (question != rest.npos) TRY_VOID(set_all(place, rest.substr(question + 1)));
  const bool secure = std::any_of(place.endpoints.begin(), place.endpoints.end(),
                                  [](const std::string& endpoint) { return endpoint.starts_with("https:"); });
  if (!secure) return place;
  if (place.ca_file.empty()) place.ca_file = os::from_environment("ETCD_CA_CERT_FILE");
  if (place.certificate_file.empty() && place.key_file.empty()) {
    place.certificate_file = os::from_environment("ETCD_CERT_FILE");
    place.key_file = os::from_environment("ETCD_KEY_FILE");
  }
  if (place.ca_file.empty()) {
    return fail(ErrorCode::invalid_argument,
                "store {} needs the file of the authority: add ?ca=FILE or set ETCD_CA_CERT_FILE",
                echo(store::without_user(url)));
  }
  return place;
}

Result<void> check_secrecy(const EtcdPlace& place) {
  const auto is_open = [](const std::string& endpoint) {
    return !endpoint.starts_with("https:") && !endpoint.starts_with("unix:");
  };
  const auto open = std::find_if(place.endpoints.begin(), place.endpoints.end(), is_open);
  if (open == place.endpoints.end()) return {};
  if (!place.user.empty()) {
    return fail(
        ErrorCode::invalid_argument,
        "store: etcd endpoint {} is not encrypted, and user {} has a password: give https:// for every endpoint",
        echo(*open), echo(place.user));
  }
  const bool mixed = std::any_of(place.endpoints.begin(), place.endpoints.end(),
                                 [](const std::string& endpoint) { return endpoint.starts_with("https:"); });
  if (!mixed) return {};
  return fail(ErrorCode::invalid_argument,
              "store: etcd endpoint {} is not encrypted and others are: give https:// for every endpoint", echo(*open));
}

namespace {

using wire::calico::ApiGroup;

constexpr std::string_view kV3 = "projectcalico.org/v3";
constexpr std::string_view kV1 = "crd.projectcalico.org/v1";

Result<void> set(KubePlace& place, std::string_view name, std::string value) {
  if (name == "context") {
    place.context = std::move(value);
    return {};
  }
  if (name == "group") {
    if (value != kV3 && value != kV1) {
      return fail(ErrorCode::invalid_argument,
                  "store: group= is {}; it can be crd.projectcalico.org/v1 or projectcalico.org/v3", echo(value));
    }
    place.group = value == kV3 ? ApiGroup::v3 : ApiGroup::crd_v1;
    return {};
  }
  return fail(ErrorCode::invalid_argument, "store: kube knows no option {}; it has context and group",
              echo(std::string(name)));
}

[[nodiscard]] bool is_there(const std::string& path) {
  const auto status = os::file_status(path);
  return !status || *status;  // what can't be looked at may be
}

/// One that nobody has named.
[[nodiscard]] Result<wire::kube::KubeAccess> read_default(const std::string& path, const std::string& context) {
  auto access = store::kube::read_kubeconfig(path, context);
  if (!access && access.error().code == ErrorCode::not_found) {
    access.error().message += "; name the kubeconfig with --kubeconfig FILE, or by the store's URL, kube:/FILE";
  }
  return access;
}

/// Without overrides.
[[nodiscard]] Result<wire::kube::KubeAccess> find_access(const KubePlace& place) {
  if (!place.kubeconfig.empty()) return store::kube::read_kubeconfig(place.kubeconfig, place.context);
  if (place.overrides && !place.overrides->server.empty()) return wire::kube::KubeAccess();
  const std::string listed = os::from_environment("KUBECONFIG");
  // Empty names of a list say nothing, as in "$KUBECONFIG:FILE".
  if (const std::size_t begin = listed.find_first_not_of(':'); begin != listed.npos) {
    const std::string file = listed.substr(begin, listed.find_last_not_of(':') + 1 - begin);
    if (file.find(':') != file.npos) {
      return fail(ErrorCode::invalid_argument,
                  "KUBECONFIG is {}; Croft reads one file and puts none together: name it with --kubeconfig FILE, or "
                  "write one with kubectl config view --flatten",
                  echo(listed));
    }
    return read_default(file, place.context);
  }
  const std::string home = os::from_environment("HOME");
  const std::string host = os::from_environment("KUBERNETES_SERVICE_HOST");
  if (!home.empty() && (host.empty() || is_there(home + "/.kube/config"))) {
    return read_default(home + "/.kube/config", place.context);
  }
  if (!host.empty() && !place.context.empty()) {
    return fail(ErrorCode::invalid_argument,
                "the context {} is of no kubeconfig: neither KUBECONFIG nor ~/.kube/config names one, and a pod's "
                "account has none",
                echo(place.context));
  }
  if (!host.empty()) return wire::kube::in_cluster_access(host, os::from_environment("KUBERNETES_SERVICE_PORT"));
  return fail(ErrorCode::invalid_argument,
              "store kube: names no kubeconfig, and neither KUBECONFIG nor HOME is set, nor is this a pod: give "
              "kube:/path/kubeconfig");
}

}  // namespace

std::optional<ApiGroup> calico_group(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return lowered(text) == kV3 ? ApiGroup::v3 : ApiGroup::crd_v1;
}

Result<KubePlace> parse_kube_url(const std::string& url) {
  KubePlace place;
  std::string_view rest = store::behind_scheme(url);
  const std::size_t question = rest.find('?');
  place.kubeconfig = rest.substr(0, question);
  if (!place.kubeconfig.empty() && !place.kubeconfig.starts_with('/')) {
    return fail(ErrorCode::invalid_argument,
                "store {} names no file: give kube:/absolute/path/kubeconfig, or kube: alone",
                echo(store::without_user(url)));
  }
  if (question != rest.npos) TRY_VOID(set_all(place, rest.substr(question + 1)));
  if (!place.group) place.group = calico_group(os::from_environment("CALICO_API_GROUP"));
  return place;
}

std::string group_part(const KubePlace& place) {
  if (!place.group) return {};
  return "?group=" + std::string(*place.group == ApiGroup::v3 ? kV3 : kV1);
}

Result<std::string> with_kube_flags(const std::string& url, const std::string& kubeconfig, const std::string& context) {
  TRY(const KubePlace place, parse_kube_url(url));
  const std::string path = kubeconfig.empty() ? "" : os::absolute_path(kubeconfig);
  std::string made = url;
  if (!path.empty()) {
    if (!place.kubeconfig.empty() && place.kubeconfig != path) {
      return fail(ErrorCode::invalid_argument, "--kubeconfig {} and the store {} name two files: give one", echo(path),
                  echo(store::without_user(url)));
    }
    if (path.find('?') != path.npos) {
      return fail(ErrorCode::invalid_argument, "--kubeconfig " + echo(path) + " has a ? in its path");
    }
    const std::size_t question = std::min(url.find('?'), url.size());
    if (place.kubeconfig.empty()) made = url.substr(0, question) + path + url.substr(question);
  }
  if (!context.empty()) {
    if (!place.context.empty() && place.context != context) {
      return fail(ErrorCode::invalid_argument, "--context {} and the store {} name two contexts: give one",
                  echo(context), echo(store::without_user(url)));
    }
    if (context.find('&') != context.npos) {
      return fail(ErrorCode::invalid_argument, "--context " + echo(context) + ": a store's URL can't name it");
    }
    if (place.context.empty()) made += (made.find('?') == made.npos ? "?context=" : "&context=") + context;
  }
  return made;
}

Result<wire::kube::KubeAccess> kube_access(const KubePlace& place) {
  TRY(auto access, find_access(place));
  if (place.overrides) TRY_VOID(wire::kube::override_access(access, *place.overrides));
  return access;
}

}  // namespace croft::app
