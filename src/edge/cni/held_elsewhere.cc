#include "edge/cni/held_elsewhere.h"

#include <chrono>

#include <fmt/format.h>

#include "base/quoted.h"
#include "edge/decision_log.h"
#include "engine/attachments.h"

namespace croft::edge {

std::string elsewhere_text(store::Store& store, const Clock& clock, Random& random, const core::Owner& owner,
                           const core::AffinityOwner& node) {
  constexpr std::chrono::seconds kPatience{2};
  const engine::Context context{store, clock, random, kPatience};
  const auto found = engine::held_elsewhere(context, owner, node);
  if (!found || found->empty()) return {};
  std::string text;
  for (const engine::HeldElsewhere& one : *found) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ";", in_quotes_if_needed(one.network), list_of(one.addresses));
  }
  return " elsewhere=" + text;
}

}  // namespace croft::edge
