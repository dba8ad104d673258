#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/printable.h"
#include "cli/croft/command_line.h"
#include "cli/croft/label_selector.h"
#include "cli/croft/listing.h"
#include "cni/error_table.h"
#include "os/files.h"
#include "os/process.h"
#include "services/commands/service_views.h"
#include "services/decide/service_words.h"
#include "services/format/service_manifest.h"
#include "services/use/service.h"
#include "store/kube/format/yaml_documents.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

constexpr int kRefused = static_cast<int>(edge::ExitCode::error);

/// The flags of `create` and `update`, for addresses and ports; a manifest has the rest. Absent ones change nothing.
struct ServiceFlags {
  std::string name, name_space = "default", file;
  std::optional<std::string> type, policy;
  std::optional<std::vector<std::string>> tcp, udp, sctp, ips, families;
  std::string cidrs, node_ports;
  bool dry_run = false, make_ranges = false;
};

template <class T, std::size_t N>
[[nodiscard]] Result<T> word_argument(const char* flag, const core::Words<T, N>& words, const std::string& text) {
  if (const auto value = core::value_in(words, text)) return *value;
  return fail(ErrorCode::invalid_argument,
              fmt::format("{}: {} is none of {}", flag, net::echo(text), core::listed(words)));
}

[[nodiscard]] std::optional<std::uint16_t> port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(port) : std::nullopt;
}

/// PORT[:TARGET[:NODEPORT]]
[[nodiscard]] Result<core::ServicePort> port_argument(const char* flag, const std::string& text,
                                                      core::ServiceProtocol protocol) {
  core::ServicePort port;
  port.protocol = protocol;
  const std::size_t first = text.find(':');
  const std::size_t second = first == std::string::npos ? first : text.find(':', first + 1);
  const auto number = port_of(std::string_view(text).substr(0, first));
  const auto node_port = second == std::string::npos ? std::optional<std::uint16_t>(0)
                                                     : port_of(std::string_view(text).substr(second + 1));
  if (!number || !node_port) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: {} is not PORT[:TARGET[:NODEPORT]], e.g. 80:8080:30080", flag, net::echo(text)));
  }
  port.port = *number;
  port.node_port = *node_port;
  if (first != std::string::npos) port.target_port = text.substr(first + 1, second - first - 1);
  return port;
}

[[nodiscard]] Result<void> read_ports(const ServiceFlags& flags, core::Service& service) {
  if (!flags.tcp && !flags.udp && !flags.sctp) return {};
  service.ports.clear();
  const auto read = [&](const char* flag, const auto& texts, core::ServiceProtocol protocol) -> Result<void> {
    for (const std::string& text : texts.value_or(std::vector<std::string>())) {
      TRY(core::ServicePort port, port_argument(flag, text, protocol));
      port.name = fmt::format("{}-{}", flag + 2, port.port);
      service.ports.push_back(std::move(port));
    }
    return {};
  };
  TRY_VOID(read("--tcp", flags.tcp, core::ServiceProtocol::tcp));
  TRY_VOID(read("--udp", flags.udp, core::ServiceProtocol::udp));
  TRY_VOID(read("--sctp", flags.sctp, core::ServiceProtocol::sctp));
  if (service.ports.size() == 1) service.ports.front().name.clear();
  return {};
}

[[nodiscard]] Result<void> read_addresses(const ServiceFlags& flags, core::Service& service) {
  if (flags.ips) {
    service.cluster_ips = *flags.ips;
    service.cluster_ip = flags.ips->empty() ? "" : flags.ips->front();
  }
  if (flags.families) {
    service.ip_families.clear();
    for (const std::string& text : *flags.families) {
      TRY(const net::Family family, word_argument("--ip-families", core::kFamilies, text));
      service.ip_families.push_back(family);
    }
  }
  if (flags.policy) {
    TRY(service.ip_family_policy, word_argument("--ip-family-policy", core::kFamilyPolicies, *flags.policy));
  }
  return {};
}

[[nodiscard]] Result<void> apply_flags(const ServiceFlags& flags, core::Service& service) {
  if (flags.type) {
    TRY(service.type, word_argument("--type", core::kServiceTypes, *flags.type));
  }
  TRY_VOID(read_ports(flags, service));
  return read_addresses(flags, service);
}

