#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "base/result.h"

namespace croft::wire::cni {

/// The versions of the CNI specification that Croft speaks, oldest first.
inline constexpr std::array<std::string_view, 7> kSupportedVersions = {"0.1.0", "0.2.0", "0.3.0", "0.3.1",
                                                                       "0.4.0", "1.0.0", "1.1.0"};
/// The meaning of an absent `cniVersion`.
inline constexpr std::string_view kDefaultVersion = "0.1.0";
inline constexpr std::string_view kNewestVersion = kSupportedVersions.back();

/// Orders versions (docs/notes/cni.md#versions): one to three integer parts, missing ones 0, the empty text 0.1.0.
struct VersionNumber {
  std::int64_t major = 0, minor = 0, micro = 0;
  friend auto operator<=>(const VersionNumber&, const VersionNumber&) = default;
};
/// Error: invalid_argument with the reference's text, e.g. `invalid version "1.2.3.4": too many parts`.
[[nodiscard]] Result<VersionNumber> parse_version(std::string_view text);

/// Details of "incompatible CNI versions": `config is "0.3.2", plugin supports ["0.1.0" "0.2.0"]`.
[[nodiscard]] std::string incompatible_details(std::string_view config, std::span<const std::string_view> supported);

/// The answer to VERSION, one line with its newline: `{"cniVersion":"1.1.0","supportedVersions":[...]}`.
[[nodiscard]] std::string print_versions(std::span<const std::string_view> supported);

}  // namespace croft::wire::cni
