#include "ipam/decide/config_changes.h"

#include <fmt/format.h>

#include "base/net/echo.h"

namespace croft::core {
namespace {

[[nodiscard]] Result<void> check_range(const char* field, std::uint32_t value, std::uint32_t max) {
  if (value <= max) return {};
  return fail(ErrorCode::invalid_argument, fmt::format("{} {} is out of range: 0 to {}", field, value, max));
}

template <class T>
void take(const std::optional<T>& wanted, T& value) {
  if (wanted) value = *wanted;
}

}  // namespace

Result<void> check_config(const IpamConfig& config) {
  TRY_VOID(check_range("maxBlocksPerHost", config.max_blocks_per_host, kMaxBlocksPerHostMax));
  TRY_VOID(check_range("ipCooldownSeconds", config.ip_cooldown_seconds, kIpCooldownSecondsMax));
  const std::string& persistence = config.kubevirt_vm_address_persistence;
  if (!persistence.empty() && persistence != "Enabled" && persistence != "Disabled") {
    return fail(ErrorCode::invalid_argument, fmt::format("kubeVirtVMAddressPersistence {} is neither Enabled nor "
                                                         "Disabled",
                                                         net::echo(persistence)));
  }
  if (!config.strict_affinity && !config.auto_allocate_blocks) {
    return fail(ErrorCode::refused_by_configuration,
                "autoAllocateBlocks false needs strictAffinity true: nodes that may not claim blocks would live on "
                "borrowed addresses alone");
  }
  if (config.max_blocks_per_host > 0 && !config.strict_affinity) {
    return fail(ErrorCode::refused_by_configuration,
                fmt::format("maxBlocksPerHost {} needs strictAffinity true: a node at its limit would borrow instead; "
                            "set both, or maxBlocksPerHost to 0",
                            config.max_blocks_per_host));
  }
  return {};
}

Step<IpamConfig> plan_set_config(const Snapshot& snapshot, const ConfigChange& change) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<IpamConfig>> {
    const IpamConfig* stored = reader.get(ipam_config_key());
    TRY_VOID(reader.ready());
    IpamConfig config = stored != nullptr ? *stored : IpamConfig();
    take(change.strict_affinity, config.strict_affinity);
    take(change.auto_allocate_blocks, config.auto_allocate_blocks);
    take(change.max_blocks_per_host, config.max_blocks_per_host);
    take(change.kubevirt_vm_address_persistence, config.kubevirt_vm_address_persistence);
    take(change.ip_cooldown_seconds, config.ip_cooldown_seconds);
    TRY_VOID(check_config(config));
    if (stored != nullptr && *stored == config) return Plan<IpamConfig>{std::move(config), {}};
    return Plan<IpamConfig>{config, {to_put(ipam_config_key(), config)}};
  });
}

}  // namespace croft::core
