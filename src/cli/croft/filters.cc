#include "cli/croft/filters.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/net/echo.h"
#include "base/texts.h"
#include "ipam/use/nodes.h"

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

Result<Error> no_such_pool(const engine::Context& context, const std::string& pool) {
  TRY(const std::vector<core::Pool> pools, engine::list_pools(context));
  std::vector<std::string> names;
  for (const core::Pool& one : pools) names.push_back(one.name);
  return make_error(ErrorCode::not_found, "there is no pool {}{}", net::echo(pool), instead_of(pool, names));
}

Result<void> check_known(const engine::Context& context, const std::string& node, const std::string& pool) {
  if (!node.empty()) TRY_VOID(engine::check_node_known(context, node));
  if (pool.empty()) return {};
  TRY(const std::vector<core::Pool> pools, engine::list_pools(context));
  if (std::ranges::any_of(pools, [&](const core::Pool& one) { return one.name == pool; })) return {};
  TRY(Error error, no_such_pool(context, pool));
  return fail(std::move(error));
}

Result<LabelSelector> LabelSelector::parse(const std::string& text) {
  LabelSelector selector;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string given = text.substr(at, comma - at);
    at = comma + 1;
    Term term;
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos) {
      term.is_negative = given.starts_with('!');
      term.key = given.substr(term.is_negative ? 1 : 0);
    } else {
      term.is_negative = equals > 0 && given[equals - 1] == '!';
      term.key = given.substr(0, equals - (term.is_negative ? 1 : 0));
      const bool is_doubled = equals + 1 < given.size() && given[equals + 1] == '=';
      term.value = given.substr(equals + (is_doubled ? 2 : 1));
    }
    if (term.key.empty() || term.key.find_first_of(" !()") != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "--selector: {} is none of KEY=VALUE, KEY!=VALUE, KEY and !KEY",
                  net::echo(given));
    }
    selector.terms_.push_back(std::move(term));
  }
  return selector;
}

bool LabelSelector::matches(const std::map<std::string, std::string>& labels) const {
  return std::ranges::all_of(terms_, [&](const Term& term) {
    const auto it = labels.find(term.key);
    const bool holds = it != labels.end() && (!term.value || it->second == *term.value);
    return holds != term.is_negative;
  });
}

}  // namespace croft::app
