#pragma once

#include "base/net/family.h"

namespace croft::net {

/// One value for each family: `wanted[Family::v6]`.
template <class T>
struct PerFamily {
  T v4{};
  T v6{};

  [[nodiscard]] T& operator[](Family family) { return family == Family::v4 ? v4 : v6; }
  [[nodiscard]] const T& operator[](Family family) const { return family == Family::v4 ? v4 : v6; }
  friend bool operator==(const PerFamily&, const PerFamily&) = default;
};

/// In the order in which everything is done and shown.
inline constexpr Family kFamilies[] = {Family::v4, Family::v6};

}  // namespace croft::net
