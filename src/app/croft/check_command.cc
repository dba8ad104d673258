#include <memory>

#include <fmt/format.h>

#include "app/croft/command_line.h"
#include "app/croft/json_output.h"
#include "edge/cni_cache.h"
#include "edge/error_table.h"
#include "engine/audit.h"
#include "os/process.h"

namespace croft::app {
namespace {

struct CheckOptions {
  std::string cache_directory;
  std::int64_t grace_seconds = engine::kCollectAgeMin.count();
};

[[nodiscard]] Result<int> check(CommandLine& line, const CheckOptions& options) {
  TRY(const engine::Context context, line.open());
  std::optional<engine::LiveAttachments> live;
  if (!options.cache_directory.empty()) {
    auto cache = edge::read_cni_cache(options.cache_directory);
    if (!cache) return fail(ErrorCode::invalid_argument, "--cni-cache: " + cache.error().message);
    for (const std::string& text : cache->unreadable) {
      static_cast<void>(os::write_standard_error("croft: cannot read " + text + "\n"));
    }
    live = std::move(cache->attachments);
  }
  TRY(const engine::AuditReport report, engine::audit(context, live, std::chrono::seconds(options.grace_seconds)));
  if (line.json()) {
    print(line.data(json_of(report.findings)));
  } else {
    for (const engine::Finding& finding : report.findings) {
      print(fmt::format("{}: {}\n  {}\n  remedy: {}\n", engine::name_of(finding.kind), finding.subject, finding.what,
                        finding.remedy));
    }
    print(fmt::format("{} pools, {} blocks, {} handles, {} addresses held, {} cooling: {}\n", report.pools,
                      report.blocks, report.handles, report.held, report.cooling,
                      report.findings.empty() ? "nothing found" : fmt::format("{} findings", report.findings.size())));
  }
  return static_cast<int>(report.findings.empty() ? edge::ExitCode::fine : edge::ExitCode::findings);
}

}  // namespace

void add_check_command(CLI::App& app, CommandLine& line) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand("check", "Look through the whole register for contradictions and leftovers");
  command->add_option(
      "--cni-cache", options->cache_directory,
      "Also name addresses held by attachments that the runtime's CNI cache (as a rule /var/lib/cni) does "
      "not know");
  command
      ->add_option("--grace-seconds", options->grace_seconds,
                   "With --cni-cache: pass over addresses held for less than this, their ADD may still be under way")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{86400}))
      ->capture_default_str();
  command->footer(
      "Changes nothing. Each finding comes with its evidence and what to do. Exit code 3 when there are any.");
  command->callback([&line, options] { line.run = [options](CommandLine& l) { return check(l, *options); }; });
}

}  // namespace croft::app
