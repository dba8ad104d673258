#include "store/etcd/place.h"

#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/net/echo.h"
#include "calico/etcd.h"
#include "store/calico/codec.h"
#include "store/etcd/format/api.h"

namespace croft::store::etcd {
namespace {

using core::Kind;

/// The part of a name's prefix up to its last slash: only there do the prefixes of Calico's keys agree with it.
std::string_view whole_parts(std::string_view prefix) {
  const std::size_t slash = prefix.rfind('/');
  return slash == prefix.npos ? std::string_view() : prefix.substr(0, slash + 1);
}

std::vector<std::string> affinity_prefixes(std::string_view parts) {
  using Type = core::AffinityOwner::Type;
  if (parts.empty())
    return {wire::calico::affinities_prefix(Type::host), wire::calico::affinities_prefix(Type::virtual_owner)};
  const bool is_host = parts.starts_with("host/");
  const Type type = is_host ? Type::host : Type::virtual_owner;
  std::string_view rest = parts.substr(parts.find('/') + 1);
  if (rest.empty()) return {wire::calico::affinities_prefix(type)};
  const std::string owner(rest.substr(0, rest.find('/')));
  rest.remove_prefix(owner.size() + 1);
  std::optional<net::Family> family;
  if (rest.starts_with("ipv4/")) family = net::Family::v4;
  if (rest.starts_with("ipv6/")) family = net::Family::v6;
  const auto prefix = wire::calico::affinities_prefix({type, owner}, family);
  return {prefix ? *prefix : wire::calico::affinities_prefix(type)};
}

constexpr std::string_view kBlock = "/block/";
constexpr std::size_t kFamilyBytes = 4;

/// Where a block lies whose key is spelled as no library of Calico's does: the inverse of listed_at().
[[nodiscard]] Result<std::string> place_of_odd_block(const core::Key& key) {
  const bool is_of_family = key.name.starts_with("ipv4/") || key.name.starts_with("ipv6/");
  if (!is_of_family || !core::block_cidr_of(key)) {
    return fail(ErrorCode::corrupt, fmt::format("block {} has no CIDR", net::echo(key.name)));
  }
  std::string cidr = key.name.substr(kFamilyBytes + 1);
  cidr[cidr.rfind('/')] = '-';
  return fmt::format("{}{}{}{}", wire::calico::blocks_prefix(), key.name.substr(0, kFamilyBytes), kBlock, cidr);
}

}  // namespace

Result<void> Places::check_kind(Kind kind) const {
  if (core::traits_of(kind).system != core::System::kubernetes || registry_ != nullptr) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("this program has no part for Kubernetes' records in etcd ({}): use croft or croftd",
                          core::name_of(kind)));
}

bool Places::leaves_out(Kind kind) const {
  return !has_own_ && !calico::is_calicos(kind) && registry_of(kind) == nullptr;
}

std::optional<std::string> Places::place_beside(const core::Key& key) const {
  return has_own_ ? calico::place_beside(key) : std::nullopt;
}

std::optional<std::string> Places::places_beside(Kind kind) const {
  return has_own_ ? calico::places_beside(kind) : std::nullopt;
}

std::string Places::root_of(Kind kind) const {
  if (const Registry* registry = registry_of(kind)) return registry->root_of(kind);
  // Where Services are Kubernetes', Croft's own are the others, if they take from the same ranges.
  const bool is_own_service = kind == Kind::foreign_service && registry_ != nullptr && registry_->shares_own_services();
  if (is_own_service) kind = Kind::service;
  return calico::own_root_of(kind);
}

