#include "edge/cni/held_elsewhere.h"

#include <algorithm>
#include <chrono>
#include <string>

#include <fmt/format.h>

#include "base/quoted.h"
#include "edge/decision_log.h"
#include "engine/attachments.h"
#include "engine/release.h"

namespace croft::edge {

Result<void> look_on_node(const engine::Context& context, const core::Owner& owner, const core::AffinityOwner& node,
                          const Instant& began, GivenBack& given_back) {
  constexpr std::chrono::nanoseconds kPatience = std::chrono::seconds{2};
  engine::Context hurried = context;
  hurried.time_limit = std::min(kPatience, context.time_limit);
  const auto found = engine::held_on_node(hurried, owner, node, began);
  if (!found) return {};
  if (!found->unnamed.empty()) {
    TRY(const core::AddressReleases released, engine::release_addresses(context, found->unnamed));
    given_back.addresses.insert(given_back.addresses.end(), released.released.begin(), released.released.end());
  }
  for (const net::Address& address : found->kept) {
    if (std::ranges::find(given_back.kept, address) == given_back.kept.end()) given_back.kept.push_back(address);
  }
  if (!given_back.addresses.empty() || found->elsewhere.empty()) return {};
  std::string text;
  for (const engine::HeldElsewhere& one : found->elsewhere) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ";", in_quotes_if_needed(one.network), list_of(one.addresses));
  }
  given_back.why_none = " elsewhere=" + text;
  return {};
}

}  // namespace croft::edge
