#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/net/echo.h"
#include "base/text/go_text.h"
#include "calico/etcd.h"
#include "register/pool.h"

namespace croft::wire::calico {
namespace {

using core::AffinityOwner;

constexpr std::string_view kBlockRoot = "/calico/ipam/v2/assignment/";
constexpr std::string_view kHostRoot = "/calico/ipam/v2/host/";
constexpr std::string_view kVirtualRoot = "/calico/ipam/v2/virtual/";
constexpr std::string_view kHandleRoot = "/calico/ipam/v2/handle/";
constexpr std::string_view kConfigKey = "/calico/ipam/v2/config";

constexpr std::array<std::pair<ResourceKey::Kind, std::string_view>, 3> kResourceRoots = {{
    {ResourceKey::Kind::pool, "/calico/resources/v3/projectcalico.org/ippools/"},
    {ResourceKey::Kind::reservation, "/calico/resources/v3/projectcalico.org/ipreservations/"},
    {ResourceKey::Kind::node, "/calico/resources/v3/projectcalico.org/nodes/"},
}};

std::string_view root_of(AffinityOwner::Type type) {
  return type == AffinityOwner::Type::host ? kHostRoot : kVirtualRoot;
}

std::string_view family_name(net::Family family) { return family == net::Family::v4 ? "ipv4" : "ipv6"; }

/// `ipv4/block/10.0.0.64-26`.
[[nodiscard]] Result<std::string> print_cidr(const net::Prefix& cidr) {
  if (!cidr.is_valid() || cidr.address().is_v4_mapped()) {
    return fail(ErrorCode::invalid_argument, fmt::format("{} is no prefix that Calico has keys for", cidr.to_string()));
  }
  std::string text = cidr.to_string();
  std::replace(text.begin(), text.end(), '/', '-');
  return fmt::format("{}/block/{}", family_name(cidr.family()), text);
}

[[nodiscard]] Result<void> check_handle(std::string_view id) {
  if (id.empty() || id.size() > core::kKeyNameBytesMax) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("handle of {} bytes: it must have 1 to {}", id.size(), core::kKeyNameBytesMax));
  }
  std::string without_breaks(id);
  std::erase_if(without_breaks, [](char c) { return c == '\r' || c == '\n'; });
  if (id.find('/') != id.npos || !is_plain_text(without_breaks)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("handle {} has a slash, a control character or bytes that are not UTF-8", net::echo(id)));
  }
  return {};
}

struct Printer {
  [[nodiscard]] Result<std::string> operator()(const BlockKey& key) const {
    TRY(const std::string cidr, print_cidr(key.cidr));
    return std::string(kBlockRoot) + cidr;
  }
  [[nodiscard]] Result<std::string> operator()(const AffinityKey& key) const {
    TRY_VOID(core::check_node_name(key.owner.name));
    TRY(const std::string cidr, print_cidr(key.cidr));
    return fmt::format("{}{}/{}", root_of(key.owner.type), key.owner.name, cidr);
  }
  [[nodiscard]] Result<std::string> operator()(const HostMarkerKey& key) const {
    TRY_VOID(core::check_node_name(key.node));
    return std::string(kHostRoot) + key.node;
  }
  [[nodiscard]] Result<std::string> operator()(const HandleKey& key) const {
    TRY_VOID(check_handle(key.id));
    return std::string(kHandleRoot) + key.id;
  }
  [[nodiscard]] Result<std::string> operator()(const IpamConfigKey&) const { return std::string(kConfigKey); }
  [[nodiscard]] Result<std::string> operator()(const ResourceKey& key) const {
    TRY_VOID(key.kind == ResourceKey::Kind::node ? core::check_node_name(key.name) : core::check_pool_name(key.name));
    return resources_prefix(key.kind) + key.name;
  }
};

/// Removes the text from the front of `rest` if it is there.
bool take(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}

Error damaged_key(std::string_view text, std::string_view why) {
  return {ErrorCode::corrupt, fmt::format("key {} in etcd is damaged: {}", net::echo(text), why), {}};
}

/// The prefix of `ipv4/block/10.0.0.64-26`; whether it is spelled as it should be shows when it is printed again.
std::optional<net::Prefix> parse_cidr(std::string_view text) {
  const std::size_t slash = text.rfind('/');
  if (slash == text.npos) return std::nullopt;
  std::string cidr(text.substr(slash + 1));
  const std::size_t dash = cidr.find('-');
  if (dash == cidr.npos) return std::nullopt;
  cidr[dash] = '/';
  return net::parse_prefix(cidr);
}

/// `node-a/ipv4/block/10.0.0.64-26` or, for hosts, `node-a` alone.
std::optional<Key> parse_owned(AffinityOwner::Type type, std::string_view rest) {
  const std::size_t slash = rest.find('/');
  std::string name(rest.substr(0, slash));
  if (slash == rest.npos) {
    if (type != AffinityOwner::Type::host) return std::nullopt;
    return HostMarkerKey{std::move(name)};
  }
  const auto cidr = parse_cidr(rest.substr(slash + 1));
  if (!cidr) return std::nullopt;
  return AffinityKey{{type, std::move(name)}, *cidr};
}