/// The manifests of -f, `-` for the standard input; those without a namespace get that of -n.
[[nodiscard]] Result<std::vector<wire::ServiceManifest>> read_manifests(const ServiceFlags& flags) {
  // One byte more of standard input, so that a longer text is refused and not cut.
  TRY(const std::string text, flags.file == "-" ? os::read_standard_input(wire::kYamlBytesMax + 1)
                                                : os::read_file(flags.file, wire::kYamlBytesMax));
  auto manifests = wire::parse_service_manifests(text);
  if (!manifests) return fail(manifests.error().in(flags.file));
  for (wire::ServiceManifest& manifest : *manifests) {
    if (manifest.service.name.name_space.empty()) manifest.service.name.name_space = flags.name_space;
  }
  return manifests;
}

/// The ranges by the flags.
[[nodiscard]] Result<core::ServiceRanges> ranges_of(const CommandLine& line, const ServiceFlags& flags) {
  core::ServiceRanges ranges;
  if (!flags.cidrs.empty()) {
    TRY(ranges.cidrs, core::service::parse_service_cidrs(flags.cidrs));
    for (const net::Prefix& cidr : {ranges.cidrs->primary, ranges.cidrs->secondary}) {
      if (!cidr.is_valid()) continue;
      if (const auto made = core::service::ServiceCidr::make(cidr); !made) return fail(made.error());
    }
  }
  if (!flags.node_ports.empty()) {
    TRY(ranges.node_ports, core::service::parse_node_port_flag(flags.node_ports));
  }
  // In an etcd a kube-apiserver may be the one who makes them.
  ranges.may_make = flags.make_ranges || store::file_of_store(line.store_url).has_value();
  return ranges;
}

/// Prints what became of one Service; the exit code.
int report(CommandLine& line, const core::ServiceAnswer& answer, const char* verb, bool dry_run,
           const std::optional<engine::StoredService>& stored) {
  if (const auto* refusal = std::get_if<core::ServiceRefusal>(&answer)) {
    tell(refusal->to_string());
    return kRefused;
  }
  const auto& changed = std::get<core::ServiceChanged>(answer);
  for (const std::string& note : changed.notes) tell("note: " + printable(note, Printed::line));
  if (line.json()) {
    print(line.data(json_of(stored ? *stored : engine::StoredService{changed.service, {}})));
  } else {
    print(fmt::format("service/{} {}{}\n", changed.service.name.name, verb, dry_run ? " (dry run)" : ""));
  }
  return 0;
}

/// With the revision that it has by now, for output as data.
[[nodiscard]] Result<std::optional<engine::StoredService>> stored_again(CommandLine& line,
                                                                        const engine::Context& context,
                                                                        const core::ServiceAnswer& answer,
                                                                        bool dry_run) {
  const auto* changed = std::get_if<core::ServiceChanged>(&answer);
  if (changed == nullptr || dry_run || !line.json()) return std::optional<engine::StoredService>();
  return engine::get_service(context, changed->service.name);
}

[[nodiscard]] Result<int> create_one(CommandLine& line, const engine::Context& context, const ServiceFlags& flags,
                                     const core::Service& wanted) {
  TRY(const core::ServiceRanges ranges, ranges_of(line, flags));
  TRY(const core::ServiceAnswer answer, engine::create_service(context, wanted, ranges, flags.dry_run));
  TRY(const auto stored, stored_again(line, context, answer, flags.dry_run));
  return report(line, answer, "created", flags.dry_run, stored);
}

[[nodiscard]] Result<void> check_arguments(const ServiceFlags& flags) {
  if (flags.name.empty() != flags.file.empty()) return {};
  return fail(ErrorCode::invalid_argument, "either NAME or -f FILE says which Service is meant");
}

[[nodiscard]] Result<int> create_service(CommandLine& line, const ServiceFlags& flags) {
  TRY_VOID(check_arguments(flags));
  if (flags.file.empty()) {
    core::Service service;
    service.name = {flags.name_space, flags.name};
    TRY_VOID(apply_flags(flags, service));
    TRY(const engine::Context context, line.open(!flags.dry_run));
    return create_one(line, context, flags, service);
  }
  TRY(const auto manifests, read_manifests(flags));
  TRY(const engine::Context context, line.open(!flags.dry_run));
  int code = 0;
  for (const wire::ServiceManifest& manifest : manifests) {
    TRY(const int one, create_one(line, context, flags, manifest.service));
    code = std::max(code, one);
  }
  return code;
}

