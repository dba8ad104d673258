#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cni/format/network_list.h"
#include "install/door/installation.h"
#include "install/format/record.h"

// Single files of a node's directories: whose they are, and under which names another's is kept.
namespace croft::edge {

/// Entries of a directory.
inline constexpr std::size_t kNamesMax = 100'000;
/// Of all network configurations of a node, and of all plugins in the folder of one.
inline constexpr std::size_t kNetworksBytesMax = std::size_t{32} << 20;
/// Programs or configurations of others that were kept under one name, besides the first.
inline constexpr int kKeptMax = 9;

inline constexpr const char* kIsAnothersNetwork =
    "was replaced by somebody since: left as it is. The runtime goes by it where it is the first by name; remove it if "
    "nobody needs it";

[[nodiscard]] std::string path_in(const std::string& directory, std::string_view name);
/// Nothing where nothing is. What is no file can't be replaced by one without losing it. Errors:
/// refused_by_configuration, of a link to nothing; of os::read_file.
[[nodiscard]] Result<std::optional<std::string>> content_of(const std::string& path, std::size_t bytes_max);
/// Whether a file of this name has this content.
[[nodiscard]] bool has_same(const std::string& path, std::string_view content);
/// SHA-256 in hexadecimal, as the record has it.
[[nodiscard]] std::string digest_of(std::string_view content);
[[nodiscard]] bool is_recorded(const wire::InstallRecord& record, wire::InstallRecord::Kind kind, std::string_view name,
                               std::string_view digest);
/// An ELF file that names Croft's variable for logs, as each release of a plugin does: one of which the record says
/// nothing, as somebody removed it.
[[nodiscard]] bool is_program_of_croft(std::string_view content);
/// Whether a configuration calls Croft's plugin by its own name, or can't be read: none for a node that Croft has left.
[[nodiscard]] bool is_network_of_croft(const std::string& directory, std::string_view file, std::string_view text);
/// Whether what has the name is a file whose content is recorded as written here. What can't be read is not.
[[nodiscard]] bool is_network_of_ours(const wire::InstallRecord& record, const std::string& directory,
                                      const std::string& name);
/// What a network configuration of this file calls, with the plugins that a list has in the folder of its name.
[[nodiscard]] Result<wire::cni::NetworkCalls> calls_of(const std::string& directory, std::string_view file,
                                                       std::string_view text);
/// Of what was kept of another's `path`, the first and those that came when that was there already.
[[nodiscard]] std::string kept_name(const std::string& path, int number);
/// The number of what was kept last; -1: nothing was.
[[nodiscard]] Result<int> last_kept(const std::string& path);
/// What was there before Croft, under its second name; empty: nothing was.
[[nodiscard]] Result<std::string> kept_of_path(const std::string& path);

struct PlaceToKeep {
  std::string path;
  bool has_it = false;  ///< the content is there already
};
/// Where what is at `path` with `content` can be kept: behind all that was kept before, of which nothing is lost, so
/// that the last one is what has to come back.
[[nodiscard]] Result<PlaceToKeep> place_to_keep(const std::string& path, std::string_view content);

}  // namespace croft::edge
