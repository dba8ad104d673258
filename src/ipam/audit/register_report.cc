#include "ipam/audit/register_report.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/quoted.h"
#include "register/records.h"

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

namespace {

constexpr std::string_view kRestore = "restore the store from a backup";
constexpr std::string_view kRunbook = "docs/runbooks/damaged-records.md has what else can be done";

/// Whether nothing that lives, and no program of others, works with the record: that is what may be removed.
bool is_removable(Kind kind, bool foreign_writers) {
  switch (kind) {
    case Kind::block:
    case Kind::range_allocation:
    case Kind::service:
    case Kind::foreign_service:
    case Kind::ip_address:
    case Kind::service_cidr:
    case Kind::node_range:
    case Kind::node_range_set:
    case Kind::warm_address:
      return false;
    default:
      return !foreign_writers || traits_of(kind).system == System::croft;
  }
}

Finding finding_of(const Unreadable& unreadable, bool foreign_writers) {
  const auto& [key, error] = unreadable;
  const auto cidr = key.kind == Kind::block ? block_cidr_of(key) : std::nullopt;
  const std::string subject = std::string(name_of(key.kind)) + " " + key.name;
  if (error.code == ErrorCode::newer_version) {
    return {Finding::Kind::record_newer, subject, error.message, "upgrade Croft here"};
  }
  if (key.kind == Kind::block && !cidr) {
    return {Finding::Kind::block_corrupt, subject,
            "its name is no CIDR, and nobody has an address by it: " + error.message,
            fmt::format("`croft record remove block {} --force`", key.name)};
  }
  if (key.kind == Kind::block) {
    return {Finding::Kind::block_corrupt, "block " + cidr->to_string(), error.message,
            fmt::format("{}; its addresses stay taken until then. {}", kRestore, kRunbook)};
  }
  if (key.kind == Kind::block_beside) {
    return {Finding::Kind::record_unreadable, subject, error.message,
            fmt::format("restore the store from a backup; one that no backup has: `croft record remove {} {} --force`; "
                        "what rests there may then be given out at once",
                        name_of(key.kind), in_shell_quotes_if_needed(key.name))};
  }
  if (!is_removable(key.kind, foreign_writers)) {
    return {Finding::Kind::record_unreadable, subject, error.message,
            fmt::format("{}: others work with it, and it stays until then. {}", kRestore, kRunbook)};
  }
  return {Finding::Kind::record_unreadable, subject, error.message,
          fmt::format("restore the store from a backup; one that no backup has: `croft record remove {} {}{}`",
                      name_of(key.kind), in_shell_quotes_if_needed(key.name),
                      loss_without(key.kind).empty() || key.kind == Kind::node ? "" : " --force")};
}

}  // namespace

Unseen::Unseen(const std::vector<Unreadable>& unreadable) : unreadable_(unreadable) {
  for (const Unreadable& one : unreadable_) {
    if (one.key.name.empty()) unlistable_.insert(one.key.kind);
    const auto cidr = one.key.kind == Kind::block ? block_cidr_of(one.key) : std::nullopt;
    if (cidr) blocks_.insert(cidr->to_string());
  }
}

bool Unseen::lacks_some(Kind kind) const {
  return std::ranges::any_of(unreadable_, [&](const Unreadable& one) { return one.key.kind == kind; });
}

bool Unseen::has(const Key& key) const {
  return std::ranges::any_of(unreadable_, [&](const Unreadable& one) { return one.key == key; });
}

std::set<std::string> Unseen::names_of(Kind kind) const {
  std::set<std::string> names;
  for (const Unreadable& one : unreadable_) {
    if (one.key.kind == kind) names.insert(one.key.name);
  }
  return names;
}

std::vector<Finding> Unseen::findings(bool foreign_writers) const {
  std::vector<Finding> findings;
  std::set<Key> told;
  const std::set<std::string> beside = names_of(Kind::block_beside);
  for (const Unreadable& one : unreadable_) {
    if (one.error.code == ErrorCode::permission_denied) continue;
    // A record beside a block is one of its own, and told as that.
    if (one.key.kind == Kind::block && beside.contains(one.key.name)) continue;
    if (told.insert(one.key).second) findings.push_back(finding_of(one, foreign_writers));
  }
  return findings;
}

}  // namespace croft::core::audit
