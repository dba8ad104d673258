#pragma once

#include <compare>

namespace croft {

/// A number that is not any other number: `struct OrdinalTag; using Ordinal = Strong<OrdinalTag, std::uint32_t>;`.
/// Ordered, without arithmetic: an index is not a count.
template <class Tag, class T>
struct Strong {
  T value{};
  constexpr Strong() = default;
  constexpr explicit Strong(T v) : value(v) {}
  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;
};

}  // namespace croft
