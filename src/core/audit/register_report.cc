#include "core/audit/register_report.h"

namespace croft::core::audit {

std::string_view name_of(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::block_corrupt:
      return "block_corrupt";
    case Finding::Kind::block_overlap:
      return "block_overlap";
    case Finding::Kind::block_without_pool:
      return "block_without_pool";
    case Finding::Kind::affinity_missing:
      return "affinity_missing";
    case Finding::Kind::affinity_stale:
      return "affinity_stale";
    case Finding::Kind::vacancy_missing:
      return "vacancy_missing";
    case Finding::Kind::quarantined:
      return "quarantined";
    case Finding::Kind::pod_twice:
      return "pod_twice";
    case Finding::Kind::cache_empty:
      return "cache_empty";
    case Finding::Kind::handle_missing:
      return "handle_missing";
    case Finding::Kind::handle_miscount:
      return "handle_miscount";
    case Finding::Kind::pool_overlap:
      return "pool_overlap";
    case Finding::Kind::pool_not_allocatable:
      return "pool_not_allocatable";
    case Finding::Kind::pod_range_overlap:
      return "pod_range_overlap";
    case Finding::Kind::reservation_missing:
      return "reservation_missing";
    case Finding::Kind::reserved_held:
      return "reserved_held";
    case Finding::Kind::sequence_behind:
      return "sequence_behind";
    case Finding::Kind::not_attached:
      return "not_attached";
    case Finding::Kind::not_held:
      return "not_held";
    case Finding::Kind::pod_not_held:
      return "pod_not_held";
    case Finding::Kind::node_not_moved:
      return "node_not_moved";
    case Finding::Kind::cache_unreadable:
      return "cache_unreadable";
    case Finding::Kind::record_unreadable:
      return "record_unreadable";
    case Finding::Kind::record_newer:
      return "record_newer";
    case Finding::Kind::affinity_unconfirmed:
      return "affinity_unconfirmed";
    case Finding::Kind::selector_invalid:
      return "selector_invalid";
    case Finding::Kind::config_contradicts:
      return "config_contradicts";
    case Finding::Kind::handle_empty:
      return "handle_empty";
    case Finding::Kind::handle_undercount:
      return "handle_undercount";
    case Finding::Kind::release_in_future:
      return "release_in_future";
    case Finding::Kind::release_waiting:
      return "release_waiting";
    case Finding::Kind::release_unreadable:
      return "release_unreadable";
    case Finding::Kind::node_range_twice:
      return "node_range_twice";
    case Finding::Kind::node_range_differs:
      return "node_range_differs";
    case Finding::Kind::node_range_surplus:
      return "node_range_surplus";
    case Finding::Kind::node_range_unreadable:
      return "node_range_unreadable";
    case Finding::Kind::node_range_too_wide:
      return "node_range_too_wide";
    case Finding::Kind::pool_half_made:
      return "pool_half_made";
    case Finding::Kind::pool_half_deleted:
      return "pool_half_deleted";
    case Finding::Kind::reservation_left:
      return "reservation_left";
    case Finding::Kind::register_damaged:
      return "register_damaged";
  }
  return "unknown";
}

std::string Allocation::node() const {
  const auto it = attributes.find(kNodeKey);
  return it == attributes.end() ? "" : it->second;
}

bool Allocation::borrowed() const {
  const std::string name = node();
  return !cooling && !name.empty() && (!block_owner || block_owner->name != name);
}

}  // namespace croft::core::audit
