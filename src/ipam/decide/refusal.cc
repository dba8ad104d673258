#include "ipam/decide/refusal.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace croft::core {

namespace {

constexpr std::size_t kNamedOfOneReason = 3;

std::string clause_of(const std::vector<const PoolVerdict*>& verdicts) {
  std::string text = verdicts.size() == 1 ? "pool " : "pools ";
  const std::size_t named = std::min(verdicts.size(), kNamedOfOneReason);
  for (std::size_t i = 0; i < named; ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", verdicts[i]->pool, verdicts[i]->cidr.to_string());
  }
  if (verdicts.size() > named) text += fmt::format(" and {} more", verdicts.size() - named);
  return text + ": " + verdicts.front()->reason;
}

/// Pools that are told together, each group where the first of it was considered.
std::vector<std::vector<const PoolVerdict*>> groups_of(const std::vector<PoolVerdict>& considered) {
  std::vector<std::vector<const PoolVerdict*>> groups;
  std::map<std::string_view, std::size_t> places;
  for (const PoolVerdict& verdict : considered) {
    const bool is_apart = considered.size() <= kVerdictsToldApart;
    const auto [place, is_new] = places.try_emplace(verdict.reason, groups.size());
    if (is_new || is_apart) {
      groups.push_back({&verdict});
    } else {
      groups[place->second].push_back(&verdict);
    }
  }
  return groups;
}

constexpr std::array<std::string_view, static_cast<std::size_t>(RefusalCause::address_out_of_bounds) + 1> kCauses = {
    "other",         "no_pool_enabled",       "pool_not_usable", "no_pool_for_node",  "no_pool_qualified",
    "full",          "full_and_strict",       "block_limit",     "no_block_to_claim", "address_in_no_pool",
    "address_taken", "address_out_of_bounds",
};

}  // namespace

std::string_view name_of(RefusalCause cause) { return kCauses.at(static_cast<std::size_t>(cause)); }

Error to_error(const Refusal& refusal) {
  std::string details;
  for (const auto& group : groups_of(refusal.considered)) details += (details.empty() ? "" : "; ") + clause_of(group);
  return {refusal.code, refusal.summary, std::move(details)};
}

}  // namespace croft::core
