#include "edge/install/installation.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "net/echo.h"
#include "os/digest.h"
#include "os/directory.h"
#include "os/files.h"
#include "wire/cni/network_list.h"

namespace croft::edge {
namespace {

using wire::InstallRecord;
using Kind = InstallRecord::Kind;
using Entry = InstallRecord::Entry;

constexpr std::size_t kNamesMax = 100'000;
constexpr std::size_t kNetworkBytesMax = std::size_t{1} << 20;
/// Programs or configurations of others that were kept under one name, besides the first.
constexpr int kKeptMax = 9;

constexpr const char* kIsAnothersNetwork =
    "was replaced by somebody since: left as it is. The runtime goes by it where it is the first by name; remove it if "
    "nobody needs it";

std::string digest_of(std::string_view content) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : os::sha256(content)) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xf];
  }
  return text;
}

std::string in(const std::string& directory, std::string_view name) { return fmt::format("{}/{}", directory, name); }

/// Nothing where nothing is. What is no file can't be replaced by one without losing it.
[[nodiscard]] Result<std::optional<std::string>> content_of(const std::string& path, std::size_t bytes_max) {
  TRY(const auto status, os::entry_status(path));
  if (!status) return std::optional<std::string>();
  auto content = os::read_file(path, bytes_max);
  if (content) return std::optional(*std::move(content));
  if (content.error().code == ErrorCode::not_found) {
    return fail(ErrorCode::refused_by_configuration,
                fmt::format("{} is a symbolic link to nothing: remove it, or put there what it points to", path));
  }
  return fail(content.error());
}

[[nodiscard]] bool is_recorded(const InstallRecord& record, Kind kind, std::string_view name, std::string_view digest) {
  return std::ranges::any_of(record.entries, [&](const Entry& entry) {
    return entry.kind == kind && entry.name == name && entry.sha256 == digest;
  });
}

/// An ELF file that names Croft's kinds of objects and its agent's variable, as each release of the plugin does: one of
/// which the record says nothing, as somebody removed it.
[[nodiscard]] bool is_program_of_croft(std::string_view content) {
  constexpr std::string_view kElf =
      "\x7f"
      "ELF";
  return content.starts_with(kElf) && content.find("ipam.croft.dev") != content.npos &&
         content.find("CROFT_AGENT") != content.npos;
}

/// Of what was kept of another's `path`, the first and those that came when that was there already.
[[nodiscard]] std::string kept_name(const std::string& path, int number) {
  return number == 0 ? path + std::string(kBeforeCroft) : fmt::format("{}{}-{}", path, kBeforeCroft, number);
}

struct Place {
  std::string path;
  bool has_it = false;  ///< the content is there already
};

/// Whether a file of this name has this content.
[[nodiscard]] bool has_same(const std::string& path, std::string_view content) {
  const auto is = os::read_file(path, content.size());
  return is && *is == content;
}

/// The number of what was kept last; -1: nothing was.
[[nodiscard]] Result<int> last_kept(const std::string& path) {
  for (int number = kKeptMax; number >= 0; --number) {
    TRY(const auto status, os::entry_status(kept_name(path, number)));
    if (status) return number;
  }
  return -1;
}

/// What was there before Croft, under its second name; empty: nothing was.
[[nodiscard]] Result<std::string> kept_of_path(const std::string& path) {
  TRY(const int last, last_kept(path));
  return last < 0 ? std::string() : kept_name(path, last);
}

/// Where what is at `path` with `content` can be kept: behind all that was kept before, of which nothing is lost, so
/// that the last one is what has to come back.
[[nodiscard]] Result<Place> place_to_keep(const std::string& path, std::string_view content) {
  TRY(const int last, last_kept(path));
  if (last >= 0 && has_same(kept_name(path, last), content)) return Place{kept_name(path, last), true};
  if (last < kKeptMax) return Place{kept_name(path, last + 1), false};
  return fail(ErrorCode::refused_for_safety,
              fmt::format("{} is another's and can't be kept, as {} is there: remove those beside it that nobody "
                          "needs, and rename the last to {}",
                          path, kept_name(path, last), kept_name(path, 0)));
}

