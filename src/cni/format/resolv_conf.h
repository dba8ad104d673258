#pragma once

#include <string_view>

#include "base/result.h"
#include "cni/format/result.h"

namespace croft::wire {

/// Reads a resolv.conf by the reference's rules (docs/notes/host-local.md#resolv-conf). A line has one keyword,
/// comments stand only at its start, `nameserver` takes one value, the last `domain` wins, `search` and `options`
/// gather all. Error: invalid_argument, `bufio.Scanner: token too long`, for a line above 64 KiB.
[[nodiscard]] Result<cni::Dns> parse_resolv_conf(std::string_view text);

}  // namespace croft::wire
