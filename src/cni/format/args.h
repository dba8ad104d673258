#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/address.h"
#include "base/result.h"

namespace croft::wire::cni {

/// The longest CNI_ARGS that is read; Linux passes no longer environment string anyway.
inline constexpr std::size_t kArgsBytesMax = std::size_t{128} << 10;

/// Keys that Kubernetes runtimes send.
inline constexpr std::string_view kPodNameArg = "K8S_POD_NAME";
inline constexpr std::string_view kPodNamespaceArg = "K8S_POD_NAMESPACE";
inline constexpr std::string_view kPodInfraContainerArg = "K8S_POD_INFRA_CONTAINER_ID";
inline constexpr std::string_view kPodUidArg = "K8S_POD_UID";

/// The keys each personality knows besides IgnoreUnknown, which all know.
inline constexpr std::array<std::string_view, 5> kCroftArgKeys = {"IP", kPodNameArg, kPodNamespaceArg,
                                                                  kPodInfraContainerArg, kPodUidArg};
inline constexpr std::array<std::string_view, 1> kHostLocalArgKeys = {"IP"};

/// CNI_ARGS, read.
struct Args {
  bool ignore_unknown = false;
  std::vector<net::Address> ips;  ///< of IP, as listed
  /// The values of the known keys other than IP and IgnoreUnknown.
  std::map<std::string, std::string, std::less<>> texts;
  friend bool operator==(const Args&, const Args&) = default;
};

/// Reads `KEY=value;KEY=value` by the rules and with the error texts of docs/notes/cni.md#cni-args. Keys are
/// case-sensitive, a repeated key's last value wins, and nothing is trimmed. Unknown keys are an error unless
/// IgnoreUnknown is true anywhere in the text. `IP` is parsed only when `known_keys` has it; it may be a list with
/// commas, as the plugin `static` reads it and Multus sends it. Error: invalid_argument, message beginning with "ARGS:
/// ".
[[nodiscard]] Result<Args> parse_args(std::string_view text, std::span<const std::string_view> known_keys);

/// `<ip>[/<len>]`, the form of requested addresses in every channel (docs/notes/cni.md#conventions). The length is
/// checked and dropped; an IPv4-mapped address is the IPv4 one, as in the reference. nullopt when it is no such text.
[[nodiscard]] std::optional<net::Address> parse_requested_address(std::string_view text);

}  // namespace croft::wire::cni
