#pragma once

// Short ways to write range sets in tests.

#include <string>
#include <string_view>
#include <vector>

#include "hostlocal/decide/assign.h"

namespace croft::core::host_local {

[[nodiscard]] inline net::Address address_or_none(std::string_view text) {
  return text.empty() ? net::Address() : net::Address::parse(text).value();
}

[[nodiscard]] inline RangeSpec spec(std::string_view subnet, std::string_view first = "", std::string_view last = "",
                                    std::string_view gateway = "") {
  return {net::AddressWithLength::parse(subnet).value(), address_or_none(first), address_or_none(last),
          address_or_none(gateway)};
}

[[nodiscard]] inline RangeSet range_set(const std::vector<RangeSpec>& specs) { return RangeSet::make(specs).value(); }

}  // namespace croft::core::host_local
