#pragma once

#include <vector>

#include "base/net/prefix.h"
#include "base/net/range.h"

namespace croft::net {

/// The fewest prefixes that together are a valid range, ascending.
[[nodiscard]] std::vector<Prefix> prefixes_of(const AddressRange& range);

}  // namespace croft::net
