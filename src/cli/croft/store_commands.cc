#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/did_you_mean.h"
#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cni/error_table.h"
#include "hostlocal/door/host_local_facts.h"
#include "ipam/use/assign.h"
#include "ipam/use/inspect.h"
#include "ipam/use/pools.h"
#include "ipam/use/release.h"
#include "ipam/use/transact.h"
#include "os/files.h"
#include "os/process.h"
#include "register/records.h"
#include "store/copy/store_copy.h"
#include "store/pause.h"
#include "store/sqlite/backup.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store_url.h"

// croft store: a backup of a whole register, and the way back; and its way into another store.

namespace croft::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::minutes kCopyLimit{10};
constexpr std::chrono::seconds kEpochLimit{30};
constexpr std::size_t kShownMax = 50;

[[nodiscard]] Result<std::string> path_of(const std::string& url) {
  if (auto path = store::file_of_store(url)) return *std::move(path);
  const bool is_etcd = store::scheme_of(url) == store::Scheme::etcd;
  return fail(ErrorCode::invalid_argument,
              "store {} is not a file, and is backed up where it is kept: docs/runbooks/{}.md",
              store::without_user(url), is_etcd ? "backup-and-restore-etcd" : "restore-kubernetes-api");
}

// ---------------------------------------------------------------- backup

[[nodiscard]] Result<int> backup_store(CommandLine& line, const std::string& file) {
  TRY(const std::string path, path_of(line.store_url));
  os::make_files_private();
  auto copied = store::backup_sqlite_store(path, file, line.clock, Deadline::after(line.clock.now(), kCopyLimit));
  if (!copied && copied.error().code == ErrorCode::not_found)
    return fail(ErrorCode::unavailable, copied.error().message);
  if (!copied) return fail(copied.error());
  const Json json = {{"file", file}, {"revision", copied->revision}, {"bytes", copied->bytes}};
  print(line.wants_data()
            ? line.data_text(Data(json))
            : fmt::format("{}: the register as of revision {}, {} bytes\n", file, copied->revision, copied->bytes));
  return 0;
}

// ---------------------------------------------------------------- restore

struct RestoreOptions {
  std::string file, cache_directory, node;
  std::vector<std::string> pools;  ///< NAME=CIDR
  bool empty = false;
  bool dry_run = false;
  bool force = false;
};

/// An address that somebody holds.
struct Hold {
  std::string address, handle, pod;
  friend auto operator<=>(const Hold&, const Hold&) = default;
};

/// The doing of a restore, for people and scripts.
struct Account {
  std::uint64_t revision = 0;
  std::string unreadable_now;          ///< why it can't be said what is there now
  std::vector<Hold> lost;              ///< held now, and not in what is restored
  std::vector<Hold> recorded;          ///< of running pods, not in the backup
  std::vector<std::string> unclear;    ///< of running pods, and could not be recorded
  std::vector<std::string> elsewhere;  ///< in no pool of what is restored: nobody can get them before one is made
  std::vector<std::string> damaged;    ///< records of the backup that are set aside
  std::string paused;  ///< what the register that is there tells its writers: it is moved, or being moved

  /// An empty register is for what cannot be read, and gets its pools soon.
  [[nodiscard]] bool is_harmless(bool was_empty) const {
    return lost.empty() && unclear.empty() && paused.empty() &&
           (was_empty ? elsewhere.empty() : unreadable_now.empty());
  }
};

/// A failure of the draft's store ends a restore. Anything else that is wrong about one address (its block or handle is
/// damaged) is named with that address: the rest of the register must not wait for it.
[[nodiscard]] bool is_of_the_store(const Error& error) {
  switch (error.code) {
    case ErrorCode::unknown_outcome:
    case ErrorCode::unavailable:
    case ErrorCode::deadline_exceeded:
    case ErrorCode::storage_full:
    case ErrorCode::read_only:
    case ErrorCode::permission_denied:
    case ErrorCode::internal:
      return true;
    default:
      return false;
  }
}

