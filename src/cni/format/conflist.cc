#include "cni/format/conflist.h"

#include <algorithm>
#include <utility>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/printable.h"
#include "base/text/go_text.h"
#include "base/texts.h"

namespace croft::wire::cni {
namespace {

/// The capability by which containerd 2 hands annotations to plugins: then annotations of pods need no access to the
/// API.
constexpr std::string_view kPodAnnotations = "io.kubernetes.cri.pod-annotations";

/// The plugin ptp makes the routes that it is told, and no default route of its own.
void write_default_routes(JsonWriter& out, const NetworkList& list) {
  out.begin_array("routes");
  const auto route = [&out](std::string_view destination) {
    out.begin_object();
    out.text("dst", destination);
    out.end_object();
  };
  if (list.assign_v4) route("0.0.0.0/0");
  if (list.assign_v6) route("::/0");
  out.end_array();
}

void write_ipam(JsonWriter& out, const NetworkList& list) {
  out.begin_object("ipam");
  out.text("type", ipam_name_of(list.main));
  out.text("store", list.store);
  out.text("nodename", list.node);
  // As Calico's plugin takes them: texts.
  out.text("assign_ipv4", list.assign_v4 ? "true" : "false");
  out.text("assign_ipv6", list.assign_v6 ? "true" : "false");
  if (!list.pools_v4.empty()) out.texts("ipv4_pools", list.pools_v4);
  if (!list.pools_v6.empty()) out.texts("ipv6_pools", list.pools_v6);
  if (list.main == MainPlugin::ptp) write_default_routes(out, list);
  out.end_object();
}

void write_capability(JsonWriter& out, std::string_view name) {
  out.begin_object("capabilities");
  out.boolean(name, true);
  out.end_object();
}

void write_own_main(JsonWriter& out, const NetworkList& list) {
  out.text("type", list.main == MainPlugin::ptp ? "ptp" : "bridge");
  if (list.mtu > 0) out.integer("mtu", list.mtu);
  out.boolean("ipMasq", list.masquerades);
  if (list.main == MainPlugin::bridge) {
    out.text("bridge", "cni0");
    out.boolean("isGateway", true);
    out.boolean("isDefaultGateway", true);
    out.boolean("hairpinMode", true);
  }
  write_ipam(out, list);
  write_capability(out, kPodAnnotations);
}

void write_calico(JsonWriter& out, const NetworkList& list) {
  out.text("type", "calico");
  out.text("datastore_type", "kubernetes");
  out.text("nodename", list.node);
  if (list.mtu > 0) out.integer("mtu", list.mtu);
  write_ipam(out, list);
  out.begin_object("policy");
  out.text("type", "k8s");
  out.end_object();
  out.begin_object("kubernetes");
  out.text("kubeconfig", list.calico_kubeconfig);
  out.end_object();
  write_capability(out, kPodAnnotations);
}

void write_flannel_plugin(JsonWriter& out) {
  out.text("type", "flannel");
  out.begin_object("delegate");
  out.boolean("hairpinMode", true);
  out.boolean("isDefaultGateway", true);
  out.end_object();
}

}  // namespace

std::vector<std::string> plugins_of(MainPlugin main) {
  if (main == MainPlugin::flannel) return {"flannel", "bridge", "portmap"};
  return {std::string(std::ranges::find(kMainPlugins, main, &MainPluginName::plugin)->text), "portmap"};
}

std::string_view network_file_of(MainPlugin main) {
  return main == MainPlugin::calico ? "05-croft.conflist" : "10-croft.conflist";
}

std::string_view ipam_name_of(MainPlugin main) { return main == MainPlugin::flannel ? "host-local" : "croft-ipam"; }

std::string encode_network_list(const NetworkList& list) {
  JsonWriter out;
  out.begin_object();
  // As kube-flannel's own configuration has it: releases of its plugin up to 0.9.1 speak nothing newer than 0.4.0.
  out.text("cniVersion", list.main == MainPlugin::flannel ? "0.3.1" : "1.0.0");
  out.text("name", list.name);
  // Else libcni adds what is in the folder of this name: of a network, say, whose place this takes.
  out.boolean("loadOnlyInlinedPlugins", true);
  out.begin_array("plugins");
  out.begin_object();
  if (list.main == MainPlugin::calico) {
    write_calico(out, list);
  } else if (list.main == MainPlugin::flannel) {
    write_flannel_plugin(out);
  } else {
    write_own_main(out, list);
  }
  out.end_object();
  out.begin_object();
  out.text("type", "portmap");
  out.boolean("snat", true);
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
    return fail(ErrorCode::invalid_argument, "Croft's plugin would refuse the network configuration: {}{}{}", error.msg,
                error.details.empty() ? "" : ": ", error.details.empty() ? "" : echo(error.details));
  };
  for (const std::string* text : texts_of(list)) {
    if (is_utf8(*text)) continue;
    // It would be written as U+FFFD: another name or path.
    return fail(ErrorCode::invalid_argument, "{} is no UTF-8: the network configuration would name another",
                echo(*text));
  }
  const bool says_addresses = !list.pools_v4.empty() || !list.pools_v6.empty() || !list.assign_v4 || list.assign_v6;
  if (list.main == MainPlugin::flannel && (says_addresses || list.mtu != 0)) {
    return fail(ErrorCode::invalid_argument,
                "flannel takes its networks and the MTU from subnet.env, so that --ipv4-pool, --ipv6-pool, --ipv6, "
                "--no-ipv4 and --mtu would do nothing. Leave them out, and set these in flanneld's net-conf.json or "
                "with `croft node range`");
  }
  const auto whole = parse_json(encode_network_list(list));
  if (!whole) {
    return fail(ErrorCode::invalid_argument, "the network configuration would be no JSON: {}", whole.error().message);
  }
  const auto plugins = member_of(whole->root(), "plugins");
  auto config = parse_network_config(as_called(whole->root(), plugins->first_child().value()));
  if (!config) return refusal(config.error());
  auto network = read_network(*std::move(config));
  if (!network) return refusal(network.error());
  return *std::move(network);
}

}  // namespace croft::wire::cni
