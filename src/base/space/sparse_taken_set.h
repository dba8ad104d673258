#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/assert.h"
#include "base/net/u128.h"

// The sparse form of a space: any size up to 2^128, memory for what is taken only. host-local's range sets use it.
// Their numbers are addresses, IPv4 ones in IPv4-mapped form, so that a /64 or a /0 costs nothing.

namespace croft::core::space {

using net::U128;

/// The taken ones among 64 neighbouring numbers. All zero: an unused slot.
struct SparseSlot {
  std::uint64_t key_hi = 0;  ///< the numbers' common upper 122 bits, with kUsed
  std::uint64_t key_lo = 0;
  std::uint64_t taken = 0;  ///< one bit a number

  static constexpr std::uint64_t kUsed = std::uint64_t{1} << 63;
  [[nodiscard]] bool is_used() const { return (key_hi & kUsed) != 0; }
  friend bool operator==(const SparseSlot&, const SparseSlot&) = default;
};

/// Where a number's bit is. Stays valid while the table does not grow.
struct SparsePlace {
  std::uint32_t slot = 0;
  std::uint32_t bit = 0;
  friend bool operator==(const SparsePlace&, const SparsePlace&) = default;
};

/// The algorithms, over slots that lie anywhere: a hash table with open addressing of neighbourhoods. `Slots` offers
/// `size()` (a power of two), `get(i)` and `set(i, slot)`. A neighbourhood that was used once keeps its slot, also when
/// nothing of it is taken any more. The table must never be full: whoever owns the slots sees to it (`used_slots`).
/// Damaged slots give wrong answers, never an endless loop or an access outside.
template <class Slots>
class SparseTable {
 public:
  explicit SparseTable(Slots& slots) : slots_(slots) {}

  [[nodiscard]] bool is_taken(U128 number) const {
    const auto index = find(number);
    return index && (slots_.get(*index).taken & bit_of(number)) != 0;
  }

  /// The place of a number whose neighbourhood has a slot.
  [[nodiscard]] std::optional<SparsePlace> place_of(U128 number) const {
    const auto index = find(number);
    if (!index) return std::nullopt;
    return SparsePlace{*index, bit_number(number)};
  }
  /// The inverse; nullopt for a slot out of range or unused.
  [[nodiscard]] std::optional<U128> number_at(SparsePlace place) const {
    if (place.slot >= slots_.size() || place.bit >= kBits) return std::nullopt;
    const SparseSlot slot = slots_.get(place.slot);
    if (!slot.is_used()) return std::nullopt;
    return (U128{slot.key_hi & ~SparseSlot::kUsed, slot.key_lo} << kBitsLog2) + place.bit;
  }

  enum class Took : std::uint8_t { no, yes, yes_in_new_slot, no_room };
  /// Takes a number: no when it was taken.
  Took take(U128 number) {
    const std::uint32_t size = slots_.size();
    std::uint32_t index = home(number, size);
    for (std::uint32_t probes = 0; probes < size; ++probes, index = (index + 1) & (size - 1)) {
      SparseSlot slot = slots_.get(index);
      const bool fresh = !slot.is_used();
      if (fresh) slot = empty_slot(number);
      if (!is_for(slot, number)) continue;
      if ((slot.taken & bit_of(number)) != 0) return Took::no;
      slot.taken |= bit_of(number);
      slots_.set(index, slot);
      return fresh ? Took::yes_in_new_slot : Took::yes;
    }
    return Took::no_room;
  }
  /// Gives a number back; false when it was free.
  bool give_back(U128 number) {
    const auto index = find(number);
    if (!index) return false;
    SparseSlot slot = slots_.get(*index);
    if ((slot.taken & bit_of(number)) == 0) return false;
    slot.taken &= ~bit_of(number);
    slots_.set(*index, slot);
    return true;
  }

  /// The lowest free number from `first` to `last`, both included. One look for each 64 taken numbers passed over.
  [[nodiscard]] std::optional<U128> next_free(U128 first, U128 last) const {
    while (first <= last) {
      const auto index = find(first);
      if (!index) return first;
      const std::uint64_t free = ~slots_.get(*index).taken & (~std::uint64_t{0} << bit_number(first));
      const U128 neighbourhood = first & ~U128{kBits - 1};
      if (free != 0) {
        const U128 found = neighbourhood + static_cast<std::uint64_t>(std::countr_zero(free));
        return found <= last ? std::optional(found) : std::nullopt;
      }
      const U128 next = neighbourhood + kBits;
      if (next <= neighbourhood) return std::nullopt;  // the last neighbourhood of all
      first = next;
    }
    return std::nullopt;
  }

