#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "register/snapshot.h"

namespace croft::core {

/// A change of the cluster-wide switches; absent members stay as they are.
struct ConfigChange {
  std::optional<bool> strict_affinity;
  std::optional<bool> auto_allocate_blocks;
  std::optional<std::uint32_t> max_blocks_per_host;
  std::optional<std::string> kubevirt_vm_address_persistence;
  std::optional<std::uint32_t> ip_cooldown_seconds;
};

/// The narrower of the two bounds that Calico's formats have, so that a value fits both
/// (docs/notes/calico-ipam.md#ipam-configuration).
inline constexpr std::uint32_t kMaxBlocksPerHostMax = 1'000'000;
inline constexpr std::uint32_t kIpCooldownSecondsMax = 1200;

/// Checks switches that belong together: their bounds, and Calico's two rules
/// (docs/notes/calico-ipam.md#set-config). Errors: invalid_argument for a value out of its bounds,
/// refused_by_configuration for values that contradict each other.
[[nodiscard]] Result<void> check_config(const IpamConfig& config);

/// Decides a change of the switches, on top of what is stored or of the defaults, members of foreign formats included.
/// Nothing is checked against blocks that exist already: a smaller limit takes nothing away. Errors: as check_config.
[[nodiscard]] Step<IpamConfig> plan_set_config(const Snapshot& snapshot, const ConfigChange& change);

}  // namespace croft::core
