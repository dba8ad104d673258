#include "ipam/audit/register_report.h"

#include <array>

#include <fmt/format.h>

namespace croft::core::audit {

namespace {

/// The identifiers of findings, by Finding::Kind. e2e/check_remedies.py follows the remedy of each and reads them here.
constexpr std::array<std::string_view, static_cast<std::size_t>(Finding::Kind::register_damaged) + 1> kFindings = {
    "block_corrupt",
    "block_overlap",
    "block_without_pool",
    "affinity_missing",
    "affinity_stale",
    "vacancy_missing",
    "handle_missing",
    "handle_miscount",
    "pool_overlap",
    "pool_not_allocatable",
    "pod_range_overlap",
    "reservation_missing",
    "reserved_held",
    "sequence_behind",
    "not_attached",
    "not_held",
    "pod_not_held",
    "node_not_moved",
    "pod_twice",
    "cache_empty",
    "cache_unreadable",
    "record_unreadable",
    "record_newer",
    "affinity_unconfirmed",
    "selector_invalid",
    "config_contradicts",
    "handle_empty",
    "handle_undercount",
    "release_in_future",
    "release_waiting",
    "release_unreadable",
    "node_range_twice",
    "node_range_differs",
    "node_range_surplus",
    "node_range_unreadable",
    "node_range_too_wide",
    "pool_half_made",
    "pool_half_deleted",
    "pool_full",
    "reservation_left",
    "pod_gone",
    "node_gone",
    "block_node_gone",
    "store_paused",
    "holder_in_doubt",
    "register_damaged",
};

}  // namespace

std::string_view name_of(Finding::Kind kind) { return kFindings.at(static_cast<std::size_t>(kind)); }

std::string holder_text(const std::string& handle_id, const std::map<std::string, std::string>& attributes) {
  const auto text_of = [&](const char* key) {
    const auto found = attributes.find(key);
    return found == attributes.end() ? std::string() : found->second;
  };
  const std::string pod = text_of(kPodKey), node = text_of(kNodeKey);
  std::string text = pod.empty() ? "handle " + handle_id
                                 : fmt::format("pod {}/{} (handle {})", text_of(kNamespaceKey), pod, handle_id);
  if (!node.empty()) text += " on node " + node;
  return text;
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
