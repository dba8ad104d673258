#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "base/result.h"
#include "register/records.h"
#include "store/store.h"

namespace croft::store {

// The requests that every backend refuses before it does anything, in the same words. All errors: invalid_argument.

/// 1 to kCommitWritesMax writes, no key twice, each value of its key's kind, each name a legal one.
[[nodiscard]] Result<void> check_writes(std::span<const Write> writes);

/// A commit that asks whether the store takes writes, without making one. Its condition can never hold, so it gets as
/// far as a commit can and ends as a conflict. A store that can tell more without writing, as whether its account may
/// write at all, knows the question by is_write_question().
[[nodiscard]] inline Write write_question() {
  constexpr Revision kNever(std::numeric_limits<std::int64_t>::max());
  return {core::pool_set_key(), std::nullopt, Condition::if_revision(kNever), true};
}
[[nodiscard]] inline bool is_write_question(const Write& write) {
  const Write question = write_question();
  return write.only_check && write.condition.kind == question.condition.kind &&
         write.condition.revision == question.condition.revision;
}

}  // namespace croft::store
