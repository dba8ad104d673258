#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipam/use/transact.h"
#include "register/block.h"

namespace croft::engine {

/// How many addresses of one block each handle gets more by a write of it.
[[nodiscard]] std::map<std::string, std::uint32_t> gains(const core::Block* before, const core::Block* after);

/// A handle on its way through an ordered commit.
struct HandleChange {
  std::optional<core::Handle> stored;           ///< as read
  store::Condition condition;                   ///< that it still is
  std::optional<core::Handle> planned;          ///< what the plan says; absent: gone
  std::map<std::string, std::uint32_t> gained;  ///< by block, as text
};

/// The handle while the blocks are being written: never below what was stored or what is planned, and different from
/// what was stored when any address is gained.
[[nodiscard]] std::optional<core::Handle> raised(const HandleChange& change);

/// Lowers the counts of a handle in some blocks to what these hold, when nothing is known of who else counts: reads the
/// handle, writes the blocks anew, so that whoever counted up and has not written yet fails there, and lowers the
/// handle if it is still as read. Blocks that don't exist keep their count. Tries up to kTriesMax times; a count that
/// stays too high is a leak and nothing worse, hence no result.
void recount(const Context& context, const std::string& handle_id, const std::vector<net::Prefix>& blocks,
             Deadline deadline);

}  // namespace croft::engine
