#pragma once

#include <span>
#include <vector>

#include "ipam/use/transact.h"

namespace croft::engine {

/// One commit() of the store, with an unknown outcome settled by reading back the token
/// (docs/notes/reliability.md#unknown-outcomes). While nothing has changed it commits again with the same conditions
/// and token, after pauses that double up to a second, a limited number of times and until the deadline. Returns the
/// revision, or conflict, or why not; unknown_outcome only when it could not be settled. A conflict after a lost reply
/// may hide that it was done before another wrote: who decides again finds what is there.
[[nodiscard]] Result<store::Revision> commit_once(const Context& context, std::span<const store::Write> writes,
                                                  Deadline deadline);

/// The same of writes that have nothing to do with each other, each a commit of its own: their outcomes in their order.
[[nodiscard]] std::vector<Result<store::Revision>> commit_each_once(const Context& context,
                                                                    std::span<const store::Write> writes,
                                                                    Deadline deadline);

}  // namespace croft::engine
