#pragma once

#include <string_view>

#include "base/result.h"
#include "cni/format/result.h"

namespace croft::wire {

/// Reads a resolv.conf by the reference's rules (docs/reference/host-local.md#resolv-conf): one keyword a line,
/// comments only at the start of a line, `nameserver` takes one value, `domain` the last one wins, `search` and
/// `options` gather all. Error: invalid_argument, `bufio.Scanner: token too long`, for a line above 64 KiB.
[[nodiscard]] Result<cni::Dns> parse_resolv_conf(std::string_view text);

}  // namespace croft::wire
