#include "register/one_nodes_part.h"

#include <algorithm>
#include <string>

namespace croft::core {

NodesPart part_of(const AffinityOwner& node, Follower follower) {
  NodesPart part;
  const std::string own_names = owned_names_of(node);
  for (const KindTraits& row : kKinds) {
    switch (followed_of(row.kind, follower)) {
      case Followed::all:
        if (row.kind == Kind::ipam_config) {
          part.records.push_back(ipam_config_key());  // the only one of its kind
        } else {
          part.lists.push_back({row.kind, ""});
        }
        break;
      case Followed::own_node:
        part.records.push_back(node_key(node.name));
        break;
      case Followed::own_names:
        part.lists.push_back({row.kind, own_names});
        break;
      case Followed::claims:
        part.claims.push_back({row.kind, ""});
        part.own_claims.push_back({row.kind, own_names, true});
        break;
      case Followed::own_blocks:  // what the claims say
      case Followed::own_handles:
      case Followed::stock:
      case Followed::nothing:
        break;
    }
  }
  return part;
}

std::vector<std::string_view> handles_holding(const Block& block) {
  std::vector<std::string_view> ids;
  ids.reserve(block.attributes.size());
  for (const Attribute& attribute : block.attributes) {
    if (attribute.handle_id && !attribute.cooling) ids.emplace_back(*attribute.handle_id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

bool may_be_block_of(const Pool& pool, const net::Prefix& block) {
  return !pool.cidr.overlaps(block) || pool.block_length == block.length();
}

}  // namespace croft::core
