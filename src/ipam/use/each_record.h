#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "ipam/use/transact.h"
#include "register/records.h"
#include "register/snapshot.h"
#include "store/store.h"

namespace croft::engine {

/// The record of a key for who rests on what it says. Errors: those of the store, and that of an unreadable record.
[[nodiscard]] inline Result<std::optional<store::Record>> get_sound(const Context& context, const core::Key& key,
                                                                    Deadline deadline) {
  TRY(auto record, context.store.get(key, deadline));
  if (record && !record->value) return fail(record->value.error());
  return record;
}

/// The same as the store itself has it now: a memory takes a handle that no block of its node mentions for gone.
[[nodiscard]] inline Result<std::optional<store::Record>> get_newest(const Context& context, const core::Key& key,
                                                                     Deadline deadline) {
  core::Missing wanted;
  wanted.records.insert(key);
  wanted.to_keep = true;
  TRY(store::ReadAnswer answer, context.store.read(wanted, deadline));
  std::optional<store::Record> record = std::move(answer.records.front());
  if (record && !record->value) return fail(record->value.error());
  return record;
}

/// The handling of a damaged record during a walk.
enum class OnDamage : std::uint8_t {
  fail,  ///< it ends with the record's error: who visits rests on seeing all
  skip,  ///< the others are visited (DamageTelling says what is left out)
  visit,
};

namespace detail {

template <class Visit>
[[nodiscard]] Result<void> visit_one(store::Record& record, Visit& visit, OnDamage on_damage) {
  if (record.key.kind == core::Kind::block && !core::block_cidr_of(record.key)) return {};
  if (!record.value && on_damage == OnDamage::fail) return fail(record.value.error());
  if (!record.value && on_damage == OnDamage::skip) return {};
  if constexpr (std::is_void_v<decltype(visit(record))>) {
    visit(record);
    return {};
  } else {
    return visit(record);
  }
}

}  // namespace detail

/// Calls `visit(store::Record&)` for all records of a listing in the order of names, page by page; what it returns, if
/// a Result<void>, ends the walk when it failed. Each page has the whole time limit: a register of half a million
/// addresses may be far away. No common moment: what changes meanwhile is seen as it was or as it became.
/// A record in the place of blocks under a name without a CIDR is none, damaged or not. Errors: those of the store, of
/// `visit`, and of a damaged record unless `on_damage` says otherwise.
template <class Visit>
[[nodiscard]] Result<void> for_each_record(const Context& context, const core::Listing& listing, Visit visit,
                                           OnDamage on_damage = OnDamage::fail,
                                           std::size_t page_size = store::kListLimitMax) {
  store::ListRequest request{listing.kind, listing.name_prefix, "", page_size};
  for (bool more = true; more;) {
    TRY(store::Page page, context.store.list(request, deadline_of_use_case(context)));
    more = page.more && !page.records.empty();
    if (!page.records.empty()) request.after = page.records.back().key.name;
    for (store::Record& record : page.records) TRY_VOID(detail::visit_one(record, visit, on_damage));
  }
  return {};
}

/// The same in whatever order, with no more than a page of them in memory (store::Store::for_each).
template <class Visit>
[[nodiscard]] Result<void> for_each_in_any_order(const Context& context, const store::ListRequest& request, Visit visit,
                                                 OnDamage on_damage) {
  return context.store.for_each(
      request, [&] { return deadline_of_use_case(context); },
      [&](store::Record& record) { return detail::visit_one(record, visit, on_damage); });
}

}  // namespace croft::engine
