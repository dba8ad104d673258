#pragma once

// The text form shared by Prefix and AddressWithLength. Private to net.

#include <string_view>

#include "base/net/address_with_length.h"
#include "base/result.h"

namespace croft::net {

/// Reads "<address>/<length>", host bits allowed, the length within the family. `what` begins the error message:
/// `invalid <what> "<text>": <reason>`.
[[nodiscard]] Result<AddressWithLength> parse_cidr(std::string_view what, std::string_view text);

}  // namespace croft::net
