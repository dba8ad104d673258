#include "calico/netconf.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/did_you_mean.h"
#include "base/letters.h"
#include "base/printable.h"
#include "base/text/go_text.h"
#include "base/texts.h"
#include "register/node.h"

namespace croft::wire::cni {
namespace {

using Members = DatastoreMembers;

template <Setting Members::*kMember>
MaybeFault take(const JsonAt& at, Members& out) {
  return read_plain_text(at, kPathBytesMax, (out.*kMember).value);
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
    {{"k8s_auth_token", [](const JsonAt& at, Members& out) { return read_token(at, out.token.value); }}}};

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

struct Source {
  Setting Members::*setting;
  const char* variable;
};
constexpr std::array<Source, 10> kEtcdSources = {{{&Members::type, "DATASTORE_TYPE"},
                                                  {&Members::endpoints, "ETCD_ENDPOINTS"},
                                                  {&Members::discovery_srv, "ETCD_DISCOVERY_SRV"},
                                                  {&Members::key_file, "ETCD_KEY_FILE"},
                                                  {&Members::cert_file, "ETCD_CERT_FILE"},
                                                  {&Members::ca_cert_file, "ETCD_CA_CERT_FILE"},
                                                  {&Members::scheme, "ETCD_SCHEME"},
                                                  {&Members::authority, "ETCD_AUTHORITY"},
                                                  {&Members::user, "ETCD_USERNAME"},
                                                  {&Members::password, "ETCD_PASSWORD"}}};
constexpr std::array<Source, 9> kKubernetesSources = {{{&Members::kubeconfig, "KUBECONFIG"},
                                                       {&Members::api_root, "K8S_API_ENDPOINT"},
                                                       {&Members::api_group, "CALICO_API_GROUP"},
                                                       {&Members::k8s_key_file, "K8S_KEY_FILE"},
                                                       {&Members::k8s_cert_file, "K8S_CERT_FILE"},
                                                       {&Members::k8s_ca_file, "K8S_CA_FILE"},
                                                       {&Members::insecure, "K8S_INSECURE_SKIP_TLS_VERIFY"},
                                                       {&Members::service_host, "KUBERNETES_SERVICE_HOST"},
                                                       {&Members::token, "K8S_API_TOKEN"}}};

/// Takes a variable, if it is set.
MaybeFault take_variable(const GetVariable& variable, const char* name, Setting& out) {
  std::string value = variable(name);
  if (value.empty()) return {};
  if (value.size() > kPathBytesMax || !is_plain_text(value)) {
    const std::string_view known(name);
    const bool is_secret = known.ends_with("PASSWORD") || known.ends_with("TOKEN");
    return bad_value(fmt::format("environment variable {}", name),
                     fmt::format("{} is longer than {} bytes or has control characters",
                                 is_secret ? "what it has" : echo(value), kPathBytesMax));
  }
  out = {fmt::format("environment variable {}", name), std::move(value)};
  return {};
}

/// A variable says what no member does.
MaybeFault take_variables(std::span<const Source> sources, const GetVariable& variable, Members& settings) {
  for (const auto& [setting, name] : sources) {
    if (!(settings.*setting).value.empty()) continue;
    if (auto fault = take_variable(variable, name, settings.*setting)) return fault;
  }
  return {};
}

MaybeFault split_endpoints(const Setting& setting, std::vector<std::string>& out) {
  if (last_at_sign(setting.value) != setting.value.npos) {  // what stands before it may be a secret: it is not shown
    return bad_value(setting.name,
                     "has a user in it: give endpoints alone, and the variables ETCD_USERNAME and "
                     "ETCD_PASSWORD to the runtime");
  }
  for (const std::string_view part : split(setting.value, ',')) {
    const std::string_view one = trimmed(part, " ");
    if (!one.starts_with("http://") && !one.starts_with("https://")) {
      return bad_value(setting.name, fmt::format("{} is no endpoint: give http://ADDRESS:PORT or https://ADDRESS:PORT, "
                                                 "several with a comma between them",
                                                 echo(one)));
    }
    if (out.size() == kEtcdEndpointsMax) {
      return bad_value(setting.name, fmt::format("has more than {} endpoints", kEtcdEndpointsMax));
    }
    out.emplace_back(one);
  }
  return {};
}

/// `etcd_scheme` and `etcd_authority` are what there was before `etcd_endpoints`.
Setting endpoints_of(const Members& settings) {
  if (!settings.endpoints.value.empty() || settings.authority.value.empty()) return settings.endpoints;
  const std::string scheme = settings.scheme.value.empty() ? "http" : settings.scheme.value;
  return {settings.authority.name, scheme + "://" + settings.authority.value};
}

MaybeFault check_pair(const Setting& key, const Setting& cert) {
  if (key.value.empty() == cert.value.empty()) return {};
  const Setting& given = key.value.empty() ? cert : key;
  return bad_value(given.name,
                   fmt::format("{} needs {} beside it", echo(given.value), (key.value.empty() ? key : cert).name));
}

MaybeFault take_etcd(const Members& settings, DatastoreChoice& out) {
  if (!settings.discovery_srv.value.empty()) {
    return bad_value(settings.discovery_srv.name,
                     fmt::format("{}: names are not looked up before there is a network; list the members in "
                                 "etcd_endpoints",
                                 echo(settings.discovery_srv.value)));
  }
  const Setting endpoints = endpoints_of(settings);
  if (endpoints.value.empty()) {
    return bad_value(endpoints.name, "is missing: datastore_type \"etcdv3\" needs it, or the variable ETCD_ENDPOINTS");
  }
  if (auto fault = split_endpoints(endpoints, out.endpoints)) return fault;
  if (auto fault = check_pair(settings.key_file, settings.cert_file)) return fault;
  const bool secure = std::any_of(out.endpoints.begin(), out.endpoints.end(),
                                  [](const std::string& endpoint) { return endpoint.starts_with("https:"); });
  if (secure && settings.ca_cert_file.value.empty()) {
    return bad_value(settings.ca_cert_file.name,
                     "is missing: https endpoints need it, or the variable ETCD_CA_CERT_FILE");
  }
  out.key_file = settings.key_file.value;
  out.cert_file = settings.cert_file.value;
  out.ca_cert_file = settings.ca_cert_file.value;
  out.user = settings.user.value;
  out.password = settings.password.value;
  return {};
}

/// As Calico decides: etcd when there are endpoints, else Kubernetes.
MaybeFault find_kind(const Members& settings, DatastoreChoice::Kind& out) {
  const std::string& type = settings.type.value;
  const bool has_etcd = !endpoints_of(settings).value.empty() || !settings.discovery_srv.value.empty();
  const bool is_etcd = type == "etcdv3" || (type.empty() && has_etcd);
  out = is_etcd ? DatastoreChoice::Kind::etcd : DatastoreChoice::Kind::kubernetes;
  if (is_etcd || type == "kubernetes" || type.empty()) return {};
  return bad_value(settings.type.name, echo(type) + " is no datastore: give \"etcdv3\" or \"kubernetes\"");
}

// ---- Kubernetes

MaybeFault take_kubernetes(const Members& settings, DatastoreChoice& out) {
  const Setting& kubeconfig = settings.kubeconfig;
  if (!kubeconfig.value.empty() && !kubeconfig.value.starts_with('/')) {
    return bad_value(kubeconfig.name, echo(kubeconfig.value) + " is no absolute path");
  }
  if (kubeconfig.value.empty() && settings.api_root.value.empty() && settings.service_host.value.empty()) {
    return bad_value(kubeconfig.name,
                     "is missing: datastore_type \"kubernetes\", which is meant when none is given, needs it, or the "
                     "variable KUBECONFIG");
  }
  if (auto fault = check_pair(settings.k8s_key_file, settings.k8s_cert_file)) return fault;
  if (settings.insecure.value == "true" || settings.insecure.value == "1") {
    return bad_value(settings.insecure.name,
                     "a server that is not proven to be the right one gets no token: give its authority "
                     "in K8S_CA_FILE or in the kubeconfig");
  }
  out.kubeconfig = kubeconfig.value;
  out.api_root = settings.api_root.value;
  out.token = settings.token.value;
  out.api_group = settings.api_group.value;
  out.key_file = settings.k8s_key_file.value;
  out.cert_file = settings.k8s_cert_file.value;
  out.ca_cert_file = settings.k8s_ca_file.value;
  return {};
}

/// Each member overrides its environment variable. Fault: a member or variable with a value that is not allowed; a
/// datastore that nothing leads to.
MaybeFault choose_datastore(Members settings, const GetVariable& variable, DatastoreChoice& out) {
  if (auto fault = take_variables(kEtcdSources, variable, settings)) return fault;
  if (auto fault = find_kind(settings, out.kind)) return fault;
  if (out.kind == DatastoreChoice::Kind::etcd) return take_etcd(settings, out);
  if (auto fault = take_variables(kKubernetesSources, variable, settings)) return fault;
  return take_kubernetes(settings, out);
}

}  // namespace

MaybeFault read_datastore_members(const JsonAt& root, OnFault on_fault, DatastoreMembers& out) {
  return read_object<Members>(root, kMembers, out, {.on_fault = on_fault});
}

MaybeFault datastore_of_members(const DatastoreMembers& members, DatastoreChoice& out) {
  if (auto fault = find_kind(members, out.kind)) return fault;
  if (out.kind == DatastoreChoice::Kind::kubernetes) {
    out.kubeconfig = members.kubeconfig.value;
    out.api_root = members.api_root.value;
  } else if (members.discovery_srv.value.empty() && split_endpoints(endpoints_of(members), out.endpoints)) {
    out.endpoints.clear();
  }
  return {};
}

std::string url_of(const DatastoreChoice& choice) {
  if (choice.kind == DatastoreChoice::Kind::store_url) return choice.url;
  if (choice.kind == DatastoreChoice::Kind::kubernetes) {
    return "kube:" + (choice.kubeconfig.empty() ? choice.api_root : choice.kubeconfig);
  }
  return "etcd:" + joined(choice.endpoints, ",");
}

namespace {

constexpr std::int64_t kCountMax = std::numeric_limits<std::int32_t>::max();

/// The parts before they are put together.
struct Draft {
  CalicoNetconf config;
  std::string store;
  DatastoreMembers datastore;
  std::string log_level, log_file;
  std::int64_t log_file_max_age = 0, log_file_max_count = 0;  ///< checked for their type only: one old file is kept
};

/// A path whose empty text means the default.
template <std::string CalicoNetconf::*kMember>
MaybeFault take_path(const JsonAt& at, Draft& out) {
  std::string path;
  if (auto fault = read_plain_text(at, kPathBytesMax, path)) return fault;
  if (!path.empty()) out.config.*kMember = std::move(path);
  return {};
}

MaybeFault take_log_megabytes(const JsonAt& at, Draft& out) {
  std::int64_t megabytes = 0;
  if (auto fault = read_integer(at, 0, kLogMegabytesMax, megabytes)) return fault;
  if (megabytes > 0) out.config.log_megabytes_max = megabytes;
  return {};
}

// ---- the members

constexpr std::array<JsonMember<Draft>, 1> kStoreMembers = {
    {{"store", [](const JsonAt& a, Draft& d) { return read_plain_text(a, kPathBytesMax, d.store); }}}};

MaybeFault read_store(const JsonAt& at, Draft& out) { return read_object<Draft>(at, kStoreMembers, out); }

constexpr std::array<JsonMember<Draft>, 1> kStoreSection = {{{"ipam", read_store}}};

constexpr std::array<JsonMember<Draft>, 11> kCommonMembers = {
    {{"nodename", [](const JsonAt& a, Draft& d) { return read_nodename(a, d.config.nodename); }},
     {"nodename_file", take_path<&CalicoNetconf::nodename_file>},
     {"nodename_file_optional",
      [](const JsonAt& a, Draft& d) { return read_boolean(a, d.config.nodename_file_optional); }},
     {"hostname", [](const JsonAt& a, Draft& d) { return read_nodename(a, d.config.hostname); }},
     {"ipam_lock_file", take_path<&CalicoNetconf::ipam_lock_file>},
     {"log_level", [](const JsonAt& a, Draft& d) { return read_plain_text(a, kPathBytesMax, d.log_level); }},
     {"log_file_path", [](const JsonAt& a, Draft& d) { return read_plain_text(a, kPathBytesMax, d.log_file); }},
     {"log_file_max_size", take_log_megabytes},
     {"log_file_max_age", [](const JsonAt& a, Draft& d) { return read_integer(a, 0, kCountMax, d.log_file_max_age); }},
     {"log_file_max_count",
      [](const JsonAt& a, Draft& d) { return read_integer(a, 0, kCountMax, d.log_file_max_count); }},
     {"windows_use_single_network", [](const JsonAt& a, Draft& d) { return read_boolean(a, d.config.single_block); }}}};

constexpr std::array<JsonMember<Draft>, 4> kIpamMembers = {
    {{"assign_ipv4", [](const JsonAt& a, Draft& d) { return read_switch(a, true, d.config.assign_v4); }},
     {"assign_ipv6", [](const JsonAt& a, Draft& d) { return read_switch(a, false, d.config.assign_v6); }},
     {"ipv4_pools",
      [](const JsonAt& a, Draft& d) { return read_asked_pools(a, net::Family::v4, d.config.asked_pools.v4); }},
     {"ipv6_pools",
      [](const JsonAt& a, Draft& d) { return read_asked_pools(a, net::Family::v6, d.config.asked_pools.v6); }}}};

constexpr std::array<JsonMember<Draft>, 1> kAssignmentSection = {
    {{"ipam", [](const JsonAt& a, Draft& d) { return read_object<Draft>(a, kIpamMembers, d); }}}};

MaybeFault read_members(const JsonAt& root, Command command, bool datastore_is_needed, Draft& draft) {
  const OnFault unless_needed = command == Command::del ? OnFault::skip : OnFault::stop;
  const OnFault on_fault = datastore_is_needed ? OnFault::stop : unless_needed;
  if (auto fault = read_datastore_members(root, on_fault, draft.datastore)) return fault;
  if (auto fault = read_object<Draft>(root, kCommonMembers, draft, {.on_fault = unless_needed})) return fault;
  return command == Command::add ? read_object<Draft>(root, kAssignmentSection, draft) : MaybeFault();
}

// ---- members that nobody knows

/// Adds members of `object` with names that are nearly one of `known`.
void note_near_misses(const JsonAt& object, const std::vector<std::string>& known, std::vector<NearMiss>& out) {
  static_cast<void>(each_member(object, [&](const JsonAt& member) -> MaybeFault {
    const auto is_it = [&](const auto& one) { return same_member_name(member.name, one); };
    if (std::ranges::any_of(known, is_it) || out.size() == kNearMissesMax) return {};
    if (const auto near = nearest_words(member.name, known, 1); !near.empty()) {
      out.push_back({member.path(), near.front()});
    }
    return {};
  }));
}

/// A member that Calico or CNI has is no slip, however near it looks.
void note_near_misses(const JsonAt& root, std::vector<NearMiss>& out) {
  std::vector<std::string> known = {"cniVersion", "name", "type", "ipam", "args", "dns", "ips", "qps"};
  add_names<Members>(kMembers, known);
  add_names<Draft>(kCommonMembers, known);
  note_near_misses(root, known, out);
  static_cast<void>(each_member(root, [&](const JsonAt& member) -> MaybeFault {
    if (!same_member_name(member.name, "ipam")) return {};
    std::vector<std::string> of_ipam = {"name", "type", "subnet"};
    add_names<Draft>(kStoreMembers, of_ipam);
    add_names<Draft>(kIpamMembers, of_ipam);
    note_near_misses(member, of_ipam, out);
    return {};
  }));
}

/// `ipam.store`, else CROFT_STORE; empty when neither is given.
MaybeFault find_store(const JsonAt& root, const GetVariable& variable, Draft& draft) {
  if (auto fault = read_object<Draft>(root, kStoreSection, draft)) return fault;
  if (!draft.store.empty()) return {};
  Setting setting;
  if (auto fault = take_variable(variable, "CROFT_STORE", setting)) return fault;
  draft.store = std::move(setting.value);
  return {};
}

MaybeFault read_configuration(const JsonAt& root, Command command, const GetVariable& variable, Draft& draft) {
  if (auto fault = find_store(root, variable, draft)) return fault;
  const bool is_given = !draft.store.empty();
  if (auto fault = read_members(root, command, !is_given, draft)) return fault;
  DatastoreChoice& choice = draft.config.datastore;
  if (!is_given) return choose_datastore(std::move(draft.datastore), variable, choice);
  choice.kind = DatastoreChoice::Kind::store_url;
  choice.url = draft.store;
  return {};
}

std::optional<Error> take_args(const std::string& text, CalicoNetconf& config) {
  const auto args = parse_args(text, kCroftArgKeys);
  if (!args) return Error{Code::invalid_environment, args.error().message, "CNI_ARGS"};
  if (auto error = take_pod(*args, config.pod)) return error;
  if (args->ips.size() > 1) {
    return Error{
        Code::invalid_environment,
        fmt::format("ARGS: IP lists {} addresses; calico-ipam, like Calico's own, takes one", args->ips.size()),
        "CNI_ARGS"};
  }
  if (!args->ips.empty()) config.requested_address = args->ips.front();
  return {};
}

}  // namespace

Checked<CalicoNetconf> decode_calico_netconf(const Network& network, const std::string& args, Command command,
                                             const GetVariable& variable) {
  Draft draft;
  const JsonAt root{network.document.root(), nullptr, {}, {}};
  if (const auto fault = read_configuration(root, command, variable, draft)) return config_error_of(*fault);
  CalicoNetconf& config = draft.config;
  config.name = network.name;
  if (!draft.log_file.empty()) config.log_file = draft.log_file;
  config.log_only_failures = equals_ignoring_case(draft.log_level, "error");
  if (command == Command::add) note_near_misses(root, config.near_misses);
  if (auto error = take_args(args, config); error && command != Command::del) return *std::move(error);
  return std::move(config);
}

Result<std::string> decode_nodename_file(std::string_view content) {
  std::string name(trimmed(content, " \t\r\n"));
  if (name.empty() || core::check_node_name(name)) return name;
  return fail(invalid_argument(
      "what it has is no name of a node: 1 to 253 letters, digits, '-', '.' or '_', first and last a letter or digit"));
}

}  // namespace croft::wire::cni
