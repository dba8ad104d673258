#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/net/echo.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "cli/croft/command_line.h"
#include "cli/croft/filters.h"
#include "cli/croft/json_text.h"
#include "cli/croft/table.h"
#include "cli/stores/open_store.h"
#include "cni/door/tombstones.h"
#include "cni/error_table.h"
#include "os/files.h"
#include "store/move/store_move.h"
#include "store/seal.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

using core::audit::MoveStep;
using Json = nlohmann::ordered_json;

struct MigrateOptions {
  std::string from, to;
  bool apply = false;
  engine::MoveOptions move;
};

constexpr std::chrono::seconds kSealLimit{30};
constexpr std::chrono::minutes kReplayLimit{5};
/// Files that are named; more are counted.
constexpr std::size_t kNamedMax = 10;

/// A store that is one end of a move, itself and not behind anything.
struct OpenEnd {
  std::string url;
  std::unique_ptr<store::Store> store;
  store::Sealable* seal = nullptr;
  [[nodiscard]] engine::MoveEnd end() const { return {*store, *seal, url}; }
};

[[nodiscard]] Result<OpenEnd> open_end(const CommandLine& line, const std::string& flag, const std::string& url) {
  auto opened = open_by_url(url, store::OpenMode::existing, line.clock);
  if (!opened) return fail(opened.error().in(flag));
  OpenEnd end{url, *std::move(opened), nullptr};
  end.seal = dynamic_cast<store::Sealable*>(end.store.get());
  if (end.seal == nullptr) return fail(ErrorCode::internal, flag + ": this kind of store cannot be closed");
  return end;
}

/// Both ends, and what the move needs besides. The ends outlive the context.
struct Ends {
  OpenEnd from, to;
};

[[nodiscard]] Result<Ends> open_ends(const CommandLine& line, const MigrateOptions& options) {
  if (store::name_one_store(options.from, options.to)) {
    return fail(ErrorCode::invalid_argument, "--from and --to name one store; name two");
  }
  Ends ends;
  TRY(ends.from, open_end(line, "--from", options.from));
  TRY(ends.to, open_end(line, "--to", options.to));
  return ends;
}

[[nodiscard]] engine::MoveContext move_context(const CommandLine& line, const Ends& ends) {
  const auto wait = [](std::chrono::seconds span) -> Result<void> {
    std::this_thread::sleep_for(span);
    return {};
  };
  return {ends.from.end(), ends.to.end(), line.clock,
          line.random,     wait,          [](const std::string& text) { tell("croft: " + text); }};
}

// ---------------------------------------------------------------- what is shown

std::string_view step_name(MoveStep step) {
  switch (step) {
    case MoveStep::begin:
      return "begin";
    case MoveStep::look:
      return "look-at-target";
    case MoveStep::take_over:
      return "take-over";
    case MoveStep::copy:
      return "copy";
    case MoveStep::finish:
      return "finish";
    case MoveStep::open:
      return "open-target";
    case MoveStep::done:
      return "done";
  }
  return "";
}

std::string_view step_sentence(MoveStep step) {
  switch (step) {
    case MoveStep::begin:
      return "not begun";
    case MoveStep::look:
      return "begun: the target is closed, nothing is copied";
    case MoveStep::take_over:
      return "not begun; the target holds what an earlier move left, which will be made equal";
    case MoveStep::copy:
      return "begun: the target is closed and being filled, the source is open";
    case MoveStep::finish:
      return "both are closed: ADDs are refused until it is finished";
    case MoveStep::open:
      return "the copy is complete, and the target only to be opened";
    case MoveStep::done:
      return "done: the source is closed for good, the target is open";
  }
  return "";
}