/// What a network configuration of this file calls, with the plugins that a list has in the folder of its name.
[[nodiscard]] Result<wire::cni::NetworkCalls> calls_of(const std::string& directory, std::string_view file,
                                                       std::string_view text) {
  TRY(wire::cni::NetworkCalls calls, wire::cni::read_network_calls(text));
  const std::string& name = calls.name;
  const bool is_folder = !name.empty() && name != "." && name != ".." && name.find('/') == name.npos;
  if (calls.only_inlined || !is_folder || !file.ends_with(".conflist")) return calls;
  const std::string folder = in(directory, name);
  auto plugins = os::list_directory(folder, kNamesMax);
  if (!plugins && plugins.error().code == ErrorCode::not_found) return calls;
  if (!plugins) return fail(plugins.error());
  std::ranges::sort(*plugins);
  for (const std::string& plugin : *plugins) {
    const std::string path = in(folder, plugin);
    const auto status = os::entry_status(path);
    const bool is_directory = status && *status && (*status)->type == os::FileStatus::Type::directory;
    if (!plugin.ends_with(".conf") || is_directory) continue;
    TRY(const std::string content, os::read_file(path, kNetworkBytesMax));
    auto added = wire::cni::add_plugin_of_folder(calls, content);
    if (!added) return fail(Error(added.error()).in(net::echo(fmt::format("{}/{}", name, plugin))));
  }
  return calls;
}

/// Whether a configuration calls Croft's plugin by its own name, or can't be read: none for a node that Croft has left.
[[nodiscard]] bool is_network_of_croft(const std::string& directory, std::string_view file, std::string_view text) {
  const auto calls = calls_of(directory, file, text);
  return !calls || calls->is_of_croft();
}

/// Whether what has the name is a file whose content is recorded as written here. What can't be read is not.
[[nodiscard]] bool is_network_of_ours(const InstallRecord& record, const std::string& directory,
                                      const std::string& name) {
  const std::string path = in(directory, name);
  const auto status = os::entry_status(path);
  if (!status || !*status || (*status)->type != os::FileStatus::Type::regular) return false;
  const auto is = os::read_file(path, kNetworkBytesMax);
  return is && is_recorded(record, Kind::network, name, digest_of(*is));
}