[[nodiscard]] std::vector<Hold> holds_in(const std::vector<engine::AddressView>& addresses) {
  std::vector<Hold> holds;
  for (const engine::AddressView& a : addresses) {
    if (a.state != core::AddressState::held) continue;
    holds.push_back(
        {a.address.to_string(), a.handle_id, a.namespace_name.empty() ? a.pod : a.namespace_name + "/" + a.pod});
  }
  std::sort(holds.begin(), holds.end());
  return holds;
}

/// Records in a draft what running pods hold.
class Recorder {
 public:
  Recorder(engine::Context& context, core::AffinityOwner node, Account& account)
      : context_(context), node_(std::move(node)), account_(account) {}

  [[nodiscard]] Result<void> record_all(const core::audit::LiveAttachments& running) {
    for (const core::UnreadableEntry& entry : running.unreadable) account_.unclear.push_back(entry.what);
    for (const core::RuntimeAttachment& entry : running.entries) handles_.insert(core::handle_of(entry.owner));
    for (const core::RuntimeAttachment& entry : running.entries) TRY_VOID(record(entry));
    return {};
  }

 private:
  [[nodiscard]] Result<void> record(const core::RuntimeAttachment& entry) {
    std::vector<net::Address> wanted;
    for (const net::Address& address : entry.addresses) {
      const auto view = engine::show_address(context_, address);
      if (!view && is_of_the_store(view.error())) return fail(view.error());
      if (view && is_held_in_another_network(*view, entry.owner)) continue;
      if (!view && view.error().code != ErrorCode::not_found) {
        note_not_recorded(entry, address, view.error().message);
      } else if (view && !view->pool.empty()) {
        wanted.push_back(address);
      } else {
        account_.elsewhere.push_back(fmt::format("{} of {}", address, text_of(entry)));
      }
    }
    if (wanted.empty()) return {};
    const auto held = engine::held_addresses(context_, entry.owner);
    if (held && std::set(held->begin(), held->end()) == std::set(wanted.begin(), wanted.end())) return {};
    const auto done = held ? assign_over(entry, wanted, !held->empty()) : Result<void>(fail(held.error()));
    if (!done && is_of_the_store(done.error())) return done;
    for (const net::Address& address : wanted) {
      if (done) {
        account_.recorded.push_back({address.to_string(), core::handle_of(entry.owner), pod_of(entry)});
      } else {
        note_not_recorded(entry, address, done.error().message);
      }
    }
    return {};
  }

  /// A plugin that calls other networks, as Multus, has another name to the runtime; its container's DEL comes under
  /// the name that holds.
  static bool is_held_in_another_network(const engine::AddressView& view, const core::Owner& owner) {
    return view.state == core::AddressState::held && view.handle_id != core::handle_of(owner) &&
           view.handle_id.ends_with("." + owner.container_id);
  }

  void note_not_recorded(const core::RuntimeAttachment& entry, const net::Address& address, const std::string& why) {
    account_.unclear.push_back(fmt::format("{} of {}: {}", address, text_of(entry), why));
  }

  /// The runtime knows better than a backup who runs: what stands in the way is released where its holder is not
  /// running, and does not rest.
  [[nodiscard]] Result<void> assign_over(const core::RuntimeAttachment& entry, const std::vector<net::Address>& wanted,
                                         bool holds_others) {
    if (holds_others) TRY_VOID(engine::release_owner(context_, entry.owner));
    for (const net::Address& address : wanted) {
      TRY(const engine::AddressView view, engine::show_address(context_, address));
      if (view.state != core::AddressState::held) continue;
      if (handles_.contains(view.handle_id)) {
        return fail(ErrorCode::conflict, "{} runs and holds it too", view.handle_id);
      }
      const core::AddressToRelease in_the_way{address, view.handle_id, view.sequence_number};
      TRY_VOID(engine::release_addresses(context_, {in_the_way}));
    }
    core::AssignRequest request;
    request.owner = entry.owner;
    request.pod = entry.pod;
    request.node = node_;
    request.count.v4 = 0;
    request.addresses = wanted;
    request.reserved_addresses = true;
    request.cooling_addresses = true;
    TRY(const auto answer, engine::assign(context_, request));
    const auto* const refusal = std::get_if<core::Refusal>(&answer);
    if (refusal == nullptr) return {};
    const Error error = core::to_error(*refusal);
    return fail(ErrorCode::conflict, error.details.empty() ? error.message : error.message + ": " + error.details);
  }

