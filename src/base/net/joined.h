#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/net/prefix.h"

namespace croft::net {

/// "10.0.0.0/24, fd00::/64", in their order; empty for none.
[[nodiscard]] std::string joined(std::span<const Prefix> prefixes, std::string_view separator = ", ");

}  // namespace croft::net
