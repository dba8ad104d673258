#include "install/commands/plugin_status.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/stores/open_store.h"
#include "ipam/door/croft_ipam.h"
#include "ipam/use/inspect.h"
#include "os/process.h"

namespace croft::app {
namespace {

using wire::cni::Code;

[[nodiscard]] Error error_of(const wire::cni::Error& said) {
  Error error{ErrorCode::refused_by_configuration, said.msg, said.details};
  if (said.code == Code::try_again_later) error.code = ErrorCode::unavailable;
  if (said.code == Code::invalid_network_config || said.code == Code::decoding_failure) {
    error.code = ErrorCode::invalid_argument;
  }
  return error;
}

}  // namespace

Result<void> ask_plugin_status(wire::cni::Network network, const Clock& clock, Random& random) {
  os::make_files_private();
  const edge::CroftIpamWorld world{
      .open_store = [&](const std::string& url,
                        store::OpenMode) { return open_store(url, store::OpenMode::existing, clock); },
      .clock = clock,
      .random = random,
      .host_name = {},
      .log = [](const std::string&, const std::string&) {}};
  const edge::CniPlugin plugin = edge::croft_ipam_plugin(world);
  const auto trouble = plugin.handlers.status({wire::cni::Command::status, {}, std::move(network)});
  return trouble ? Result<void>(fail(error_of(*trouble).in("the plugin's STATUS"))) : Result<void>();
}

Result<void> check_gateways(const wire::cni::NetworkList& drafted, const Clock& clock, Random& random) {
  TRY(const auto store, open_store(drafted.store, store::OpenMode::existing, clock));
  TRY(const std::vector<core::Pool> pools, engine::list_pools({*store, clock, random}));
  for (const net::Family family : net::kFamilies) {
    const auto is_of_family = [&](const core::Pool& pool) {
      return pool.cidr.family() == family && core::is_enabled(pool) && core::allows(pool, core::PoolUse::workload);
    };
    const bool is_wanted = family == net::Family::v4 ? drafted.assign_v4 : drafted.assign_v6;
    const bool has_any = std::ranges::any_of(pools, is_of_family);
    const bool has_one = std::ranges::any_of(
        pools, [&](const core::Pool& pool) { return is_of_family(pool) && pool.gateway.has_value(); });
    if (!is_wanted || !has_any || has_one) continue;
    return fail(ErrorCode::refused_by_configuration,
                fmt::format("no {} pool has a gateway, and ptp and bridge fail each pod without one. Make one with "
                            "`croft pool create`; or `croft pool delete` an unused one, then `croft pool defaults "
                            "--gateways first`",
                            net::name_of(family)));
  }
  return {};
}

}  // namespace croft::app