  static std::string pod_of(const core::RuntimeAttachment& entry) {
    return entry.pod.name.empty() ? "" : entry.pod.namespace_name + "/" + entry.pod.name;
  }
  static std::string text_of(const core::RuntimeAttachment& entry) {
    const std::string pod = pod_of(entry);
    return core::handle_of(entry.owner) + (pod.empty() ? "" : " (pod " + pod + ")");
  }

  engine::Context& context_;
  const core::AffinityOwner node_;
  Account& account_;
  std::set<std::string> handles_;  ///< that run
};

std::string line_of(const std::string& text) { return text; }
std::string line_of(const Hold& hold) {
  return hold.address + " " + hold.handle + (hold.pod.empty() ? "" : " " + hold.pod);
}

template <class Row>
std::string rows_of(const char* title, const std::vector<Row>& rows) {
  if (rows.empty()) return "";
  std::string text = fmt::format("{} ({}):\n", title, rows.size());
  for (std::size_t i = 0; i < std::min(rows.size(), kShownMax); ++i) text += "  " + line_of(rows[i]) + "\n";
  if (rows.size() > kShownMax) text += fmt::format("  … and {} more\n", rows.size() - kShownMax);
  return text;
}

std::string account_text(const Account& account, const RestoreOptions& options) {
  std::string text =
      options.empty ? "an empty register\n" : fmt::format("{}, as of revision {}\n", options.file, account.revision);
  if (!account.unreadable_now.empty()) {
    text += "what is there now cannot be read, so nobody can say what is lost: " + account.unreadable_now + "\n";
  }
  if (!account.paused.empty()) {
    text += "a restore opens this register again, and two registers would give the same addresses: " + account.paused +
            "\n";
  }
  text += rows_of("held now and not in what is restored: the register will not know of them", account.lost);
  text += rows_of("running and not in what is restored, recorded as held", account.recorded);
  text += rows_of("damaged in what is restored, and set aside", account.damaged);
  text += rows_of("running, and could not be recorded", account.unclear);
  text += rows_of("running, in no pool of what is restored", account.elsewhere);
  if (options.cache_directory.empty()) {
    text += "without --cni-cache the addresses of pods made since the backup may be given out again\n";
  }
  return text;
}

Json holds_json(const std::vector<Hold>& holds) {
  return array_json(holds, [](const Hold& hold) -> Json {
    return {{"address", hold.address}, {"handle", hold.handle}, {"pod", hold.pod}};
  });
}

Data account_json(const Account& account, bool done) {
  Json json = {{"restored", done},
               {"revision", account.revision},
               {"unreadableNow", account.unreadable_now},
               {"lost", holds_json(account.lost)},
               {"recorded", holds_json(account.recorded)},
               {"unclear", account.unclear},
               {"inNoPool", account.elsewhere},
               {"damaged", account.damaged},
               {"paused", account.paused}};
  return Data(std::move(json));
}

