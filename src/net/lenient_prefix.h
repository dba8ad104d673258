#pragma once

#include <optional>
#include <string_view>

#include "net/prefix.h"

namespace croft::net {

/// What Kubernetes reads in fields that it checked laxly when they were written (docs/reference/node-ranges.md#said):
/// host bits are dropped, leading zeros are decimal zeros, an IPv4-mapped prefix is the IPv4 one. nullopt for anything
/// that is no prefix there either.
[[nodiscard]] std::optional<Prefix> parse_prefix_leniently(std::string_view text);

}  // namespace croft::net
