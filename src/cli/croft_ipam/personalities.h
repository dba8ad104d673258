#pragma once

#include <span>

#include "cni/door/skeleton.h"

namespace croft::app {

// One function a personality: wires it to the machine, serves one call, returns the exit code.

/// The drop-in replacement of the reference plugin host-local (docs/formats/host-local.md).
[[nodiscard]] int serve_host_local(const edge::CniHost& host);

/// Block IPAM on a store (docs/formats/cni.md). In croft-ipam: by the node's agent, or on a SQLite file; a store of
/// other machines is its sibling's.
[[nodiscard]] int serve_croft_ipam(const edge::CniHost& host);
/// The same in its sibling, for every store.
[[nodiscard]] int serve_cluster_ipam(const edge::CniHost& host);

/// Addresses of a cloud (docs/warm-pool.md). In croft-ipam: by the node's agent, or out of the node's stock; the cloud
/// is asked by its sibling.
[[nodiscard]] int serve_croft_vpc(const edge::CniHost& host);
/// The same in its sibling, which asks the cloud.
[[nodiscard]] int serve_cluster_vpc(const edge::CniHost& host);

/// The drop-in replacement of Calico's IPAM plugin (docs/formats/calico-ipam.md).
[[nodiscard]] int serve_calico_ipam(const edge::CniHost& host);
/// Its options: `-v` prints the version; any other, `-upgrade` above all, is refused: who calls it would take an exit
/// without error for the work done. Returns the exit code.
[[nodiscard]] int answer_calico_options(std::span<char* const> options);

}  // namespace croft::app
