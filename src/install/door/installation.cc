#include "install/door/installation.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/net/echo.h"
#include "cni/format/network_list.h"
#include "install/door/node_files.h"
#include "os/directory.h"
#include "os/executable.h"
#include "os/files.h"

namespace croft::edge {
namespace {

using wire::InstallRecord;
using Kind = InstallRecord::Kind;
using Entry = InstallRecord::Entry;

/// The texts of os::Directory are host-local's, and have none.
[[nodiscard]] const char* remedy_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::permission_denied:
      return "; run it as root, who has to own the directory (chown root:), and look for a flag or a module that "
             "forbids it (lsattr -d, SELinux)";
    case ErrorCode::storage_full:
      return "; free space and inodes on that file system (df, df -i)";
    case ErrorCode::read_only:
      return "; mount it read-write";
    default:
      return "";
  }
}

[[nodiscard]] Result<void> check_directory(const std::string& path, const char* option) {
  auto directory = os::Directory::open(path);
  if (!directory) {
    Error error = directory.error();
    error.message += fmt::format("; name the runtime's directory with {}", option);
    return fail(std::move(error));
  }
  const auto done = directory->check_writable();
  if (done) return {};
  Error error = done.error();
  error.message += remedy_of(error.code);
  return fail(std::move(error));
}

[[nodiscard]] Result<void> check_names(const InstallPlan& plan) {
  std::vector<std::string> names{plan.kubeconfig_name, plan.network_name};
  for (const InstallProgram& program : plan.programs) names.push_back(program.name);
  for (const std::string& name : names) {
    if (name.empty() || wire::is_install_name(name)) continue;
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is no plain name of a file: letters, digits, '.', '-' and '_', no dot in front, at "
                            "most {} bytes",
                            net::echo(name), wire::kInstallNameBytesMax));
  }
  return {};
}

/// What a runtime could run. What it speaks only running it would tell.
[[nodiscard]] Result<void> check_plugin_of_others(const std::string& programs, const std::string& name,
                                                  const std::string& remedy) {
  TRY(const os::Runnable is, os::runnable(path_in(programs, name)));
  if (is == os::Runnable::yes) return {};
  return fail(
      ErrorCode::refused_by_configuration,
      fmt::format("the plugin {}, and without it no pod would start: {}",
                  is == os::Runnable::absent
                      ? fmt::format("{} is not in {}", name, programs)
                      : fmt::format("{} is no program that can be run (no file, an empty one, or one that nobody "
                                    "may execute)",
                                    path_in(programs, name)),
                  remedy));
}

/// What os::replace_file_durably leaves of one of these when it is killed.
[[nodiscard]] bool is_draft_of(const std::vector<std::string>& names, std::string_view entry) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    constexpr std::string_view kEnd = ".tmp";
    if (!entry.starts_with(name + ".") || !entry.ends_with(kEnd)) return false;
    std::string_view number = entry.substr(name.size() + 1);
    if (number.size() <= kEnd.size()) return false;
    number.remove_suffix(kEnd.size());
    return number.find_first_not_of("0123456789") == number.npos;
  });
}

}  // namespace

std::string Installation::remedy_of_missing(const std::string& plugin) const {
  const std::string& other = place_.distributions_programs;
  const bool is_container = !place_.programs_on_host.empty() && place_.programs_on_host != place_.programs;
  const auto there = os::file_status(path_in(other, plugin));
  if (!is_container && there && *there) {
    return fmt::format(
        "it is in {0}, where Debian's containerd looks too (bin_dir of /etc/containerd/config.toml); if "
        "the runtime does, give --cni-bin-dir {0}",
        other);
  }
  return fmt::format(
      "install it (Debian's containernetworking-plugins are in {0}, where its containerd looks: "
      "--cni-bin-dir {0}, the chart's install.cniBinDir), or name the runtime's directory so",
      other);
}

Result<void> Installation::check(const InstallPlan& plan) const {
  TRY_VOID(check_names(plan));
  TRY_VOID(check_directory(place_.programs, "--cni-bin-dir"));
  TRY_VOID(check_directory(place_.configurations, "--cni-conf-dir"));
  TRY_VOID(record());
  for (const std::string& name : plan.others) {
    TRY_VOID(check_plugin_of_others(place_.programs, name, remedy_of_missing(name)));
  }
  if (plan.network_name.empty()) return {};
  TRY(const auto names, network_files());
  for (const std::string& name : names) {
    if (name >= plan.network_name) continue;
    TRY(const InstallRecord ours, record());
    const NodeNetwork before = network(ours, name);
    if (before.is_ours) continue;
    if (before.trouble.empty() && calls_only(plan.giver, plan.network_name, before.calls)) continue;
    return fail(ErrorCode::refused_for_safety,
                fmt::format("{} has {}, which the runtime takes before {}: remove it, or choose a name before it with "
                            "--conflist-name",
                            place_.configurations, net::echo(name), plan.network_name));
  }
  return {};
}

