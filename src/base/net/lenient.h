#pragma once

#include <optional>
#include <string_view>

#include "base/net/address.h"
#include "base/net/prefix.h"

// The reader of what others have written, as Kubernetes' own parsers read it: netutils.ParseIPSloppy and
// ParseCIDRSloppy, which are net.ParseIP and net.ParseCIDR of Go 1.16. Zeros in front are decimal zeros, an IPv4-mapped
// address or prefix is the IPv4 one. New input and what Croft writes is read strictly (base/net/address.h,
// base/net/prefix.h).

namespace croft::net {

/// nullopt for a text that is no address there either: blanks around it, a zone, a length.
[[nodiscard]] std::optional<Address> parse_address_leniently(std::string_view text);

/// Host bits are dropped (docs/notes/node-ranges.md#said). nullopt for a text that is no prefix there either.
[[nodiscard]] std::optional<Prefix> parse_prefix_leniently(std::string_view text);

/// As net.ParseCIDR of Go 1.17 and newer, by which Calico reads its records: only the length may have zeros in front.
[[nodiscard]] std::optional<Prefix> parse_prefix_as_go(std::string_view text);

}  // namespace croft::net
