#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/texts.h"
#include "cli/croft/command_line.h"
#include "cli/croft/listing.h"
#include "cli/stores/open_store.h"
#include "cni/error_table.h"
#include "os/files.h"
#include "os/process.h"
#include "register/service.h"
#include "services/commands/service_views.h"
#include "services/format/service_manifest.h"
#include "services/use/range_repair.h"
#include "services/use/service.h"
#include "store/kube/format/yaml.h"
#include "store/store_url.h"

namespace croft::app {

namespace {

using std::chrono::milliseconds;

struct AuditFlags {
  EtcdPlace etcd;
  std::string cidrs, node_ports;
  bool apply = false;
  int passes = 0;  ///< 0: as it comes
  std::int64_t interval_ms = std::chrono::duration_cast<milliseconds>(std::chrono::minutes(3)).count();
};

[[nodiscard]] Result<engine::Context> open_store_of_services(CommandLine& line, const AuditFlags& flags,
                                                             bool only_looks) {
  if (flags.etcd.endpoints.empty()) return only_looks ? line.open_to_look() : line.open();
  TRY(line.store, open_etcd_store(flags.etcd, line.clock, kubernetes_registry));
  return engine::Context{*line.store, line.clock, line.random};
}

[[nodiscard]] Result<engine::RangeRepairOptions> repair_options(const AuditFlags& flags, bool write) {
  TRY(core::ServiceRanges wanted, core::read_service_ranges(flags.cidrs, flags.node_ports));
  return engine::RangeRepairOptions{std::move(wanted), write};
}

/// A failure is the error, after all else was said.
[[nodiscard]] Result<int> ended(const engine::RangeRepairReport& report, bool has_findings) {
  if (!report.failures.empty()) return fail(report.failures.front().error);
  return static_cast<int>(has_findings ? edge::ExitCode::findings : edge::ExitCode::fine);
}

[[nodiscard]] Result<int> audit_services(CommandLine& line, const AuditFlags& flags) {
  TRY(const engine::RangeRepairOptions options, repair_options(flags, false));
  TRY(const engine::Context context, open_store_of_services(line, flags, true));
  engine::RangeRepairMemory memory;
  TRY(const engine::RangeRepairReport report, engine::repair_ranges(context, options, memory));
  const auto findings = report.findings();
  print(line.wants_data() ? line.data_text(json_of(report, findings)) : text_of(report, findings, line.wide()));
  return ended(report, !findings.empty());
}

[[nodiscard]] bool has_waiting_leaks(const engine::RangeRepairReport& report) {
  return std::ranges::any_of(report.ranges, [](const auto& range) { return !range.leaks.empty(); });
}

/// Findings that the last pass did not put right, or would not have.
[[nodiscard]] bool leaves_something(const engine::RangeRepairReport& report) {
  const auto findings = report.findings();
  return !report.changed_meanwhile.empty() ||
         !std::ranges::all_of(findings, [&](const auto& finding) { return report.applied && finding.mended; });
}

[[nodiscard]] Result<int> repair_ranges(CommandLine& line, const AuditFlags& flags) {
  TRY(const engine::RangeRepairOptions options, repair_options(flags, flags.apply));
  TRY(const engine::Context context, open_store_of_services(line, flags, !flags.apply));
  const int passes = flags.passes > 0 ? flags.passes
                     : flags.apply    ? static_cast<int>(core::audit::kPassesBeforeLeakIsFreed)
                                      : 1;
  engine::RangeRepairMemory memory;
  std::vector<core::audit::RepairFinding> findings;
  engine::RangeRepairReport report;
  for (int pass = 1; pass <= passes; ++pass) {
    TRY(report, engine::repair_ranges(context, options, memory));
    if (pass == 1) {
      const std::string text = text_of(report, report.findings(), line.wide());
      if (line.wants_data()) {
        static_cast<void>(os::write_standard_error(text));
      } else {
        print(text);
      }
    }
    findings = merged_findings(std::move(findings), report.findings());
    for (const engine::RangeFailure& failure : report.failures) {
      tell(fmt::format("pass {}: {}: {}", pass, failure.range, printable(failure.error.message, Printed::line)));
    }
    // A pass to come mends what passes away by itself, and gives nobody a right.
    const bool may_mend = std::ranges::any_of(report.failures, [](const engine::RangeFailure& failure) {
      return failure.error.code != ErrorCode::permission_denied;
    });
    if (!has_waiting_leaks(report) && !may_mend) break;
    if (pass == passes) break;
    tell(fmt::format("pass {} of {} done; what has leaked is freed in pass {}, the next is in {} ms", pass, passes,
                     core::audit::kPassesBeforeLeakIsFreed, flags.interval_ms));
    std::this_thread::sleep_for(milliseconds(flags.interval_ms));
  }
  const bool is_left = leaves_something(report);
  if (line.wants_data()) {
    print(line.data_text(json_of(report, findings)));
  } else if (!flags.apply) {
    print("nothing was written: --apply writes\n");
  } else {
    for (const auto& finding : findings) {
      if (finding.mended) print(fmt::format("{} {}: mended\n", name_of(finding.type), finding.value));
    }
    print(is_left ? "something is left that no repair can mend, or that needs more passes\n" : "all is well\n");
  }
  return ended(report, is_left);
}

void add_audit_flags(CLI::App& command, AuditFlags& flags) {
  command
      .add_option("--etcd-servers", flags.etcd.endpoints,
                  "etcd of a Kubernetes cluster, instead of --store: http://10.0.0.1:2379, separate several by commas")
      ->delimiter(',');
  command.add_option("--etcd-cafile", flags.etcd.ca_file, "File with the CA certificate of that etcd");
  command.add_option("--etcd-certfile", flags.etcd.certificate_file, "Client certificate for that etcd");
  command.add_option("--etcd-keyfile", flags.etcd.key_file, "Key of that certificate");
  command.add_option("--etcd-prefix", flags.etcd.kubernetes_prefix, "Prefix of the kube-apiservers' records")
      ->default_val("/registry");
  command.add_option("--service-cluster-ip-range", flags.cidrs,
                     "Expected Service address ranges, as in the kube-apiservers' flag (default: as stored)");
  command.add_option("--service-node-port-range", flags.node_ports, "Expected node port range (default: as stored)");
}

auto add_verb(CLI::App& service, CommandLine& line, const char* verb, const char* help,
              Result<int> (*action)(CommandLine&, const AuditFlags&)) {
  const auto added = add_command(service, line, verb, help, action);
  add_audit_flags(*added.first, *added.second);
  return added;
}

}  // namespace

void add_service_audit_commands(CLI::App& service, CommandLine& line) {
  add_verb(service, line, "audit",
           "Compare the ranges with what the Services hold; writes nothing. -o wide: who holds what", audit_services)
      .first->footer(
          "The exit code is 3 if there are findings: leaked values, values of two Services, values outside the ranges, "
          "values that are not allocated.");

  const auto [repairing, flags] =
      add_verb(service, line, "repair", "Audit, and with --apply fix what can be fixed", repair_ranges);
  repairing->add_flag("--apply", flags->apply, "Write the repairs, by compare-and-swap");
  repairing
      ->add_option("--passes", flags->passes,
                   "Maximum number of passes; a leaked bit is freed in the third (default: 3 with --apply, otherwise "
                   "1; fewer if nothing leaked)")
      ->check(CLI::Range(1, 1000));
  const CLI::AsNumberWithUnit duration(
      std::map<std::string, std::int64_t>{{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}},
      CLI::AsNumberWithUnit::UNIT_REQUIRED, "TIME");
  repairing
      ->add_option("--interval", flags->interval_ms,
                   "Time between two passes. It must be longer than a kube-apiserver takes to create a Service; "
                   "shorten it only while none creates any")
      ->transform(duration)
      ->type_name("DURATION")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{24} * 3'600'000))
      ->default_str("3m");
  repairing->footer(
      "The exit code is 3 if something is left: without --apply any finding, with --apply what no repair can fix "
      "(values of two Services, values outside the ranges).");
}

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
[[nodiscard]] Result<T> word_argument(const char* flag, const Words<T, N>& words, const std::string& text) {
  if (const auto value = value_in(words, text)) return *value;
  return fail(ErrorCode::invalid_argument, "{}: {} is none of {}", flag, echo(text), listed(words));
}

