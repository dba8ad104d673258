// One call of a CNI plugin from any bytes, through the whole dispatcher with handlers that decode the configuration.
//
// Input: lines `NAME=value` up to the first empty line, then standard input. Names are the CNI variables, and three
// that set the stage: NETNS=same|gone|lost (the comparison of namespaces), LIMITS=1 (bounds for owners), STDIN=fail.
//
// Checked: nothing crashes; the exit code is 0 or 1; standard output is empty or one JSON document, an error object
// when the exit code is 1; VERSION never reads; the configuration a handler sees keeps its bounds; whatever ADD
// accepts, DEL accepts; a printed result, read back, holds what went in, in every version.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/json/reader.h"
#include "base/text/go_text.h"
#include "cni/door/skeleton.h"
#include "cni/error_table.h"
#include "cni/format/config.h"
#include "cni/format/environment.h"
#include "register/node.h"

namespace {

using croft::edge::CniAnswer;
using croft::edge::CniHost;
using croft::edge::CniPlugin;
using croft::edge::CniRequest;
using croft::wire::JsonKind;
using croft::wire::JsonRef;
using namespace croft::wire::cni;

// ---- input

struct Stage {
  CniHost host;
  bool limits = false;
  bool stdin_fails = false;
  croft::os::SameNamespace netns = croft::os::SameNamespace::no;
  std::string input;
};

void set_variable(Stage& stage, std::string_view name, std::string_view value) {
  Environment& environment = stage.host.environment;
  const auto is = [name](std::string_view other) { return name == other; };
  if (is("CNI_COMMAND")) environment.command = value;
  if (is("CNI_CONTAINERID")) environment.container_id = value;
  if (is("CNI_NETNS")) environment.netns = value;
  if (is("CNI_IFNAME")) environment.interface_name = value;
  if (is("CNI_ARGS")) environment.args = value;
  if (is("CNI_PATH")) environment.path = value;
  if (is("CNI_NETNS_OVERRIDE")) environment.netns_override = value;
  if (is("LIMITS")) stage.limits = true;
  if (is("STDIN")) stage.stdin_fails = true;
  if (is("NETNS")) {
    stage.netns = value == "same"   ? croft::os::SameNamespace::yes
                  : value == "gone" ? croft::os::SameNamespace::cannot_open
                                    : croft::os::SameNamespace::own_cannot_open;
  }
}

Stage read_stage(std::string_view bytes) {
  Stage stage;
  while (!bytes.empty()) {
    const auto end = std::min(bytes.find('\n'), bytes.size());
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (line.empty()) break;
    const auto equals = std::min(line.find('='), line.size());
    set_variable(stage, line.substr(0, equals), line.substr(std::min(equals + 1, line.size())));
  }
  stage.input = bytes;
  return stage;
}

// ---- what must hold

std::optional<JsonRef> member(const JsonRef& object, std::string_view name) {
  std::optional<JsonRef> found;
  for (auto child = object.first_child(); child; child = child->next_sibling()) {
    if (child->key() != name) continue;
    CROFT_ASSERT(!found);  // nothing Croft prints has a member twice
    found = child;
  }
  return found;
}

void check_config(const NetworkConfig& config) {
  CROFT_ASSERT(is_cni_name(config.name));
  if (config.nodename) CROFT_ASSERT(croft::core::check_node_name(*config.nodename).has_value());
  for (const auto* text : {&config.ipam.store, &config.ipam.log_file}) {
    if (*text)
      CROFT_ASSERT(!(*text)->empty() && (*text)->size() <= kPathBytesMax && croft::wire::is_plain_text(**text));
  }
  CROFT_ASSERT(config.ipam.pools.size() <= kConfiguredPoolsMax);
  for (const auto& pool : config.ipam.pools) CROFT_ASSERT(croft::core::make_pool(pool).has_value());
  CROFT_ASSERT(config.ipam.asked_pools.v4.size() <= kAskedPoolsMax &&
               config.ipam.asked_pools.v6.size() <= kAskedPoolsMax);
  const auto& requested = config.requested_addresses;
  CROFT_ASSERT(requested.size() <= kRequestedAddressesMax);
  CROFT_ASSERT(std::set(requested.begin(), requested.end()).size() == requested.size());
  for (const auto& address : requested) CROFT_ASSERT(address.is_valid() && !address.is_v4_mapped());
  for (const auto* text : {&config.pod.name, &config.pod.namespace_name, &config.pod.uid}) {
    CROFT_ASSERT(text->size() <= 253 && croft::wire::is_plain_text(*text));
  }
  const auto& attachments = config.valid_attachments;
  CROFT_ASSERT(attachments.presence == ValidAttachments::Presence::given || attachments.entries.empty());
  CROFT_ASSERT(std::is_sorted(attachments.entries.begin(), attachments.entries.end()));
  for (const auto& one : attachments.entries) CROFT_ASSERT(!one.container_id.empty() && !one.interface_name.empty());
}

Checked<NetworkConfig> decode(const CniRequest& request, Command command) {
  auto config = decode_croft_ipam_config(request.network, request.environment.args, needs_of(command));
  if (config) {
    check_config(*config);
    CROFT_ASSERT(config->name == request.network.name);
  } else {
    const auto code = static_cast<int>(config.error().code);
    CROFT_ASSERT(code == 4 || code == 6 || code == 7 || code == 999);
    CROFT_ASSERT(!config.error().msg.empty());
  }
  return config;
}

/// A release must not ask for more than an assignment did.
void check_release_is_possible(const CniRequest& request, const NetworkConfig& assigned) {
  const auto released = decode(request, Command::del);
  CROFT_ASSERT(released.ok());
  CROFT_ASSERT(released->ipam.store == assigned.ipam.store && released->nodename == assigned.nodename);
}

void check_addresses_read_back(const AddResult& result, const JsonRef& printed) {
  const auto ips = member(printed, "ips");
  CROFT_ASSERT(ips.has_value() == !result.ips.empty());
  if (!ips) return;
  auto element = ips->first_child();
  for (const AssignedAddress& ip : result.ips) {
    CROFT_ASSERT(element.has_value());
    const auto address = croft::net::AddressWithLength::parse(member(*element, "address")->text());
    CROFT_ASSERT(address && *address == ip.address);
    CROFT_ASSERT(member(*element, "gateway").has_value() == ip.gateway.has_value());
    element = element->next_sibling();
  }
  CROFT_ASSERT(!element);
}

void check_result_reads_back(const AddResult& result) {
  for (const std::string_view version : kSupportedVersions) {
    const auto text = print_result(result, version);
    if (!text) {
      CROFT_ASSERT(result.ips.empty() && version < "0.3.0");
      continue;
    }
    const auto document = croft::wire::parse_json(*text);
    CROFT_ASSERT(document.has_value());
    const JsonRef root = document->root();
    CROFT_ASSERT(member(root, "cniVersion")->text() == version);
    if (version >= "0.3.0") check_addresses_read_back(result, root);
    const auto dns = member(root, "dns");
    CROFT_ASSERT(dns.has_value() == (version < "1.0.0" || !(result.dns == Dns{})));
    const auto domain = dns ? member(*dns, "domain") : std::nullopt;
    if (domain && croft::wire::is_plain_text(result.dns.domain)) CROFT_ASSERT(domain->text() == result.dns.domain);
  }
}

// ---- handlers

AddResult result_from(const NetworkConfig& config, const Environment& environment) {
  AddResult result;
  for (const auto& address : config.requested_addresses) {
    const int length = croft::net::bit_length(address.family());
    result.ips.push_back({{address, length}, result.ips.size() % 2 == 0 ? std::optional(address) : std::nullopt});
    Route route;
    route.destination = {address, length / 2};
    route.mtu = static_cast<std::int64_t>(result.ips.size());
    result.routes.push_back(route);
  }
  result.dns.domain = environment.args;
  if (!config.pod.name.empty()) result.dns.search = {config.pod.name, environment.netns};
  return result;
}

Checked<AddResult> add(const CniRequest& request) {
  const auto config = decode(request, Command::add);
  if (!config) return config.error();
  check_release_is_possible(request, *config);
  AddResult result = result_from(*config, request.environment);
  check_result_reads_back(result);
  return result;
}

template <Command kCommand>
std::optional<Error> silent(const CniRequest& request) {
  CROFT_ASSERT(request.command == kCommand);
  const auto config = decode(request, kCommand);
  return config ? std::nullopt : std::optional(config.error());
}

CniPlugin plugin_for(const Stage& stage) {
  CniPlugin plugin;
  plugin.about = "CNI fuzzed plugin";
  plugin.handlers = {add, silent<Command::del>, silent<Command::check>, silent<Command::gc>, silent<Command::status>};
  plugin.limits_owner = stage.limits;
  return plugin;
}

void check_answer(const CniAnswer& answer) {
  CROFT_ASSERT(answer.exit_code == 0 || answer.exit_code == 1);
  CROFT_ASSERT(answer.exit_code == 0 || !answer.out.empty());
  if (answer.out.empty()) return;
  const auto document = croft::wire::parse_json(answer.out);
  CROFT_ASSERT(document.has_value() && document->root().kind() == JsonKind::object);
  const bool is_error = member(document->root(), "code").has_value();
  CROFT_ASSERT(is_error == (answer.exit_code == 1));
  CROFT_ASSERT(is_error == member(document->root(), "msg").has_value());
  CROFT_ASSERT(is_error != member(document->root(), "cniVersion").has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Stage stage = read_stage(std::string_view(reinterpret_cast<const char*>(data), size));
  int reads = 0;
  stage.host.read_stdin = [&]() -> croft::Result<std::string> {
    ++reads;
    if (stage.stdin_fails) return croft::fail(croft::ErrorCode::internal, "input/output error");
    return stage.input;
  };
  stage.host.compare_netns = [&](const std::string&) { return stage.netns; };
  const CniAnswer answer = run_cni(plugin_for(stage), stage.host);
  check_answer(answer);
  const bool version = stage.host.environment.command == "VERSION";
  CROFT_ASSERT(reads <= (version ? 0 : 1));
  for (const auto& keys :
       {std::span<const std::string_view>(kCroftArgKeys), std::span<const std::string_view>(kHostLocalArgKeys)}) {
    const auto args = parse_args(stage.host.environment.args, keys);
    CROFT_ASSERT(args || args.error().message.starts_with("ARGS: "));
  }
  return 0;
}
