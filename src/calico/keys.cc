#include <algorithm>
#include <array>

#include "base/printable.h"
#include "base/text/go_text.h"
#include "base/texts.h"
#include "calico/etcd_records.h"
#include "calico/json.h"
#include "register/pool.h"

namespace croft::wire::calico {
namespace {

using core::Kind;

/// Where records of a kind lie. Behind `name` in the record's name, and `place` in the key, is the same text, but for
/// the CIDR at its end: `ipv4/10.0.0.64/26` is `ipv4/block/10.0.0.64-26`.
struct Root {
  Kind kind;
  std::string_view name, place;
};
constexpr std::array kRoots = {
    Root{Kind::block, "", "/calico/ipam/v2/assignment/"},
    Root{Kind::ipam_config, "default", "/calico/ipam/v2/config"},
    Root{Kind::handle, "", "/calico/ipam/v2/handle/"},
    Root{Kind::affinity, "host/", "/calico/ipam/v2/host/"},
    Root{Kind::affinity, "virtual/", "/calico/ipam/v2/virtual/"},
    Root{Kind::pool, "", "/calico/resources/v3/projectcalico.org/ippools/"},
    Root{Kind::reservation, "", "/calico/resources/v3/projectcalico.org/ipreservations/"},
    Root{Kind::node, "", "/calico/resources/v3/projectcalico.org/nodes/"},
};
constexpr std::string_view kBlock = "block/";

bool has_cidr(Kind kind) { return kind == Kind::block || kind == Kind::affinity; }

[[nodiscard]] Result<void> check_handle(std::string_view id) {
  if (id.empty() || id.size() > core::kKeyNameBytesMax) {
    return fail(ErrorCode::invalid_argument, "handle of {} bytes: it must have 1 to {}", id.size(),
                core::kKeyNameBytesMax);
  }
  std::string without_breaks(id);
  std::erase_if(without_breaks, [](char c) { return c == '\r' || c == '\n'; });
  if (id.find('/') != id.npos || !is_plain_text(without_breaks)) {
    return fail(ErrorCode::invalid_argument, "handle {} has a slash, a control character or bytes that are not UTF-8",
                echo(id));
  }
  return {};
}

[[nodiscard]] Result<void> check_block(const core::Key& key) {
  const auto cidr = core::block_cidr_of(key);
  if (!cidr || (!key.name.starts_with("ipv4/") && !key.name.starts_with("ipv6/"))) {
    return fail(ErrorCode::corrupt, "block {} has no CIDR", echo(key.name));
  }
  if (!cidr->address().is_v4_mapped()) return {};
  return fail(ErrorCode::invalid_argument, "{} is no prefix that Calico has keys for", *cidr);
}

[[nodiscard]] Result<void> check_affinity(const core::Key& key) {
  TRY(const net::Prefix cidr, core::cidr_of(key));
  const auto owner = owner_in(key.name);
  if (!owner) return fail(ErrorCode::corrupt, "affinity {} has no owner", echo(key.name));
  TRY_VOID(core::check_node_name(owner->name));
  TRY_VOID(check_block(core::block_key(cidr)));
  if (core::affinity_key(*owner, cidr) == key) return {};
  return fail(ErrorCode::invalid_argument, "affinity {} is of no owner and block", echo(key.name));
}

[[nodiscard]] Result<void> check(const core::Key& key) {
  switch (key.kind) {
    case Kind::block:
      return check_block(key);
    case Kind::affinity:
      return check_affinity(key);
    case Kind::handle:
      return check_handle(key.name);
    case Kind::node:
      return core::check_node_name(key.name);
    case Kind::pool:
    case Kind::reservation:
      return core::check_pool_name(key.name);
    default:
      break;
  }
  if (key == core::ipam_config_key()) return {};
  return fail(ErrorCode::invalid_argument, "Calico has no {}", core::name_of(key.kind));
}

/// The part of a name's prefix that a key may begin with too: up to the family.
std::string_view shared_part(std::string_view prefix) {
  for (const std::string_view family : {"ipv4/", "ipv6/"}) {
    const std::size_t at = prefix.find(family);
    if (at == 0 || (at != prefix.npos && prefix[at - 1] == '/')) return prefix.substr(0, at + family.size());
  }
  return prefix.substr(0, prefix.rfind('/') + 1);
}

}  // namespace

std::optional<core::AffinityOwner> owner_in(std::string_view name) {
  const std::size_t slash = name.find('/');
  const auto type = value_in(core::kOwnerTypes, name.substr(0, slash));
  if (slash == name.npos || !type) return std::nullopt;
  name.remove_prefix(slash + 1);
  return core::AffinityOwner{*type, std::string(name.substr(0, name.find('/')))};
}

Result<std::string> place_of(const core::Key& key) {
  TRY_VOID(check(key));
  const auto is_root = [&](const Root& root) { return root.kind == key.kind && key.name.starts_with(root.name); };
  const Root& root = *std::ranges::find_if(kRoots, is_root);
  std::string place = std::string(root.place) + key.name.substr(root.name.size());
  if (!has_cidr(key.kind)) return place;
  const std::size_t slash = place.rfind('/');
  place[slash] = '-';
  place.insert(place.rfind('/') + 1, kBlock);
  return place;
}

std::optional<core::Key> record_at(std::string_view place) {
  const auto root = std::ranges::find_if(kRoots, [&](const Root& one) { return place.starts_with(one.place); });
  if (root == kRoots.end()) return std::nullopt;
  std::string name = std::string(root->name).append(place.substr(root->place.size()));
  if (has_cidr(root->kind)) {
    const std::size_t block = name.rfind("/block/"), dash = name.rfind('-');
    if (block == name.npos || block < 4 || dash == name.npos || dash < block) return std::nullopt;
    const std::string_view family = std::string_view(name).substr(block - 4, 4);
    if (family != "ipv4" && family != "ipv6") return std::nullopt;
    name[dash] = '/';
    name.erase(block + 1, kBlock.size());
  }
  return core::Key{root->kind, std::move(name)};
}

std::vector<std::string> places_of(const core::Listing& listing) {
  std::vector<std::string> places;
  for (const Root& root : kRoots) {
    std::string_view prefix = listing.name_prefix;
    if (root.kind != listing.kind || !(root.name.starts_with(prefix) || prefix.starts_with(root.name))) continue;
    prefix.remove_prefix(std::min(root.name.size(), prefix.size()));
    places.push_back(std::string(root.place).append(has_cidr(root.kind) ? shared_part(prefix) : prefix));
  }
  return places;
}

}  // namespace croft::wire::calico
