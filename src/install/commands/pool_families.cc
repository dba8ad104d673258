#include "install/commands/pool_families.h"

#include <array>

#include <fmt/format.h>

#include "base/net/echo.h"

namespace croft::app {
namespace {

/// What says so to `croftd install`, and to the chart.
std::string flags_of(const Families& families) {
  if (families.v4 && families.v6) return "--ipv6 without --no-ipv4 (in the chart install.ipv6=true)";
  return families.v6 ? "--ipv6 --no-ipv4 (in the chart install.ipv6=true and install.ipv4=false)"
                     : "neither --ipv6 nor --no-ipv4 (in the chart install.ipv6=false)";
}

}  // namespace

Result<std::vector<std::string>> compare_families(const Families& wanted, const std::vector<core::Pool>& pools) {
  struct OfFamily {
    net::Family family;
    bool is_wanted;
    const core::Pool* any = nullptr;
    const core::Pool* gives = nullptr;
  };
  std::array<OfFamily, 2> families{{{net::Family::v4, wanted.v4}, {net::Family::v6, wanted.v6}}};
  for (const core::Pool& pool : pools) {
    OfFamily& one = pool.cidr.family() == net::Family::v4 ? families[0] : families[1];
    // A disabled one was meant for pods, and may be enabled again.
    one.any = &pool;
    if (core::is_enabled(pool)) one.gives = &pool;
  }
  std::vector<std::string> lines;
  for (const std::size_t i : {0, 1}) {
    const OfFamily& one = families[i];
    const OfFamily& other = families[1 - i];
    if (one.is_wanted && one.any == nullptr && other.any != nullptr) {
      return fail(
          ErrorCode::refused_by_configuration,
          fmt::format("pods of this node are to get {0}, and the register has pools of {1} alone ({2}), so none "
                      "would start: give {3}; or make a pool of {0} first",
                      net::name_of(one.family), net::name_of(other.family), net::echo(other.any->name),
                      flags_of({other.family == net::Family::v4, other.family == net::Family::v6})));
    }
    if (!one.is_wanted && one.gives != nullptr && other.any != nullptr) {
      lines.push_back(
          fmt::format("the register has pools of {} ({}), of which pods of this node get nothing: {} gives "
                      "them both families",
                      net::name_of(one.family), net::echo(one.gives->name), flags_of({true, true})));
    }
  }
  return lines;
}

}  // namespace croft::app
