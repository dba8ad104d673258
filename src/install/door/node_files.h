#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "install/decide/node_network.h"
#include "install/format/node_network.h"
#include "os/file_lock.h"

// Croft's files on a node. All are made under draft names, the plugin is asked with the drafts, and then they take
// their places by renames: programs first, the network configuration last, since a runtime calls the node ready by it.
namespace croft::edge {

inline constexpr const char* kDefaultPrograms = "/opt/cni/bin";
/// Bound of a directory.
inline constexpr std::size_t kNamesMax = 100'000;
/// Bound of one program.
inline constexpr std::size_t kProgramBytesMax = std::size_t{256} << 20;

/// A line for people.
using Tell = std::function<void(const std::string& line)>;

/// Where a runtime looks, as this process sees it.
struct NodePlace {
  std::string programs;        ///< /opt/cni/bin
  std::string configurations;  ///< /etc/cni/net.d
};

/// Nothing was installed: an empty record. Errors: those of the file; corrupt and newer_version, with the remedy.
[[nodiscard]] Result<wire::InstallRecord> read_record(const std::string& configurations);
/// The configurations that a runtime reads, by name. `ours`: the text that is to be written.
[[nodiscard]] Result<std::vector<core::NodeNetwork>> read_networks(const std::string& configurations,
                                                                   std::string_view ours);
/// An ELF file that names Croft's variable for logs, as each release of a plugin does.
[[nodiscard]] bool is_program_of_croft(std::string_view content);

struct InstallProgram {
  std::string name;     ///< one that kProgramNames has
  std::string content;  ///< of an ELF file
};

struct InstallPlan {
  std::vector<InstallProgram> programs;  ///< in this order
  std::string kubeconfig;                ///< its text, a secret; empty: none is written
  std::string network_file, network;     ///< the configuration's name and text; empty: none is written
  std::string network_name, main;        ///< for the record
};

/// The files of one installation. Its drafts go with it; those of a killed one go with the next.
class Drafts {
 public:
  Drafts(NodePlace place, InstallPlan plan) : place_(std::move(place)), plan_(std::move(plan)) {}
  Drafts(const Drafts&) = delete;
  Drafts& operator=(const Drafts&) = delete;
  ~Drafts();

  /// Makes all drafts. Nothing else changes. Errors: of the files; invalid_argument where a name is a directory's.
  [[nodiscard]] Result<void> write();
  /// The kubeconfig's draft.
  [[nodiscard]] std::string kubeconfig() const;
  /// Renames all into place, the record before the first, then sets `aside` other networks. Interrupted anywhere, the
  /// node has the old network or the new one. Errors: of the files.
  [[nodiscard]] Result<void> take_effect(const std::vector<std::string>& aside, const Tell& tell);

 private:
  [[nodiscard]] Result<void> write_record(const wire::InstallRecord& before);
  /// `is_ours`: what has the name was written by an installation.
  [[nodiscard]] Result<void> put(const std::string& path, const std::string& draft, std::string_view content,
                                 bool is_ours, const Tell& tell) const;

  const NodePlace place_;
  const InstallPlan plan_;
};

/// Removes what the record names, the configuration first; what was there before comes back. A file that somebody
/// replaced since is left, and told. Errors: of the files; the record stays, and it can be run again.
[[nodiscard]] Result<void> take_back(const NodePlace& place, bool dry_run, const Tell& tell);

/// One at a time on a node: installs, takes back, or writes a kubeconfig anew. A lock in the directory of network
/// configurations, under a name that no runtime reads; the file is there only meanwhile.
class InstallTurn {
 public:
  explicit InstallTurn(const std::string& configurations) : lock_(configurations + "/croft-install.lock") {}
  InstallTurn(const InstallTurn&) = delete;
  InstallTurn& operator=(const InstallTurn&) = delete;
  ~InstallTurn();

  /// Errors: deadline_exceeded, when another has it; as os::FileLock::lock.
  [[nodiscard]] Result<void> begin(const Clock& clock, Deadline deadline) { return lock_.lock(clock, deadline); }

 private:
  os::FileLock lock_;
};

}  // namespace croft::edge
