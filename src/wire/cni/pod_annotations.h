#pragma once

// What a pod asks for in its annotations, as containerd 2 hands them over: `runtimeConfig` with the capability
// `io.kubernetes.cri.pod-annotations`, which the configuration has to declare. For the decoders of configurations only.

#include <optional>
#include <string_view>
#include <vector>

#include "core/register/pool.h"
#include "net/address.h"
#include "net/family.h"
#include "net/per_family.h"
#include "wire/json/decode.h"

namespace croft::wire::cni {

inline constexpr std::string_view kPodAnnotationsCapability = "io.kubernetes.cri.pod-annotations";

/// Of Croft's names or, where a pod has not these, of Calico's (docs/reference/calico-ipam.md#annotations).
struct PodWishes {
  net::PerFamily<std::optional<std::vector<core::AskedPool>>> pools;  ///< in the place of ipam.ipv4_pools, ipv6_pools
  std::vector<net::Address> addresses;
  std::optional<net::PerFamily<bool>> families;  ///< in the place of ipam.assign_ipv4, assign_ipv6
  friend bool operator==(const PodWishes&, const PodWishes&) = default;
};

/// Reads the annotations of one pod, an object of texts. `ipam.croft.dev/ipv4pools`, `ipv6pools`, `ipAddrs` and
/// `ipFamilies`, or `cni.projectcalico.org/` and these, hold JSON lists: of names or CIDRs of pools, of addresses, of
/// `IPv4` and `IPv6`. Others are passed over. `cni.projectcalico.org/ipAddrsNoIpam` is refused: it means to do without
/// what is called here.
[[nodiscard]] MaybeFault read_pod_annotations(const JsonAt& at, PodWishes& out);

}  // namespace croft::wire::cni
