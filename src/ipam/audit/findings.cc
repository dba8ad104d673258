#include "ipam/audit/findings.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/printable.h"

namespace croft::core::audit {

namespace {

std::string filled(std::string_view pattern, const std::vector<std::string>& arguments) {
  std::string text;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '{') {
      text += pattern[at];
      continue;
    }
    text += arguments.at(static_cast<std::size_t>(pattern[at + 1] - '0'));
    at += 2;
  }
  return text;
}

/// Whether nothing that lives, and no program of others, works with the record: that is what may be removed.
bool is_removable(Kind kind, bool foreign_writers) {
  switch (kind) {
    case Kind::block:
    case Kind::range_allocation:
    case Kind::service:
    case Kind::foreign_service:
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
  const auto& [key, error, is_beside] = unreadable;
  const std::string_view kind = name_of(key.kind);
  if (error.code == ErrorCode::newer_version) return found("record_newer", kind, key.name, error.message);
  if (key.kind == Kind::block) {
    const auto cidr = block_cidr_of(key);
    if (cidr && is_beside) return found("block_corrupt.beside", *cidr, error.message);
    return cidr ? found("block_corrupt", *cidr, error.message)
                : found("block_corrupt.unnamed", key.name, error.message);
  }
  if (!is_removable(key.kind, foreign_writers)) {
    return found("record_unreadable.of_others", kind, key.name, error.message);
  }
  const bool needs_force = !loss_without(key.kind).empty() && key.kind != Kind::node;
  return found("record_unreadable", kind, key.name, error.message, in_shell_quotes_if_needed(key.name),
               needs_force ? " --force" : "");
}

}  // namespace

Finding found_with(const FindingRow& row, const std::vector<std::string>& arguments) {
  return {row.name.substr(0, row.name.find('.')), filled(row.subject, arguments), filled(row.text, arguments),
          filled(row.remedy, arguments)};
}

std::string holder_text(const std::string& handle_id, const std::map<std::string, std::string>& attributes) {
  const PodIdentity pod = pod_of(attributes);
  const std::string node = member_of(attributes, kNodeKey);
  std::string text = pod.name.empty() ? "handle " + handle_id
                                      : fmt::format("pod {}/{} (handle {})", pod.namespace_name, pod.name, handle_id);
  if (!node.empty()) text += " on node " + node;
  return text;
}

std::string Allocation::node() const { return member_of(attributes, kNodeKey); }

bool Allocation::borrowed() const {
  const std::string name = node();
  return !cooling && !name.empty() && (!block_owner || block_owner->name != name);
}

Unseen::Unseen(const std::vector<Unreadable>& unreadable) : unreadable_(unreadable) {
  for (const Unreadable& one : unreadable_) {
    if (one.key.name.empty()) unlistable_.insert(one.key.kind);
    const auto cidr = one.key.kind == Kind::block ? block_cidr_of(one.key) : std::nullopt;
    if (cidr) blocks_.insert(cidr->to_string());
  }
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
  for (const Unreadable& one : unreadable_) {
    if (one.error.code == ErrorCode::permission_denied) continue;
    if (told.insert(one.key).second) findings.push_back(finding_of(one, foreign_writers));
  }
  return findings;
}

}  // namespace croft::core::audit
