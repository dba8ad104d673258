// croft store copy, resume: a register goes into another store.

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_text.h"
#include "cni/error_table.h"
#include "store/copy/store_copy.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

constexpr std::chrono::seconds kPauseLimit{30};

/// A store that is one end of a copy, itself and not behind anything.
struct OpenEnd {
  std::string url;
  std::unique_ptr<store::Store> store;
  store::Pausable* pausable = nullptr;
  [[nodiscard]] engine::CopyEnd end() const { return {*store, *pausable, url}; }
};

[[nodiscard]] Result<OpenEnd> open_end(const CommandLine& line, const std::string& url) {
  OpenEnd end{url, nullptr, nullptr};
  TRY(end.store, open_by_url(url, store::OpenMode::existing, line.clock));
  end.pausable = dynamic_cast<store::Pausable*>(end.store.get());
  if (end.pausable == nullptr) return fail(ErrorCode::internal, "this kind of store cannot be paused");
  return end;
}

std::string report_text(const engine::CopyReport& report, bool is_dry_run) {
  if (report.was_done) return "nothing to do: FROM was moved, and TO is open\n";
  std::string text = fmt::format("{} {}, {} {}, {} equal in both\n", counted(report.written, "record"),
                                 is_dry_run ? "to write" : "written", report.removed,
                                 is_dry_run ? "to remove" : "removed", counted_as(report.equal, "is", "are"));
  text += is_dry_run ? "Nothing was changed (--dry-run). ADDs are refused while the copy is made.\n"
                     : "TO is open, and FROM is paused for good. Name TO where FROM is named (ipam.store of networks, "
                       "--store of agents and controllers).\n";
  return text;
}

[[nodiscard]] Result<int> copy(CommandLine& line, const std::string& from_url, const std::string& to_url,
                               const engine::CopyOptions& options) {
  if (store::name_one_store(from_url, to_url)) {
    return fail(ErrorCode::invalid_argument, "FROM and TO name one store; name two");
  }
  TRY(const OpenEnd from, open_end(line, from_url));
  TRY(const OpenEnd to, open_end(line, to_url));
  const engine::CopyContext context{from.end(),
                                    to.end(),
                                    line.clock,
                                    line.random,
                                    [](std::chrono::seconds span) { std::this_thread::sleep_for(span); },
                                    [](const std::string& text) { tell("croft: " + text); }};
  const auto copied = engine::copy_store(context, options);
  if (!copied) return fail(copied.error());
  print(line.json() ? line.data(Data(nlohmann::ordered_json{{"dryRun", options.dry_run},
                                                            {"wasDone", copied->was_done},
                                                            {"written", copied->written},
                                                            {"removed", copied->removed},
                                                            {"equal", copied->equal}}))
                    : report_text(*copied, options.dry_run));
  return static_cast<int>(edge::ExitCode::fine);
}

[[nodiscard]] Result<int> resume(CommandLine& line) {
  TRY(const OpenEnd end, open_end(line, line.store_url));
  TRY_VOID(engine::resume_store(*end.pausable, Deadline::after(line.clock.now(), kPauseLimit)));
  print("resumed: the register takes writes again; the other store holds part of a copy and stays paused\n");
  return static_cast<int>(edge::ExitCode::fine);
}

}  // namespace

void add_store_copy_commands(CLI::App& store, CommandLine& line) {
  struct Options {
    std::string from, to;
    engine::CopyOptions copy;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* copying = store.add_subcommand("copy", "Move the register into another store, while nobody writes");
  copying->add_option("FROM", options->from, "Store whose register moves: sqlite:…, etcd:…, kube:…")->required();
  copying->add_option("TO", options->to, "Store it moves into, which must be empty: etcd:…, kube:…")->required();
  copying->add_flag("--leave-behind", options->copy.leave_behind,
                    "Go on although Services of Croft's own, or cloud addresses, stay in FROM");
  copying->add_flag("--dry-run", options->copy.dry_run, "Look through both stores and change nothing");
  copying->footer(
      "Pauses FROM, copies, compares, and opens TO: meanwhile ADDs are refused, and DELs leave tombstones. Called "
      "again, it goes on where it was interrupted. Run one at a time. No copy leads back into SQLite.");
  copying->callback([&line, options] {
    line.run = [options](CommandLine& l) { return copy(l, options->from, options->to, options->copy); };
  });

  CLI::App* resuming =
      store.add_subcommand("resume", "Give up an unfinished copy, so that its source takes writes again");
  resuming->footer("TO stays paused until another `croft store copy` of the same source makes it equal.");
  resuming->callback([&line] { line.run = [](CommandLine& l) { return resume(l); }; });
}

}  // namespace croft::app
