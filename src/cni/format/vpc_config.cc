#include "cni/format/vpc_config.h"

#include <array>

#include <fmt/format.h>

#include "base/json/decode.h"

namespace croft::wire::cni {
namespace {

constexpr std::int64_t kCooldownSecondsMax = 1200;

struct VpcDraft {
  VpcConfig config;
  bool is_lenient = false;
  bool has_ipam = false;
  std::string type, log_file, nodename;
};

MaybeFault read_gateways(const JsonAt& at, VpcDraft& out) {
  std::vector<net::Address> gateways;
  if (at.value.kind() == JsonKind::string) {
    net::Address one;
    if (auto fault = read_requested_address(at, one)) return fault;
    gateways.push_back(one);
  } else if (auto fault = read_list<net::Address>(at, 2, read_requested_address, gateways)) {
    return fault;
  }
  for (const net::Address& gateway : gateways) {
    auto& place = out.config.gateways[gateway.family()];
    if (place) return at.bad_value("has two addresses of one family");
    place = gateway;
  }
  return {};
}

constexpr std::array<JsonMember<VpcDraft>, 14> kVpcMembers = {
    {{"type", [](const JsonAt& a, VpcDraft& d) { return read_plain_text(a, kPathBytesMax, d.type); }},
     {"agent", [](const JsonAt& a, VpcDraft& d) { return read_agent(a, d.config.agent); }},
     {"store", [](const JsonAt& a, VpcDraft& d) { return read_plain_text(a, kPathBytesMax, d.config.store); }},
     {"log_file_path", [](const JsonAt& a, VpcDraft& d) { return read_plain_text(a, kPathBytesMax, d.log_file); }},
     {"subnet", [](const JsonAt& a, VpcDraft& d) { return read_plain_text(a, kPathBytesMax, d.config.subnet); }},
     {"gateway", read_gateways},
     {"routes", [](const JsonAt& a,
                   VpcDraft& d) { return read_list<Route>(a, kConfiguredRoutesMax, read_route, d.config.routes); }},
     {"cooldownSeconds",
      [](const JsonAt& a, VpcDraft& d) { return read_integer(a, 0, kCooldownSecondsMax, d.config.cooldown_seconds); }},
     {"api", [](const JsonAt& a, VpcDraft& d) { return read_plain_text(a, kPathBytesMax, d.config.api); }},
     {"metadata", [](const JsonAt& a, VpcDraft& d) { return read_plain_text(a, kPathBytesMax, d.config.metadata); }},
     {"interface", [](const JsonAt& a, VpcDraft& d) { return read_plain_text(a, kPathBytesMax, d.config.interface); }},
     {"probe", [](const JsonAt& a, VpcDraft& d) { return read_boolean(a, d.config.probe); }},
     {"probeUnitMilliseconds",
      [](const JsonAt& a, VpcDraft& d) { return read_integer(a, 10, 10'000, d.config.probe_unit_milliseconds); }},
     {"nodename", [](const JsonAt& a, VpcDraft& d) { return read_nodename(a, d.nodename); }}}};

MaybeFault read_vpc_ipam(const JsonAt& at, VpcDraft& out) {
  if (at.value.is_null()) return {};
  out.has_ipam = true;
  const ObjectRules rules{.on_fault = out.is_lenient ? OnFault::skip : OnFault::stop};
  if (!out.is_lenient) {
    std::vector<std::string> names;
    add_names<VpcDraft>(kVpcMembers, names);
    if (auto fault = refuse_unknown_members(at, names)) return fault;
  }
  return read_object<VpcDraft>(at, kVpcMembers, out, rules);
}

constexpr std::array<JsonMember<VpcDraft>, 1> kVpcTopLevel = {{{"ipam", read_vpc_ipam}}};

}  // namespace

Checked<VpcConfig> decode_vpc_config(const Network& network, const std::string& args, Command command) {
  VpcDraft draft;
  draft.is_lenient = command == Command::del;
  const JsonAt root{network.document.root(), nullptr, {}, {}};
  if (const auto fault = read_object<VpcDraft>(root, kVpcTopLevel, draft)) return config_error_of(*fault);
  if (!draft.is_lenient && (!draft.has_ipam || draft.type.empty())) {
    return Error{Code::invalid_network_config,
                 fmt::format("invalid network config: {} is missing", draft.has_ipam ? "ipam.type" : "ipam"),
                 {}};
  }
  if (command == Command::check) {
    if (const auto fault = read_previous_addresses(root, draft.config.previous_addresses))
      return config_error_of(*fault);
  }
  if (command == Command::gc) {
    if (const auto fault = read_valid_attachments(root, draft.config.valid_attachments)) return config_error_of(*fault);
  }
  const auto read = parse_args(args, kCroftArgKeys);
  core::PodIdentity pod;
  if (!read) {
    if (command == Command::add) return Error{Code::invalid_environment, read.error().message, "CNI_ARGS"};
  } else if (auto error = take_pod(*read, pod)) {
    if (command == Command::add) return *std::move(error);
  } else {
    draft.config.pod = std::move(pod);
  }
  draft.config.name = network.name;
  if (!draft.log_file.empty()) draft.config.log_file = std::move(draft.log_file);
  if (draft.config.agent.empty()) draft.config.agent = kDefaultVpcSocket;
  if (draft.config.store.empty()) draft.config.store = kDefaultVpcStore;
  return std::move(draft.config);
}

}  // namespace croft::wire::cni
