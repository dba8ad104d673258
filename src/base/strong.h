#pragma once

#include <compare>
#include <cstddef>
#include <functional>

namespace croft {

/// A number that is not any other number: `struct OrdinalTag; using Ordinal = Strong<OrdinalTag, std::uint32_t>;`.
/// Ordered and hashable, without arithmetic: an index is not a count.
template <class Tag, class T>
struct Strong {
  T value{};
  constexpr Strong() = default;
  constexpr explicit Strong(T v) : value(v) {}
  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;
};

}  // namespace croft

template <class Tag, class T>
struct std::hash<croft::Strong<Tag, T>> {
  std::size_t operator()(const croft::Strong<Tag, T>& v) const noexcept { return std::hash<T>{}(v.value); }
};
