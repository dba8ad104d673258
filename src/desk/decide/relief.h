#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/net/address.h"
#include "base/net/prefix.h"
#include "ipam/audit/pool_status.h"

namespace croft::core::desk {

/// How much is at stake, safest first.
enum class Risk : std::uint8_t {
  none,     ///< it comes by itself
  proven,   ///< it frees what is proven gone
  routing,  ///< no pod that runs is touched; the network has to know of it
  intent,   ///< it takes back what somebody wanted
};
[[nodiscard]] std::string_view name_of(Risk risk);

/// Something that makes room in a pool.
struct Relief {
  std::string pool;
  Risk risk = Risk::none;
  std::string title;
  std::string effect;   ///< "120 addresses come back within 30 s"
  std::string caution;  ///< what to look at before
  std::string command;  ///< empty: nothing is to be done
};

struct ReliefFacts {
  std::vector<PoolFill> pools;
  std::vector<net::Address> gone{};   ///< addresses whose pods or nodes are not there any more
  std::set<std::string> soon_full{};  ///< pools that a forecast warns of
  std::vector<net::Prefix> taken{};   ///< ranges besides pools where no pool may be
  bool are_all_taken_known = true;    ///< false: there may be others, and no new range is proposed
};

/// The reliefs of each pool that is full, nearly so, or soon; safest first. The fullest pool comes first.
[[nodiscard]] std::vector<Relief> reliefs_of(const ReliefFacts& facts);

/// The next prefix of the same length in the same private space (RFC 1918, RFC 6598, RFC 4193) that shares no address
/// with `taken`; nothing where none is near.
[[nodiscard]] std::optional<net::Prefix> next_private_prefix(const net::Prefix& cidr,
                                                             const std::vector<net::Prefix>& taken);

}  // namespace croft::core::desk
