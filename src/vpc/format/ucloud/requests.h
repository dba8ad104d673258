#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/net/address.h"
#include "base/net/mac.h"
#include "vpc/format/ucloud/signing.h"

namespace croft::wire::ucloud {

// What each action is asked with; docs/notes/warm-pool.md#ucloud-api. MACs are sent in capital letters. Parameters
// without a value are not sent.

/// Where and for whom.
struct Scope {
  std::string region;
  std::string project;
};

/// Of an interface that gets or has addresses.
struct Target {
  std::string zone;
  std::string vpc;
  std::string subnet;
  net::Mac mac;
  std::string object;
};

/// "52:54:00:26:6E:DA", as the API writes it.
[[nodiscard]] std::string mac_text(const net::Mac& mac);

[[nodiscard]] Parameters allocate_request(const Scope& scope, const Target& to,
                                          const std::optional<net::Address>& address);
[[nodiscard]] Parameters allocate_batch_request(const Scope& scope, const Target& to, std::uint32_t count);
[[nodiscard]] Parameters delete_request(const Scope& scope, const Target& of, const net::Address& address);
/// Of one interface, one address, both, or the whole subnet.
[[nodiscard]] Parameters describe_request(const Scope& scope, const std::string& vpc, const std::string& subnet,
                                          const std::optional<net::Mac>& mac,
                                          const std::optional<net::Address>& address);
[[nodiscard]] Parameters move_request(const Scope& scope, const std::string& subnet, const net::Address& address,
                                      const net::Mac& from, const net::Mac& to);
[[nodiscard]] Parameters describe_subnet_request(const Scope& scope, const std::string& vpc, const std::string& subnet);
[[nodiscard]] Parameters describe_host_request(const Scope& scope, const std::string& instance);

}  // namespace croft::wire::ucloud