[[nodiscard]] Result<int> update_one(CommandLine& line, const engine::Context& context, const ServiceFlags& flags,
                                     const core::Service& wanted, const std::optional<store::Revision>& as_of) {
  TRY(const core::ServiceRanges ranges, ranges_of(line, flags));
  TRY(const core::ServiceAnswer answer, engine::update_service(context, wanted, ranges, flags.dry_run, as_of));
  TRY(const auto stored, stored_again(line, context, answer, flags.dry_run));
  return report(line, answer, "updated", flags.dry_run, stored);
}

[[nodiscard]] Result<std::optional<store::Revision>> revision_of(const wire::ServiceManifest& manifest) {
  if (manifest.resource_version.empty()) return std::optional<store::Revision>();
  std::uint64_t number = 0;
  const std::string& text = manifest.resource_version;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(ErrorCode::invalid_argument, "metadata.resourceVersion " + net::echo(text) + " is no number");
  }
  return std::optional(store::Revision{number});
}

/// By flags only what they name changes; by a manifest the Service becomes what it says, as with `kubectl replace`.
[[nodiscard]] Result<int> update_service(CommandLine& line, const ServiceFlags& flags) {
  TRY_VOID(check_arguments(flags));
  if (!flags.file.empty()) {
    TRY(const auto manifests, read_manifests(flags));
    TRY(const engine::Context context, line.open());
    int code = 0;
    for (const wire::ServiceManifest& manifest : manifests) {
      TRY(const auto as_of, revision_of(manifest));
      TRY(const int one, update_one(line, context, flags, manifest.service, as_of));
      code = std::max(code, one);
    }
    return code;
  }
  TRY(const engine::Context context, line.open());
  TRY(auto stored, engine::get_service(context, {flags.name_space, flags.name}));
  if (!stored) {
    tell(core::refuse_not_found({flags.name_space, flags.name}).to_string());
    return kRefused;
  }
  TRY_VOID(apply_flags(flags, stored->service));
  return update_one(line, context, flags, stored->service, stored->revision);
}

struct NameOptions {
  std::string name, name_space = "default", labels;
  bool dry_run = false, all = false;
};

[[nodiscard]] Result<int> delete_service(CommandLine& line, const NameOptions& options) {
  TRY(const engine::Context context, line.open());
  const core::ServiceName name{options.name_space, options.name};
  TRY(const core::ServiceAnswer answer, engine::delete_service(context, name, options.dry_run));
  return report(line, answer, "deleted", options.dry_run, std::nullopt);
}

[[nodiscard]] Result<int> show_service(CommandLine& line, const NameOptions& options) {
  TRY(const engine::Context context, line.look());
  TRY(const auto stored, engine::get_service(context, {options.name_space, options.name}));
  if (!stored) {
    tell(core::refuse_not_found({options.name_space, options.name}).to_string());
    return kRefused;
  }
  print(line.json() ? line.data(json_of(*stored)) : service_text(*stored));
  return 0;
}

[[nodiscard]] Result<int> list_services(CommandLine& line, const NameOptions& options) {
  TRY(const LabelSelector selector, LabelSelector::parse(options.labels));
  return list(line, [&](const engine::Context& context) -> Result<Listing> {
    TRY(auto services, engine::list_services(context, options.all ? "" : options.name_space));
    std::erase_if(services, [&](const auto& one) { return !selector.matches(one.service.labels); });
    const std::string place = options.all ? "." : fmt::format(" in namespace {}.", options.name_space);
    return Listing{"No Services" + place, service_table(services, options.all, line.wide(), line.clock.now().wall),
                   line.json() ? json_of(services) : Data(), ""};
  });
}

void add_namespace(CLI::App& command, std::string& name_space) {
  command.add_option("-n,--namespace", name_space, "Namespace of the Service")->default_val("default");
}