Result<void> Installation::add_to_record(const InstallPlan& plan, std::string_view network) const {
  TRY(InstallRecord all, record());
  bool is_changed = false;
  const auto add = [&](Kind kind, const std::string& name, std::string digest) {
    if (!name.empty() && wire::add_to(all, {kind, name, std::move(digest)})) is_changed = true;
  };
  for (const InstallProgram& program : plan.programs) {
    const std::string path = path_in(place_.programs, program.name);
    TRY(const auto is, content_of(path, kProgramBytesMax));
    TRY(const auto is_kept, os::entry_status(kept_name(path, 0)));
    // A package's, say: what was not written here is not taken back.
    const bool is_there = is && *is == program.content && !is_kept;
    if (!is_there) add(Kind::program, program.name, digest_of(program.content));
  }
  if (!plan.programs.empty() && wire::add_program_directory(all, programs_on_host())) is_changed = true;
  add(Kind::kubeconfig, plan.kubeconfig_name, "");
  if (!network.empty()) add(Kind::network, plan.network_name, digest_of(network));
  if (!is_changed) return {};
  TRY_VOID(forget_networks_that_are_gone(all, plan.network_name));
  if (all.entries.size() > wire::kInstallEntriesMax) {
    return fail(
        ErrorCode::refused_by_configuration,
        fmt::format(
            "{} would name {} files, and can name {}: network configurations of earlier installations "
            "are still in {}, or what was kept of others under their names ({}): remove those that nobody needs",
            record_path(), all.entries.size(), wire::kInstallEntriesMax, place_.configurations, kBeforeCroft));
  }
  return os::replace_file_durably(record_path(), encode(all));
}

Result<void> Installation::forget_networks_that_are_gone(InstallRecord& record, const std::string& to_come) const {
  constexpr std::size_t kManyEntries = 64;
  for (auto entry = record.entries.begin(); record.entries.size() > kManyEntries && entry != record.entries.end();) {
    const std::string path = path_in(place_.configurations, entry->name);
    const bool may_go = entry->kind == Kind::network && entry->name != to_come;
    TRY(const auto status, may_go ? os::entry_status(path) : Result<std::optional<os::FileStatus>>(std::nullopt));
    TRY(const std::string kept, may_go ? kept_of_path(path) : Result<std::string>(""));
    entry = may_go && !status && kept.empty() ? record.entries.erase(entry) : std::next(entry);
  }
  return {};
}

Result<void> Installation::note_giver(std::string_view network) const {
  TRY(InstallRecord all, record());
  const auto calls = wire::cni::read_network_calls(network);
  const wire::cni::AddressGiver giver = calls && !calls->givers.empty() ? calls->givers[0] : wire::cni::AddressGiver{};
  if (!wire::set_network(all, calls ? calls->name : "", giver.program, giver.store)) return {};
  return os::replace_file_durably(record_path(), encode(all));
}

/// Files that change together. What is made under names of drafts is renamed into place in the order in which it was
/// added, and put back in the other order. Drafts that are left go with it.
class Installation::Change {
 public:
  explicit Change(const std::function<void(const std::string& line)>& tell) : tell_(tell) {}
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
  ~Change() {
    for (const Part& part : parts_) {
      for (const std::string& path : {draft_of(part.path), kept_of(part.path)})
        static_cast<void>(os::remove_file_durably(path));
    }
  }

  /// To be found by is_draft_of(), should this process be killed.
  [[nodiscard]] static std::string draft_of(const std::string& path) { return path + ".0.tmp"; }

