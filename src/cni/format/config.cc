#include "cni/format/config.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include <fmt/format.h>

#include "base/json/decode.h"
#include "base/net/echo.h"
#include "cni/format/args.h"
#include "cni/format/config_parts.h"
#include "cni/format/network.h"
#include "cni/format/pod_annotations.h"

namespace croft::wire::cni {
namespace {

/// The parts before they are put together.
struct Draft {
  NetworkConfig config;
  ConfigNeeds needs;
  bool has_ipam = false;
  std::string type;
  std::string top_level_nodename;
  std::string ipam_nodename;
  std::string store;
  std::string log_file;
  std::string agent;
  std::vector<net::Address> from_args_member, from_runtime, from_ipam;  ///< requested addresses by channel
  PodWishes wishes;
  bool asks_api = false;  ///< for further ones
};

// ---- requested addresses

MaybeFault read_requested_addresses(const JsonAt& at, std::vector<net::Address>& out) {
  return read_list<net::Address>(at, kRequestedAddressesMax, read_requested_address, out);
}

MaybeFault read_args_cni(const JsonAt& at, Draft& out) {
  static constexpr std::array<JsonMember<Draft>, 1> kMembers = {
      {{"ips", [](const JsonAt& a, Draft& d) { return read_requested_addresses(a, d.from_args_member); }}}};
  return read_object<Draft>(at, kMembers, out);
}

MaybeFault read_args_member(const JsonAt& at, Draft& out) {
  static constexpr std::array<JsonMember<Draft>, 1> kMembers = {{{"cni", read_args_cni}}};
  return read_object<Draft>(at, kMembers, out);
}

MaybeFault read_runtime_config(const JsonAt& at, Draft& out) {
  static constexpr std::array<JsonMember<Draft>, 2> kMembers = {
      {{"ips", [](const JsonAt& a, Draft& d) { return read_requested_addresses(a, d.from_runtime); }},
       {kPodAnnotationsCapability, [](const JsonAt& a, Draft& d) { return read_pod_annotations(a, d.wishes); }}}};
  return read_object<Draft>(at, kMembers, out);
}

// ---- ipam

constexpr std::array<JsonMember<Draft>, 1> kStoreMembers = {
    {{"store", [](const JsonAt& a, Draft& d) { return read_plain_text(a, kPathBytesMax, d.store); }}}};

constexpr std::array<JsonMember<Draft>, 5> kCommonMembers = {
    {{"type", [](const JsonAt& a, Draft& d) { return read_plain_text(a, kPathBytesMax, d.type); }},
     {"nodename", [](const JsonAt& a, Draft& d) { return read_nodename(a, d.ipam_nodename); }},
     {"log_file_path", [](const JsonAt& a, Draft& d) { return read_plain_text(a, kPathBytesMax, d.log_file); }},
     {"agent", [](const JsonAt& a, Draft& d) { return read_agent(a, d.agent); }},
     {"statusWhenFull", [](const JsonAt& a, Draft& d) { return read_boolean(a, d.config.ipam.status_when_full); }}}};

/// Where annotations come from besides the runtime.
MaybeFault read_source_of_annotations(const JsonAt& at, Draft& out) {
  std::string source;
  if (auto fault = read_plain_text(at, kPathBytesMax, source)) return fault;
  if (!source.empty() && source != "runtime" && source != "api") {
    return at.bad_value(net::echo(source) + R"( is neither "runtime" nor "api")");
  }
  out.asks_api = source == "api";
  return {};
}

constexpr std::array<JsonMember<Draft>, 8> kAssignmentMembers = {
    {{"pools", [](const JsonAt& a, Draft& d) { return read_pool_specs(a, kConfiguredPoolsMax, d.config.ipam.pools); }},
     {"annotations", read_source_of_annotations},
     {"assign_ipv4", [](const JsonAt& a, Draft& d) { return read_switch(a, true, d.config.ipam.assign_v4); }},
     {"assign_ipv6", [](const JsonAt& a, Draft& d) { return read_switch(a, false, d.config.ipam.assign_v6); }},
     {"ipv4_pools",
      [](const JsonAt& a, Draft& d) {
        return read_asked_pools(a, net::Family::v4, kAskedPoolsMax, d.config.ipam.asked_pools.v4);
      }},
     {"ipv6_pools",
      [](const JsonAt& a, Draft& d) {
        return read_asked_pools(a, net::Family::v6, kAskedPoolsMax, d.config.ipam.asked_pools.v6);
      }},
     {"routes", [](const JsonAt& a,
                   Draft& d) { return read_list<Route>(a, kConfiguredRoutesMax, read_route, d.config.ipam.routes); }},
     {"ips", [](const JsonAt& a, Draft& d) { return read_requested_addresses(a, d.from_ipam); }}}};

std::vector<std::string> known_ipam_members() {
  std::vector<std::string> names;
  add_names<Draft>(kStoreMembers, names);
  add_names<Draft>(kCommonMembers, names);
  add_names<Draft>(kAssignmentMembers, names);
  return names;
}

MaybeFault read_ipam(const JsonAt& at, Draft& out) {
  if (at.value.is_null()) return {};
  out.has_ipam = true;
  if (auto fault = read_object<Draft>(at, kStoreMembers, out)) return fault;
  const ObjectRules rules{.on_fault = out.needs.lenient ? OnFault::skip : OnFault::stop};
  if (auto fault = read_object<Draft>(at, kCommonMembers, out, rules)) return fault;
  if (!out.needs.assignment) return {};
  if (auto fault = refuse_unknown_members(at, known_ipam_members())) return fault;
  return read_object<Draft>(at, kAssignmentMembers, out);
}

// ---- top level

MaybeFault read_top_level_nodename(const JsonAt& at, Draft& out) {
  auto fault = read_nodename(at, out.top_level_nodename);
  return out.needs.lenient ? MaybeFault() : fault;
}

constexpr std::array<JsonMember<Draft>, 2> kTopLevelMembers = {
    {{"ipam", read_ipam}, {"nodename", read_top_level_nodename}}};
constexpr std::array<JsonMember<Draft>, 2> kRequestMembers = {
    {{"args", read_args_member}, {"runtimeConfig", read_runtime_config}}};

MaybeFault read_top_level(const JsonAt& root, Draft& draft) {
  if (auto fault = read_object<Draft>(root, kTopLevelMembers, draft)) return fault;
  if (draft.needs.assignment) {
    if (auto fault = read_object<Draft>(root, kRequestMembers, draft)) return fault;
  }
  if (draft.needs.previous_result) {
    if (auto fault = read_previous_addresses(root, draft.config.previous_addresses)) return fault;
  }
  return draft.needs.attachments ? read_valid_attachments(root, draft.config.valid_attachments) : MaybeFault();
}

Error missing(std::string_view field) {
  return {Code::invalid_network_config, fmt::format("invalid network config: {} is missing", field), {}};
}

// ---- CNI_ARGS

std::optional<Error> gather_requested(const std::vector<net::Address>& from_args, Draft& draft) {
  std::vector<net::Address>& all = draft.config.requested_addresses;
  for (const auto* channel : std::initializer_list<const std::vector<net::Address>*>{
           &from_args, &draft.from_args_member, &draft.from_runtime, &draft.wishes.addresses, &draft.from_ipam}) {
    for (const net::Address& address : *channel) {
      if (std::find(all.begin(), all.end(), address) == all.end()) all.push_back(address);
    }
  }
  if (all.size() <= kRequestedAddressesMax) return {};
  return Error{Code::invalid_network_config,
               fmt::format("{} addresses are requested, at most {} are allowed", all.size(), kRequestedAddressesMax),
               {}};
}

std::optional<Error> take_args(const std::string& text, Draft& draft) {
  const auto args = parse_args(text, kCroftArgKeys);
  if (!args) return Error{Code::invalid_environment, args.error().message, "CNI_ARGS"};
  if (auto error = take_pod(*args, draft.config.pod)) return error;
  return gather_requested(args->ips, draft);
}

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

}  // namespace

ConfigNeeds needs_of(Command command) {
  ConfigNeeds needs;
  needs.assignment = command == Command::add || command == Command::status;
  needs.previous_result = command == Command::check;
  needs.attachments = command == Command::gc;
  needs.lenient = command == Command::del;
  return needs;
}

Checked<NetworkConfig> decode_network_config(const Network& network, const std::string& args,
                                             const ConfigNeeds& needs) {
  Draft draft;
  draft.needs = needs;
  if (const auto fault = read_top_level(JsonAt{network.document.root(), nullptr, {}, {}}, draft))
    return config_error_of(*fault);
  if (!needs.lenient && !draft.has_ipam) return missing("ipam");
  if (!needs.lenient && draft.type.empty()) return missing("ipam.type");
  if (needs.assignment) {
    if (auto error = take_args(args, draft)) return *std::move(error);
  } else {
    // Only for the log: whatever the runtime says of the pod stands in nobody's way.
    const auto read = parse_args(args, kCroftArgKeys);
    core::PodIdentity pod;
    if (read && !take_pod(*read, pod)) draft.config.pod = std::move(pod);
  }
  NetworkConfig& config = draft.config;
  if (draft.asks_api) {
    const PodWishes& handed = draft.wishes;
    config.ipam.annotations =
        core::WishesWanted{{!handed.pools.v4, !handed.pools.v6}, handed.addresses.empty(), !handed.families};
  }
  for (const net::Family family : net::kFamilies) {
    if (draft.wishes.pools[family]) config.ipam.asked_pools[family] = *std::move(draft.wishes.pools[family]);
  }
  if (draft.wishes.families) {
    config.ipam.assign_v4 = draft.wishes.families->v4;
    config.ipam.assign_v6 = draft.wishes.families->v6;
  }
  config.name = network.name;
  config.nodename = unless_empty(draft.ipam_nodename.empty() ? draft.top_level_nodename : draft.ipam_nodename);
  config.ipam.store = unless_empty(draft.store);
  config.ipam.log_file = unless_empty(draft.log_file);
  config.ipam.agent = unless_empty(draft.agent);
  return std::move(config);
}

}  // namespace croft::wire::cni
