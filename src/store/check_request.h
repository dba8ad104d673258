#pragma once

#include <span>

#include "base/result.h"
#include "store/store.h"

namespace croft::store {

// The requests that every backend refuses before it does anything, in the same words. All errors: invalid_argument.

/// 1 to kCommitWritesMax writes, no key twice, each value of its key's kind, each name a legal one.
[[nodiscard]] Result<void> check_writes(std::span<const Write> writes);

/// A limit of 1 to kListLimitMax.
[[nodiscard]] Result<void> check_list(const ListRequest& request);

}  // namespace croft::store
