#pragma once

#include <map>
#include <vector>

#include "collector/decide/brake.h"
#include "collector/decide/register_view.h"
#include "ipam/use/transact.h"
#include "register/records.h"

namespace croft::engine {

struct RegisterLook {
  core::collect::RegisterView view;
  std::vector<core::RemovedNode> spent;      ///< nodes taken away of which nothing is held any more
  std::vector<core::collect::Alarm> alarms;  ///< blocks that contradict themselves: they are not in the view
  std::map<core::Kind, Error> not_allowed{};
};

/// Reads what the collector looks at, page by page, so that never more than a page of whole records is in memory:
/// blocks, affinities, the names of handles. Changes meanwhile may or may not be seen. With `may_lack`, for who writes
/// nothing, affinities and handles that this account may not read are left out, and told (not_allowed).
[[nodiscard]] Result<RegisterLook> look_at_register(const Context& context, bool may_lack);

}  // namespace croft::engine
