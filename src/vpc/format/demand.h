#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "vpc/decide/advice.h"

// The record of demand that an agent keeps beside its store: bytes <-> samples. docs/formats/vpc-demand.md has the
// file.

namespace croft::wire {

inline constexpr const char* kDefaultDemandFile = "/var/lib/croft/vpc-demand.json";
inline constexpr std::size_t kDemandBytesMax = std::size_t{4} << 20;  ///< a longer file is refused
inline constexpr std::size_t kDemandSamplesMax = 20'000;              ///< likewise one of more samples

/// One line of JSON: {"version": 1, "samples": [{"at": "2026-01-15T10:00:10Z", "adds": 2, …}]}. What is 0 is left out.
[[nodiscard]] std::string encode_demand(const std::vector<core::warm::DemandSample>& samples);
/// Errors: corrupt, naming the member; samples out of the order of time are one; newer_version.
[[nodiscard]] Result<std::vector<core::warm::DemandSample>> decode_demand(std::string_view json);

}  // namespace croft::wire
