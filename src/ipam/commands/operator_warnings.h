#pragma once

#include <string>
#include <vector>

#include "base/net/prefix.h"
#include "cli/croft/command_line.h"
#include "ipam/use/pools.h"
#include "register/node.h"
#include "register/pool.h"

namespace croft::app {

/// The ranges that the nodes' objects say (`spec.podCIDRs`); none without a Kubernetes API, nor where they can't be
/// read, which is told.
[[nodiscard]] std::vector<core::NodeRange> pod_ranges(CommandLine& line);

/// Tells of each that overlaps one of `cidrs` and is another node's than `node`: host-local may give its addresses.
void tell_of_pod_ranges(CommandLine& line, const std::vector<net::Prefix>& cidrs, const std::string& node);

/// Warns when the pool exists but cannot serve.
void tell_if_unallocatable(const core::Pool& pool);

/// engine::service_space; that Services may not be read is a warning.
[[nodiscard]] Result<std::vector<engine::TakenSpace>> space_of_services(const engine::Context& context);

}  // namespace croft::app