  /// `line` is told once all is done.
  [[nodiscard]] Result<void> put(const std::string& path, std::string_view content, os::FileMode mode,
                                 std::string line) {
    parts_.push_back({path, std::move(line), true, false, false});
    TRY_VOID(os::write_draft(draft_of(path), content, mode));
    return keep(parts_.back());
  }
  /// `path` under the name `kept` too, which nothing has: the same file where the file system knows second names.
  [[nodiscard]] Result<void> keep_as(const std::string& path, const std::string& kept, std::string_view content,
                                     std::string line) {
    const std::string draft = draft_of(kept);
    TRY_VOID(os::remove_file_durably(draft));
    parts_.push_back({kept, std::move(line), true, false, false});
    if (os::link_file(path, draft)) return {};
    // Nor may everybody link what another user has.
    TRY_VOID(os::write_draft_like(draft, content, path));
    return keep(parts_.back());
  }
  [[nodiscard]] Result<void> remove(const std::string& path, std::string line) {
    parts_.push_back({path, std::move(line), false, false, false});
    return keep(parts_.back());
  }
  void note(std::string line) { notes_.push_back(std::move(line)); }

  /// `before_it`: right before `path` takes its place.
  [[nodiscard]] Result<void> apply(const std::string& path, const std::function<Result<void>()>& before_it) {
    for (Part& part : parts_) {
      if (part.path == path) TRY_VOID(before_it());
      part.was_tried = true;
      TRY_VOID(part.is_put ? os::rename_durably(draft_of(part.path), part.path) : os::remove_file_durably(part.path));
    }
    for (const std::string& line : notes_) tell_(line);
    for (const Part& part : parts_) tell_(part.line);
    return {};
  }

  /// After a failure. What can't be put back either is added to the error.
  void undo(Error& error) {
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
      if (!part->was_tried) continue;
      const auto is = part->was_there ? os::rename_durably(kept_of(part->path), part->path) : take_away(part->path);
      if (!is) error.message += fmt::format("; and {} is not as before: {}", part->path, is.error().message);
    }
  }

 private:
  struct Part {
    std::string path;
    std::string line;
    bool is_put, was_there, was_tried;
  };

  [[nodiscard]] static std::string kept_of(const std::string& path) { return path + ".1.tmp"; }

  /// Where a rename failed as something else has the name, that stays.
  [[nodiscard]] static Result<void> take_away(const std::string& path) {
    TRY(const auto status, os::entry_status(path));
    if (!status || status->type != os::FileStatus::Type::regular) return {};
    return os::remove_file_durably(path);
  }

  [[nodiscard]] static Result<void> keep(Part& part) {
    TRY(const auto status, os::entry_status(part.path));
    if (!status) return {};
    const std::string kept = kept_of(part.path);
    TRY_VOID(os::remove_file_durably(kept));
    if (!os::link_file(part.path, kept)) {  // not on every file system
      TRY(const std::string content, os::read_file(part.path, kProgramBytesMax));
      TRY_VOID(os::write_draft_like(kept, content, part.path));
    }
    part.was_there = true;
    return {};
  }

  const std::function<void(const std::string& line)>& tell_;
  std::vector<Part> parts_;
  std::vector<std::string> notes_;
};

std::string Installation::draft_of_kubeconfig(const InstallPlan& plan) const {
  return Change::draft_of(path_in(place_.configurations, plan.kubeconfig_name));
}

Result<void> Installation::keep_anothers(const std::string& path, std::string_view content, Change& change,
                                         std::string_view what) {
  TRY(const PlaceToKeep place, place_to_keep(path, content));
  if (place.has_it) {
    change.note(fmt::format("{} {}: {} has it already", path, what, place.path));
    return {};
  }
  return change.keep_as(path, place.path, content, fmt::format("{} {}: kept as {}", path, what, place.path));
}

Result<void> Installation::draft_program(const InstallProgram& program, const InstallRecord& ours,
                                         Change& change) const {
  const std::string path = path_in(place_.programs, program.name);
  TRY(const auto before, content_of(path, kProgramBytesMax));
  if (before && *before == program.content) {
    change.note(fmt::format("{} is this version already", path));
    return {};
  }
  if (before && !is_recorded(ours, Kind::program, program.name, digest_of(*before))) {
    if (is_program_of_croft(*before)) {
      change.note(fmt::format("{} was an earlier Croft, of which no record was there", path));
    } else {
      TRY_VOID(keep_anothers(path, *before, change));
    }
  }
  return change.put(path, program.content, os::FileMode::executable_by_all,
                    fmt::format("{} {}", path, before ? "replaced" : "written"));
}

