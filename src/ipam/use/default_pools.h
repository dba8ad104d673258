#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ipam/use/taken_space.h"
#include "ipam/use/transact.h"
#include "register/pool.h"

// The first pools of a cluster, which every node may ask for at its start: who comes first makes them, the others find
// them (docs/notes/calico-ipam.md#pools).
namespace croft::engine {

inline constexpr const char* kDefaultPoolV4 = "default-ipv4-ippool";
inline constexpr const char* kDefaultPoolV6 = "default-ipv6-ippool";

struct DefaultPool {
  enum class Outcome : std::uint8_t {
    made,
    there,       ///< a pool of the family is there, whichever: `pool` is it
    to_be_made,  ///< only looked
  } outcome = Outcome::there;
  core::Pool pool;
};

struct DefaultPoolsOptions {
  /// Asked only when a pool is to be made.
  std::function<Result<std::vector<TakenSpace>>()> taken;
  bool only_look = false;
};

/// Makes each of these pools, in their order and one a family, unless the register has a pool of its family, also one
/// that somebody disabled. One that is half made is completed. When many do so at once, one makes it and the others
/// find it. Errors: refused_by_configuration when the CIDR overlaps taken space or another claim, with both names, and
/// when the only pool of the family is a half made one that is not wanted so; those of create_pool and of `taken`. The
/// ones before it are made.
[[nodiscard]] Result<std::vector<DefaultPool>> ensure_default_pools(const Context& context,
                                                                    const std::vector<core::PoolSpec>& specs,
                                                                    const DefaultPoolsOptions& options);

}  // namespace croft::engine
