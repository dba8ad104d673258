#include "wire/calico/netconf.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/nearest.h"
#include "core/register/names.h"
#include "net/echo.h"
#include "wire/cni/args.h"
#include "wire/cni/config_parts.h"
#include "wire/cni/config_pools.h"
#include "wire/cni/network.h"
#include "wire/json/decode.h"
#include "wire/text/go_text.h"

namespace croft::wire::cni {
namespace {

constexpr std::int64_t kCountMax = std::numeric_limits<std::int32_t>::max();

/// What is gathered before the parts are put together.
struct Draft {
  CalicoNetconf config;
  std::string store;
  std::string datastore_type, endpoints, discovery_srv, key_file, cert_file, ca_cert_file, scheme, authority;
  std::string log_level, log_file;
  std::int64_t log_file_max_age = 0, log_file_max_count = 0;  ///< checked for their type only: one old file is kept
};

MaybeFault read_path(const JsonAt& at, std::string& out) { return read_plain_text(at, kPathBytesMax, out); }

template <std::string Draft::*kMember>
MaybeFault take_text(const JsonAt& at, Draft& out) {
  return read_path(at, out.*kMember);
}

template <std::string CalicoNetconf::*kMember>
MaybeFault take_node(const JsonAt& at, Draft& out) {
  return read_nodename(at, out.config.*kMember);
}

/// A path whose empty text means the default.
template <std::string CalicoNetconf::*kMember>
MaybeFault take_path(const JsonAt& at, Draft& out) {
  std::string path;
  if (auto fault = read_path(at, path)) return fault;
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

constexpr std::array<JsonMember<Draft>, 1> kStoreMembers = {{{"store", take_text<&Draft::store>}}};

MaybeFault read_store(const JsonAt& at, Draft& out) { return read_object<Draft>(at, kStoreMembers, out); }

constexpr std::array<JsonMember<Draft>, 1> kStoreSection = {{{"ipam", read_store}}};

/// Where the register is: what every command needs.
constexpr std::array<JsonMember<Draft>, 8> kDatastoreMembers = {
    {{"datastore_type", take_text<&Draft::datastore_type>},
     {"etcd_endpoints", take_text<&Draft::endpoints>},
     {"etcd_discovery_srv", take_text<&Draft::discovery_srv>},
     {"etcd_key_file", take_text<&Draft::key_file>},
     {"etcd_cert_file", take_text<&Draft::cert_file>},
     {"etcd_ca_cert_file", take_text<&Draft::ca_cert_file>},
     {"etcd_scheme", take_text<&Draft::scheme>},
     {"etcd_authority", take_text<&Draft::authority>}}};

constexpr std::array<JsonMember<Draft>, 11> kCommonMembers = {
    {{"nodename", take_node<&CalicoNetconf::nodename>},
     {"nodename_file", take_path<&CalicoNetconf::nodename_file>},
     {"nodename_file_optional",
      [](const JsonAt& a, Draft& d) { return read_boolean(a, d.config.nodename_file_optional); }},
     {"hostname", take_node<&CalicoNetconf::hostname>},
     {"ipam_lock_file", take_path<&CalicoNetconf::ipam_lock_file>},
     {"log_level", take_text<&Draft::log_level>},
     {"log_file_path", take_text<&Draft::log_file>},
     {"log_file_max_size", take_log_megabytes},
     {"log_file_max_age", [](const JsonAt& a, Draft& d) { return read_integer(a, 0, kCountMax, d.log_file_max_age); }},
     {"log_file_max_count",
      [](const JsonAt& a, Draft& d) { return read_integer(a, 0, kCountMax, d.log_file_max_count); }},
     {"windows_use_single_network", [](const JsonAt& a, Draft& d) { return read_boolean(a, d.config.single_block); }}}};

constexpr std::array<JsonMember<Draft>, 4> kIpamMembers = {
    {{"assign_ipv4", [](const JsonAt& a, Draft& d) { return read_switch(a, true, d.config.assign_v4); }},
     {"assign_ipv6", [](const JsonAt& a, Draft& d) { return read_switch(a, false, d.config.assign_v6); }},
     {"ipv4_pools",
      [](const JsonAt& a, Draft& d) {
        return read_asked_pools(a, net::Family::v4, kAskedPoolsMax, d.config.asked_pools.v4);
      }},
     {"ipv6_pools", [](const JsonAt& a, Draft& d) {
        return read_asked_pools(a, net::Family::v6, kAskedPoolsMax, d.config.asked_pools.v6);
      }}}};

constexpr std::array<JsonMember<Draft>, 1> kAssignmentSection = {
    {{"ipam", [](const JsonAt& a, Draft& d) { return read_object<Draft>(a, kIpamMembers, d); }}}};

MaybeFault read_members(const JsonAt& root, Command command, bool datastore_is_needed, Draft& draft) {
  const OnFault unless_needed = command == Command::del ? OnFault::skip : OnFault::stop;
  if (auto fault = read_object<Draft>(root, kDatastoreMembers, draft,
                                      {.on_fault = datastore_is_needed ? OnFault::stop : unless_needed})) {
    return fault;
  }
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

/// What Calico or CNI have besides is no slip, however near it looks.
void note_near_misses(const JsonAt& root, std::vector<NearMiss>& out) {
  std::vector<std::string> known = {"cniVersion", "name", "type", "ipam", "args", "dns", "ips", "qps"};
  add_names<Draft>(kDatastoreMembers, known);
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

// ---- the datastore

JsonFault bad_value(std::string field, std::string reason) {
  return {JsonFault::Kind::bad_value, std::move(field), std::move(reason)};
}

/// The setting of a member, or of its variable, and under which name it was found.
struct Setting {
  std::string name;
  std::string value;
};

MaybeFault take_variable(const GetVariable& variable, const char* name, Setting& out) {
  std::string value = variable(name);
  if (value.empty()) return {};
  if (value.size() > kPathBytesMax || !is_plain_text(value)) {
    return bad_value(
        fmt::format("environment variable {}", name),
        fmt::format("{} is longer than {} bytes or has control characters", net::echo(value), kPathBytesMax));
  }
  out = {fmt::format("environment variable {}", name), std::move(value)};
  return {};
}

struct EtcdSettings {
  Setting type{"datastore_type", {}}, endpoints{"etcd_endpoints", {}}, discovery{"etcd_discovery_srv", {}};
  Setting key{"etcd_key_file", {}}, cert{"etcd_cert_file", {}}, ca{"etcd_ca_cert_file", {}};
  Setting scheme{"etcd_scheme", {}}, authority{"etcd_authority", {}};
  Setting user, password;
};

MaybeFault gather(const Draft& draft, const GetVariable& variable, EtcdSettings& out) {
  const std::array<std::tuple<const std::string*, const char*, Setting*>, 8> sources = {
      {{&draft.datastore_type, "DATASTORE_TYPE", &out.type},
       {&draft.endpoints, "ETCD_ENDPOINTS", &out.endpoints},
       {&draft.discovery_srv, "ETCD_DISCOVERY_SRV", &out.discovery},
       {&draft.key_file, "ETCD_KEY_FILE", &out.key},
       {&draft.cert_file, "ETCD_CERT_FILE", &out.cert},
       {&draft.ca_cert_file, "ETCD_CA_CERT_FILE", &out.ca},
       {&draft.scheme, "ETCD_SCHEME", &out.scheme},
       {&draft.authority, "ETCD_AUTHORITY", &out.authority}}};
  for (const auto& [member, name, setting] : sources) {
    setting->value = *member;
    if (!member->empty()) continue;
    if (auto fault = take_variable(variable, name, *setting)) return fault;
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
Setting endpoints_of(const EtcdSettings& settings) {
  if (!settings.endpoints.value.empty() || settings.authority.value.empty()) return settings.endpoints;
  const std::string scheme = settings.scheme.value.empty() ? "http" : settings.scheme.value;
  return {settings.authority.name, scheme + "://" + settings.authority.value};
}

MaybeFault take_etcd(const EtcdSettings& settings, DatastoreChoice& out) {
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

MaybeFault take_datastore(const Draft& draft, const GetVariable& variable, DatastoreChoice& out) {
  EtcdSettings settings;
  if (auto fault = gather(draft, variable, settings)) return fault;
  const std::string& type = settings.type.value;
  if (type.empty()) {
    // As Calico decides: etcd when there are endpoints, else Kubernetes.
    const bool has_etcd = !endpoints_of(settings).value.empty() || !settings.discovery.value.empty();
    return has_etcd ? take_etcd(settings, out) : MaybeFault();
  }
  if (type == "etcdv3") return take_etcd(settings, out);
  if (type == "kubernetes") return {};
  return bad_value(settings.type.name, net::echo(type) + " is no datastore: give \"etcdv3\" or \"kubernetes\"");
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
  if (!is_given) return take_datastore(draft, variable, choice);
  choice.kind = DatastoreChoice::Kind::store_url;
  choice.url = draft.store;
  return {};
}

std::optional<Error> take_args(const std::string& text, CalicoNetconf& config) {
  const auto args = parse_args(text, kCroftArgKeys);
  if (!args) return Error{Code::invalid_environment, args.error().message, "CNI_ARGS"};
  config.requested_address = args->ip;
  return take_pod(*args, config.pod);
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
  config.log_only_failures = core::equals_ignoring_case(draft.log_level, "error");
  if (command == Command::add) note_near_misses(root, config.near_misses);
  if (auto error = take_args(args, config); error && command != Command::del) return *std::move(error);
  return std::move(config);
}

std::string url_of(const DatastoreChoice& choice) {
  if (choice.kind == DatastoreChoice::Kind::store_url) return choice.url;
  if (choice.kind == DatastoreChoice::Kind::kubernetes) return "kube:";
  std::string url = "etcd:";
  for (const std::string& endpoint : choice.endpoints) {
    if (url.back() != ':') url += ',';
    url += endpoint;
  }
  return url;
}

}  // namespace croft::wire::cni
