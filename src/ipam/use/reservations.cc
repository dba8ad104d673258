#include "ipam/use/reservations.h"

#include <utility>

#include <fmt/format.h>

#include "ipam/decide/keep_out.h"
#include "ipam/use/each_record.h"

namespace croft::engine {

Result<std::vector<core::Reservation>> list_reservations(const Context& context) {
  std::vector<core::Reservation> found;
  TRY_VOID(for_each_record(
      context, {core::Kind::reservation, ""},
      [&](store::Record& record) { found.push_back(std::move(std::get<core::Reservation>(*record.value))); },
      OnDamage::skip));
  return found;
}

Result<bool> create_reservation(const Context& context, const core::Reservation& wanted) {
  return transact(context, TurnTaking::first, [&](const core::Snapshot& snapshot, const Instant&) {
    return core::plan_create_reservation(snapshot, wanted);
  });
}

Result<void> delete_reservation(const Context& context, const std::string& name) {
  using Answer = core::ReservationDeleted;
  bool was_there = false;
  const auto decide = [&](const core::Snapshot& snapshot, const Instant&) -> core::Step<Answer> {
    auto step = core::plan_delete_reservation(snapshot, name);
    const auto* const error = std::get_if<Error>(&step);
    // Gone is gone, whoever did it in the end: its reply may have been lost.
    if (was_there && error != nullptr && error->code == ErrorCode::not_found) return core::Plan<Answer>{{}, {}};
    was_there |= std::holds_alternative<core::Plan<Answer>>(step);
    return step;
  };
  TRY_VOID(transact(context, TurnTaking::first, decide));
  return {};
}

}  // namespace croft::engine