Result<void> Installation::remove_drafts(const InstallRecord& record) const {
  const auto remove = [&](const std::string& directory, const std::vector<std::string>& names) -> Result<void> {
    const auto entries = os::list_directory(directory, kNamesMax);
    if (!entries && entries.error().code == ErrorCode::not_found) return {};
    if (!entries) return fail(entries.error());
    for (const std::string& entry : *entries) {
      if (!is_draft_of(names, entry)) continue;
      TRY(const auto status, os::entry_status(path_in(directory, entry)));
      if (!status || status->type != os::FileStatus::Type::regular) continue;
      TRY_VOID(os::remove_file_durably(path_in(directory, entry)));
      tell_(fmt::format("{} of an installation that was killed removed", path_in(directory, entry)));
    }
    return {};
  };
  std::vector<std::string> programs, others{wire::kInstallRecordName};
  for (const Entry& entry : record.entries) {
    (entry.kind == Kind::program ? programs : others).push_back(entry.name);
    for (int number = 0; number <= kKeptMax; ++number) {
      (entry.kind == Kind::program ? programs : others).push_back(kept_name(entry.name, number));
    }
  }
  TRY_VOID(remove(place_.programs, programs));
  return remove(place_.configurations, others);
}

Result<void> Installation::apply(const InstallPlan& plan, const InstallTexts& texts, const InstallProbe& probe,
                                 const InstallLastLook& last_look, const InstallRecord& before, Change& change) {
  TRY_VOID(remove_drafts(before));
  TRY_VOID(add_to_record(plan, texts.network));
  TRY(const InstallRecord all, record());
  TRY_VOID(remove_drafts(all));
  for (const InstallProgram& program : plan.programs) TRY_VOID(draft_program(program, all, change));
  if (!plan.kubeconfig_name.empty()) {
    const std::string path = path_in(place_.configurations, plan.kubeconfig_name);
    TRY_VOID(change.put(path, texts.kubeconfig, os::FileMode::for_user, fmt::format("{} written", path)));
  }
  if (!plan.network_name.empty()) {
    const std::string path = path_in(place_.configurations, plan.network_name);
    TRY(const auto is, content_of(path, wire::cni::kNetworkBytesMax));
    if (is && *is == texts.network) {
      TRY_VOID(note_giver(texts.network));
      change.note(fmt::format("{} is as it should be", path));
    } else {
      if (is && !is_recorded(before, Kind::network, plan.network_name, digest_of(*is))) {
        const auto calls = calls_of(place_.configurations, plan.network_name, *is);
        const bool calls_croft = calls && calls->is_of_croft();
        TRY_VOID(keep_anothers(
            path, *is, change,
            calls_croft ? "calls Croft, and no record says that it was written here like that" : "was another's"));
      }
      TRY_VOID(change.put(path, texts.network, os::FileMode::readable_by_all,
                          fmt::format("{} written: pods of this node get their addresses from Croft", path)));
    }
  }
  // Of an earlier installation, under another name: two would be confusing at best.
  std::set<std::string> left, removed;
  for (const Entry& entry : before.entries) {
    if (plan.network_name.empty() || entry.kind != Kind::network || entry.name == plan.network_name) continue;
    const std::string path = path_in(place_.configurations, entry.name);
    TRY(const auto status, os::entry_status(path));
    if (!status) continue;
    if (!is_network_of_ours(before, place_.configurations, entry.name)) {
      if (left.insert(path).second) change.note(fmt::format("{} {}", path, kIsAnothersNetwork));
      continue;
    }
    if (removed.insert(path).second) {
      TRY_VOID(change.remove(path, fmt::format("{} of an earlier installation removed", path)));
    }
  }
  if (!plan.kubeconfig_name.empty()) {
    TRY_VOID(probe(draft_of_kubeconfig(plan)));
  }
  // Who gives is noted before a runtime can go by it, and no sooner: an installation that ends before gave nothing.
  return change.apply(plan.network_name.empty() ? "" : path_in(place_.configurations, plan.network_name),
                      [&]() -> Result<void> {
                        TRY_VOID(last_look());
                        return note_giver(texts.network);
                      });
}

Result<void> Installation::write(const InstallPlan& plan, const InstallTexts& texts, const InstallProbe& probe,
                                 const InstallLastLook& last_look) {
  TRY(const InstallRecord before, record());
  TRY(const auto record_before, content_of(record_path(), wire::kInstallRecordBytesMax));
  Change change(tell_);
  auto done = apply(plan, texts, probe, last_look, before, change);
  if (done) return {};
  Error error = done.error();
  change.undo(error);
  // Last: what it names too much does no harm.
  const auto is =
      record_before ? os::replace_file_durably(record_path(), *record_before) : os::remove_file_durably(record_path());
  if (!is) error.message += fmt::format("; and {} is not as before: {}", record_path(), is.error().message);
  return fail(std::move(error));
}

}  // namespace croft::edge
