#include "cli/croft/filters.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/net/echo.h"
#include "base/printable.h"
#include "ipam/use/inspect.h"
#include "ipam/use/nodes.h"
#include "os/process.h"

namespace croft::app {
namespace {

constexpr std::size_t kNamedMax = 8;

/// Near names, else some of those that exist.
std::string instead_of(const std::string& name, const std::vector<std::string>& known) {
  if (known.empty()) return "; there are none";
  std::string meant = did_you_mean(name, known);
  if (!meant.empty()) return meant;
  std::string text;
  for (std::size_t i = 0; i < std::min(known.size(), kNamedMax); ++i)
    text += (i == 0 ? "; there are " : ", ") + known[i];
  return known.size() > kNamedMax ? text + fmt::format(" and {} more", known.size() - kNamedMax) : text;
}

}  // namespace

void warn(const std::string& text) {
  static_cast<void>(os::write_standard_error("croft: " + printable(text, Printed::line) + "\n"));
}

Result<Error> no_such_pool(const engine::Context& context, const std::string& pool) {
  TRY(const std::vector<core::Pool> pools, engine::list_pools(context));
  std::vector<std::string> names;
  for (const core::Pool& one : pools) names.push_back(one.name);
  return Error{
      ErrorCode::not_found, fmt::format("there is no pool {}{}", net::echo(pool), instead_of(pool, names)), {}};
}

Result<void> check_known(const engine::Context& context, const std::string& node, const std::string& pool) {
  if (!node.empty()) TRY_VOID(engine::check_node_known(context, node));
  if (pool.empty()) return {};
  TRY(const std::vector<core::Pool> pools, engine::list_pools(context));
  if (std::ranges::any_of(pools, [&](const core::Pool& one) { return one.name == pool; })) return {};
  TRY(Error error, no_such_pool(context, pool));
  return fail(std::move(error));
}

}  // namespace croft::app
