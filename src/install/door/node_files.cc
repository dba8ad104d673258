#include "install/door/node_files.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "os/digest.h"
#include "os/directory.h"
#include "os/files.h"

namespace croft::edge {

using wire::InstallRecord;
using Kind = InstallRecord::Kind;
using Entry = InstallRecord::Entry;

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

std::string path_in(const std::string& directory, std::string_view name) {
  return fmt::format("{}/{}", directory, name);
}

Result<std::optional<std::string>> content_of(const std::string& path, std::size_t bytes_max) {
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

bool is_recorded(const InstallRecord& record, Kind kind, std::string_view name, std::string_view digest) {
  return std::ranges::any_of(record.entries, [&](const Entry& entry) {
    return entry.kind == kind && entry.name == name && entry.sha256 == digest;
  });
}

bool is_program_of_croft(std::string_view content) {
  constexpr std::string_view kElf =
      "\x7f"
      "ELF";
  return content.starts_with(kElf) && content.find("CROFT_LOG_DIRECTORY") != content.npos;
}

std::string kept_name(const std::string& path, int number) {
  return number == 0 ? path + std::string(kBeforeCroft) : fmt::format("{}{}-{}", path, kBeforeCroft, number);
}

bool has_same(const std::string& path, std::string_view content) {
  const auto is = os::read_file(path, content.size());
  return is && *is == content;
}

Result<int> last_kept(const std::string& path) {
  for (int number = kKeptMax; number >= 0; --number) {
    TRY(const auto status, os::entry_status(kept_name(path, number)));
    if (status) return number;
  }
  return -1;
}

Result<std::string> kept_of_path(const std::string& path) {
  TRY(const int last, last_kept(path));
  return last < 0 ? std::string() : kept_name(path, last);
}

Result<PlaceToKeep> place_to_keep(const std::string& path, std::string_view content) {
  TRY(const int last, last_kept(path));
  if (last >= 0 && has_same(kept_name(path, last), content)) return PlaceToKeep{kept_name(path, last), true};
  if (last < kKeptMax) return PlaceToKeep{kept_name(path, last + 1), false};
  return fail(ErrorCode::refused_for_safety,
              fmt::format("{} is another's and can't be kept, as {} is there: remove those beside it that nobody "
                          "needs, and rename the last to {}",
                          path, kept_name(path, last), kept_name(path, 0)));
}

Result<wire::cni::NetworkCalls> calls_of(const std::string& directory, std::string_view file, std::string_view text) {
  TRY(wire::cni::NetworkCalls calls, wire::cni::read_network_calls(text));
  const std::string& name = calls.name;
  const bool is_folder = !name.empty() && name != "." && name != ".." && name.find('/') == name.npos;
  if (calls.only_inlined || !is_folder || !file.ends_with(".conflist")) return calls;
  const std::string folder = path_in(directory, name);
  auto plugins = os::list_directory(folder, kNamesMax);
  if (!plugins && plugins.error().code == ErrorCode::not_found) return calls;
  if (!plugins) return fail(plugins.error());
  std::ranges::sort(*plugins);
  std::size_t bytes = 0;
  for (const std::string& plugin : *plugins) {
    const std::string path = path_in(folder, plugin);
    const auto status = os::entry_status(path);
    const bool is_directory = status && *status && (*status)->type == os::FileStatus::Type::directory;
    if (!plugin.ends_with(".conf") || is_directory) continue;
    TRY(const std::string content, os::read_file(path, wire::cni::kNetworkBytesMax));
    bytes += content.size();
    if (bytes > kNetworksBytesMax) {
      return fail(ErrorCode::refused_by_configuration, fmt::format("its folder {} has more than {} MiB of plugins",
                                                                   net::echo(name), kNetworksBytesMax >> 20));
    }
    auto added = wire::cni::add_plugin_of_folder(calls, content);
    if (!added) return fail(Error(added.error()).in(net::echo(fmt::format("{}/{}", name, plugin))));
  }
  return calls;
}

bool is_network_of_croft(const std::string& directory, std::string_view file, std::string_view text) {
  const auto calls = calls_of(directory, file, text);
  return !calls || calls->is_of_croft();
}

bool is_network_of_ours(const InstallRecord& record, const std::string& directory, const std::string& name) {
  const std::string path = path_in(directory, name);
  const auto status = os::entry_status(path);
  if (!status || !*status || (*status)->type != os::FileStatus::Type::regular) return false;
  const auto is = os::read_file(path, wire::cni::kNetworkBytesMax);
  return is && is_recorded(record, Kind::network, name, digest_of(*is));
}

}  // namespace croft::edge
