#pragma once

#include <string>
#include <vector>

#include "base/net/prefix.h"
#include "cli/croft/command_line.h"
#include "register/node.h"

namespace croft::app {

/// The ranges that the nodes' objects say (`spec.podCIDRs`); none without a Kubernetes API, nor where they can't be
/// read, which is told.
[[nodiscard]] std::vector<core::NodeRange> pod_ranges(CommandLine& line);

/// Tells of each that overlaps one of `cidrs` and is another node's than `node`: host-local may give its addresses.
void tell_of_pod_ranges(CommandLine& line, const std::vector<net::Prefix>& cidrs, const std::string& node);

}  // namespace croft::app
