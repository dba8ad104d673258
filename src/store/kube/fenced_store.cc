#include "store/kube/fenced_store.h"

#include <algorithm>
#include <mutex>

namespace croft::store::kube {

bool FencedStore::wait_until_idle(std::chrono::nanoseconds patience) {
  const std::unique_lock idle(committing_, patience);
  return idle.owns_lock();
}

Result<Revision> FencedStore::commit(std::span<const Write> writes, const WriteToken& token, Deadline deadline) {
  const std::shared_lock lock(committing_);
  const auto end = leadership_.end_of(term_);
  if (!end) return fail(ErrorCode::unavailable, "no longer the leader: another controller goes on");
  deadline.at_since_boot = std::min(deadline.at_since_boot, end->at_since_boot);
  return ForwardingStore::commit(writes, token, deadline);
}

}  // namespace croft::store::kube
