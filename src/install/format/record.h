#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace croft::wire {

/// The files that `croftd install` wrote on a node, so that this and nothing else is taken back. Names are those of
/// files in the runtime's two directories.
struct InstallRecord {
  std::set<std::string> programs = {};
  bool kubeconfig = false;
  std::set<std::string> networks = {};  ///< of several only one is there; the others were renamed
  std::string network = {};             ///< its name, which the next installation keeps
  std::string main = {};                ///< `--main-plugin`
  friend bool operator==(const InstallRecord&, const InstallRecord&) = default;
};

/// The file's name, beside the network configurations; a runtime takes it for none.
inline constexpr const char* kInstallRecordName = "croft-install.record";
inline constexpr std::size_t kInstallRecordBytesMax = 65536;
/// The plugin's kubeconfig, there too.
inline constexpr const char* kKubeconfigName = "croft-kubeconfig";

/// A plain name of a file in a directory: letters, digits, `.`, `-` and `_`, no dot in front, at most 200 bytes.
[[nodiscard]] bool is_install_name(std::string_view name);

/// One line of JSON: {"version": 1, "files": [{"kind": "program", "name": "croft-ipam"}], "network":
/// "k8s-pod-network", "mainPlugin": "ptp"}. The kinds are program, kubeconfig and network.
[[nodiscard]] std::string encode(const InstallRecord& record);
/// Other members are passed over. Errors: corrupt; newer_version.
[[nodiscard]] Result<InstallRecord> decode_install_record(std::string_view json);

}  // namespace croft::wire
