#include "app/croft/filters.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/inspect.h"
#include "engine/nodes.h"
#include "net/echo.h"
#include "os/process.h"

namespace croft::app {

void warn(const std::string& text) { static_cast<void>(os::write_standard_error("croft: " + text + "\n")); }

void warn_of_unknown(const engine::Context& context, const std::string& node, const std::string& pool) {
  if (!node.empty()) {
    if (const auto known = engine::check_node_known(context, node); !known) warn(known.error().message);
  }
  if (pool.empty()) return;
  const auto pools = engine::list_pools(context);
  if (!pools) return warn(pools.error().message);
  if (std::ranges::none_of(*pools, [&](const core::Pool& p) { return p.name == pool; })) {
    warn(fmt::format("there is no pool {}; `croft pool list` names them", net::echo(pool)));
  }
}

}  // namespace croft::app
