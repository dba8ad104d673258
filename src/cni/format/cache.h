#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/net/address.h"
#include "base/result.h"
#include "register/owner.h"

// One file of libcni's result cache (`<cacheDir>/results/<network>-<containerID>-<ifname>`,
// docs/notes/cni.md#result-cache).

namespace croft::wire::cni {

/// All that a file says about its attachment. A member that is absent or of another shape stays empty, but for the
/// owner: members networkName, containerId, ifName of kind cniCacheV1.
struct CacheEntry {
  core::Owner owner;
  std::string netns;                    ///< a path; where old runtimes write none, the result's first sandbox
  core::PodIdentity pod;                ///< of the CNI_ARGS K8S_POD_NAME, K8S_POD_NAMESPACE, K8S_POD_UID
  std::vector<net::Address> addresses;  ///< of the result, unmapped, in its order
  std::string config;                   ///< the network configuration, decoded from base64
  std::string capability_args;          ///< a JSON object as text
};

inline constexpr std::size_t kCacheEntryBytesMax = std::size_t{4} << 20;  ///< a larger file is refused
inline constexpr std::size_t kCachedAddressesMax = 4096;                  ///< of a result; more are not read

/// Error: invalid_argument, for what is no such file or names no owner.
[[nodiscard]] Result<CacheEntry> read_whole_cache_entry(std::string_view bytes);

}  // namespace croft::wire::cni
