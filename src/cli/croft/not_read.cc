#include "cli/croft/not_read.h"

#include "base/counted.h"

namespace croft::app {
namespace {

[[nodiscard]] std::string plural_of(core::Kind kind) {
  switch (kind) {
    case core::Kind::handle:
      return "handles";
    case core::Kind::affinity:
      return "claims on blocks";
    case core::Kind::reservation:
      return "reservations";
    case core::Kind::ipam_config:
      return "the cluster-wide settings";
    case core::Kind::node:
      return "nodes";
    case core::Kind::service:
      return "Services";
    default:
      return "records of kind " + std::string(core::name_of(kind));
  }
}

}  // namespace

void note_not_read(CommandLine& line, const engine::AuditReport& report) {
  for (const auto& [kind, why] : report.not_allowed) line.note_not_read(plural_of(kind), why);
}

std::string handles_text(const engine::AuditReport& report) {
  if (report.not_allowed.contains(core::Kind::handle)) return "handles not read";
  return counted(report.handles, "handle");
}

std::string_view of_what_was_read(const CommandLine& line) {
  return line.not_read.empty() ? "" : " in what this account may read";
}

}  // namespace croft::app
