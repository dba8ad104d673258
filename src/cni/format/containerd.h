#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace croft::wire::cni {

inline constexpr std::size_t kContainerdConfigBytesMax = std::size_t{1} << 20;

/// Where containerd looks for plugins, by its own configuration (TOML): `bin_dir`, or since 2.1 `bin_dirs`, of the
/// table `plugins."….cri…".cni` (docs/notes/cni.md#containerd-directories). Empty: it does not say, and the default
/// is /opt/cni/bin. No more of the text is understood, so it is for telling people and for nothing that depends on it.
[[nodiscard]] std::vector<std::string> plugin_directories_of_containerd(std::string_view toml);

}  // namespace croft::wire::cni
