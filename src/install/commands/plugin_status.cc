#include "install/commands/plugin_status.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/texts.h"
#include "cli/stores/open_store.h"
#include "ipam/decide/pool_choice.h"
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
      {clock, random},
      [&](const std::string& url, store::OpenMode) { return open_store(url, store::OpenMode::existing, clock); },
      [](const std::string&, const std::string&) {}};
  const edge::CniPlugin plugin = edge::croft_ipam_plugin(world);
  const auto trouble = plugin.handlers.status({wire::cni::Command::status, {}, std::move(network)});
  return trouble ? Result<void>(fail(error_of(*trouble).in("the plugin's STATUS"))) : Result<void>();
}

Result<void> check_gateways(const wire::cni::NetworkList& drafted, const Clock& clock, Random& random) {
  TRY(const auto store, open_store(drafted.store, store::OpenMode::existing, clock));
  TRY(const std::vector<core::Pool> pools, engine::list_pools({*store, clock, random}));
  for (const net::Family family : net::kFamilies) {
    const bool is_v4 = family == net::Family::v4;
    const std::vector<std::string>& asked = is_v4 ? drafted.pools_v4 : drafted.pools_v6;
    const auto may_be_used = [&](const core::Pool& pool) {
      const auto names_it = [&](const std::string& text) {
        return core::is_pool_asked_for(core::asked_pool(text), pool.name, pool.cidr);
      };
      return pool.cidr.family() == family && core::is_enabled(pool) && core::allows(pool, core::PoolUse::workload) &&
             (asked.empty() || std::ranges::any_of(asked, names_it));
    };
    const core::Pool* lacks = nullptr;  // one that this node is sure to use, else any
    bool has_one = false;
    for (const core::Pool& pool : pools) {
      if (!may_be_used(pool)) continue;
      has_one |= pool.gateway.has_value();
      if (!pool.gateway && (lacks == nullptr || core::is_for_all_nodes(pool))) lacks = &pool;
    }
    if (!(is_v4 ? drafted.assign_v4 : drafted.assign_v6) || lacks == nullptr) continue;
    if (!has_one) {
      return fail(ErrorCode::refused_by_configuration,
                  "no {} pool has a gateway, and ptp and bridge fail each pod without one. Make one with `croft pool "
                  "create`, and `croft pool disable` those without; or `croft pool delete` an unused one, then `croft "
                  "pool defaults --gateways first`",
                  net::name_of(family));
    }
    if (asked.empty() && !core::is_for_all_nodes(*lacks)) continue;
    return fail(ErrorCode::refused_by_configuration,
                "pool {0} has no gateway, and ptp and bridge fail each pod that gets an address of it. Run `croft pool "
                "disable {0}`, or name the pools that are to be used with {1}",
                lacks->name, is_v4 ? "--ipv4-pool" : "--ipv6-pool");
  }
  return {};
}

}  // namespace croft::app
