#pragma once

#include <string_view>

#include "base/result.h"
#include "core/block/owner.h"

namespace croft::wire::cni {

/// The attachment that one file of libcni's result cache is about
/// (`<cacheDir>/results/<network>-<containerID>-<ifname>`, cni sheet §1.11): members networkName, containerId, ifName
/// of kind cniCacheV1. Error: invalid_argument.
[[nodiscard]] Result<core::Owner> read_cache_entry(std::string_view bytes);

}  // namespace croft::wire::cni
