#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "services/decide/bitmap_range.h"

namespace croft::core::service {

/// The outside values of a range's ordinals: Service addresses (ServiceCidr) or ports (NodePortRange).
///
///   M::parse(text)   reads what text() prints; Result<M>
///   text()           the identity of the range, as it is stored
///   size(), band()   the number of ordinals, and of those in the static band
///   ordinal_of(v)    nullopt when the value is not in the range
///   value_at(o)      the inverse; `o` is below size()
///   not_in_range(v)  the text of that error; kAllocated is that of a taken value
template <class M>
concept RangeMap = std::copyable<M> && std::equality_comparable<M> &&
                   requires(const M& map, typename M::Value value, Ordinal ordinal) {
                     { M::parse(std::string_view()) } -> std::same_as<Result<M>>;
                     { map.text() } -> std::same_as<std::string>;
                     { map.size() } -> std::same_as<std::uint32_t>;
                     { map.band() } -> std::same_as<std::uint32_t>;
                     { map.ordinal_of(value) } -> std::same_as<std::optional<Ordinal>>;
                     { map.value_at(ordinal) } -> std::same_as<typename M::Value>;
                     { map.not_in_range(value) } -> std::same_as<std::string>;
                     { M::kAllocated } -> std::convertible_to<std::string_view>;
                   };

/// A BitmapRange seen from outside: values go in and come out, the errors have the reference's texts. Not synchronised;
/// copy it to try something.
template <RangeMap M>
class MappedRange {
 public:
  using Value = typename M::Value;

  explicit MappedRange(M map)
      : map_(std::move(map)), bits_(BitmapRange::random_scan_with_band(map_.text(), map_.size(), map_.band())) {}

  [[nodiscard]] const M& map() const { return map_; }
  [[nodiscard]] std::uint32_t free_count() const { return bits_.free_count(); }
  [[nodiscard]] std::uint32_t taken_count() const { return bits_.taken_count(); }

  /// Takes this value, from either band. Errors: invalid_argument when it is not in the range, already_exists
  /// (M::kAllocated) when it is taken.
  [[nodiscard]] Result<void> take(const Value& value);
  /// Takes the next one, from the static band only when the dynamic one is full. Error: exhausted, `range is full`.
  [[nodiscard]] Result<Value> take_next(Random& random);
  /// False, and nothing changes, when it was free or is not in the range (map().ordinal_of() tells the two apart).
  bool give_back(const Value& value);
  /// False also for what is not in the range.
  [[nodiscard]] bool has(const Value& value) const;
  /// Calls f(Value) for each taken one, ascending; `f` must not change the range.
  template <class F>
  void for_each_taken(F&& f) const {
    bits_.for_each_taken([&](Ordinal ordinal) { f(map_.value_at(ordinal)); });
  }

  [[nodiscard]] RangeSnapshot snapshot() const { return bits_.snapshot(); }
  /// As BitmapRange::restore.
  std::uint64_t restore(std::string_view data) { return bits_.restore(data); }

 private:
  M map_;
  BitmapRange bits_;
};

/// A range that was kept, with what was wrong in it.
template <RangeMap M>
struct RestoredRange {
  MappedRange<M> range;
  std::uint64_t beyond = 0;  ///< bits set outside the range: damage, see BitmapRange::restore
};

/// Makes the range that a snapshot tells of. Errors: those of M::parse.
template <RangeMap M>
[[nodiscard]] Result<RestoredRange<M>> range_from(const RangeSnapshot& snapshot) {
  TRY(M map, M::parse(snapshot.range));
  MappedRange<M> range(std::move(map));
  const std::uint64_t beyond = range.restore(snapshot.data);
  return RestoredRange<M>{std::move(range), beyond};
}

template <RangeMap M>
Result<void> MappedRange<M>::take(const Value& value) {
  const auto ordinal = map_.ordinal_of(value);
  if (!ordinal) return fail(ErrorCode::invalid_argument, map_.not_in_range(value));
  if (!bits_.take(ordinal->value)) return fail(ErrorCode::already_exists, std::string(M::kAllocated));
  return {};
}

template <RangeMap M>
Result<typename M::Value> MappedRange<M>::take_next(Random& random) {
  const auto ordinal = bits_.take_next(random);
  if (!ordinal) return fail(ErrorCode::exhausted, "range is full");
  return map_.value_at(*ordinal);
}

template <RangeMap M>
bool MappedRange<M>::give_back(const Value& value) {
  const auto ordinal = map_.ordinal_of(value);
  return ordinal && bits_.give_back(ordinal->value);
}

template <RangeMap M>
bool MappedRange<M>::has(const Value& value) const {
  const auto ordinal = map_.ordinal_of(value);
  return ordinal && bits_.has(ordinal->value);
}

}  // namespace croft::core::service