std::string move_plan_text(const engine::MovePlan& plan) {
  std::string text;
  if (!plan.kinds.empty()) {
    Table table({"KIND", "IN-SOURCE", "EQUAL", "TO-WRITE", "TO-REMOVE"});
    for (const engine::KindDifference& kind : plan.kinds) {
      table.add({std::string(core::name_of(kind.kind)), std::to_string(kind.in_source), std::to_string(kind.same),
                 std::to_string(kind.to_write), std::to_string(kind.to_remove)});
    }
    text += table.to_string();
  }
  for (const std::string& note : plan.notes) text += "note: " + note + "\n";
  for (const std::string& obstacle : plan.obstacles) text += "obstacle: " + obstacle + "\n";
  text += fmt::format("{}\n", step_sentence(plan.step));
  if (plan.step == MoveStep::done || plan.step == MoveStep::open) return text;
  text += fmt::format(
      "ADDs will be refused with \"try again later\" while what has changed since the first copy is copied and "
      "everything "
      "is compared{}\n",
      plan.source_settling.count() > 0
          ? fmt::format(", and for {} s before that, until requests that are on their way are over",
                        plan.source_settling.count())
          : "");
  text += plan.obstacles.empty() ? "--apply does it\n" : "nothing is done while there are obstacles\n";
  return text;
}

Json seal_json(const std::optional<core::Seal>& seal) {
  if (!seal) return nullptr;
  return {{"end", core::name_of(seal->end)},
          {"phase", core::name_of(seal->phase)},
          {"move", seal->move},
          {"other", seal->other},
          {"since", rfc3339_exact(seal->since)}};
}

Data move_plan_json(const engine::MovePlan& plan) {
  Json kinds = Json::array();
  for (const engine::KindDifference& kind : plan.kinds) {
    kinds.push_back({{"kind", core::name_of(kind.kind)},
                     {"inSource", kind.in_source},
                     {"equal", kind.same},
                     {"toWrite", kind.to_write},
                     {"toRemove", kind.to_remove}});
  }
  return Data(Json{{"step", step_name(plan.step)},
                   {"sourceSeal", seal_json(plan.source_seal)},
                   {"targetSeal", seal_json(plan.target_seal)},
                   {"kinds", std::move(kinds)},
                   {"obstacles", plan.obstacles},
                   {"notes", plan.notes},
                   {"sourceSettlingSeconds", plan.source_settling.count()},
                   {"targetSettlingSeconds", plan.target_settling.count()}});
}

std::string move_report_text(const engine::MoveReport& report) {
  if (report.was_done) return "nothing to do: the source is closed for good, the target is open\n";
  std::string text;
  for (const std::string& finding : report.findings) text += "found in both: " + finding + "\n";
  text += fmt::format("{} written, {} removed; {} equal in both; the target is open\n",
                      counted(report.written, "record"), report.removed, counted_as(report.compared, "is", "are"));
  text +=
      "Name the target where the source is named (ipam.store of networks, --store of agents and controllers); until "
      "then ADDs are refused.\n";
  return text;
}

Data move_report_json(const engine::MoveReport& report) {
  return Data(Json{{"wasDone", report.was_done},
                   {"written", report.written},
                   {"removed", report.removed},
                   {"equal", report.compared},
                   {"findings", report.findings}});
}

// ---------------------------------------------------------------- the verbs

[[nodiscard]] Result<int> migrate_store(CommandLine& line, const MigrateOptions& options) {
  TRY(const Ends ends, open_ends(line, options));
  const engine::MoveContext context = move_context(line, ends);
  if (!options.apply) {
    TRY(const engine::MovePlan plan, engine::plan_store_move(context, options.move));
    print(line.json() ? line.data(move_plan_json(plan)) : move_plan_text(plan));
    return static_cast<int>(plan.obstacles.empty() ? edge::ExitCode::fine : edge::ExitCode::findings);
  }
  auto moved = engine::move_store(context, options.move);
  if (!moved) {
    tell("croft: the same command goes on from here");
    return fail(moved.error());
  }
  print(line.json() ? line.data(move_report_json(*moved)) : move_report_text(*moved));
  return static_cast<int>(moved->findings.empty() ? edge::ExitCode::fine : edge::ExitCode::findings);
}

