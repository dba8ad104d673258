#pragma once

#include "base/net/address.h"
#include "base/net/mac.h"
#include "os/ip_bytes.h"

namespace croft::edge {

/// The same address as packets carry it. It must be valid.
[[nodiscard]] os::IpBytes to_bytes(const net::Address& address);
[[nodiscard]] net::Address from_bytes(const os::IpBytes& bytes);

}  // namespace croft::edge
