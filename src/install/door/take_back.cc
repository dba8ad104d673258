// The way back.

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/net/echo.h"
#include "cni/format/network_list.h"
#include "install/door/installation.h"
#include "install/door/node_files.h"
#include "os/directory.h"
#include "os/files.h"

namespace croft::edge {
namespace {

using wire::InstallRecord;
using Kind = InstallRecord::Kind;
using Entry = InstallRecord::Entry;

}  // namespace

void Installation::tell_of_further_kept(const std::string& path, const std::string& last) const {
  for (int number = 0; number <= kKeptMax; ++number) {
    const std::string kept = kept_name(path, number);
    if (kept == last) continue;
    const auto status = os::entry_status(kept);
    if (status && *status) tell_(fmt::format("{} was kept as another's: left as it is", kept));
  }
}

Result<bool> Installation::take_back_program(const InstallRecord& record, const std::string& name, bool dry_run) const {
  const std::string path = path_in(place_.programs, name);
  TRY(const std::string kept, kept_of_path(path));
  const bool is_kept = !kept.empty();
  tell_of_further_kept(path, kept);
  TRY(const auto is, content_of(path, kProgramBytesMax));
  if (is && !is_recorded(record, Kind::program, name, digest_of(*is))) {
    if (is_kept && has_same(kept, *is)) {
      TRY_VOID(drop_kept(path, kept, dry_run));
      return true;
    }
    tell_(fmt::format("{} was replaced by somebody since: left as it is", path));
    return true;
  }
  if (is_kept) {
    if (!dry_run) TRY_VOID(os::rename_durably(kept, path));
    tell_(fmt::format("{} {} what it was before", path, dry_run ? "would be" : "is again"));
    return true;
  }
  if (!is) {
    tell_(fmt::format("{} is not there", path));
    return false;
  }
  if (!dry_run) TRY_VOID(os::remove_file_durably(path));
  tell_(fmt::format("{} {}", path, dry_run ? "would be removed" : "removed"));
  return true;
}

Result<void> Installation::drop_kept(const std::string& path, const std::string& kept, bool dry_run) const {
  if (!dry_run) TRY_VOID(os::remove_file_durably(kept));
  tell_(fmt::format("{} is what it was before: {} {}", path, kept, dry_run ? "would be removed" : "removed"));
  return {};
}

Result<std::set<std::string>> Installation::left_elsewhere(const InstallRecord& record,
                                                           const std::set<std::string>& missing) const {
  TRY(const auto here, os::file_status(place_.programs));
  // In a container a path of the host's is none, or another directory.
  const bool sees_host = programs_on_host() == os::absolute_path(place_.programs);
  std::set<std::string> left, paths;
  for (const std::string& directory : record.program_directories) {
    if (directory == programs_on_host()) continue;
    TRY(const auto there, sees_host ? os::file_status(directory) : Result<std::optional<os::FileStatus>>(std::nullopt));
    if (there && here && there->id == here->id) continue;
    if (!there) {
      left.insert(missing.begin(), missing.end());
      tell_(
          fmt::format("programs were written to {} too, which is not to be seen from here: what is left there remove "
                      "by hand, or run it again on the node with that as --cni-bin-dir",
                      directory));
    }
    for (const Entry& entry : record.entries) {
      if (!there || entry.kind != Kind::program) continue;
      const std::string path = path_in(directory, entry.name);
      TRY(const auto is, content_of(path, kProgramBytesMax));
      if (!is || !is_recorded(record, Kind::program, entry.name, digest_of(*is))) continue;
      left.insert(entry.name);
      paths.insert(path);
    }
  }
  if (paths.empty()) return left;
  return fail(ErrorCode::refused_by_configuration,
              fmt::format("left, as written here too: {}; run it again with that directory as --cni-bin-dir",
                          fmt::join(paths, ", ")));
}

Result<void> Installation::take_back_kubeconfig(const std::string& name, bool dry_run) const {
  const std::string path = path_in(place_.configurations, name);
  TRY(const auto status, os::entry_status(path));
  if (!status) {
    tell_(fmt::format("{} is not there", path));
    return {};
  }
  if (status->type != os::FileStatus::Type::regular) {
    tell_(fmt::format("{} is no file that was written here: left as it is", path));
    return {};
  }
  if (!dry_run) TRY_VOID(os::remove_file_durably(path));
  tell_(fmt::format("{} {}", path, dry_run ? "would be removed" : "removed"));
  return {};
}

Result<std::string> Installation::network_to_come_back(const std::string& path,
                                                       const std::function<void(const std::string& line)>& tell) const {
  TRY(const int last, last_kept(path));
  for (int number = last; number >= 0; --number) {
    const std::string kept = kept_name(path, number);
    TRY(const auto status, os::entry_status(kept));
    if (!status) continue;
    const auto text = os::read_file(kept, wire::cni::kNetworkBytesMax);
    if (text && !is_network_of_croft(place_.configurations, path, *text)) return kept;
    tell(fmt::format("{} calls Croft's plugin, or can't be read: left under that name", kept));
  }
  return std::string();
}

Result<void> Installation::check_nothing_calls_what_goes(const InstallRecord& record) const {
  std::set<std::string> going, networks;
  for (const Entry& entry : record.entries) {
    if (entry.kind == Kind::network) networks.insert(entry.name);
    if (entry.kind != Kind::program || going.contains(entry.name)) continue;
    const std::string path = path_in(place_.programs, entry.name);
    // What can't be read is named when it is its turn.
    const auto is = content_of(path, kProgramBytesMax);
    const auto kept = kept_of_path(path);
    const bool is_ours = is && *is && is_recorded(record, Kind::program, entry.name, digest_of(**is));
    if (is_ours && kept && kept->empty()) going.insert(entry.name);
  }
  if (going.empty()) return {};
  TRY(const std::vector<std::string> files, network_files());
  networks.insert(files.begin(), files.end());
  for (const std::string& name : networks) {
    std::string path = path_in(place_.configurations, name);
    TRY(const auto status, os::entry_status(path));
    const bool is_written_here = std::ranges::any_of(
        record.entries, [&](const Entry& entry) { return entry.kind == Kind::network && entry.name == name; });
    if (is_written_here && (!status || is_network_of_ours(record, place_.configurations, name))) {
      TRY(path, network_to_come_back(path, [](const std::string&) {}));
      if (path.empty()) continue;
    }
    // What can't be read, no runtime goes by either.
    const auto text = os::read_file(path, wire::cni::kNetworkBytesMax);
    if (!text) continue;
    const auto calls = calls_of(place_.configurations, name, *text);
    if (!calls) continue;
    const auto program = std::ranges::find_if(going, [&](const std::string& one) { return calls->needs(one); });
    if (program == going.end()) continue;
    TRY(const auto switched, os::entry_status(path + ".before-croft"));
    return fail(
        ErrorCode::refused_for_safety,
        fmt::format("nothing was changed on this node: {} calls {}, which would go, and then no pod of it starts or is "
                    "taken down: {}; --force takes the program away all the same",
                    path, *program,
                    switched ? fmt::format("`mv {0}.before-croft {0}` first", path) : "change or remove it first"));
  }
  return {};
}

Result<void> Installation::take_back_network(const InstallRecord& record, const std::string& name, bool dry_run) const {
  const std::string path = path_in(place_.configurations, name);
  TRY(const std::string kept, network_to_come_back(path, tell_));
  const bool is_kept = !kept.empty();
  tell_of_further_kept(path, kept);
  TRY(const auto is, os::entry_status(path));
  if (is && !is_network_of_ours(record, place_.configurations, name)) {
    const auto text = os::read_file(path, wire::cni::kNetworkBytesMax);
    if (text && is_kept && has_same(kept, *text)) return drop_kept(path, kept, dry_run);
    tell_(fmt::format("{} {}", path, kIsAnothersNetwork));
    return {};
  }
  if (is_kept) {
    if (!dry_run) TRY_VOID(os::rename_durably(kept, path));
    tell_(fmt::format("{} {} what it was before", path, dry_run ? "would be" : "is again"));
    return {};
  }
  if (!is) {
    tell_(fmt::format("{} is not there", path));
    return {};
  }
  if (!dry_run) TRY_VOID(os::remove_file_durably(path));
  tell_(fmt::format("{} {}", path, dry_run ? "would be removed" : "removed"));
  return {};
}

void Installation::tell_of_no_record() const {
  tell_(fmt::format("nothing of Croft is recorded in {}: nothing was taken back", record_path()));
  const auto status = os::file_status(place_.configurations);
  if (status && !*status) {
    tell_(fmt::format("{} is not there; name the runtime's directory with --cni-conf-dir", place_.configurations));
  }
  // The plugin's own names: whoever installed has chosen among these.
  for (const char* name : {"croft-ipam", wire::cni::kSiblingName, "calico-ipam", "host-local"}) {
    const auto is = content_of(path_in(place_.programs, name), kProgramBytesMax);
    if (!is || !*is || !is_program_of_croft(**is)) continue;
    tell_(
        fmt::format("{} is a program of Croft, and no record says who put it there: left as it is. If an "
                    "installation did, name its directory of network configurations with --cni-conf-dir",
                    path_in(place_.programs, name)));
  }
}

Result<void> Installation::take_back(bool dry_run, Stays stays, Giver giver) {
  TRY(const InstallRecord all, record());
  const bool keeps_giver = giver == Giver::kept && !all.network.empty();
  const std::string kept = fmt::format(
      "{} stays and says who gave the addresses that pods of this node keep: the next "
      "installation asks about it; --uninstall removes it once they are gone",
      record_path());
  if (all.entries.empty() && !all.network.empty()) {
    if (keeps_giver) tell_(kept);
    if (keeps_giver || dry_run) return {};
    TRY_VOID(os::remove_file_durably(record_path()));
    tell_(fmt::format("{} removed: no pod of this node has an address of {} any more", record_path(),
                      net::echo(all.network)));
    return remove_drafts(all);
  }
  if (all.entries.empty()) {
    tell_of_no_record();
    return dry_run ? Result<void>() : remove_drafts(all);  // of the record, which one that was killed did not finish
  }
  if (stays == Stays::whole) TRY_VOID(check_nothing_calls_what_goes(all));
  std::optional<Error> trouble;
  const auto note = [&](const Error& error) {
    if (trouble) {
      trouble->message += "; " + error.message;
    } else {
      trouble = error.in("not all was taken back");
    }
  };
  InstallRecord rest = all;
  rest.entries.clear();
  const auto keep_entries = [&](Kind kind, const std::string& name) {
    std::ranges::copy_if(all.entries, std::back_inserter(rest.entries),
                         [&](const Entry& entry) { return entry.kind == kind && entry.name == name; });
  };
  const auto names_of = [&](Kind kind) {
    std::vector<std::string> names;
    for (const Entry& entry : all.entries) {
      if (entry.kind == kind && std::ranges::find(names, entry.name) == names.end()) names.push_back(entry.name);
    }
    return names;
  };
  for (const std::string& name : names_of(Kind::network)) {
    const auto done = take_back_network(all, name, dry_run);
    if (!done) note(done.error());
  }
  if (trouble) {
    // With a network that is still there the runtime calls the plugin.
    trouble->message += fmt::format(
        "; the plugin and its kubeconfig are left, as the runtime may call it; {} is "
        "kept: mend that and run it again",
        record_path());
    return fail(*std::move(trouble));
  }
  for (const std::string& name : names_of(Kind::kubeconfig)) {
    const auto done = take_back_kubeconfig(name, dry_run);
    if (done) continue;
    note(done.error());
    keep_entries(Kind::kubeconfig, name);
  }
  std::set<std::string> missing, left;
  // By name: croft-ipam goes before croft-ipam-cluster, which it needs.
  std::vector<std::string> programs = names_of(Kind::program);
  std::ranges::sort(programs);
  for (const std::string& name : programs) {
    const auto done = take_back_program(all, name, dry_run);
    if (!done) note(done.error());
    if (!done) left.insert(name);
    if (done && !*done) missing.insert(name);
  }
  const auto elsewhere = left_elsewhere(all, missing);
  if (elsewhere) left.insert(elsewhere->begin(), elsewhere->end());
  if (!elsewhere) {
    note(elsewhere.error());
    left.insert(programs.begin(), programs.end());
  }
  for (const std::string& name : left) keep_entries(Kind::program, name);
  if (!dry_run) {
    const auto cleaned = remove_drafts(all);
    if (!cleaned) note(cleaned.error());
    // What it names no more, an agent makes no more.
    const auto recorded =
        rest.entries.empty() && !trouble && !keeps_giver
            ? os::remove_file_durably(record_path())
            : os::replace_file_durably(record_path(), encode(rest.entries.empty() && trouble ? all : rest));
    if (!recorded) note(recorded.error());
  }
  if (keeps_giver) tell_(kept);
  if (!trouble) return {};
  trouble->message += fmt::format("; {} is kept: mend that and run it again", record_path());
  return fail(*std::move(trouble));
}

}  // namespace croft::edge