[[nodiscard]] Result<int> give_up(CommandLine& line, const MigrateOptions& options) {
  TRY(const Ends ends, open_ends(line, options));
  const engine::MoveContext context = move_context(line, ends);
  if (!options.apply) {
    print("--apply opens the source again and leaves the target closed, unless nothing was copied into it\n");
    return static_cast<int>(edge::ExitCode::fine);
  }
  TRY(const bool did, engine::give_up_store_move(context));
  print(did ? "given up\n" : "nothing to give up\n");
  return static_cast<int>(edge::ExitCode::fine);
}

[[nodiscard]] Result<int> show_move_status(CommandLine& line) {
  TRY(const OpenEnd end, open_end(line, "--store", line.store_url));
  TRY(const auto seal, end.seal->seal(Deadline::after(line.clock.now(), kSealLimit)));
  if (line.json()) {
    print(line.data(
        Data(Json{{"store", line.store_url}, {"seal", seal_json(seal ? std::optional(seal->seal) : std::nullopt)}})));
  } else {
    print(seal ? store::sealed(seal->seal).message + "\n" : "open: no move has closed this store\n");
  }
  return static_cast<int>(edge::ExitCode::fine);
}

// ---------------------------------------------------------------- what DELs left on this node

struct TombstoneOptions {
  std::string from, to, directory = edge::kDefaultTombstones;
  bool apply = false;
};

/// Those that nobody can make up for as they are, with what is wrong; how many more there are.
void tell_unreadable(const std::vector<edge::Tombstones::Waiting>& waiting, std::size_t count) {
  std::size_t named = 0;
  for (const auto& one : waiting) {
    if (one.content || named == kNamedMax) continue;
    ++named;
    tell(fmt::format("croft: {}: {}", printable(one.path, Printed::line), one.content.error().message));
  }
  tell(
      fmt::format("croft: {} of DELs cannot be read{}: what their owners hold stays held; see "
                  "docs/formats/tombstones.md",
                  counted(count, "file"), count > named ? fmt::format(", of which {} are named", named) : ""));
}

/// The directory, where there is one: nothing in the default place is a node on which no DEL ever left anything.
[[nodiscard]] Result<bool> has_directory(const std::string& directory) {
  if (!directory.starts_with('/')) {
    return fail(ErrorCode::invalid_argument, "--dir " + net::echo(directory) +
                                                 " is not absolute: give the whole path, as /var/lib/croft/tombstones");
  }
  TRY(const auto there, os::file_status(directory));
  if (there && there->type == os::FileStatus::Type::directory) return true;
  if (!there && directory == edge::kDefaultTombstones) return false;
  return fail(ErrorCode::invalid_argument,
              fmt::format("--dir {} is {}: give the directory in which the plugin leaves tombstones (CROFT_TOMBSTONES, "
                          "else {})",
                          net::echo(directory), there ? "no directory" : "not there", edge::kDefaultTombstones));
}

[[nodiscard]] Result<int> replay_tombstones(CommandLine& line, const TombstoneOptions& options) {
  TRY(const bool is_there, has_directory(options.directory));
  if (!is_there) tell(fmt::format("croft: {} is not there: no DEL of this node left anything", options.directory));
  const edge::Tombstones tombstones(options.directory, line.clock);
  TRY(const auto waiting, tombstones.waiting());
  std::size_t count = 0;
  std::size_t unreadable = 0;
  std::map<std::string, std::size_t> others;  // by URL: the plugin's own may be another than the operator's
  for (const auto& one : waiting) {
    if (!one.content) {
      ++unreadable;
    } else if (store::name_one_store(one.content->store, options.from)) {
      ++count;
    } else {
      ++others[one.content->store];
    }
  }
  for (const auto& [url, number] : others) {
    tell(fmt::format("croft: {} for {}: if that is the same store, give it as --from",
                     counted_as(number, "DEL waits", "DELs wait"), printable(store::without_user(url), Printed::line)));
  }
  if (unreadable > 0) tell_unreadable(waiting, unreadable);
  const auto ending = static_cast<int>(unreadable > 0 ? edge::ExitCode::findings : edge::ExitCode::fine);
  if (!options.apply || count == 0) {
    print(fmt::format("{} for {}{}\n", counted_as(count, "DEL waits", "DELs wait"), options.from,
                      count > 0 ? "; --apply does them on --to" : ""));
    return ending;
  }
  TRY_VOID(tombstones.try_lock(Deadline::after(line.clock.now(), kSealLimit)));
  TRY(const auto to, open_by_url(options.to, store::OpenMode::existing, line.clock));
  const engine::Context context{*to, line.clock, line.random};
  std::size_t done = 0;
  for (bool goes_on = true; goes_on;) {
    edge::Tombstones::Replay replay;
    replay.is_ours = [&](std::string_view url) { return store::name_one_store(url, options.from); };
    replay.log = [](const std::string& text) { tell("croft: " + text); };
    replay.count_max = replay.looks_max = 2 * edge::kTombstonesMax;
    replay.deadline = Deadline::after(line.clock.now(), kReplayLimit);
    const auto replayed = tombstones.replay(context, replay);
    done += replayed.done;
    goes_on = done < count && replayed.done > 0 && !replayed.is_store_away;
  }
  print(fmt::format("{} of {} done on {}\n", done, counted_as(count, "DEL is", "DELs are"), options.to));
  if (done >= count) return ending;
  return fail(ErrorCode::unavailable, "some DELs wait on; see above, and give the same command again");
}

