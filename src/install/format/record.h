#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace croft::wire {

/// What was written on a node, so that all of it, and nothing else, can be taken back.
struct InstallRecord {
  enum class Kind : std::uint8_t { program, kubeconfig, network };
  struct Entry {
    Kind kind = Kind::program;
    std::string name;    ///< in its directory
    std::string sha256;  ///< of what was written, 64 hexadecimal digits; empty: it is written again and again
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::vector<Entry> entries;  ///< a name may come several times: of several versions, the newest last
  /// Where programs were written, as the installations saw it: in a container under the mount of the host's directory.
  /// The newest last.
  std::vector<std::string> program_directories = {};
  /// Of the network that was written last, which owners and host-local's directory have: it stays, though the file may
  /// be lost. Empty: no network was written, or by a program that did not note it.
  std::string network = {};
  /// The IPAM plugin that this network called: croft-ipam, host-local. Empty: not known, as above.
  std::string addresses_from = {};
  /// Of the register that it named, the URL. Empty: none, or not known, as above.
  std::string store = {};
  friend bool operator==(const InstallRecord&, const InstallRecord&) = default;
};

/// The file's name, beside the network configurations; a runtime takes it for none.
inline constexpr const char* kInstallRecordName = "croft-install.record";
inline constexpr std::size_t kInstallRecordBytesMax = 65536;
/// Versions of one name that are kept: what a rollback can have left on the node. Older ones are forgotten.
inline constexpr std::size_t kInstallVersionsMax = 8;
/// Files that a record can name, each version for itself: with more it can't be read.
inline constexpr std::size_t kInstallEntriesMax = 256;
/// Directories that are kept, and how long a path may be; what is more or longer is not remembered.
inline constexpr std::size_t kInstallDirectoriesMax = 8;
inline constexpr std::size_t kInstallDirectoryBytesMax = 1024;
/// Of a network's name; a longer one is not remembered.
inline constexpr std::size_t kInstallNetworkBytesMax = 1024;
/// Of a store's URL, as a network configuration may have it; a longer one is not remembered.
inline constexpr std::size_t kInstallStoreBytesMax = 4096;
/// Of a name; room is left for what a temporary or kept file has behind it (NAME_MAX is 255).
inline constexpr std::size_t kInstallNameBytesMax = 200;

/// A plain name of a file in a directory: letters, digits, `.`, `-` and `_`, no dot in front, at most 200 bytes.
[[nodiscard]] bool is_install_name(std::string_view name);

/// Adds what is not there yet; the oldest of the same kind and name go when there are more than kInstallVersionsMax.
/// What is there already becomes the newest. Returns whether the record changed.
[[nodiscard]] bool add_to(InstallRecord& record, InstallRecord::Entry entry);

/// Adds a directory of programs that is not there yet; the oldest goes when there are too many. Not one whose path is
/// too long or has other than printable ASCII. What is there already becomes the newest. Returns whether the record
/// changed.
[[nodiscard]] bool add_program_directory(InstallRecord& record, const std::string& path);

/// Notes a network's name, but not one that is too long, and who gives its addresses, of which register. Returns
/// whether the record changed.
[[nodiscard]] bool set_network(InstallRecord& record, std::string_view name, std::string_view addresses_from,
                               std::string_view store = {});

/// One line of JSON: {"version": 1, "files": [{"kind": "program", "name": "croft-ipam", "sha256": "…"}],
/// "programDirectories": ["/opt/cni/bin"], "network": "k8s-pod-network", "addressesFrom": "croft-ipam", "store":
/// "sqlite:/var/lib/croft/croft.db"}. Programs that know no directories, no network or no store pass over them, and
/// leave them out of what they write.
[[nodiscard]] std::string encode(const InstallRecord& record);
/// Errors: corrupt, naming the member; a name that is no single part of a path is one; newer_version.
[[nodiscard]] Result<InstallRecord> decode_install_record(std::string_view json);

}  // namespace croft::wire