[[nodiscard]] std::optional<std::uint16_t> port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(port) : std::nullopt;
}

/// A port's number, or its name in the pod.
[[nodiscard]] bool is_target_port(std::string_view text) {
  constexpr std::size_t kNameMax = 15;
  if (text.find_first_not_of("0123456789") == text.npos) return port_of(text).value_or(0) > 0;
  return text.size() <= kNameMax && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == text.npos;
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
  const std::string target = first == std::string::npos ? "" : text.substr(first + 1, second - first - 1);
  if (!number || !node_port || (!target.empty() && !is_target_port(target))) {
    return fail(ErrorCode::invalid_argument, "{}: {} is not PORT[:TARGET[:NODEPORT]], e.g. 80:8080:30080", flag,
                echo(text));
  }
  port.port = *number;
  port.node_port = *node_port;
  port.target_port = target;
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
  TRY(core::ServiceRanges ranges, core::read_service_ranges(flags.cidrs, flags.node_ports));
  const core::service::ServiceCidrs cidrs = ranges.cidrs.value_or(core::service::ServiceCidrs());
  for (const net::Prefix& cidr : {cidrs.primary, cidrs.secondary}) {
    if (!cidr.is_valid()) continue;
    if (const auto made = core::service::ServiceCidr::make(cidr); !made) return fail(made.error());
  }
  // In an etcd a kube-apiserver may be the one who makes them.
  ranges.may_make = flags.make_ranges || store::file_of_store(line.store_url).has_value();
  return ranges;
}

