#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "base/printable.h"
#include "cli/croft/command_line.h"
#include "cli/stores/open_store.h"
#include "cni/error_table.h"
#include "os/process.h"
#include "services/commands/service_audit_views.h"
#include "services/use/range_repair.h"

namespace croft::app {
namespace {

using std::chrono::milliseconds;

struct AuditFlags {
  std::vector<std::string> etcd_servers;
  std::string etcd_ca_file, etcd_certificate_file, etcd_key_file, etcd_prefix = "/registry";
  std::string cidrs, node_ports;
  bool apply = false;
  int passes = 0;  ///< 0: as it comes
  std::int64_t interval_ms = std::chrono::duration_cast<milliseconds>(std::chrono::minutes(3)).count();
};

[[nodiscard]] Result<engine::Context> open_store_of_services(CommandLine& line, const AuditFlags& flags,
                                                             bool only_looks) {
  if (flags.etcd_servers.empty()) return only_looks ? line.look() : line.open();
  EtcdPlace place;
  place.endpoints = flags.etcd_servers;
  place.ca_file = flags.etcd_ca_file;
  place.certificate_file = flags.etcd_certificate_file;
  place.key_file = flags.etcd_key_file;
  place.kubernetes_prefix = flags.etcd_prefix;
  TRY(line.store, open_etcd_store(std::move(place), line.clock, kubernetes_registry));
  return engine::Context{*line.store, line.clock, line.random};
}

[[nodiscard]] Result<engine::RangeRepairOptions> repair_options(const AuditFlags& flags, bool write) {
  engine::RangeRepairOptions options;
  if (!flags.cidrs.empty()) {
    TRY(options.cidrs, core::service::parse_service_cidrs(flags.cidrs));
  }
  if (!flags.node_ports.empty()) {
    TRY(options.node_ports, core::service::parse_node_port_flag(flags.node_ports));
  }
  options.write = write;
  return options;
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
  print(line.json() ? line.data(json_of(report, findings)) : text_of(report, findings, line.wide()));
  return ended(report, !findings.empty());
}

[[nodiscard]] bool has_waiting_leaks(const engine::RangeRepairReport& report) {
  if (report.addresses && report.addresses->to_be_seen_again > 0) return true;
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
      if (line.json()) {
        static_cast<void>(os::write_standard_error(text));
      } else {
        print(text);
      }
    }
    findings = merged(std::move(findings), report.findings());
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
  if (line.json()) {
    print(line.data(json_of(report, findings)));
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
      .add_option("--etcd-servers", flags.etcd_servers,
                  "etcd of a Kubernetes cluster, instead of --store: http://10.0.0.1:2379, separate several by commas")
      ->delimiter(',');
  command.add_option("--etcd-cafile", flags.etcd_ca_file, "File with the CA certificate of that etcd");
  command.add_option("--etcd-certfile", flags.etcd_certificate_file, "Client certificate for that etcd");
  command.add_option("--etcd-keyfile", flags.etcd_key_file, "Key of that certificate");
  command.add_option("--etcd-prefix", flags.etcd_prefix, "Prefix of the kube-apiservers' records")
      ->default_str("/registry");
  command.add_option("--service-cluster-ip-range", flags.cidrs,
                     "Expected Service address ranges, as in the kube-apiservers' flag (default: as stored)");
  command.add_option("--service-node-port-range", flags.node_ports, "Expected node port range (default: as stored)");
}

CLI::App* add_verb(CLI::App& service, CommandLine& line, const char* verb, const char* help,
                   const std::shared_ptr<AuditFlags>& flags, Result<int> (*action)(CommandLine&, const AuditFlags&)) {
  CLI::App* command = service.add_subcommand(verb, help);
  add_audit_flags(*command, *flags);
  command->callback(
      [&line, flags, action] { line.run = [flags, action](CommandLine& l) { return action(l, *flags); }; });
  return command;
}

}  // namespace

void add_service_audit_commands(CLI::App& service, CommandLine& line) {
  add_verb(service, line, "audit",
           "Compare the ranges with what the Services hold; writes nothing. -o wide: who holds what",
           std::make_shared<AuditFlags>(), audit_services)
      ->footer(
          "The exit code is 3 if there are findings: leaked values, values of two Services, values outside the ranges, "
          "values that are not allocated.");

  const auto flags = std::make_shared<AuditFlags>();
  CLI::App* repairing =
      add_verb(service, line, "repair", "Audit, and with --apply fix what can be fixed", flags, repair_ranges);
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

}  // namespace croft::app