void add_ends(CLI::App& command, const std::shared_ptr<MigrateOptions>& options) {
  command.add_option("--from", options->from, "Store whose register moves: sqlite:…, etcd:…, kube:…")->required();
  command
      .add_option("--to", options->to, "Store it moves into, which must hold no register of its own: etcd:…, kube:…")
      ->required();
}

}  // namespace

void add_migrate_commands(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand("migrate", "Move a register, or a network, into another store");
  noun->require_subcommand(1);
  noun->fallthrough();

  const auto options = std::make_shared<MigrateOptions>();
  CLI::App* moving = noun->add_subcommand("store", "Move a register into another store, while pods come and go");
  add_ends(*moving, options);
  moving->add_flag("--apply", options->apply, "Do it, or go on with it; without, only the plan is shown");
  moving->add_flag("--leave-behind", options->move.leave_behind,
                   "Move although records of kinds that cannot move stay in the source");
  moving->add_flag("--overwrite", options->move.overwrite,
                   "Put the source's records in the place of what another program wrote into the closed target");
  moving->footer(
      "Closes both stores for everybody else, the source only at the end, and opens the target once every record is "
      "equal in both. Called again, it goes on where it was interrupted. The exit code is 3 if there are obstacles.");
  moving->callback([&line, options] { line.run = [options](CommandLine& l) { return migrate_store(l, *options); }; });

  const auto back = std::make_shared<MigrateOptions>();
  CLI::App* giving_up = noun->add_subcommand("give-up", "Open the source of a move that is not complete");
  add_ends(*giving_up, back);
  giving_up->add_flag("--apply", back->apply, "Do it");
  giving_up->footer(
      "What was copied stays in the target, which stays closed for all but another move of the same source.");
  giving_up->callback([&line, back] { line.run = [back](CommandLine& l) { return give_up(l, *back); }; });

  const auto left = std::make_shared<TombstoneOptions>();
  CLI::App* replaying = noun->add_subcommand(
      "tombstones", "Do on the new store what DELs of this node left while the old one was closed");
  replaying->add_option("--from", left->from, "Store that the DELs named")->required();
  replaying->add_option("--to", left->to, "Store into which it was moved")->required();
  replaying->add_option("--dir", left->directory, "Directory of the tombstones")->capture_default_str();
  replaying->add_flag("--apply", left->apply, "Do them; without, only say how many there are");
  replaying->callback([&line, left] { line.run = [left](CommandLine& l) { return replay_tombstones(l, *left); }; });

  add_migrate_host_local_command(*noun, line);
  add_migrate_calico_command(*noun, line);

  CLI::App* status = noun->add_subcommand("status", "Whether a move has closed the store of --store, and which");
  status->callback([&line] { line.run = [](CommandLine& l) { return show_move_status(l); }; });
}

}  // namespace croft::app