/// Prints what became of one Service, as data with the revision that it has by now: it is read `again`, unless that is
/// null. The exit code.
[[nodiscard]] Result<int> report(const CommandLine& line, const core::ServiceAnswer& answer, const char* verb,
                                 bool dry_run, const engine::Context* again) {
  if (const auto* refusal = std::get_if<core::ServiceRefusal>(&answer)) {
    tell(refusal->to_string());
    return kRefused;
  }
  const auto& changed = std::get<core::ServiceChanged>(answer);
  for (const std::string& note : changed.notes) tell("note: " + printable(note, Printed::line));
  if (!line.wants_data()) {
    print(fmt::format("service/{} {}{}\n", changed.service.name.name, verb, dry_run ? " (dry run)" : ""));
    return 0;
  }
  std::optional<engine::StoredService> stored;
  if (again != nullptr) {
    TRY(stored, engine::get_service(*again, changed.service.name));
  }
  print(line.data_text(json_of(stored ? *stored : engine::StoredService{changed.service, {}})));
  return 0;
}

/// Makes it, or with `is_update` replaces the one of its name.
[[nodiscard]] Result<int> change_one(CommandLine& line, const engine::Context& context, const ServiceFlags& flags,
                                     const core::Service& wanted, bool is_update,
                                     const std::optional<store::Revision>& as_of = {}) {
  TRY(const core::ServiceRanges ranges, ranges_of(line, flags));
  TRY(const core::ServiceAnswer answer, is_update
                                            ? engine::update_service(context, wanted, ranges, flags.dry_run, as_of)
                                            : engine::create_service(context, wanted, ranges, flags.dry_run));
  return report(line, answer, is_update ? "updated" : "created", flags.dry_run, flags.dry_run ? nullptr : &context);
}

[[nodiscard]] Result<void> check_arguments(const ServiceFlags& flags) {
  if (flags.name.empty() != flags.file.empty()) return {};
  return fail(ErrorCode::invalid_argument, "either NAME or -f FILE says which Service is meant");
}

[[nodiscard]] Result<std::optional<store::Revision>> revision_of(const wire::ServiceManifest& manifest) {
  if (manifest.resource_version.empty()) return std::optional<store::Revision>();
  std::uint64_t number = 0;
  const std::string& text = manifest.resource_version;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(ErrorCode::invalid_argument, "metadata.resourceVersion " + echo(text) + " is no number");
  }
  return std::optional(store::Revision{number});
}

/// The store is opened once all manifests could be read.
[[nodiscard]] Result<int> change_by_manifests(CommandLine& line, const ServiceFlags& flags, bool is_update) {
  TRY(const auto manifests, read_manifests(flags));
  TRY(const engine::Context context, line.open(!is_update && !flags.dry_run));
  int code = 0;
  for (const wire::ServiceManifest& manifest : manifests) {
    std::optional<store::Revision> as_of;
    if (is_update) {
      TRY(as_of, revision_of(manifest));
    }
    TRY(const int one, change_one(line, context, flags, manifest.service, is_update, as_of));
    code = std::max(code, one);
  }
  return code;
}

