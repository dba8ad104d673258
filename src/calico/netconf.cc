#include "calico/netconf.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json/decode.h"
#include "base/nearest.h"
#include "base/text/go_text.h"
#include "cni/format/args.h"
#include "cni/format/config_parts.h"
#include "cni/format/network.h"
#include "register/affinity.h"
#include "register/names.h"

namespace croft::wire::cni {

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
  add_datastore_names(known);
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
  if (!is_given) return choose_datastore(draft.datastore, variable, choice);
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
  config.log_only_failures = core::equals_ignoring_case(draft.log_level, "error");
  if (command == Command::add) note_near_misses(root, config.near_misses);
  if (auto error = take_args(args, config); error && command != Command::del) return *std::move(error);
  return std::move(config);
}

Result<std::string> decode_nodename_file(std::string_view content) {
  constexpr std::string_view kWhiteSpace = " \t\r\n";
  const auto first = content.find_first_not_of(kWhiteSpace);
  if (first == content.npos) return std::string();
  std::string name(content.substr(first, content.find_last_not_of(kWhiteSpace) - first + 1));
  if (core::check_node_name(name)) return name;
  return fail(invalid_argument(
      "what it has is no name of a node: 1 to 253 letters, digits, '-', '.' or '_', first and last a letter or digit"));
}

}  // namespace croft::wire::cni
