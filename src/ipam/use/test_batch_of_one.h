#pragma once

#include <utility>
#include <vector>

#include "ipam/use/assign.h"
#include "ipam/use/batch.h"
#include "ipam/use/release.h"

// A call by way of memory, for who has one at a time: measurements and tests.

namespace croft::engine {

/// An answer and where it came from.
template <class Answer>
struct Served {
  Result<Answer> answer;
  bool from_memory = false;
};

namespace batch_detail {

/// The batch of one call; what it leaves is decided alone.
template <class Answer, class Kept, class Alone>
[[nodiscard]] Served<Answer> serve(const Context& direct, store::Store& cached, BatchedCall call, Kept& kept,
                                   Alone alone) {
  const BatchDone did = commit_together(direct, cached, {&call, 1});
  if (call.fate == BatchFate::done) return {Answer(std::move(kept)), did.from_memory};
  if (call.fate == BatchFate::failed) return {fail(*std::move(call.error)), false};
  return {alone(), false};
}

}  // namespace batch_detail

[[nodiscard]] inline Served<core::AssignAnswer> assign_by_memory(const Context& direct, store::Store& cached,
                                                                 const core::AssignRequest& request,
                                                                 const std::vector<core::PoolSpec>& pools = {}) {
  core::Assigned kept;
  return batch_detail::serve<core::AssignAnswer>(direct, cached,
                                                 assign_in_batch(request, pools, direct.not_after, kept), kept,
                                                 [&] { return assign(direct, request, pools); });
}

[[nodiscard]] inline Served<core::Released> release_by_memory(const Context& direct, store::Store& cached,
                                                              const core::Owner& owner) {
  core::Released kept;
  return batch_detail::serve<core::Released>(direct, cached, release_in_batch(owner, direct.not_after, kept), kept,
                                             [&] { return release_owner(direct, owner); });
}

}  // namespace croft::engine
