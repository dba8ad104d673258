#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "calico/netconf.h"
#include "cni/format/network.h"

// A node's network configuration, as Calico's installer writes it, made one for croft-ipam (docs/runbooks/migrate.md).

namespace croft::wire::cni {

inline constexpr std::size_t kConflistBytesMax = std::size_t{1} << 20;

struct SwitchedConflist {
  std::string text;         ///< of the new file
  std::string store;        ///< that its plugin will ask
  std::size_t plugins = 0;  ///< whose IPAM was calico-ipam; 0: the text is the old one
  /// Where Calico's IPAM of each of them has its records, as far as its configuration says.
  std::vector<DatastoreChoice> datastores;
  /// Members of `ipam` that croft-ipam does not have and would refuse: they are left out.
  std::vector<std::string> dropped;
};

/// In each plugin of the list (or in the one of a .conf) an `ipam.type` of `calico-ipam` becomes `croft-ipam` with
/// `ipam.store`; pools and families asked for stay, and everything outside `ipam`. `store`: the URL; empty: the
/// Kubernetes API of the plugin's own kubeconfig, or its etcd where that needs no files. `node`: the node's name,
/// written where the plugin names none. Errors: invalid_argument, naming what is wrong, for what is no configuration,
/// for a datastore that Calico does not have, or where no store or no node was given and none is found.
[[nodiscard]] Result<SwitchedConflist> switch_to_croft(std::string_view conflist, const std::string& store,
                                                       const std::string& node);

/// The configuration that the runtime hands to croft-ipam by the text of a SwitchedConflist, for each plugin that has
/// it. Error: invalid_argument with the plugin's own words: each ADD would fail.
[[nodiscard]] Result<std::vector<Network>> read_switched(std::string_view conflist);

}  // namespace croft::wire::cni
