#pragma once

#include <string_view>

#include "base/net/address.h"
#include "base/net/prefix.h"

namespace croft {

// For tests: values of texts that are known to be right.

[[nodiscard]] inline net::Address address(std::string_view text) { return net::Address::parse(text).value(); }
[[nodiscard]] inline net::Prefix prefix(std::string_view text) { return net::Prefix::parse(text).value(); }

}  // namespace croft