[[nodiscard]] Result<int> create_service(CommandLine& line, const ServiceFlags& flags) {
  TRY_VOID(check_arguments(flags));
  if (!flags.file.empty()) return change_by_manifests(line, flags, false);
  core::Service service;
  service.name = {flags.name_space, flags.name};
  TRY_VOID(apply_flags(flags, service));
  TRY(const engine::Context context, line.open(!flags.dry_run));
  return change_one(line, context, flags, service, false);
}

[[nodiscard]] int report_absent(const std::string& name_space, const std::string& name) {
  tell(core::refuse_not_found({name_space, name}).to_string());
  return kRefused;
}

/// By flags only what they name changes; by a manifest the Service becomes what it says, as with `kubectl replace`.
[[nodiscard]] Result<int> update_service(CommandLine& line, const ServiceFlags& flags) {
  TRY_VOID(check_arguments(flags));
  if (!flags.file.empty()) return change_by_manifests(line, flags, true);
  TRY(const engine::Context context, line.open());
  TRY(auto stored, engine::get_service(context, {flags.name_space, flags.name}));
  if (!stored) return report_absent(flags.name_space, flags.name);
  TRY_VOID(apply_flags(flags, stored->service));
  return change_one(line, context, flags, stored->service, true, stored->revision);
}

struct NameOptions {
  std::string name, name_space = "default", labels;
  bool dry_run = false, all = false;
};

[[nodiscard]] Result<int> delete_service(CommandLine& line, const NameOptions& options) {
  TRY(const engine::Context context, line.open());
  const core::ServiceName name{options.name_space, options.name};
  TRY(const core::ServiceAnswer answer, engine::delete_service(context, name, options.dry_run));
  return report(line, answer, "deleted", options.dry_run, nullptr);
}

[[nodiscard]] Result<int> show_service(CommandLine& line, const NameOptions& options) {
  TRY(const engine::Context context, line.open_to_look());
  TRY(const auto stored, engine::get_service(context, {options.name_space, options.name}));
  if (!stored) return report_absent(options.name_space, options.name);
  print(line.wants_data() ? line.data_text(json_of(*stored)) : service_text(*stored));
  return 0;
}

[[nodiscard]] Result<int> list_services(CommandLine& line, const NameOptions& options) {
  TRY(const LabelSelector selector, LabelSelector::parse(options.labels));
  return list(line, [&](const engine::Context& context) -> Result<Listing> {
    TRY(auto services, engine::list_services(context, options.all ? "" : options.name_space));
    std::erase_if(services, [&](const auto& one) { return !selector.matches(one.service.labels); });
    const std::string place = options.all ? "." : fmt::format(" in namespace {}.", options.name_space);
    return Listing{"No Services" + place, service_table(services, options.all, line.wide(), line.clock.now().wall),
                   line.wants_data() ? json_of(services) : Data(), ""};
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
  const auto [command, flags] = add_command(service, line, verb, help, action);
  add_service_flags(*command, *flags);
}

auto add_named(CLI::App& service, CommandLine& line, const char* verb, const char* help,
               Result<int> (*action)(CommandLine&, const NameOptions&)) {
  const auto added = add_command(service, line, verb, help, action);
  add_namespace(*added.first, added.second->name_space);
  return added;
}

}  // namespace

void add_service_commands(CLI::App& app, CommandLine& line) {
  CLI::App* const service = add_noun(app, "service", "Services with their addresses and node ports");
  add_verb(*service, line, "create", "Make a Service (and the store and its ranges, when absent)", create_service);
  add_verb(*service, line, "update",
           "Change what the flags name, or replace it by a manifest; what was allocated stays", update_service);
  const auto [deletion, deleted] =
      add_named(*service, line, "delete", "Delete a Service; what it held is free again", delete_service);
  deletion->add_option("NAME", deleted->name, "Name of the Service")->required();
  deletion->add_flag("--dry-run", deleted->dry_run, "Change nothing");
  const auto [listing, listed] =
      add_named(*service, line, "list", "The Services of a namespace, or all", list_services);
  listing->add_flag("-A,--all-namespaces", listed->all, "All namespaces");
  listing->add_option("-l,--selector", listed->labels,
                      "Only Services with these labels: KEY=VALUE, KEY!=VALUE, KEY, !KEY, with commas");
  add_list_options(*listing, line);
  const auto [showing, shown] = add_named(*service, line, "show", "All there is to say of one Service", show_service);
  showing->add_option("NAME", shown->name, "Name of the Service")->required();
  add_service_audit_commands(*service, line);
}

}  // namespace croft::app
