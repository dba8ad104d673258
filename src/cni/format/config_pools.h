#pragma once

// How `ipam.pools`, `ipam.ipv4_pools` and `ipam.ipv6_pools` are read. For the decoders
// of configurations only.

#include <cstddef>
#include <vector>

#include "base/json/decode.h"
#include "base/net/family.h"
#include "cni/format/config.h"
#include "register/pool.h"

namespace croft::wire::cni {

/// Reads pools of which each passes core::make_pool and no two share a name or an address.
[[nodiscard]] MaybeFault read_pool_specs(const JsonAt& at, std::size_t count_max, std::vector<core::PoolSpec>& out);

/// Reads names and CIDRs; a text with a slash is a CIDR (host bits are dropped, as Calico does) and must be of
/// `family`.
[[nodiscard]] MaybeFault read_asked_pools(const JsonAt& at, net::Family family, std::size_t count_max,
                                          std::vector<core::AskedPool>& out);

}  // namespace croft::wire::cni