  static constexpr std::uint32_t kBits = 64;

 private:
  static constexpr int kBitsLog2 = 6;

  static std::uint32_t bit_number(U128 number) { return static_cast<std::uint32_t>(number.lo & (kBits - 1)); }
  static std::uint64_t bit_of(U128 number) { return std::uint64_t{1} << bit_number(number); }
  static SparseSlot empty_slot(U128 number) {
    const U128 key = number >> kBitsLog2;
    return {key.hi | SparseSlot::kUsed, key.lo, 0};
  }
  static bool is_for(const SparseSlot& slot, U128 number) {
    const SparseSlot wanted = empty_slot(number);
    return slot.key_hi == wanted.key_hi && slot.key_lo == wanted.key_lo;
  }
  /// splitmix64's last steps over both halves. Part of the format of host-local's index: changing it means a new one.
  static std::uint32_t home(U128 number, std::uint32_t size) {
    const U128 key = number >> kBitsLog2;
    std::uint64_t x = key.lo ^ (key.hi * 0x9e3779b97f4a7c15U);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return static_cast<std::uint32_t>(x ^ (x >> 31)) & (size - 1);
  }
  [[nodiscard]] std::optional<std::uint32_t> find(U128 number) const {
    const std::uint32_t size = slots_.size();
    std::uint32_t index = home(number, size);
    for (std::uint32_t probes = 0; probes < size; ++probes, index = (index + 1) & (size - 1)) {
      const SparseSlot slot = slots_.get(index);
      if (!slot.is_used()) return std::nullopt;
      if (is_for(slot, number)) return index;
    }
    return std::nullopt;
  }

  Slots& slots_;
};

/// The set in memory: 24 bytes for each neighbourhood of 64 with something taken, doubled for room. Take, give back and
/// lookup are O(1), next_free O(taken neighbours passed over / 64). Not synchronised.
class SparseTakenSet {
 public:
  SparseTakenSet() = default;

  /// False, and nothing changes, when it was taken already.
  bool take(U128 number);
  /// False, and nothing changes, when it was free already.
  bool give_back(U128 number);
  [[nodiscard]] bool is_taken(U128 number) const;
  [[nodiscard]] std::optional<U128> next_free(U128 first, U128 last) const;
  [[nodiscard]] std::uint64_t taken_count() const { return taken_count_; }
  /// As SparseTable has them; all places move when take() makes the table anew (slots().data() changes).
  [[nodiscard]] std::optional<SparsePlace> place_of(U128 number) const { return SparseTable(slots_).place_of(number); }
  [[nodiscard]] std::optional<U128> number_at(SparsePlace place) const { return SparseTable(slots_).number_at(place); }
  [[nodiscard]] std::uint32_t used_slots() const { return used_slots_; }
  [[nodiscard]] const std::vector<SparseSlot>& slots() const { return slots_.slots; }

  /// Calls f(U128) for each taken number, in no order.
  template <class F>
  void for_each_taken(F&& f) const;

 private:
  struct VectorSlots {
    std::vector<SparseSlot> slots;
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(slots.size()); }
    [[nodiscard]] SparseSlot get(std::uint32_t index) const { return slots[index]; }
    void set(std::uint32_t index, const SparseSlot& slot) { slots[index] = slot; }
  };
  explicit SparseTakenSet(std::size_t slots) { slots_.slots.resize(slots); }
  void grow();

  mutable VectorSlots slots_{std::vector<SparseSlot>(64)};
  std::uint32_t used_slots_ = 0;
  std::uint64_t taken_count_ = 0;
};

template <class F>
void SparseTakenSet::for_each_taken(F&& f) const {
  const SparseTable table(slots_);
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    for (std::uint64_t rest = slots_.get(i).taken; rest != 0; rest &= rest - 1) {
      f(*table.number_at({i, static_cast<std::uint32_t>(std::countr_zero(rest))}));
    }
  }
}

}  // namespace croft::core::space
