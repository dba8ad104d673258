#pragma once

#include <string>

namespace croft::wire {

/// CustomResourceDefinitions of Calico's IPAM kinds in `crd.projectcalico.org/v1`, as a YAML stream, for a cluster that
/// has no Calico (docs/reference/calico-ipam.md#objects). What their schemas do not name is kept, so that an object
/// that Calico's own programs write loses nothing; Calico's installer may apply its own in their place at any time.
[[nodiscard]] std::string calico_crds_yaml();

}  // namespace croft::wire
