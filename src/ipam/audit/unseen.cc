#include "ipam/audit/unseen.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/quoted.h"
#include "register/records.h"

namespace croft::core::audit {
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
    // What is beside a block is a record of its own, and told as that.
    if (one.key.kind == Kind::block && beside.contains(one.key.name)) continue;
    if (told.insert(one.key).second) findings.push_back(finding_of(one, foreign_writers));
  }
  return findings;
}

}  // namespace croft::core::audit
