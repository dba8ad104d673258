#include "install/door/node_files.h"

#include <array>
#include <optional>

#include <fmt/format.h>

#include "os/files.h"

namespace croft::edge {
namespace {

using wire::InstallRecord;

constexpr std::array kProgramNames{"croft-ipam", "croft-ipam-cluster", "calico-ipam", "host-local"};
/// Drafts of the directory of configurations, whatever the name of what they become.
constexpr const char* kNetworkDraft = "network";
constexpr const char* kKubeconfigDraft = "kubeconfig";
constexpr const char* kRecordDraft = "record";
constexpr const char* kKeptDraft = "kept";

[[nodiscard]] std::string path_in(const std::string& directory, std::string_view name) {
  return fmt::format("{}/{}", directory, name);
}
/// No runtime reads a name that begins with a dot.
[[nodiscard]] std::string draft_in(const std::string& directory, std::string_view name) {
  return fmt::format("{}/.{}.croft-draft", directory, name);
}
[[nodiscard]] std::string kept_of(const std::string& path) { return path + std::string(core::kBeforeCroft); }

[[nodiscard]] Result<std::optional<std::string>> content_of(const std::string& path) {
  auto content = os::read_file(path, kProgramBytesMax);
  if (content) return std::optional(*std::move(content));
  if (content.error().code == ErrorCode::not_found) return std::optional<std::string>();
  return fail(content.error());
}

[[nodiscard]] Result<void> remove_drafts(const NodePlace& place) {
  for (const char* name : kProgramNames) TRY_VOID(os::remove_file_durably(draft_in(place.programs, name)));
  TRY_VOID(os::remove_file_durably(draft_in(place.programs, kKeptDraft)));
  for (const char* name : {kNetworkDraft, kKubeconfigDraft, kRecordDraft, kKeptDraft}) {
    TRY_VOID(os::remove_file_durably(draft_in(place.configurations, name)));
  }
  return {};
}

/// The file at `path` gets its second name, as a whole.
[[nodiscard]] Result<void> keep(const std::string& path, const std::string& content) {
  const std::string kept = kept_of(path), draft = draft_in(os::directory_of(path), kKeptDraft);
  TRY(const auto is, content_of(kept));
  if (is == content) return {};
  TRY_VOID(os::remove_file_durably(draft));
  // Not every file system knows second names, nor may everybody link what another user has.
  if (!os::link_file(path, draft)) TRY_VOID(os::write_draft_like(draft, content, path));
  return os::rename_durably(draft, kept);
}

[[nodiscard]] bool is_network_of_croft(const std::string& content) {
  return wire::read_node_network("", content).is_of_croft;
}

/// One recorded file. `is_ours`: whether its content is of an installation.
[[nodiscard]] Result<void> take_back_file(const std::string& path, bool (*is_ours)(const std::string& content),
                                          bool dry_run, const Tell& tell) {
  const std::string kept = kept_of(path);
  TRY(const auto is, content_of(path));
  TRY(const auto before, content_of(kept));
  if (is && !is_ours(*is)) {
    if (before != is) {
      tell(fmt::format("{} was replaced by somebody since: left as it is", path));
      return {};
    }
    tell(fmt::format("{} is what it was before", path));
    return dry_run ? Result<void>() : os::remove_file_durably(kept);
  }
  if (before) {
    tell(fmt::format("{} {} what it was before", path, dry_run ? "would be" : "is again"));
    return dry_run ? Result<void>() : os::rename_durably(kept, path);
  }
  tell(is ? fmt::format("{} {}", path, dry_run ? "would be removed" : "removed")
          : fmt::format("{} is not there (--cni-bin-dir, --cni-conf-dir)", path));
  return dry_run || !is ? Result<void>() : os::remove_file_durably(path);
}

}  // namespace

Result<InstallRecord> read_record(const std::string& configurations) {
  const std::string path = path_in(configurations, wire::kInstallRecordName);
  const auto text = os::read_file(path, wire::kInstallRecordBytesMax);
  if (!text && text.error().code == ErrorCode::not_found) return InstallRecord();
  if (!text) return fail(text.error());
  auto record = wire::decode_install_record(*text);
  if (record) return record;
  Error error = record.error().in(path);
  const bool is_newer = error.code == ErrorCode::newer_version;
  if (is_newer || error.code == ErrorCode::corrupt) {
    error.message += fmt::format("; {}remove it: what it named is then left where it is",
                                 is_newer ? "let the newer `croftd install --uninstall` take it back, or " : "");
  }
  return fail(std::move(error));
}

Result<std::vector<core::NodeNetwork>> read_networks(const std::string& configurations, std::string_view ours) {
  std::vector<core::NodeNetwork> all;
  auto names = os::list_directory(configurations, kNamesMax);
  if (!names && names.error().code == ErrorCode::not_found) return all;
  if (!names) return fail(names.error());
  for (const std::string& name : *names) {
    if (!core::is_network_file(name)) continue;
    const std::string path = path_in(configurations, name);
    TRY(const auto status, os::file_status(path));
    if (status && status->type == os::FileStatus::Type::directory) continue;  // as libcni does
    const auto text = os::read_file(path, wire::kNodeNetworkBytesMax);
    all.push_back(text ? wire::read_node_network(name, *text, ours)
                       : core::NodeNetwork{.file = name, .trouble = text.error().message});
  }
  return all;
}

bool is_program_of_croft(std::string_view content) {
  constexpr std::string_view kElf =
      "\x7f"
      "ELF";
  return content.starts_with(kElf) && content.find("CROFT_LOG_DIRECTORY") != content.npos;
}

// ---- installing

Drafts::~Drafts() { static_cast<void>(remove_drafts(place_)); }

std::string Drafts::kubeconfig() const { return draft_in(place_.configurations, kKubeconfigDraft); }

Result<void> Drafts::write() {
  TRY_VOID(remove_drafts(place_));
  for (const InstallProgram& program : plan_.programs) {
    TRY_VOID(content_of(path_in(place_.programs, program.name)));
    TRY_VOID(
        os::write_draft(draft_in(place_.programs, program.name), program.content, os::FileMode::executable_by_all));
  }
  if (!plan_.kubeconfig.empty()) TRY_VOID(os::write_draft(kubeconfig(), plan_.kubeconfig));
  if (plan_.network.empty()) return {};
  TRY_VOID(content_of(path_in(place_.configurations, plan_.network_file)));
  return os::write_draft(draft_in(place_.configurations, kNetworkDraft), plan_.network, os::FileMode::readable_by_all);
}

Result<void> Drafts::write_record(const InstallRecord& before) {
  InstallRecord record = before;
  for (const InstallProgram& program : plan_.programs) {
    TRY(const auto is, content_of(path_in(place_.programs, program.name)));
    // A package's own file of this very version is not taken back.
    if (is != program.content) record.programs.insert(program.name);
  }
  if (!plan_.kubeconfig.empty()) record.kubeconfig = true;
  if (!plan_.network.empty()) {
    record.networks.insert(plan_.network_file);
    record.network = plan_.network_name;
    record.main = plan_.main;
  }
  if (record == before) return {};
  const std::string draft = draft_in(place_.configurations, kRecordDraft);
  TRY_VOID(os::write_draft(draft, encode(record)));
  return os::rename_durably(draft, path_in(place_.configurations, wire::kInstallRecordName));
}

Result<void> Drafts::put(const std::string& path, const std::string& draft, std::string_view content, bool is_ours,
                         const Tell& tell) const {
  TRY(const auto is, content_of(path));
  if (is == content) {
    tell(fmt::format("{} is as it should be", path));
    return {};
  }
  if (is && !is_ours) {
    TRY_VOID(keep(path, *is));
    tell(fmt::format("{} was another's: kept as {}", path, kept_of(path)));
  }
  TRY_VOID(os::rename_durably(draft, path));
  tell(fmt::format("{} {}", path, is ? "replaced" : "written"));
  return {};
}

Result<void> Drafts::take_effect(const std::vector<std::string>& aside, const Tell& tell) {
  TRY(const InstallRecord before, read_record(place_.configurations));
  TRY_VOID(write_record(before));
  for (const InstallProgram& program : plan_.programs) {
    const std::string path = path_in(place_.programs, program.name);
    TRY(const auto is, content_of(path));
    TRY_VOID(put(path, draft_in(place_.programs, program.name), program.content, is && is_program_of_croft(*is), tell));
  }
  if (!plan_.kubeconfig.empty()) {
    TRY_VOID(put(path_in(place_.configurations, wire::kKubeconfigName), kubeconfig(), plan_.kubeconfig, true, tell));
  }
  if (plan_.network.empty()) return {};
  const std::string path = path_in(place_.configurations, plan_.network_file);
  TRY(const auto is, content_of(path));
  const bool is_ours = is && before.networks.contains(plan_.network_file) && is_network_of_croft(*is);
  TRY_VOID(put(path, draft_in(place_.configurations, kNetworkDraft), plan_.network, is_ours, tell));
  for (const std::string& file : aside) {
    const std::string other = path_in(place_.configurations, file);
    TRY_VOID(os::rename_durably(other, kept_of(other)));
    tell(fmt::format("{} set aside as {}", other, kept_of(other)));
  }
  for (const std::string& file : before.networks) {
    if (file == plan_.network_file) continue;
    // A file that it replaced once comes back with the last installation, not before this one.
    const std::string other = path_in(place_.configurations, file);
    TRY(const auto old, content_of(other));
    if (!old || !is_network_of_croft(*old)) continue;
    TRY_VOID(os::remove_file_durably(other));
    tell(fmt::format("{} of an earlier installation removed", other));
  }
  return {};
}

// ---- taking back

Result<void> take_back(const NodePlace& place, bool dry_run, const Tell& tell) {
  TRY(const InstallRecord record, read_record(place.configurations));
  if (record == InstallRecord()) {
    tell(fmt::format("{} has no record of an installation (--cni-conf-dir): nothing is taken back",
                     place.configurations));
  }
  for (const std::string& name : record.networks) {
    TRY_VOID(take_back_file(path_in(place.configurations, name), is_network_of_croft, dry_run, tell));
  }
  if (record.kubeconfig) {
    TRY_VOID(take_back_file(
        path_in(place.configurations, wire::kKubeconfigName), [](const std::string&) { return true; }, dry_run, tell));
  }
  // By name: croft-ipam goes before croft-ipam-cluster, which it needs.
  for (const std::string& name : record.programs) {
    TRY_VOID(take_back_file(
        path_in(place.programs, name), [](const std::string& content) { return is_program_of_croft(content); }, dry_run,
        tell));
  }
  if (dry_run) return {};
  TRY_VOID(remove_drafts(place));
  return os::remove_file_durably(path_in(place.configurations, wire::kInstallRecordName));
}

InstallTurn::~InstallTurn() {
  if (lock_.is_held()) static_cast<void>(os::remove_file_durably(lock_.path()));
}

}  // namespace croft::edge
