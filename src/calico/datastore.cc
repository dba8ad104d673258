#include "calico/datastore.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/without_user_info.h"
#include "cni/format/config.h"
#include "cni/format/config_parts.h"

namespace croft::wire::cni {
namespace {

using Members = DatastoreMembers;

template <std::string Members::*kMember>
MaybeFault take(const JsonAt& at, Members& out) {
  return read_plain_text(at, kPathBytesMax, out.*kMember);
}

/// No message repeats a token.
MaybeFault read_token(const JsonAt& at, std::string& out) {
  constexpr std::size_t kTokenBytesMax = std::size_t{32} << 10;
  if (at.value.is_null()) return {};
  if (at.value.kind() != JsonKind::string) {
    return JsonFault{JsonFault::Kind::wrong_type, at.path(),
                     fmt::format("{} where a string is wanted", name_of(at.value.kind()))};
  }
  if (at.value.text().size() > kTokenBytesMax) return at.bad_value(fmt::format("more than {} bytes", kTokenBytesMax));
  out = at.value.text();
  return {};
}

constexpr std::array<JsonMember<Members>, 2> kKubernetesMembers = {
    {{"kubeconfig", take<&Members::kubeconfig>}, {"k8s_api_root", take<&Members::api_root>}}};
/// Members for the main plugin are passed over here; Calico's IPAM plugin reads none of the certificates here either.
constexpr std::array<JsonMember<Members>, 1> kPolicyMembers = {
    {{"k8s_auth_token", [](const JsonAt& at, Members& out) { return read_token(at, out.token); }}}};

constexpr std::array<JsonMember<Members>, 11> kMembers = {
    {{"datastore_type", take<&Members::type>},
     {"etcd_endpoints", take<&Members::endpoints>},
     {"etcd_discovery_srv", take<&Members::discovery_srv>},
     {"etcd_key_file", take<&Members::key_file>},
     {"etcd_cert_file", take<&Members::cert_file>},
     {"etcd_ca_cert_file", take<&Members::ca_cert_file>},
     {"etcd_scheme", take<&Members::scheme>},
     {"etcd_authority", take<&Members::authority>},
     {"calico_api_group", take<&Members::api_group>},
     {"kubernetes", [](const JsonAt& at, Members& out) { return read_object<Members>(at, kKubernetesMembers, out); }},
     {"policy", [](const JsonAt& at, Members& out) { return read_object<Members>(at, kPolicyMembers, out); }}}};

JsonFault bad_value(std::string field, std::string reason) {
  return {JsonFault::Kind::bad_value, std::move(field), std::move(reason)};
}

/// The member, or else its variable.
MaybeFault take_setting(const std::string& member, const GetVariable& variable, const char* name, Setting& out) {
  out.value = member;
  return member.empty() ? take_variable(variable, name, out) : MaybeFault();
}

struct Settings {
  Setting type{"datastore_type", {}}, endpoints{"etcd_endpoints", {}}, discovery{"etcd_discovery_srv", {}};
  Setting key{"etcd_key_file", {}}, cert{"etcd_cert_file", {}}, ca{"etcd_ca_cert_file", {}};
  Setting scheme{"etcd_scheme", {}}, authority{"etcd_authority", {}};
  Setting user, password;
};

MaybeFault gather(const DatastoreMembers& members, const GetVariable& variable, Settings& out) {
  const std::array<std::tuple<const std::string*, const char*, Setting*>, 8> sources = {
      {{&members.type, "DATASTORE_TYPE", &out.type},
       {&members.endpoints, "ETCD_ENDPOINTS", &out.endpoints},
       {&members.discovery_srv, "ETCD_DISCOVERY_SRV", &out.discovery},
       {&members.key_file, "ETCD_KEY_FILE", &out.key},
       {&members.cert_file, "ETCD_CERT_FILE", &out.cert},
       {&members.ca_cert_file, "ETCD_CA_CERT_FILE", &out.ca},
       {&members.scheme, "ETCD_SCHEME", &out.scheme},
       {&members.authority, "ETCD_AUTHORITY", &out.authority}}};
  for (const auto& [member, name, setting] : sources) {
    if (auto fault = take_setting(*member, variable, name, *setting)) return fault;
  }
  if (auto fault = take_variable(variable, "ETCD_USERNAME", out.user)) return fault;
  return take_variable(variable, "ETCD_PASSWORD", out.password);
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

MaybeFault split_endpoints(const Setting& setting, std::vector<std::string>& out) {
  for (std::string_view rest = setting.value;;) {
    const auto comma = rest.find(',');
    const std::string_view one = trimmed(rest.substr(0, comma));
    if (last_at(setting.value) != setting.value.npos) {  // what stands before it may be a secret: it is not shown
      return bad_value(setting.name,
                       "has a user in it: give endpoints alone, and the variables ETCD_USERNAME and "
                       "ETCD_PASSWORD to the runtime");
    }
    if (!one.starts_with("http://") && !one.starts_with("https://")) {
      return bad_value(setting.name, fmt::format("{} is no endpoint: give http://ADDRESS:PORT or https://ADDRESS:PORT, "
                                                 "several with a comma between them",
                                                 net::echo(one)));
    }
    if (out.size() == kEtcdEndpointsMax) {
      return bad_value(setting.name, fmt::format("has more than {} endpoints", kEtcdEndpointsMax));
    }
    out.emplace_back(one);
    if (comma == rest.npos) return {};
    rest.remove_prefix(comma + 1);
  }
}

/// `etcd_scheme` and `etcd_authority` are what there was before `etcd_endpoints`.
Setting endpoints_of(const Settings& settings) {
  if (!settings.endpoints.value.empty() || settings.authority.value.empty()) return settings.endpoints;
  const std::string scheme = settings.scheme.value.empty() ? "http" : settings.scheme.value;
  return {settings.authority.name, scheme + "://" + settings.authority.value};
}

MaybeFault take_etcd(const Settings& settings, DatastoreChoice& out) {
  out.kind = DatastoreChoice::Kind::etcd;
  if (!settings.discovery.value.empty()) {
    return bad_value(settings.discovery.name,
                     fmt::format("{}: names are not looked up before there is a network; list the members in "
                                 "etcd_endpoints",
                                 net::echo(settings.discovery.value)));
  }
  const Setting endpoints = endpoints_of(settings);
  if (endpoints.value.empty()) {
    return bad_value(endpoints.name, "is missing: datastore_type \"etcdv3\" needs it, or the variable ETCD_ENDPOINTS");
  }
  if (auto fault = split_endpoints(endpoints, out.endpoints)) return fault;
  if (settings.key.value.empty() != settings.cert.value.empty()) {
    const bool no_key = settings.key.value.empty();
    return bad_value(no_key ? settings.cert.name : settings.key.name,
                     fmt::format("{} needs {} beside it", net::echo(no_key ? settings.cert.value : settings.key.value),
                                 no_key ? "etcd_key_file" : "etcd_cert_file"));
  }
  const bool secure = std::any_of(out.endpoints.begin(), out.endpoints.end(),
                                  [](const std::string& endpoint) { return endpoint.starts_with("https:"); });
  if (secure && settings.ca.value.empty()) {
    return bad_value(settings.ca.name, "is missing: https endpoints need it, or the variable ETCD_CA_CERT_FILE");
  }
  out.key_file = settings.key.value;
  out.cert_file = settings.cert.value;
  out.ca_cert_file = settings.ca.value;
  out.user = settings.user.value;
  out.password = settings.password.value;
  return {};
}

/// As Calico decides: etcd when there are endpoints, else Kubernetes.
MaybeFault find_kind(const Settings& settings, DatastoreChoice::Kind& out) {
  const std::string& type = settings.type.value;
  const bool has_etcd = !endpoints_of(settings).value.empty() || !settings.discovery.value.empty();
  const bool is_etcd = type == "etcdv3" || (type.empty() && has_etcd);
  out = is_etcd ? DatastoreChoice::Kind::etcd : DatastoreChoice::Kind::kubernetes;
  if (is_etcd || type == "kubernetes" || type.empty()) return {};
  return bad_value(settings.type.name, net::echo(type) + " is no datastore: give \"etcdv3\" or \"kubernetes\"");
}

// ---- Kubernetes

MaybeFault check_pair(const Setting& key, const Setting& cert) {
  if (key.value.empty() == cert.value.empty()) return {};
  const Setting& given = key.value.empty() ? cert : key;
  return bad_value(given.name,
                   fmt::format("{} needs {} beside it", net::echo(given.value), (key.value.empty() ? key : cert).name));
}

MaybeFault take_kubernetes(const DatastoreMembers& members, const GetVariable& variable, DatastoreChoice& out) {
  out.kind = DatastoreChoice::Kind::kubernetes;
  Setting kubeconfig{"kubernetes.kubeconfig", {}}, api_root{"kubernetes.k8s_api_root", {}}, token, group;
  Setting key{"K8S_KEY_FILE", {}}, cert{"K8S_CERT_FILE", {}}, ca{"K8S_CA_FILE", {}}, insecure, host;
  const std::string none;
  const std::array<std::tuple<const std::string*, const char*, Setting*>, 9> sources = {
      {{&members.kubeconfig, "KUBECONFIG", &kubeconfig},
       {&members.api_root, "K8S_API_ENDPOINT", &api_root},
       {&members.api_group, "CALICO_API_GROUP", &group},
       {&none, "K8S_KEY_FILE", &key},
       {&none, "K8S_CERT_FILE", &cert},
       {&none, "K8S_CA_FILE", &ca},
       {&none, "K8S_INSECURE_SKIP_TLS_VERIFY", &insecure},
       {&none, "KUBERNETES_SERVICE_HOST", &host},
       {&members.token, "K8S_API_TOKEN", &token}}};
  for (const auto& [member, name, setting] : sources) {
    if (auto fault = take_setting(*member, variable, name, *setting)) return fault;
  }
  if (!kubeconfig.value.empty() && !kubeconfig.value.starts_with('/')) {
    return bad_value(kubeconfig.name, net::echo(kubeconfig.value) + " is no absolute path");
  }
  if (kubeconfig.value.empty() && api_root.value.empty() && host.value.empty()) {
    return bad_value(kubeconfig.name,
                     "is missing: datastore_type \"kubernetes\", which is meant when none is given, needs it, or the "
                     "variable KUBECONFIG");
  }
  if (auto fault = check_pair(key, cert)) return fault;
  if (insecure.value == "true" || insecure.value == "1") {
    return bad_value(insecure.name,
                     "a server that is not proven to be the right one gets no token: give its authority "
                     "in K8S_CA_FILE or in the kubeconfig");
  }
  out.kubeconfig = std::move(kubeconfig.value);
  out.api_root = std::move(api_root.value);
  out.token = std::move(token.value);
  out.api_group = std::move(group.value);
  out.key_file = std::move(key.value);
  out.cert_file = std::move(cert.value);
  out.ca_cert_file = std::move(ca.value);
  return {};
}

}  // namespace

MaybeFault take_variable(const GetVariable& variable, const char* name, Setting& out) {
  std::string value = variable(name);
  if (value.empty()) return {};
  if (value.size() > kPathBytesMax || !is_plain_text(value)) {
    const std::string_view known(name);
    const bool is_secret = known.ends_with("PASSWORD") || known.ends_with("TOKEN");
    return bad_value(fmt::format("environment variable {}", name),
                     fmt::format("{} is longer than {} bytes or has control characters",
                                 is_secret ? "what it has" : net::echo(value), kPathBytesMax));
  }
  out = {fmt::format("environment variable {}", name), std::move(value)};
  return {};
}

MaybeFault read_datastore_members(const JsonAt& root, OnFault on_fault, DatastoreMembers& out) {
  return read_object<Members>(root, kMembers, out, {.on_fault = on_fault});
}

void add_datastore_names(std::vector<std::string>& known) { add_names<Members>(kMembers, known); }

MaybeFault choose_datastore(const DatastoreMembers& members, const GetVariable& variable, DatastoreChoice& out) {
  Settings settings;
  if (auto fault = gather(members, variable, settings)) return fault;
  if (auto fault = find_kind(settings, out.kind)) return fault;
  return out.kind == DatastoreChoice::Kind::etcd ? take_etcd(settings, out) : take_kubernetes(members, variable, out);
}

MaybeFault datastore_as_said(const DatastoreMembers& members, DatastoreChoice& out) {
  Settings settings;
  if (auto fault = gather(
          members, [](const char*) { return std::string(); }, settings)) {
    return fault;
  }
  if (auto fault = find_kind(settings, out.kind)) return fault;
  if (out.kind == DatastoreChoice::Kind::kubernetes) {
    out.kubeconfig = members.kubeconfig;
    out.api_root = members.api_root;
  } else if (settings.discovery.value.empty() && split_endpoints(endpoints_of(settings), out.endpoints)) {
    out.endpoints.clear();
  }
  return {};
}

std::string url_of(const DatastoreChoice& choice) {
  if (choice.kind == DatastoreChoice::Kind::store_url) return choice.url;
  if (choice.kind == DatastoreChoice::Kind::kubernetes) {
    return "kube:" + (choice.kubeconfig.empty() ? choice.api_root : choice.kubeconfig);
  }
  std::string url = "etcd:";
  for (const std::string& endpoint : choice.endpoints) {
    if (url.back() != ':') url += ',';
    url += endpoint;
  }
  return url;
}

}  // namespace croft::wire::cni
