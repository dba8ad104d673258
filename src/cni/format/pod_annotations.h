#pragma once

// The wishes in a pod's annotations, as containerd 2 hands them over: `runtimeConfig` with the capability
// `io.kubernetes.cri.pod-annotations`, which the configuration has to declare; and as the Kubernetes API has them.

#include <string_view>

#include "base/json/decode.h"
#include "register/pod_wishes.h"

namespace croft::wire::cni {

inline constexpr std::string_view kPodAnnotationsCapability = "io.kubernetes.cri.pod-annotations";

using core::PodWishes;

/// Reads the annotations of one pod, an object of texts. `ipam.croft.dev/ipv4pools`, `ipv6pools`, `ipAddrs` and
/// `ipFamilies`, or `cni.projectcalico.org/` and these, hold JSON lists: of names or CIDRs of pools, of addresses, of
/// `IPv4` and `IPv6`. Others are passed over. `cni.projectcalico.org/ipAddrsNoIpam` is refused: it means to do without
/// what is called here.
[[nodiscard]] MaybeFault read_pod_annotations(const JsonAt& at, PodWishes& out);
/// The same of a namespace, which asks for no addresses of its own.
[[nodiscard]] MaybeFault read_namespace_annotations(const JsonAt& at, PodWishes& out);

}  // namespace croft::wire::cni
