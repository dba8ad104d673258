#include "base/space/sparse_taken_set.h"

#include <utility>

namespace croft::core::space {

bool SparseTakenSet::take(U128 number) {
  if (used_slots_ >= slots_.size() / 2) grow();
  switch (SparseTable(slots_).take(number)) {
    case SparseTable<VectorSlots>::Took::no:
      return false;
    case SparseTable<VectorSlots>::Took::yes_in_new_slot:
      ++used_slots_;
      break;
    case SparseTable<VectorSlots>::Took::yes:
      break;
    case SparseTable<VectorSlots>::Took::no_room:
      CROFT_ASSERT(false);  // half of the slots are unused
  }
  ++taken_count_;
  return true;
}

bool SparseTakenSet::give_back(U128 number) {
  if (!SparseTable(slots_).give_back(number)) return false;
  --taken_count_;
  return true;
}

bool SparseTakenSet::is_taken(U128 number) const { return SparseTable(slots_).is_taken(number); }

std::optional<U128> SparseTakenSet::next_free(U128 first, U128 last) const {
  return SparseTable(slots_).next_free(first, last);
}

/// Neighbourhoods with nothing taken are dropped, so that one that moves on through a large range does not grow.
void SparseTakenSet::grow() {
  std::size_t used = 0;
  for (const SparseSlot& slot : slots_.slots) used += slot.taken != 0 ? 1U : 0U;
  const std::size_t size = used >= slots_.slots.size() / 4 ? slots_.slots.size() * 2 : slots_.slots.size();
  const SparseTakenSet old = std::exchange(*this, SparseTakenSet(size));
  old.for_each_taken([&](U128 number) { take(number); });
}

}  // namespace croft::core::space