void add_service_flags(CLI::App& command, ServiceFlags& flags) {
  command.add_option("NAME", flags.name, "Name of the Service");
  add_namespace(command, flags.name_space);
  command.add_option("-f,--filename", flags.file,
                     "Manifest as for kubectl, YAML or JSON, instead of NAME and flags; - reads standard input");
  command.add_option("--type", flags.type, "ClusterIP, NodePort, LoadBalancer or ExternalName");
  const auto list = [&](const char* name, auto& value, const char* help) {
    // One word a flag, so that NAME may stand behind it.
    command.add_option(name, value, help)->delimiter(',')->allow_extra_args(false);
  };
  list("--tcp", flags.tcp, "Ports: PORT[:TARGET[:NODEPORT]], e.g. 80:8080:30080; several separated by commas");
  list("--udp", flags.udp, "The same for UDP");
  list("--sctp", flags.sctp, "The same for SCTP");
  list("--cluster-ip", flags.ips, "Its address, or None for a headless one; for two families both");
  command.add_option("--ip-family-policy", flags.policy, "SingleStack, PreferDualStack or RequireDualStack");
  list("--ip-families", flags.families, "IPv4, IPv6, or both in their order");
  command.add_flag("--dry-run", flags.dry_run, "Change nothing; a real run may choose other free values");
  command.add_option("--service-cluster-ip-range", flags.cidrs,
                     "One or two Service address ranges (default: as stored, otherwise 10.0.0.0/24)");
  command.add_option("--service-node-port-range", flags.node_ports,
                     "Node port range (default: as stored, otherwise 30000-32767)");
  command.add_flag("--make-ranges", flags.make_ranges,
                   "In etcd: create the ranges if no kube-apiserver has done so (other stores always do)");
}

void add_verb(CLI::App& service, CommandLine& line, const char* verb, const char* help,
              Result<int> (*action)(CommandLine&, const ServiceFlags&)) {
  const auto flags = std::make_shared<ServiceFlags>();
  CLI::App* command = service.add_subcommand(verb, help);
  add_service_flags(*command, *flags);
  command->callback(
      [&line, flags, action] { line.run = [flags, action](CommandLine& l) { return action(l, *flags); }; });
}

CLI::App* add_named(CLI::App& service, CommandLine& line, const char* verb, const char* help,
                    const std::shared_ptr<NameOptions>& options,
                    Result<int> (*action)(CommandLine&, const NameOptions&)) {
  CLI::App* command = service.add_subcommand(verb, help);
  add_namespace(*command, options->name_space);
  command->callback(
      [&line, options, action] { line.run = [options, action](CommandLine& l) { return action(l, *options); }; });
  return command;
}

}  // namespace

void add_service_commands(CLI::App& app, CommandLine& line) {
  CLI::App* service = app.add_subcommand("service", "Services with their addresses and node ports");
  service->require_subcommand(1);
  service->fallthrough();
  add_verb(*service, line, "create", "Make a Service (and the store and its ranges, when absent)", create_service);
  add_verb(*service, line, "update",
           "Change what the flags name, or replace it by a manifest; what was allocated stays", update_service);
  const auto deleted = std::make_shared<NameOptions>();
  CLI::App* deletion =
      add_named(*service, line, "delete", "Delete a Service; what it held is free again", deleted, delete_service);
  deletion->add_option("NAME", deleted->name, "Name of the Service")->required();
  deletion->add_flag("--dry-run", deleted->dry_run, "Change nothing");
  const auto listed = std::make_shared<NameOptions>();
  CLI::App* listing = add_named(*service, line, "list", "The Services of a namespace, or all", listed, list_services);
  listing->add_flag("-A,--all-namespaces", listed->all, "All namespaces");
  listing->add_option("-l,--selector", listed->labels,
                      "Only Services with these labels: KEY=VALUE, KEY!=VALUE, KEY, !KEY, with commas");
  add_list_options(*listing, line);
  const auto shown = std::make_shared<NameOptions>();
  CLI::App* showing = add_named(*service, line, "show", "All there is to say of one Service", shown, show_service);
  showing->add_option("NAME", shown->name, "Name of the Service")->required();
  add_service_audit_commands(*service, line);
}

}  // namespace croft::app
