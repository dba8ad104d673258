#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "desk/decide/address_map.h"
#include "ipam/audit/pool_status.h"
#include "ipam/use/nodes.h"
#include "ipam/use/transact.h"

namespace croft::engine {

/// The register at one moment, as the page shows it.
struct PageData {
  Instant begun{};
  std::vector<core::PoolFill> pools;  ///< ascending by name
  std::vector<NodeView> nodes;        ///< likewise
  std::vector<net::Prefix> service_ranges;
  bool are_service_ranges_known = false;  ///< false: a note says why
  core::desk::AddressMap map;
  bool strict_affinity = false;
  std::vector<std::string> notes;  ///< what is not shown, and why
};

/// `is_borrowed`: it is held in a block of another node.
[[nodiscard]] core::desk::Mark mark_of(core::AddressState state, bool is_borrowed);

/// Reads all blocks, a page of them at a time. Services and blocks that cannot be read are a note. Errors: those of the
/// store.
[[nodiscard]] Result<PageData> read_page_data(const Context& context);

}  // namespace croft::engine
