#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/net/prefix.h"
#include "register/owner.h"

namespace croft::core {

/// The blocks that a handle names, in the order of its record. Names that are no CIDR are left out; `damage` (corrupt)
/// names the handle then.
struct HandleBlocks {
  struct Counted {
    net::Prefix cidr;
    std::uint32_t count = 0;  ///< of addresses, as the handle counts; the block may hold fewer
    std::string name;         ///< the CIDR as the handle writes it
  };
  std::vector<Counted> blocks;
  std::optional<Error> damage;
};
[[nodiscard]] HandleBlocks blocks_of(const Handle& handle);

}  // namespace croft::core
