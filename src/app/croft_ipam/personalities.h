#pragma once

#include "edge/cni_skeleton.h"

namespace croft::app {

// One function a personality: wires it to the machine, serves one call, returns the exit code.

/// Block IPAM on a store (docs/formats/cni.md).
[[nodiscard]] int serve_croft_ipam(const edge::CniHost& host);

/// The drop-in replacement of the reference plugin host-local (docs/formats/host-local.md).
[[nodiscard]] int serve_host_local(const edge::CniHost& host);

}  // namespace croft::app