std::vector<std::string> Places::prefixes_of(const core::Listing& listing) const {
  const std::string_view parts = whole_parts(listing.name_prefix);
  switch (listing.kind) {
    case Kind::pool:
      return {wire::calico::resources_prefix(wire::calico::ResourceKey::Kind::pool) + listing.name_prefix};
    case Kind::reservation:
      return {wire::calico::resources_prefix(wire::calico::ResourceKey::Kind::reservation) + listing.name_prefix};
    case Kind::node:
      return {wire::calico::resources_prefix(wire::calico::ResourceKey::Kind::node) + listing.name_prefix};
    case Kind::ipam_config: {
      const auto key = wire::calico::print_key(wire::calico::IpamConfigKey{});
      CROFT_ASSERT(key.has_value());
      return {*key};
    }
    case Kind::block:
      if (parts.starts_with("ipv4/")) return {wire::calico::blocks_prefix(net::Family::v4)};
      if (parts.starts_with("ipv6/")) return {wire::calico::blocks_prefix(net::Family::v6)};
      return {wire::calico::blocks_prefix()};
    case Kind::affinity:
      return affinity_prefixes(parts);
    case Kind::handle:
      return {wire::calico::handles_prefix() + listing.name_prefix};
    default:
      return {root_of(listing.kind) + listing.name_prefix};
  }
}

Result<std::string> Places::place_of(const core::Key& key) const {
  TRY_VOID(check_kind(key.kind));
  if (!calico::is_calicos(key.kind)) return root_of(key.kind) + key.name;
  if (key.kind == Kind::block) {
    const auto cidr = core::block_cidr_of(key);
    if (!cidr || core::block_key(*cidr) != key) return place_of_odd_block(key);
  }
  TRY(const wire::calico::Key place, wire::calico::key_of(key));
  return wire::calico::print_key(place);
}

std::optional<core::Key> Places::record_at(Kind kind, std::string_view place) const {
  if (!calico::is_calicos(kind)) {
    const std::string root = root_of(kind);
    if (!place.starts_with(root) || place.size() == root.size()) return std::nullopt;
    return core::Key{kind, std::string(place.substr(root.size()))};
  }
  const auto parsed = wire::calico::parse_key(place);
  if (!parsed) {
    // The CIDR of a block's key is taken, however it is spelled.
    const bool is_blocks = kind == Kind::block && place.starts_with(wire::calico::blocks_prefix());
    auto listed = is_blocks ? listed_at(kind, place) : std::nullopt;
    return listed && core::block_cidr_of(*listed) ? std::move(listed) : std::nullopt;
  }
  auto key = wire::calico::record_of(*parsed);
  if (key && key->kind != kind) return std::nullopt;
  return key;
}

std::optional<core::Key> Places::listed_at(Kind kind, std::string_view place) const {
  // …/assignment/ipv4/block/10.0.0.64-26 is ipv4/10.0.0.64/26
  const std::string root = wire::calico::blocks_prefix();
  if (kind != Kind::block || !place.starts_with(root)) return record_at(kind, place);
  place.remove_prefix(root.size());
  const std::size_t dash = place.rfind('-');
  const std::size_t cidr_at = kFamilyBytes + kBlock.size();
  if (place.size() <= cidr_at || place.substr(kFamilyBytes, kBlock.size()) != kBlock || dash == place.npos ||
      dash < cidr_at || (!place.starts_with("ipv4") && !place.starts_with("ipv6"))) {
    return std::nullopt;
  }
  core::Key key{kind, std::string(place.substr(0, kFamilyBytes + 1))};
  key.name += place.substr(cidr_at, dash - cidr_at);
  key.name += '/';
  key.name += place.substr(dash + 1);
  return key;
}

Result<std::vector<PlaceRange>> Places::ranges_of(const core::Listing& listing) const {
  TRY_VOID(check_kind(listing.kind));
  std::vector<PlaceRange> ranges;
  if (leaves_out(listing.kind)) return ranges;
  for (std::string& prefix : prefixes_of(listing)) {
    std::string end = wire::etcd::end_of_prefix(prefix);
    ranges.push_back({std::move(prefix), std::move(end)});
  }
  return ranges;
}

}  // namespace croft::store::etcd
