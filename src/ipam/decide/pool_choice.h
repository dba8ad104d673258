#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipam/decide/assign.h"
#include "ipam/decide/draft.h"

namespace croft::core {

using Labels = std::map<std::string, std::string>;

/// Whether a pool's nodeSelector asks nothing of nodes: their labels need not be known.
[[nodiscard]] bool is_for_all_nodes(const Pool& pool);
/// Whether a pool's nodeSelector selects a node. Error: invalid_argument with the selector's fault, naming the pool.
[[nodiscard]] Result<bool> selects_node(const Pool& pool, const Labels& node_labels);
/// The same of its namespaceSelector; an empty one selects every namespace.
[[nodiscard]] Result<bool> selects_namespace(const Pool& pool, const Labels& namespace_labels);

/// The labels of a pod's namespace: those that the caller gave, or what the store says of it, where it can and a pool
/// asks for some. One that is not there has none (docs/notes/calico-ipam.md#selectors). May leave the reader
/// incomplete.
[[nodiscard]] Labels namespace_labels_of(Reader& reader, const PoolTable& pools, const PodIdentity& pod,
                                         const Labels& given);

/// "no IPv4 address for node n: ", and why.
[[nodiscard]] std::string no_address(const AssignRequest& request, net::Family family, std::string_view why);

/// For whom pools are chosen.
struct PoolRequest {
  const AssignRequest& by;
  net::Family family;
  Labels node_labels;
  Labels namespace_labels;
  const Error* node_damage;  ///< why the labels are not known: then only pools for every node serve

  /// By name or CIDR, in the order of use; empty: every pool that serves the node. Asking for a pool by name overrides
  /// its selectors and its assignment mode (docs/notes/calico-ipam.md#pool-choice).
  [[nodiscard]] const std::vector<AskedPool>& asked() const { return by.pools[family]; }
};

/// The pools to use, in order, and a verdict for each that is not; or why there can be none.
struct PoolChoice {
  std::vector<const Pool*> usable;
  std::vector<PoolVerdict> rejected;
  std::optional<Refusal> refusal;
};
[[nodiscard]] PoolChoice choose_pools(const PoolTable& pools, const PoolRequest& request);

/// Whether the owner of an empty block may keep it (docs/notes/calico-ipam.md#keep-or-give-up): always, unless its
/// pool is there and no longer selects the owner's node. May leave the reader incomplete.
[[nodiscard]] bool keeps_affinity(Reader& reader, const PoolTable& pools, const Block& block);

}  // namespace croft::core
