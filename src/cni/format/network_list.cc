#include "cni/format/network_list.h"

#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/json/document.h"
#include "base/json/writer.h"
#include "base/net/echo.h"
#include "base/text/go_text.h"

namespace croft::wire::cni {
namespace {

/// The capability by which containerd 2 hands annotations to plugins: then annotations of pods need no access to the
/// API.
constexpr std::string_view kPodAnnotations = "io.kubernetes.cri.pod-annotations";

void member(JsonWriter& out, std::string_view name, std::string_view value) {
  out.key(name);
  out.text(value);
}

void write_names(JsonWriter& out, std::string_view name, const std::vector<std::string>& names) {
  if (names.empty()) return;
  out.key(name);
  out.begin_array();
  for (const std::string& one : names) out.text(one);
  out.end_array();
}

/// The plugin ptp makes the routes that it is told, and no default route of its own.
void write_default_routes(JsonWriter& out, const NetworkList& list) {
  out.key("routes");
  out.begin_array();
  const auto route = [&out](std::string_view destination) {
    out.begin_object();
    member(out, "dst", destination);
    out.end_object();
  };
  if (list.assign_v4) route("0.0.0.0/0");
  if (list.assign_v6) route("::/0");
  out.end_array();
}

void write_ipam(JsonWriter& out, const NetworkList& list) {
  out.key("ipam");
  out.begin_object();
  member(out, "type", ipam_name_of(list.main));
  member(out, "store", list.store);
  member(out, "nodename", list.node);
  // As Calico's plugin takes them: texts.
  member(out, "assign_ipv4", list.assign_v4 ? "true" : "false");
  member(out, "assign_ipv6", list.assign_v6 ? "true" : "false");
  write_names(out, "ipv4_pools", list.pools_v4);
  write_names(out, "ipv6_pools", list.pools_v6);
  if (list.main == MainPlugin::ptp) write_default_routes(out, list);
  out.end_object();
}

void write_capability(JsonWriter& out, std::string_view name) {
  out.key("capabilities");
  out.begin_object();
  out.key(name);
  out.boolean(true);
  out.end_object();
}

void write_mtu(JsonWriter& out, const NetworkList& list) {
  if (list.mtu <= 0) return;
  out.key("mtu");
  out.integer(list.mtu);
}

void write_own_main(JsonWriter& out, const NetworkList& list) {
  member(out, "type", list.main == MainPlugin::ptp ? "ptp" : "bridge");
  write_mtu(out, list);
  out.key("ipMasq");
  out.boolean(list.masquerades);
  if (list.main == MainPlugin::bridge) {
    member(out, "bridge", "cni0");
    out.key("isGateway");
    out.boolean(true);
    out.key("isDefaultGateway");
    out.boolean(true);
    out.key("hairpinMode");
    out.boolean(true);
  }
  write_ipam(out, list);
  write_capability(out, kPodAnnotations);
}

void write_calico(JsonWriter& out, const NetworkList& list) {
  member(out, "type", "calico");
  member(out, "datastore_type", "kubernetes");
  member(out, "nodename", list.node);
  write_mtu(out, list);
  write_ipam(out, list);
  out.key("policy");
  out.begin_object();
  member(out, "type", "k8s");
  out.end_object();
  out.key("kubernetes");
  out.begin_object();
  member(out, "kubeconfig", list.calico_kubeconfig);
  out.end_object();
  write_capability(out, kPodAnnotations);
}

void write_flannel(JsonWriter& out) {
  member(out, "type", "flannel");
  out.key("delegate");
  out.begin_object();
  out.key("hairpinMode");
  out.boolean(true);
  out.key("isDefaultGateway");
  out.boolean(true);
  out.end_object();
}

}  // namespace

std::vector<std::string> plugins_of(MainPlugin main) {
  switch (main) {
    case MainPlugin::ptp:
      return {"ptp", "portmap"};
    case MainPlugin::bridge:
      return {"bridge", "portmap"};
    case MainPlugin::calico:
      return {"calico", "portmap"};
    case MainPlugin::flannel:
      return {"flannel", "bridge", "portmap"};
  }
  return {};
}

std::string_view network_file_of(MainPlugin main) {
  return main == MainPlugin::calico ? "05-croft.conflist" : "10-croft.conflist";
}

std::string_view ipam_name_of(MainPlugin main) { return main == MainPlugin::flannel ? "host-local" : "croft-ipam"; }

std::string encode_network_list(const NetworkList& list) {
  JsonWriter out;
  out.begin_object();
  // As kube-flannel's own configuration has it: releases of its plugin up to 0.9.1 speak nothing newer than 0.4.0.
  member(out, "cniVersion", list.main == MainPlugin::flannel ? "0.3.1" : "1.0.0");
  member(out, "name", list.name);
  // Else libcni adds what is in the folder of this name: of a network, say, whose place this takes.
  out.key("loadOnlyInlinedPlugins");
  out.boolean(true);
  out.key("plugins");
  out.begin_array();
  out.begin_object();
  switch (list.main) {
    case MainPlugin::ptp:
    case MainPlugin::bridge:
      write_own_main(out, list);
      break;
    case MainPlugin::calico:
      write_calico(out, list);
      break;
    case MainPlugin::flannel:
      write_flannel(out);
      break;
  }
  out.end_object();
  out.begin_object();
  member(out, "type", "portmap");
  out.key("snat");
  out.boolean(true);
  write_capability(out, "portMappings");
  out.end_object();
  out.end_array();
  out.end_object();
  return std::move(out).take() + "\n";
}

namespace {

/// The texts in it that people wrote.
[[nodiscard]] std::vector<const std::string*> texts_of(const NetworkList& list) {
  std::vector<const std::string*> texts{&list.name, &list.node, &list.store, &list.calico_kubeconfig};
  for (const auto* pools : {&list.pools_v4, &list.pools_v6}) {
    for (const std::string& pool : *pools) texts.push_back(&pool);
  }
  return texts;
}

[[nodiscard]] bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Rune rune = first_rune(text);
    if (!rune.valid) return false;
    text.remove_prefix(rune.size);
  }
  return true;
}

}  // namespace

Result<Network> network_as_called(const NetworkList& list) {
  const auto refusal = [](const Error& error) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("Croft's plugin would refuse the network configuration: {}{}{}", error.msg,
                            error.details.empty() ? "" : ": ", error.details.empty() ? "" : net::echo(error.details)));
  };
  for (const std::string* text : texts_of(list)) {
    if (is_utf8(*text)) continue;
    // It would be written as U+FFFD: another name or path.
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is no UTF-8: the network configuration would name another", net::echo(*text)));
  }
  const auto whole = parse_json(encode_network_list(list));
  if (!whole) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("the network configuration would be no JSON: {}", whole.error().message));
  }
  // As libcni makes it: the plugin's own members, and the list's name and version.
  JsonWriter out;
  out.begin_object();
  for (auto part = whole->root().first_child(); part; part = part->next_sibling()) {
    if (part->key() != "plugins") {
      out.key(part->key());
      copy_json(out, *part);
      continue;
    }
    const auto first = part->first_child();
    CROFT_ASSERT(first.has_value());
    for (auto member = first->first_child(); member; member = member->next_sibling()) {
      out.key(member->key());
      copy_json(out, *member);
    }
  }
  out.end_object();
  auto config = parse_network_config(std::move(out).take());
  if (!config) return refusal(config.error());
  auto network = read_network(*std::move(config));
  if (!network) return refusal(network.error());
  return *std::move(network);
}

}  // namespace croft::wire::cni
