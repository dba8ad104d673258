#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/net/prefix.h"
#include "base/result.h"
#include "register/owner.h"

namespace croft::core {

struct HandleBlock {
  net::Prefix cidr;
  std::uint32_t count = 0;  ///< of addresses, as the handle counts; the block may hold fewer
  std::string name;         ///< the CIDR as the handle writes it
};
/// The blocks that a handle names, in the order of its record.
[[nodiscard]] std::vector<HandleBlock> blocks_of(const Handle& handle);

/// The rule of every handle of a register: its blocks are named by their CIDRs. Error: corrupt. Formats ask it.
[[nodiscard]] Result<void> check_block_names(const Handle& handle);

}  // namespace croft::core