[[nodiscard]] Result<void> check_directory(const std::string& path, const char* option) {
  auto directory = os::Directory::open(path);
  if (!directory) {
    Error error = directory.error();
    error.message += fmt::format("; name the runtime's directory with {}", option);
    return fail(std::move(error));
  }
  return directory->check_writable();
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

std::string Installation::programs_on_host() const {
  return os::absolute_path(place_.programs_on_host.empty() ? place_.programs : place_.programs_on_host);
}

std::string Installation::record_path() const { return in(place_.configurations, wire::kInstallRecordName); }

Result<InstallRecord> Installation::record() const {
  TRY(const auto text, content_of(record_path(), wire::kInstallRecordBytesMax));
  if (!text) return InstallRecord{};
  auto record = wire::decode_install_record(*text);
  if (record) return record;
  Error error = record.error().in(record_path());
  if (error.code == ErrorCode::corrupt) error.message += "; remove it: what it named is then left where it is";
  return fail(std::move(error));
}

Result<std::vector<std::string>> Installation::network_files() const {
  auto names = os::list_directory(place_.configurations, kNamesMax);
  if (!names && names.error().code == ErrorCode::not_found) return std::vector<std::string>();
  if (!names) return fail(names.error());
  std::erase_if(*names, [&](const std::string& name) {
    if (!wire::cni::is_network_file(name)) return true;
    const auto status = os::entry_status(in(place_.configurations, name));  // libcni passes over directories
    return status && *status && (*status)->type == os::FileStatus::Type::directory;
  });
  std::ranges::sort(*names);
  return *std::move(names);
}

NodeNetwork Installation::network(const InstallRecord& ours, const std::string& file) const {
  NodeNetwork network{file, {}, is_network_of_ours(ours, place_.configurations, file), {}, false, {}};
  network.has_our_name = std::ranges::any_of(
      ours.entries, [&](const Entry& entry) { return entry.kind == Kind::network && entry.name == file; });
  read_network(network, in(place_.configurations, file));
  return network;
}

void Installation::read_network(NodeNetwork& network, const std::string& path) const {
  auto text = os::read_file(path, kNetworkBytesMax);
  if (!text) {
    network.trouble = text.error().message;
    return;
  }
  network.text = *std::move(text);
  auto calls = calls_of(place_.configurations, network.file, network.text);
  if (!calls) {
    network.trouble = calls.error().message;
  } else {
    network.calls = *std::move(calls);
  }
}

Result<std::vector<NodeNetwork>> Installation::networks_in_use() const {
  std::vector<NodeNetwork> all;
  TRY(const std::vector<std::string> files, network_files());
  if (files.empty()) return all;
  TRY(const InstallRecord ours, record());
  bool is_behind = false;
  for (const std::string& file : files) {
    NodeNetwork& last = all.emplace_back(network(ours, file));
    last.is_behind = is_behind;
    const wire::cni::NetworkCalls& calls = last.calls;
    const bool calls_others = calls.names_another || !calls.delegates.empty();
    const bool is_taken = !calls_others && is_surely_taken(last);
    // Also where the record is lost, or somebody changed it: what lies behind it was asked when it was written.
    const bool is_crofts = calls.is_of_croft() || (last.has_our_name && !calls.givers.empty());
    if (last.is_ours || (is_crofts && is_taken)) break;
    is_behind = is_behind || is_taken;
  }
  return all;
}

bool Installation::is_surely_taken(const NodeNetwork& network) const {
  const wire::cni::NetworkCalls& calls = network.calls;
  if (!network.trouble.empty() || !calls.is_whole || calls.is_list != network.file.ends_with(".conflist")) return false;
  return std::ranges::all_of(calls.types, [&](const std::string& type) {
    const auto status = os::file_status(in(place_.programs, type));
    return status && *status;
  });
}

Result<RecordedNetwork> Installation::recorded_network() const {
  TRY(const InstallRecord ours, record());
  RecordedNetwork network{ours.network, ours.addresses_from, false, ours.store};
  if (!network.addresses_from.empty()) return network;
  // Of a version that does not note it: the programs that it wrote say it.
  for (const char* program : {"croft-ipam", "host-local"}) {
    const bool is_there = std::ranges::any_of(
        ours.entries, [&](const Entry& entry) { return entry.kind == Kind::program && entry.name == program; });
    if (!is_there) continue;
    network.addresses_from += fmt::format("{}{}", network.addresses_from.empty() ? "" : " or ", program);
    network.is_inferred = true;
  }
  return network;
}

Result<std::vector<NodeNetwork>> Installation::networks_to_come() const {
  TRY(const InstallRecord ours, record());
  TRY(const std::vector<std::string> files, network_files());
  std::set<std::string> names(files.begin(), files.end());
  for (const Entry& entry : ours.entries) {
    if (entry.kind == Kind::network) names.insert(entry.name);
  }
  std::vector<NodeNetwork> all;
  bool is_change = false;
  for (const std::string& name : names) {
    const std::string path = in(place_.configurations, name);
    TRY(const auto status, os::entry_status(path));
    NodeNetwork next = network(ours, name);
    if (next.has_our_name && (!status || next.is_ours)) {
      TRY(const std::string kept, network_to_come_back(path, [](const std::string&) {}));
      is_change = is_change || status || !kept.empty();
      if (kept.empty()) continue;
      next = NodeNetwork{name, {}, false, {}, false, {}};
      read_network(next, kept);
    }
    all.push_back(std::move(next));
    const wire::cni::NetworkCalls& calls = all.back().calls;
    const bool calls_others = calls.names_another || !calls.delegates.empty();
    if (!calls_others && is_surely_taken(all.back())) break;
  }
  if (!is_change) all.clear();
  return all;
}

Result<std::vector<NodeNetwork>> Installation::networks() const {
  TRY(const std::vector<std::string> files, network_files());
  TRY(const InstallRecord ours, record());
  std::vector<NodeNetwork> all;
  for (const std::string& file : files) {
    NodeNetwork one = network(ours, file);
    if (one.trouble.empty()) all.push_back(std::move(one));
  }
  return all;
}

Result<void> Installation::check(const InstallPlan& plan) const {
  TRY_VOID(check_names(plan));
  TRY_VOID(check_directory(place_.programs, "--cni-bin-dir"));
  TRY_VOID(check_directory(place_.configurations, "--cni-conf-dir"));
  TRY_VOID(record());
  for (const std::string& name : plan.others) {
    TRY(const auto status, os::file_status(in(place_.programs, name)));
    if (status) continue;
    return fail(ErrorCode::refused_by_configuration,
                fmt::format("the plugin {} is not in {}, and without it no pod would start: install it "
                            "(containernetworking-plugins), or name the runtime's directory with --cni-bin-dir",
                            name, place_.programs));
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

Result<void> Installation::add_to_record(const InstallPlan& plan, std::string_view network) {
  TRY(InstallRecord all, record());
  bool is_changed = false;
  const auto add = [&](Kind kind, const std::string& name, std::string digest) {
    if (!name.empty() && wire::add_to(all, {kind, name, std::move(digest)})) is_changed = true;
  };
  for (const InstallProgram& program : plan.programs) {
    const std::string path = in(place_.programs, program.name);
    TRY(const auto is, content_of(path, kProgramBytesMax));
    TRY(const auto is_kept, os::entry_status(kept_name(path, 0)));
    // A package's, say: what was not written here is not taken back.
    const bool is_there = is && *is == program.content && !is_kept;
    if (!is_there) add(Kind::program, program.name, digest_of(program.content));
  }
  if (!plan.programs.empty() && wire::add_program_directory(all, programs_on_host())) is_changed = true;
  add(Kind::kubeconfig, plan.kubeconfig_name, "");
  if (!network.empty()) {
    add(Kind::network, plan.network_name, digest_of(network));
    const auto calls = wire::cni::read_network_calls(network);
    const wire::cni::AddressGiver giver =
        calls && !calls->givers.empty() ? calls->givers[0] : wire::cni::AddressGiver{};
    if (wire::set_network(all, calls ? calls->name : "", giver.program, giver.store)) is_changed = true;
  }
  if (!is_changed) return {};
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

  /// `last_look`: before the one at `looked_at`.
  [[nodiscard]] Result<void> apply(const std::string& looked_at, const InstallLastLook& last_look) {
    for (Part& part : parts_) {
      if (part.path == looked_at) TRY_VOID(last_look());
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

Result<void> Installation::keep_anothers(const std::string& path, std::string_view content, Change& change,
                                         std::string_view what) {
  TRY(const Place place, place_to_keep(path, content));
  if (place.has_it) {
    change.note(fmt::format("{} {}: {} has it already", path, what, place.path));
    return {};
  }
  return change.keep_as(path, place.path, content, fmt::format("{} {}: kept as {}", path, what, place.path));
}

Result<void> Installation::draft_program(const InstallProgram& program, const InstallRecord& ours,
                                         Change& change) const {
  const std::string path = in(place_.programs, program.name);
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
      TRY(const auto status, os::entry_status(in(directory, entry)));
      if (!status || status->type != os::FileStatus::Type::regular) continue;
      TRY_VOID(os::remove_file_durably(in(directory, entry)));
      tell_(fmt::format("{} of an installation that was killed removed", in(directory, entry)));
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
  TRY_VOID(add_to_record(plan, texts.network));
  TRY(const InstallRecord all, record());
  TRY_VOID(remove_drafts(all));
  for (const InstallProgram& program : plan.programs) TRY_VOID(draft_program(program, all, change));
  if (!plan.kubeconfig_name.empty()) {
    const std::string path = in(place_.configurations, plan.kubeconfig_name);
    TRY_VOID(change.put(path, texts.kubeconfig, os::FileMode::for_user, fmt::format("{} written", path)));
  }
  if (!plan.network_name.empty()) {
    const std::string path = in(place_.configurations, plan.network_name);
    TRY(const auto is, content_of(path, kNetworkBytesMax));
    if (is && *is == texts.network) {
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
    const std::string path = in(place_.configurations, entry.name);
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
    TRY_VOID(probe(Change::draft_of(in(place_.configurations, plan.kubeconfig_name))));
  }
  return change.apply(plan.network_name.empty() ? "" : in(place_.configurations, plan.network_name), last_look);
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

void Installation::tell_of_further_kept(const std::string& path, const std::string& last) const {
  for (int number = 0; number <= kKeptMax; ++number) {
    const std::string kept = kept_name(path, number);
    if (kept == last) continue;
    const auto status = os::entry_status(kept);
    if (status && *status) tell_(fmt::format("{} was kept as another's: left as it is", kept));
  }
}

Result<bool> Installation::take_back_program(const InstallRecord& record, const std::string& name, bool dry_run) const {
  const std::string path = in(place_.programs, name);
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
      const std::string path = in(directory, entry.name);
      TRY(const auto is, content_of(path, kProgramBytesMax));
      if (!is || !is_recorded(record, Kind::program, entry.name, digest_of(*is))) continue;
      left.insert(entry.name);
      paths.insert(path);
    }
  }
  if (paths.empty()) return left;
  return fail(ErrorCode::refused_by_configuration,
              fmt::format("{} is left: it was written here too; run it again with that directory as --cni-bin-dir",
                          fmt::join(paths, ", ")));
}

Result<void> Installation::take_back_kubeconfig(const std::string& name, bool dry_run) const {
  const std::string path = in(place_.configurations, name);
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
    const auto text = os::read_file(kept, kNetworkBytesMax);
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
    const std::string path = in(place_.programs, entry.name);
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
    std::string path = in(place_.configurations, name);
    TRY(const auto status, os::entry_status(path));
    const bool is_written_here = std::ranges::any_of(
        record.entries, [&](const Entry& entry) { return entry.kind == Kind::network && entry.name == name; });
    if (is_written_here && (!status || is_network_of_ours(record, place_.configurations, name))) {
      TRY(path, network_to_come_back(path, [](const std::string&) {}));
      if (path.empty()) continue;
    }
    // What can't be read, no runtime goes by either.
    const auto text = os::read_file(path, kNetworkBytesMax);
    if (!text) continue;
    const auto calls = calls_of(place_.configurations, name, *text);
    if (!calls) continue;
    const auto program = std::ranges::find_if(going, [&](const std::string& one) { return calls->needs(one); });
    if (program == going.end()) continue;
    TRY(const auto switched, os::entry_status(path + ".switched-to-croft"));
    return fail(
        ErrorCode::refused_for_safety,
        fmt::format("nothing was changed on this node: {} calls {}, which would go, and then no pod of it starts or is "
                    "taken down: {}; --force takes the program away all the same",
                    path, *program,
                    switched ? fmt::format("`croft migrate calico --conflist {} --back --apply` first", path)
                             : "change or remove it first"));
  }
  return {};
}

Result<void> Installation::take_back_network(const InstallRecord& record, const std::string& name, bool dry_run) const {
  const std::string path = in(place_.configurations, name);
  TRY(const std::string kept, network_to_come_back(path, tell_));
  const bool is_kept = !kept.empty();
  tell_of_further_kept(path, kept);
  TRY(const auto is, os::entry_status(path));
  if (is && !is_network_of_ours(record, place_.configurations, name)) {
    const auto text = os::read_file(path, kNetworkBytesMax);
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
  for (const char* name : {"croft-ipam", "calico-ipam", "host-local"}) {
    const auto is = content_of(in(place_.programs, name), kProgramBytesMax);
    if (!is || !*is || !is_program_of_croft(**is)) continue;
    tell_(
        fmt::format("{} is a program of Croft, and no record says who put it there: left as it is. If an "
                    "installation did, name its directory of network configurations with --cni-conf-dir",
                    in(place_.programs, name)));
  }
}

Result<void> Installation::take_back(bool dry_run, Stays stays) {
  TRY(const InstallRecord all, record());
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
  InstallRecord rest{{}, all.program_directories};
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
  for (const std::string& name : names_of(Kind::program)) {
    const auto done = take_back_program(all, name, dry_run);
    if (!done) note(done.error());
    if (!done) left.insert(name);
    if (done && !*done) missing.insert(name);
  }
  const auto elsewhere = left_elsewhere(all, missing);
  if (elsewhere) left.insert(elsewhere->begin(), elsewhere->end());
  if (!elsewhere) {
    note(elsewhere.error());
    for (const std::string& name : names_of(Kind::program)) left.insert(name);
  }
  for (const std::string& name : left) keep_entries(Kind::program, name);
  if (!dry_run) {
    const auto cleaned = remove_drafts(all);
    if (!cleaned) note(cleaned.error());
    // What it names no more, an agent makes no more.
    const auto recorded = rest.entries.empty() && !trouble
                              ? os::remove_file_durably(record_path())
                              : os::replace_file_durably(record_path(), encode(rest.entries.empty() ? all : rest));
    if (!recorded) note(recorded.error());
  }
  if (!trouble) return {};
  trouble->message += fmt::format("; {} is kept: mend that and run it again", record_path());
  return fail(*std::move(trouble));
}

}  // namespace croft::edge