/// Compares what is there with the draft, when the draft has what runs.
[[nodiscard]] Result<void> compare(const CommandLine& line, const std::string& path, const engine::Context& draft,
                                   Account& account) {
  TRY(const auto then, engine::list_addresses(draft));
  const auto status = os::file_status(path);
  if (status && !*status) return {};
  const Deadline deadline = Deadline::after(line.clock.now(), kCopyLimit);
  auto store = store::open_sqlite_store(path, {.lock_is_held = true}, line.clock, deadline);
  if (auto* const pausable = store ? dynamic_cast<store::Pausable*>(store->get()) : nullptr; pausable != nullptr) {
    const auto there = pausable->pause(deadline);
    if (there && *there) account.paused = store::paused((*there)->pause).message;
  }
  auto now = store ? engine::list_addresses({**store, line.clock, line.random, kCopyLimit})
                   : Result<std::vector<engine::AddressView>>(fail(store.error()));
  if (!now) {
    account.unreadable_now = now.error().message;
    return {};
  }
  std::set<std::pair<std::string, std::string>> kept;
  for (const Hold& hold : holds_in(then)) kept.emplace(hold.address, hold.handle);
  for (Hold& hold : holds_in(*now)) {
    if (!kept.contains({hold.address, hold.handle})) account.lost.push_back(std::move(hold));
  }
  return {};
}

[[nodiscard]] Result<void> make_pools(const engine::Context& draft, const std::vector<std::string>& pools) {
  for (const std::string& text : pools) {
    const std::size_t equals = std::min(text.find('='), text.size());
    core::PoolSpec spec;
    spec.name = text.substr(0, equals);
    TRY(spec.cidr, net::Prefix::parse(text.substr(std::min(equals + 1, text.size()))));
    TRY_VOID(engine::create_pool(draft, spec));
  }
  return {};
}

[[nodiscard]] Result<void> prepare(const CommandLine& line, const std::string& path, const RestoreOptions& options,
                                   const store::SqliteRestore& restore, Account& account) {
  account.revision = restore.revision_of_backup();
  for (const Error& damage : restore.damaged()) account.damaged.push_back(damage.message);
  const Deadline deadline = Deadline::after(line.clock.now(), kCopyLimit);
  TRY(const auto draft, store::open_sqlite_store(restore.draft(), {}, line.clock, deadline));
  engine::Context context{*draft, line.clock, line.random, kCopyLimit};
  TRY_VOID(make_pools(context, options.pools));
  if (!options.cache_directory.empty()) {
    std::string node = options.node;
    if (node.empty()) {
      TRY(node, os::host_name());
    }
    TRY_VOID(core::check_node_name(node));
    const auto running = edge::read_cni_caches({options.cache_directory}, /*is_the_machine=*/true);
    if (!running) return fail(ErrorCode::invalid_argument, "--cni-cache: " + running.error().message);
    Recorder recorder(context, {core::AffinityOwner::Type::host, node}, account);
    TRY_VOID(recorder.record_all(running->attachments));
  }
  return compare(line, path, context, account);
}

[[nodiscard]] Result<int> restore_store(CommandLine& line, const RestoreOptions& options) {
  if (!options.empty && options.file.empty()) {
    return fail(ErrorCode::invalid_argument, "give the file of a backup or --empty, one of the two");
  }
  TRY(const std::string path, path_of(line.store_url));
  os::make_files_private();
  const Deadline deadline = Deadline::after(line.clock.now(), kCopyLimit);
  TRY(const auto restore, store::SqliteRestore::begin(path, options.file, options.force, line.clock, deadline));
  Account account;
  TRY_VOID(prepare(line, path, options, *restore, account));
  const bool refused = !account.is_harmless(options.empty) && !options.force;
  const bool done = !options.dry_run && !refused;
  if (done) TRY_VOID(restore->finish(deadline));
  if (line.wants_data()) {
    print(line.data_text(account_json(account, done)));
  } else {
    print(account_text(account, options) + (done              ? "restored\n"
                                            : options.dry_run ? "nothing was changed (--dry-run)\n"
                                                              : ""));
  }
  if (done || options.dry_run) return static_cast<int>(edge::ExitCode::fine);
  return fail(
      ErrorCode::refused_for_safety,
      "nothing was changed: see above; `--cni-cache /var/lib/cni` keeps what runs, --pool NAME=CIDR makes a missing "
      "pool, --force restores all the same");
}

// ---------------------------------------------------------------- new epoch

