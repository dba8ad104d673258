#include "register/pool.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/letters.h"
#include "base/printable.h"
#include "base/texts.h"
#include "register/selector.h"

namespace croft::core {
namespace {

using net::Family;
using net::Prefix;
using namespace net::literals;

constexpr std::string_view kOfPool = "pool-";

[[nodiscard]] Result<int> choose_block_length(const PoolSpec& spec) {
  const auto [min, max, fallback] = block_lengths(spec.cidr.family());
  const int length = spec.block_length.value_or(std::max(fallback, spec.cidr.length()));
  if (length < min || length > max) {
    return fail(ErrorCode::invalid_argument, "blockSize {} of pool {} is out of range: {} to {} for {}", length,
                spec.name, min, max, net::name_of(spec.cidr.family()));
  }
  if (length < spec.cidr.length()) {
    return fail(ErrorCode::invalid_argument, "blockSize {} of pool {} is larger than the pool {}: give at least {}",
                length, spec.name, spec.cidr, spec.cidr.length());
  }
  return length;
}

[[nodiscard]] Result<std::optional<net::Address>> choose_gateway(const Pool& pool, const GatewayChoice& choice) {
  if (choice.kind == GatewayChoice::Kind::none) return std::optional<net::Address>();
  if (choice.kind == GatewayChoice::Kind::first_address) return pool.cidr.first().next();
  if (!pool.cidr.contains(choice.address)) {
    return fail(ErrorCode::invalid_argument,
                "gateway {} of pool {} is outside {}: give an address of the pool, or \"none\"", choice.address,
                pool.name, pool.cidr);
  }
  if (choice.address == pool.cidr.first() || (pool.cidr.family() == Family::v4 && choice.address == pool.cidr.last())) {
    return fail(ErrorCode::invalid_argument, "gateway {} of pool {} is the network or broadcast address of {}",
                choice.address, pool.name, pool.cidr);
  }
  return std::optional(choice.address);
}

[[nodiscard]] Result<std::string> checked_selector(const Pool& pool, const char* field, const std::string& text) {
  const auto selector = Selector::parse(text);
  if (selector) return text;
  return fail(ErrorCode::invalid_argument, "{} of pool {} does not parse: {}", field, pool.name,
              selector.error().message);
}

[[nodiscard]] Result<void> check_room(const Pool& pool) {
  // Network, gateway and broadcast leave something from 8 addresses on; below that, count.
  const int host_bits = net::bit_length(pool.cidr.family()) - pool.cidr.length();
  if (host_bits >= 3) return {};
  const std::size_t kept_out = reservation_for(pool).cidrs.size();
  const bool is_pair_with_gateway = host_bits <= 1 && pool.gateway.has_value();
  if ((std::size_t{1} << host_bits) > kept_out && !is_pair_with_gateway) return {};
  const char* why = host_bits <= 1
                        ? "a pool of one or two addresses has no gateway; with `--gateway none` each is given"
                    : pool.cidr.family() == Family::v4 ? "no address is left beside network, gateway and broadcast"
                                                       : "no address is left beside network and gateway";
  return fail(ErrorCode::invalid_argument, "cidr {} of pool {} is too small: {}", pool.cidr, pool.name, why);
}

/// Their addresses mean something by themselves wherever they are: no pod is reached at one.
constexpr std::pair<Prefix, std::string_view> kSpecials[] = {
    {"169.254.0.0/16"_prefix, "link-local"},      {"127.0.0.0/8"_prefix, "loopback"},
    {"224.0.0.0/4"_prefix, "multicast"},          {"0.0.0.0/8"_prefix, "unspecified (\"this host\")"},
    {"fe80::/10"_prefix, "link-local"},           {"ff00::/8"_prefix, "multicast"},
    {"::/127"_prefix, "unspecified and loopback"}};

[[nodiscard]] Result<void> check_not_special(const PoolSpec& spec) {
  for (const auto& [special, what] : kSpecials) {
    if (special.family() != spec.cidr.family() || !spec.cidr.overlaps(special)) continue;
    return fail(ErrorCode::invalid_argument, "cidr {} of pool {} overlaps the {} range {}", spec.cidr, spec.name, what,
                special);
  }
  return {};
}

}  // namespace

bool allows(const Pool& pool, PoolUse use) {
  return std::find(pool.allowed_uses.begin(), pool.allowed_uses.end(), use) != pool.allowed_uses.end();
}

bool is_block_length(const net::Prefix& cidr, int length) {
  if (!cidr.is_valid()) return false;
  const auto [min, max, fallback] = block_lengths(cidr.family());
  return length >= std::max(min, cidr.length()) && length <= max;
}

Result<void> check_object_name(std::string_view what, const std::string& name) {
  const auto allowed = [](char c) { return is_small_or_digit(c) || c == '-' || c == '.'; };
  if (name.empty() || name.size() > kPoolNameBytesMax || !is_small_or_digit(name.front()) ||
      !is_small_or_digit(name.back()) || !std::all_of(name.begin(), name.end(), allowed)) {
    return fail(ErrorCode::invalid_argument,
                "{} name {} is not valid: 1 to {} lower-case letters, digits, '-' or '.', first "
                "and last a letter or digit",
                what, echo(name), kPoolNameBytesMax);
  }
  return {};
}

Result<Pool> make_pool(const PoolSpec& spec) {
  TRY_VOID(check_pool_name(spec.name));
  if (!spec.cidr.is_valid()) return fail(ErrorCode::invalid_argument, "pool {} has no cidr", spec.name);
  TRY_VOID(check_not_special(spec));
  Pool pool;
  pool.name = spec.name;
  pool.cidr = spec.cidr;
  TRY(pool.block_length, choose_block_length(spec));
  PoolSpec whole = spec;
  if (!whole.gateway) whole.gateway = GatewayChoice{};
  pool.cooldown = kDefaultCooldown;
  return with_settings(std::move(pool), whole);
}

Result<Pool> with_settings(Pool pool, const PoolSpec& spec) {
  if (spec.block_length && *spec.block_length != pool.block_length) {
    return fail(ErrorCode::invalid_argument, "pool {} has blocks of /{}, and a pool keeps its block size", pool.name,
                pool.block_length);
  }
  if (spec.gateway) {
    TRY(pool.gateway, choose_gateway(pool, *spec.gateway));
  }
  if (spec.cooldown) pool.cooldown = *spec.cooldown;
  if (!is_cooldown(pool.cooldown)) {
    return fail(ErrorCode::invalid_argument, "cooldownSeconds {} of pool {} is out of range: 0 to {}",
                pool.cooldown.count(), pool.name, kCooldownMax.count());
  }
  if (spec.disabled) pool.disabled = *spec.disabled;
  if (spec.node_selector) {
    TRY(pool.node_selector, checked_selector(pool, "nodeSelector", *spec.node_selector));
  }
  // Calico leaves it out where it is everything.
  if (pool.node_selector.empty()) pool.node_selector = "all()";
  if (spec.namespace_selector) {
    TRY(pool.namespace_selector, checked_selector(pool, "namespaceSelector", *spec.namespace_selector));
  }
  if (spec.priority) pool.priority = *spec.priority;
  if (pool.priority < 0 || pool.priority > kPoolPriorityMax) {
    return fail(ErrorCode::invalid_argument, "priority {} of pool {} is out of range: 0 to {}", pool.priority,
                pool.name, kPoolPriorityMax);
  }
  if (spec.gateway) TRY_VOID(check_room(pool));
  return pool;
}

std::string contradictions_between(const Pool& pool, const PoolSpec& spec) {
  std::string text;
  const auto compare = [&](std::string_view field, const auto& has, const auto& wants) {
    if (has == wants) return;
    text += fmt::format("{}{}: the pool has {}, not {}", text.empty() ? "" : "; ", field, has, wants);
  };
  compare("cidr", pool.cidr, spec.cidr);
  if (spec.block_length) compare("blockSize", pool.block_length, *spec.block_length);
  if (spec.gateway && spec.cidr == pool.cidr) {
    const auto text_of = [](const std::optional<net::Address>& gateway) {
      return gateway ? gateway->to_string() : std::string("none");
    };
    const auto wanted = choose_gateway(pool, *spec.gateway);
    compare("gateway", text_of(pool.gateway), wanted ? text_of(*wanted) : spec.gateway->address.to_string());
  }
  if (spec.cooldown) compare("cooldownSeconds", pool.cooldown.count(), spec.cooldown->count());
  if (spec.disabled) compare("disabled", pool.disabled, *spec.disabled);
  const auto selector = [](const std::string& said) { return said.empty() ? std::string("all()") : said; };
  if (spec.node_selector) compare("nodeSelector", selector(pool.node_selector), selector(*spec.node_selector));
  if (spec.namespace_selector) {
    compare("namespaceSelector", selector(pool.namespace_selector), selector(*spec.namespace_selector));
  }
  if (spec.priority) compare("priority", pool.priority, *spec.priority);
  return text;
}

AskedPool asked_pool(const std::string& text) {
  if (const auto cidr = net::AddressWithLength::parse(text)) return cidr->network();
  return text;
}

std::string text_of(const AskedPool& asked) {
  const auto* cidr = std::get_if<Prefix>(&asked);
  return cidr != nullptr ? cidr->to_string() : std::get<std::string>(asked);
}

bool is_pool_asked_for(const AskedPool& asked, const std::string& name, const Prefix& cidr) {
  const auto* asked_cidr = std::get_if<Prefix>(&asked);
  return asked_cidr != nullptr ? *asked_cidr == cidr : std::get<std::string>(asked) == name;
}

std::string reservation_name_of(const std::string& pool) {
  std::string name = fmt::format("{}{}", kOfPool, pool);
  if (name.size() <= kPoolNameBytesMax) return name;
  const std::string ending = fmt::format("-{:016x}", hash_of_name(pool));
  name.resize(kPoolNameBytesMax - ending.size());
  while (name.back() == '-' || name.back() == '.') name.pop_back();
  return name + ending;
}

std::optional<std::string> pool_of_reservation(const Reservation& reservation) {
  const auto& kept = reservation.cidrs;
  if (!reservation.name.starts_with(kOfPool) || kept.empty()) return {};
  const Family family = kept.front().family();
  const auto is_one_address = [&](const Prefix& one) {
    return one.family() == family && one.length() == net::bit_length(family);
  };
  if (!std::ranges::all_of(kept, is_one_address)) return {};
  const auto [first, last] = std::ranges::minmax(kept, {}, [](const Prefix& one) { return one.first(); });
  const auto are_its_ends = [&](int length) {
    const Prefix cidr = Prefix::containing(first.first(), length);
    return cidr.first() == first.first() && cidr.last() == last.last();
  };
  // The last address of IPv6 is not kept.
  bool is_pools = family == Family::v6;
  for (int length = 0; length <= net::bit_length(family); ++length) is_pools |= are_its_ends(length);
  return is_pools ? std::optional(reservation.name.substr(kOfPool.size())) : std::nullopt;
}

Reservation reservation_for(const Pool& pool) {
  const int bits = net::bit_length(pool.cidr.family());
  // One or two addresses have no room for those of a network (RFC 3021).
  const bool has_ends = pool.cidr.length() + 1 < bits;
  std::set<net::Address> addresses;
  if (has_ends) addresses.insert(pool.cidr.first());
  if (pool.gateway) addresses.insert(*pool.gateway);
  if (has_ends && pool.cidr.family() == Family::v4) addresses.insert(pool.cidr.last());
  Reservation reservation;
  reservation.name = reservation_name_of(pool.name);
  for (const auto& address : addresses) reservation.cidrs.push_back(Prefix::containing(address, bits));
  return reservation;
}

}  // namespace croft::core