std::optional<Key> parse_block(std::string_view rest) {
  const auto cidr = parse_cidr(rest);
  if (!cidr) return std::nullopt;
  return BlockKey{*cidr};
}

/// Any key in one of the places, however it is spelled; nothing when a part is missing. Error: not_found.
[[nodiscard]] Result<std::optional<Key>> parse_loosely(std::string_view text) {
  std::string_view rest = text;
  if (text == kConfigKey) return Key(IpamConfigKey{});
  if (take(rest, kBlockRoot)) return parse_block(rest);
  if (take(rest, kHostRoot)) return parse_owned(AffinityOwner::Type::host, rest);
  if (take(rest, kVirtualRoot)) return parse_owned(AffinityOwner::Type::virtual_owner, rest);
  if (take(rest, kHandleRoot)) return Key(HandleKey{std::string(rest)});
  for (const auto& [kind, root] : kResourceRoots) {
    if (take(rest, root)) return Key(ResourceKey{kind, std::string(rest)});
  }
  return fail(ErrorCode::not_found, fmt::format("key {} is none of Calico's address management", net::echo(text)));
}

/// The owner in front of a name such as `host/node-a/ipv4/10.0.0.64/26`.
std::optional<AffinityOwner> owner_in(std::string_view name) {
  AffinityOwner owner;
  if (take(name, "virtual/")) {
    owner.type = AffinityOwner::Type::virtual_owner;
  } else if (!take(name, "host/")) {
    return std::nullopt;
  }
  owner.name = name.substr(0, name.find('/'));
  return owner;
}

struct RecordKey {
  std::optional<core::Key> operator()(const BlockKey& key) const { return core::block_key(key.cidr); }
  std::optional<core::Key> operator()(const AffinityKey& key) const { return core::affinity_key(key.owner, key.cidr); }
  std::optional<core::Key> operator()(const HostMarkerKey&) const { return std::nullopt; }
  std::optional<core::Key> operator()(const HandleKey& key) const { return core::handle_key(key.id); }
  std::optional<core::Key> operator()(const IpamConfigKey&) const {
    return core::Key{core::Kind::ipam_config, "default"};
  }
  std::optional<core::Key> operator()(const ResourceKey& key) const {
    if (key.kind == ResourceKey::Kind::pool) return core::pool_key(key.name);
    if (key.kind == ResourceKey::Kind::reservation) return core::reservation_key(key.name);
    if (key.kind == ResourceKey::Kind::node) return core::node_key(key.name);
    return std::nullopt;
  }
};

}  // namespace

Result<std::string> print_key(const Key& key) { return std::visit(Printer{}, key); }

Result<Key> parse_key(std::string_view text) {
  TRY(const auto key, parse_loosely(text));
  if (!key) return fail(damaged_key(text, "a part of it is missing or no prefix"));
  const auto printed = print_key(*key);
  if (!printed) return fail(damaged_key(text, printed.error().message));
  if (*printed != text) return fail(damaged_key(text, fmt::format("Calico writes {}", net::echo(*printed))));
  return *key;
}

Result<Key> key_of(const core::Key& key) {
  switch (key.kind) {
    case core::Kind::pool:
      return ResourceKey{ResourceKey::Kind::pool, key.name};
    case core::Kind::reservation:
      return ResourceKey{ResourceKey::Kind::reservation, key.name};
    case core::Kind::ipam_config:
      return IpamConfigKey{};
    case core::Kind::block: {
      const auto cidr = core::block_cidr_of(key);
      if (!cidr) return fail(core::cidr_of(key).error());
      return BlockKey{*cidr};
    }
    case core::Kind::affinity: {
      TRY(const net::Prefix cidr, core::cidr_of(key));
      auto owner = owner_in(key.name);
      if (!owner) return fail(ErrorCode::corrupt, fmt::format("affinity {} has no owner", net::echo(key.name)));
      return AffinityKey{*std::move(owner), cidr};
    }
    case core::Kind::handle:
      return HandleKey{key.name};
    case core::Kind::node:
      return ResourceKey{ResourceKey::Kind::node, key.name};
    default:
      break;
  }
  return fail(ErrorCode::invalid_argument, fmt::format("Calico has no {}", core::name_of(key.kind)));
}

std::optional<core::Key> record_of(const Key& key) { return std::visit(RecordKey{}, key); }

std::string blocks_prefix(std::optional<net::Family> family) {
  return family ? fmt::format("{}{}/", kBlockRoot, family_name(*family)) : std::string(kBlockRoot);
}

std::string affinities_prefix(AffinityOwner::Type type) { return std::string(root_of(type)); }

Result<std::string> affinities_prefix(const AffinityOwner& owner, std::optional<net::Family> family) {
  TRY_VOID(core::check_node_name(owner.name));
  const std::string all = fmt::format("{}{}/", root_of(owner.type), owner.name);
  return family ? fmt::format("{}{}/block/", all, family_name(*family)) : all;
}

std::string handles_prefix() { return std::string(kHandleRoot); }

std::string resources_prefix(ResourceKey::Kind kind) {
  for (const auto& [candidate, root] : kResourceRoots) {
    if (candidate == kind) return std::string(root);
  }
  CROFT_ASSERT(false);
}

}  // namespace croft::wire::calico