[[nodiscard]] Result<int> begin_epoch(const CommandLine& line) {
  TRY(const auto opened, open_by_url(line.store_url, store::OpenMode::existing, line.clock));
  auto* const epoch = dynamic_cast<store::HasEpoch*>(opened.get());
  if (epoch == nullptr) {
    return fail(ErrorCode::invalid_argument,
                "store {} needs no new epoch: it is for a register in etcd. `croft store restore` begins one of a "
                "file, and docs/runbooks/restore-kubernetes-api.md has the steps for a Kubernetes API",
                store::without_user(line.store_url));
  }
  TRY_VOID(epoch->begin_epoch(Deadline::after(line.clock.now(), kEpochLimit)));
  print(line.wants_data() ? line.data_text(Data(Json{{"begun", true}}))
                          : "the register has a new epoch: programs that ran before read everything anew\n");
  return static_cast<int>(edge::ExitCode::fine);
}

// ---------------------------------------------------------------- copy, resume

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

struct CopyArguments {
  std::string from, to;
  engine::CopyOptions options;
};

[[nodiscard]] Result<int> copy(CommandLine& line, const CopyArguments& wanted) {
  if (store::are_same_store(wanted.from, wanted.to)) {
    return fail(ErrorCode::invalid_argument, "FROM and TO name one store; name two");
  }
  if (store::scheme_of(wanted.to) == store::Scheme::sqlite) {
    return fail(ErrorCode::invalid_argument,
                "TO is a file, and no copy leads into one; name an etcd or a Kubernetes API");
  }
  TRY(const OpenEnd from, open_end(line, wanted.from));
  TRY(const OpenEnd to, open_end(line, wanted.to));
  const engine::CopyContext context{from.end(),
                                    to.end(),
                                    line.clock,
                                    line.random,
                                    [](std::chrono::seconds span) { std::this_thread::sleep_for(span); },
                                    [](const std::string& text) { tell("croft: " + text); }};
  TRY(const engine::CopyReport copied, engine::copy_store(context, wanted.options));
  print(line.wants_data() ? line.data_text(Data(nlohmann::ordered_json{{"dryRun", wanted.options.dry_run},
                                                                       {"wasDone", copied.was_done},
                                                                       {"written", copied.written},
                                                                       {"removed", copied.removed},
                                                                       {"equal", copied.equal}}))
                          : report_text(copied, wanted.options.dry_run));
  return static_cast<int>(edge::ExitCode::fine);
}

[[nodiscard]] Result<int> resume(CommandLine& line) {
  TRY(const OpenEnd end, open_end(line, line.store_url));
  TRY_VOID(engine::resume_store(*end.pausable, Deadline::after(line.clock.now(), kPauseLimit)));
  print("resumed: the register takes writes again; the other store holds part of a copy and stays paused\n");
  return static_cast<int>(edge::ExitCode::fine);
}

}  // namespace

