#pragma once

#include <string>

#include "base/clock.h"
#include "core/register/affinity.h"
#include "core/register/owner.h"
#include "store/store.h"

namespace croft::edge {

/// For a DEL that found nothing: " elsewhere=<network>:<addresses>…" when the container holds addresses in networks of
/// other names, as after the network was renamed. Empty also when that can't be found out: it is only a word to people.
[[nodiscard]] std::string elsewhere_text(store::Store& store, const Clock& clock, Random& random,
                                         const core::Owner& owner, const core::AffinityOwner& node);

}  // namespace croft::edge
