#pragma once

#include <cstddef>
#include <type_traits>

#include "base/result.h"
#include "core/block/snapshot.h"
#include "engine/transact.h"
#include "store/store.h"

namespace croft::engine {

/// Calls `visit(store::Record&)` for all records of a listing in the order of names, page by page; what it returns, if
/// a Result<void>, ends the walk when it failed. Each page has the whole time limit: a register of half a million
/// addresses may be far away. No common moment: what changes meanwhile is seen as it was or as it became.
/// Errors: those of the store, and of `visit`.
template <class Visit>
[[nodiscard]] Result<void> for_each_record(const Context& context, const core::Listing& listing, Visit visit,
                                           std::size_t page_size = store::kListLimitMax) {
  store::ListRequest request{listing.kind, listing.name_prefix, "", page_size};
  for (bool more = true; more;) {
    TRY(store::Page page, context.store.list(request, deadline_of_use_case(context)));
    more = page.more && !page.records.empty();
    if (!page.records.empty()) request.after = page.records.back().key.name;
    for (store::Record& record : page.records) {
      if constexpr (std::is_void_v<decltype(visit(record))>) {
        visit(record);
      } else {
        TRY_VOID(visit(record));
      }
    }
  }
  return {};
}

}  // namespace croft::engine