void add_store_commands(CLI::App& app, CommandLine& line) {
  CLI::App* const store = add_noun(app, "store", "Back up a register, restore or move it");

  const auto [backing, file] =
      add_command(*store, line, "backup", "Write a consistent copy of the register to a new file", backup_store);
  backing->add_option("FILE", *file, "File to write")->required();
  backing->footer("Agents and plugins may keep running; nothing waits for the backup.");

  const auto [restoring, options] =
      add_command(*store, line, "restore", "Replace the register by a backup, or by an empty one", restore_store);
  CLI::Option* const backup = restoring->add_option(
      "FILE", options->file, "File of `croft store backup`, or croft.db in a copy of its directory");
  CLI::Option* const cache = restoring->add_option(
      "--cni-cache", options->cache_directory,
      "The runtime's CNI cache (usually /var/lib/cni): addresses of its pods that the backup lacks are recorded in the "
      "same step");
  CLI::Option* const empty =
      restoring->add_flag("--empty", options->empty, "Begin with an empty register instead, and what --cni-cache says");
  empty->excludes(backup)->needs(cache);
  restoring->add_option("--pool", options->pools, "With --empty: make this pool first (NAME=CIDR, may be repeated)")
      ->needs(empty);
  restoring->add_option("--node", options->node, "With --cni-cache: the node (default: this host's name)");
  restoring->add_flag("--dry-run", options->dry_run, "Show what would be lost and change nothing");
  restoring->add_flag("--force", options->force, "Restore even if addresses that are held now would be forgotten");
  restoring->footer(
      "Refuses a file that is not a complete register. Lists the addresses that are held now and would be forgotten. "
      "If there are any, or if the current register cannot be read, --force is required. Running agents and plugins "
      "switch to the restored register by themselves.");

  CLI::App* epoch = store->add_subcommand("new-epoch", "Accept a register in etcd after a restore");
  epoch->footer(
      "The last step of docs/runbooks/backup-and-restore-etcd.md. Until then a restored etcd is refused. Agents and "
      "controllers may run on: they forget what they remember. The register is of no Kubernetes cluster afterwards, "
      "until a controller says of which.");
  epoch->callback([&line] { line.run = [](CommandLine& l) { return begin_epoch(l); }; });

  const auto [copying, wanted] =
      add_command(*store, line, "copy", "Move the register into another store, while nobody writes", copy);
  copying->add_option("FROM", wanted->from, "Store whose register moves: sqlite:…, etcd:…, kube:…")->required();
  copying->add_option("TO", wanted->to, "Store it moves into, which must be empty: etcd:…, kube:…")->required();
  copying->add_flag("--leave-behind", wanted->options.leave_behind,
                    "Go on although Services of Croft's own, or cloud addresses, stay in FROM");
  copying->add_flag("--dry-run", wanted->options.dry_run, "Look through both stores and change nothing");
  copying->footer(
      "Pauses FROM, copies, compares, and opens TO: meanwhile ADDs are refused, and DELs leave tombstones. Called "
      "again, it goes on where it was interrupted. Run one at a time. No copy leads back into SQLite.");

  CLI::App* resuming =
      store->add_subcommand("resume", "Give up an unfinished copy, so that its source takes writes again");
  resuming->footer("TO stays paused until another `croft store copy` of the same source makes it equal.");
  resuming->callback([&line] { line.run = [](CommandLine& l) { return resume(l); }; });
}

// croft record remove: the way out when a damaged record can't be restored.
namespace {

struct RemoveOptions {
  std::string kind, name;
  bool force = false, dry_run = false;
};

/// Error: invalid_argument, naming the nearest kinds or all.
[[nodiscard]] Result<core::Kind> kind_named(const std::string& name) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < core::kKindCount; ++i) {
    known.emplace_back(core::name_of(static_cast<core::Kind>(i)));
    if (known.back() == name) return static_cast<core::Kind>(i);
  }
  const std::string meant = did_you_mean(name, known);
  return fail(ErrorCode::invalid_argument, "there is no kind of record {}{}", echo(name),
              meant.empty() ? fmt::format("; there are {}", fmt::join(known, ", ")) : meant);
}

/// The harm to programs of others when a record that Croft can't read goes, which they may read; empty: it is not
/// theirs.
[[nodiscard]] std::string_view loss_of_others(core::Kind kind) {
  switch (core::traits_of(kind).system) {
    case core::System::croft:
      return {};
    case core::System::kubernetes:
      return "is Kubernetes', whose programs may read it: it is gone for them too";
    case core::System::calico:
      break;
  }
  switch (kind) {
    case core::Kind::pool:
      return "is Calico's, whose programs may read it: without it they take down NAT and tunnels of the pool's pods";
    case core::Kind::affinity:
      return "is Calico's, whose programs may read it: without it they withdraw the route to the block's pods";
    case core::Kind::handle:
      return "is Calico's, whose programs may read it: without it the DEL of its container finds no address";
    default:
      return "is Calico's, whose programs may read it: it is gone for them too";
  }
}

[[nodiscard]] Result<void> refuse_what_is_used(const engine::Context& context, core::Kind kind,
                                               const std::string& subject) {
  const bool is_shared = context.store.capabilities().foreign_writers;
  const std::string_view others = is_shared ? loss_of_others(kind) : std::string_view();
  const std::string_view loss = core::loss_without(kind);
  if (loss.empty() && others.empty()) return {};
  return fail(
      ErrorCode::refused_for_safety, "record {} {}. Restore it from a backup; --force removes it once no pod needs it",
      subject,
      loss.empty() || others.empty() ? fmt::format("{}{}", loss, others) : fmt::format("{}, and {}", loss, others));
}

[[nodiscard]] Result<int> remove_record(CommandLine& line, const RemoveOptions& options) {
  TRY(const core::Kind kind, kind_named(options.kind));
  TRY(const engine::Context context, line.open());
  // A block is named as `croft check` does, or as its record is.
  const auto cidr = net::Prefix::parse(options.name);
  const bool is_by_cidr = kind == core::Kind::block && cidr;
  const core::Key key = is_by_cidr ? core::block_key(*cidr) : core::Key{kind, options.name};
  const Deadline deadline = engine::deadline_of_use_case(context);
  TRY(const auto record, context.store.get(key, deadline));
  const std::string subject = fmt::format("{} {}", options.kind, options.name);
  if (!record)
    return fail(ErrorCode::not_found, "there is no record " + subject + "; `croft check` names damaged ones");
  if (record->value) {
    return fail(ErrorCode::refused_for_safety,
                "record {} is not damaged; the commands of its own kind change and delete it", subject);
  }
  const Error& why = record->value.error();
  if (why.code != ErrorCode::corrupt) {
    return fail(ErrorCode::refused_for_safety,
                "record {} can't be read here, and is not damaged: {}; upgrade Croft here", subject, why.message);
  }
  // A node whose record is damaged is there all the same: the collector must not take it for gone.
  const bool is_written_anew = kind == core::Kind::node && !context.store.capabilities().foreign_writers;
  const bool is_beside = record->calicos != nullptr;
  if (!options.force && !is_written_anew && !is_beside) TRY_VOID(refuse_what_is_used(context, kind, subject));
  std::optional<core::Value> anew;
  if (is_beside) anew = *record->calicos;
  if (is_written_anew) {
    TRY_VOID(core::check_node_name(options.name));
    core::Node node;
    node.name = options.name;
    anew = std::move(node);
  }
  const store::Write write{key, std::move(anew), store::Condition::if_revision(record->revision)};
  if (!options.dry_run) TRY_VOID(engine::commit_once(context, {&write, 1}, deadline));
  if (options.dry_run) print("nothing was changed (--dry-run); without it: ");
  if (is_beside) {
    print(
        fmt::format("what Croft keeps beside {0} removed, {0} itself stays: it has no gateway and no cooldown, and "
                    "nothing in it rests\n",
                    subject));
    return 0;
  }
  print(is_written_anew ? fmt::format("record {} written anew, without labels; `croft node remove {}` says that the "
                                      "node is gone\n",
                                      subject, options.name)
                        : fmt::format("record {} removed\n", subject));
  return 0;
}

}  // namespace

void add_record_commands(CLI::App& app, CommandLine& line) {
  CLI::App* const record = add_noun(app, "record", "Damaged records");
  const auto [remove, options] =
      add_command(*record, line, "remove", "Remove a damaged record that no backup can restore", remove_record);
  remove->add_option("KIND", options->kind, "Kind of the record, as `croft check` names it: pool")->required();
  remove->add_option("NAME", options->name, "Its name")->required();
  remove->add_flag("--force", options->force,
                   "Remove it even if addresses, ports or ranges in use could then be given to others");
  remove->add_flag("--dry-run", options->dry_run, "Show what would happen and change nothing");
  remove->footer("A readable record is not removed. See docs/runbooks/damaged-records.md for what each kind means.");
}

}  // namespace croft::app
