#include "ipam/decide/assign.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/planted.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "ipam/decide/claim_choice.h"
#include "ipam/decide/family_search.h"

namespace croft::core {
namespace {

using net::Address;
using net::Family;
using net::Prefix;

// --- wanted exactly ---

/// With the pod, where that is known: who asked for this address has to talk to somebody.
std::string holder_text(const Attribute& holder) {
  const std::string pod = member_of(holder.secondary, kPodKey), node = member_of(holder.secondary, kNodeKey);
  std::string text = "held by " + holder.handle_id.value_or("an unknown handle");
  if (!pod.empty()) text += fmt::format(", pod {}/{}", member_of(holder.secondary, kNamespaceKey), pod);
  if (!node.empty()) text += " on node " + node;
  return text;
}

std::string state_text(const Assignment& in, const Block& block, net::Ordinal ordinal) {
  const Attribute& holder = *attribute_of(block, ordinal);
  if (!holder.cooling) return holder_text(holder);
  const auto cooldown = in.pools.cooldowns_of(block.cidr).of(*holder.cooling);
  return "cooling until " + rfc3339_rounded_up(cooldown_end(*holder.cooling, cooldown, in.draft.now()));
}

Refusal in_no_pool(const PoolTable& pools, const Address& address) {
  std::vector<PoolVerdict> considered;
  for (const Pool* p : pools.pools()) considered.push_back({p->name, p->cidr, "does not contain it"});
  return {considered.empty() ? ErrorCode::no_pool : ErrorCode::refused_by_configuration,
          fmt::format("requested address {} cannot be assigned: it is in no pool", address), std::move(considered),
          RefusalCause::address_in_no_pool};
}

/// One address in the pool that contains it.
class WantedAddress {
 public:
  WantedAddress(Assignment& assignment, const Address& address, const Pool& pool)
      : in_(assignment), address_(address), pool_(pool), cidr_(Prefix::containing(address, pool.block_length)) {}

  [[nodiscard]] AssignFlow<void> take() {
    TRY_VOID(check_pool());
    if (in_.request.living.contains(address_)) {
      return refused("somebody on this node lives with the address", RefusalCause::other, ErrorCode::unavailable);
    }
    TRY(Look look, look_at_block());
    Block& block = look.block;
    const net::Ordinal ordinal = *net::ordinal_of(cidr_, address_);
    if (const Attribute* holder = attribute_of(block, ordinal);
        in_.request.cooling_addresses && holder != nullptr && holder->cooling) {
      block = with_freed(block, ordinal);
    }
    auto taken = take_address(block, address_, in_.attribute());
    if (!taken) {
      in_.cooling.insert(cidr_);
      return refused("the address is " + state_text(in_, block, ordinal), RefusalCause::address_taken,
                     ErrorCode::exhausted);
    }
    in_.accept(*std::move(taken), look.is_new ? &pool_ : nullptr);
    return {};
  }

 private:
  struct Look {
    Block block;
    bool is_new = false;
  };

  [[nodiscard]] tl::unexpected<Stop<Refusal>> refused(std::string reason, RefusalCause cause = RefusalCause::other,
                                                      ErrorCode code = ErrorCode::refused_by_configuration) const {
    return refuse({code,
                   fmt::format("requested address {} cannot be assigned", address_),
                   {{pool_.name, pool_.cidr, std::move(reason)}},
                   cause});
  }

  [[nodiscard]] AssignFlow<void> check_pool() const {
    const std::vector<AskedPool>& asked = in_.request.pools[address_.family()];
    const auto is_this = [&](const AskedPool& one) { return is_pool_asked_for(one, pool_.name, pool_.cidr); };
    if (!asked.empty() && std::none_of(asked.begin(), asked.end(), is_this)) {
      std::string names;
      for (const AskedPool& one : asked) names += (names.empty() ? "" : ", ") + text_of(one);
      return refused(fmt::format("it is none of the network's pools ({}: {})",
                                 address_.family() == net::Family::v4 ? "ipv4_pools" : "ipv6_pools", names),
                     RefusalCause::pool_not_usable);
    }
    if (!is_enabled(pool_)) return refused("the pool is disabled", RefusalCause::address_in_no_pool);
    if (!allows(pool_, in_.request.use)) return refused("the pool is not for this use (allowedUses)");
    if (const Error* damage = in_.pools.damaged_reservation(pool_);
        damage != nullptr && !in_.request.reserved_addresses) {
      return refused(damage->message, RefusalCause::other, damage->code);
    }
    if (!in_.request.reserved_addresses && in_.pools.is_reserved(address_)) {
      return refused("the address is reserved (the pool's network, gateway or broadcast, or a reservation's)");
    }
    return {};
  }

  /// The block with the address as one may be given out of it: what is read for that is asked for together.
  [[nodiscard]] AssignFlow<Look> look_at_block() {
    const auto there = in_.draft.block(cidr_);
    if (!there) return fail(there.error());
    TRY_VOID(in_.reader.ready());
    if (!there->has_value()) {
      TRY(const auto obstacle, obstacle_of(in_.reader, cidr_));
      if (obstacle) return refused(*obstacle);
    }
    Look look;
    look.is_new = !there->has_value();
    if (look.is_new && !in_.pools.config().auto_allocate_blocks) {
      return refused(fmt::format("nobody has claimed block {}, and only an operator claims blocks "
                                 "(autoAllocateBlocks is off): croft affinity claim",
                                 cidr_),
                     RefusalCause::no_block_to_claim);
    }
    if (look.is_new) {
      TRY(look.block, in_.make_block(cidr_));
    } else {
      look.block = **there;
    }
    if (in_.pools.config().strict_affinity && look.block.affinity != in_.request.node) {
      return refused(fmt::format("block {} belongs to {} and affinity is strict", cidr_,
                                 look.block.affinity ? to_string(*look.block.affinity) : "nobody"),
                     RefusalCause::address_out_of_bounds);
    }
    return look;
  }

  Assignment& in_;
  const Address& address_;
  const Pool& pool_;
  const Prefix cidr_;
};

/// Serves addresses of one family that are wanted exactly, beside those of the family that the owner holds already: one
/// that is not wanted any more refuses all.
[[nodiscard]] AssignFlow<void> assign_explicit(Assignment& assignment, const std::vector<Address>& wanted,
                                               const std::vector<AssignedAddress>& held) {
  const Owner& owner = assignment.request.owner;
  for (const AssignedAddress& other : held) {
    if (std::find(wanted.begin(), wanted.end(), other.address) != wanted.end()) continue;
    return refuse({ErrorCode::refused_by_configuration,
                   fmt::format("container {} interface {} already holds {} and now asks for {}: delete it first",
                               owner.container_id, owner.interface_name, other.address, wanted.front()),
                   {}});
  }
  for (const Address& address : wanted) {
    const auto before = std::find_if(held.begin(), held.end(), [&](const auto& h) { return h.address == address; });
    if (before != held.end()) {
      assignment.answer.addresses.push_back(*before);
      continue;
    }
    const Pool* pool = assignment.pools.containing(address);
    if (pool == nullptr) return refuse(in_no_pool(assignment.pools, address));
    TRY_VOID(WantedAddress(assignment, address, *pool).take());
  }
  return {};
}

// --- both families ---

std::vector<Address> wanted_of(Family family, const AssignRequest& request) {
  std::vector<Address> wanted = request.addresses;
  std::erase_if(wanted, [&](const Address& one) { return one.family() != family; });
  return wanted;
}

/// Collects the addresses that the owner holds already, in the blocks that its handle names.
[[nodiscard]] Flow<void> collect_held(Assignment& in, const Handle& handle) {
  const std::vector<HandleBlock> blocks = blocks_of(handle);
  for (const HandleBlock& one : blocks) in.reader.ask(block_key(one.cidr));
  TRY_VOID(in.reader.ready());
  for (const auto& [cidr, count, name] : blocks) {
    TRY(const auto block, in.draft.block(cidr));
    if (!block) continue;  // over-counted: a handle may name a block that is gone
    for (const net::Ordinal ordinal : held_by(*block, in.request.owner)) {
      AssignedAddress held = in.described(*block, net::address_at(cidr, ordinal), true);
      // It may be of the damaged pool, which has its prefix and gateway: without these it is another answer than
      // before. Whatever is of a pool that can be read is answered, whichever else cannot.
      if (const auto& damage = in.pools.damaged_pool(); damage && held.pool.empty()) {
        return fail(damage->in(fmt::format("{} is held already, and of no pool that can be read", held.address)));
      }
      in.held.push_back(std::move(held));
    }
  }
  return {};
}

[[nodiscard]] AssignFlow<void> serve(Assignment& in, Family family, std::uint32_t count) {
  const std::vector<Address> wanted = wanted_of(family, in.request);
  std::vector<AssignedAddress> held = in.held;
  std::erase_if(held, [&](const AssignedAddress& one) { return one.address.family() != family; });
  if (!wanted.empty()) return assign_explicit(in, wanted, held);
  if (count == 0) return {};
  in.answer.addresses.insert(in.answer.addresses.end(), held.begin(), held.end());
  if (held.size() >= count) return {};
  return assign_automatic(in, family, count - static_cast<std::uint32_t>(held.size()));
}

[[nodiscard]] AssignFlow<void> assign(Assignment& in) {
  const AssignRequest& request = in.request;
  const Handle* handle = in.reader.get(handle_key(in.handle_id));
  // Asked for together, so that a store far away is asked once.
  if (in.reader.atomic_commit()) static_cast<void>(in.node_labels());
  for (const Family family : net::kFamilies) {
    if (request.count[family] > 0 && wanted_of(family, request).empty())
      prefetch_own_blocks(in.reader, request.node, family);
  }
  TRY_VOID(in.reader.ready());
  if (handle != nullptr && !is_planted("repeat_forgotten")) TRY_VOID(collect_held(in, *handle));
  for (const Family family : net::kFamilies) TRY_VOID(serve(in, family, request.count[family]));
  return {};
}

// --- before it is needed ---

/// Whether so many addresses of the node's own blocks are free, or a whole block.
[[nodiscard]] Flow<bool> has_free(Assignment& in, const FamilyPools& search, std::uint32_t least_free) {
  std::uint64_t free = 0;
  for (const net::Prefix& cidr : search.own().ready) in.reader.ask(block_key(cidr));
  TRY_VOID(in.reader.ready());
  for (const net::Prefix& cidr : search.own().ready) {
    if (free >= least_free) break;
    TRY(const auto block, in.draft.block(cidr));
    if (!block || block->affinity != in.request.node) continue;
    if (is_empty(*block)) return true;  // one is ahead already
    free += free_count(*block, in.pools.reservations());
  }
  return free >= least_free;
}

/// Whether a pool has blocks for who has none yet: sixteen are nobody's, and one in eight.
[[nodiscard]] bool is_roomy(Reader& reader, const Pool& pool) {
  const std::vector<Key>& keys = reader.keys({Kind::block, block_names_of(pool.cidr.family())});
  const int length = pool.block_length - pool.cidr.length();
  const std::uint64_t all = length < 32 ? std::uint64_t{1} << length : std::uint64_t{1} << 32;
  constexpr std::uint64_t kForOthers = 16;
  const std::uint64_t for_others = std::max((all + 7) / 8, kForOthers);
  const auto leaves_enough = [&](std::uint64_t there) { return all > for_others && there < all - for_others; };
  if (leaves_enough(keys.size())) return true;
  std::uint64_t there = 0;
  for (const Key& key : keys) {
    const auto cidr = cidr_of(key);
    if (cidr && pool.cidr.contains(*cidr)) ++there;
  }
  return leaves_enough(there);
}

/// The block that is claimed.
[[nodiscard]] AssignFlow<std::optional<net::Prefix>> claim_ahead(Assignment& in, net::Family family,
                                                                 std::uint32_t least_free) {
  const AffinityOwner& node = in.request.node;
  static_cast<void>(in.node_labels());
  prefetch_own_blocks(in.reader, node, family);
  TRY_VOID(in.reader.ready());
  const IpamConfig& config = in.pools.config();
  if (in.request.block_limit != 0 || config.max_blocks_per_host != 0 || !config.auto_allocate_blocks) {
    return std::optional<net::Prefix>();
  }
  FamilyPools search(in, family);
  TRY_VOID(search.choose());
  TRY(const bool owns_any, search.owns_any());
  if (!owns_any) return std::optional<net::Prefix>();
  TRY(const bool is_enough, has_free(in, search, least_free));
  if (is_enough) return std::optional<net::Prefix>();
  const std::uint32_t limit = block_limit_of(in.request, in.pools.config());
  const std::size_t owned = search.owned();
  TRY_VOID(in.reader.ready());
  if (limit != 0 && owned >= limit) return std::optional<net::Prefix>();
  for (const Pool* pool : search.usable()) {
    if (!is_roomy(in.reader, *pool)) continue;
    TRY_VOID(in.reader.ready());
    TRY(const ClaimChoice choice, choose_block_to_claim(in.reader, in.pools, *pool, node));
    if (!choice.block) continue;
    TRY(Block made, in.make_block(*choice.block));
    in.draft.put_claimed(std::move(made), *pool, {});
    return choice.block;
  }
  return std::optional<net::Prefix>();
}

// --- refusals ---

constexpr std::size_t kNamedOfOneReason = 3;

std::string clause_of(const std::vector<const PoolVerdict*>& verdicts) {
  std::string text = verdicts.size() == 1 ? "pool " : "pools ";
  const std::size_t named = std::min(verdicts.size(), kNamedOfOneReason);
  for (std::size_t i = 0; i < named; ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", verdicts[i]->pool, verdicts[i]->cidr);
  }
  if (verdicts.size() > named) text += fmt::format(" and {} more", verdicts.size() - named);
  return text + ": " + verdicts.front()->reason;
}

/// Pools that are told together, each group where the first of it was considered.
std::vector<std::vector<const PoolVerdict*>> groups_of(const std::vector<PoolVerdict>& considered) {
  std::vector<std::vector<const PoolVerdict*>> groups;
  std::map<std::string_view, std::size_t> places;
  for (const PoolVerdict& verdict : considered) {
    const bool is_apart = considered.size() <= kVerdictsToldApart;
    const auto [place, is_new] = places.try_emplace(verdict.reason, groups.size());
    if (is_new || is_apart) {
      groups.push_back({&verdict});
    } else {
      groups[place->second].push_back(&verdict);
    }
  }
  return groups;
}

constexpr std::array<std::string_view, static_cast<std::size_t>(RefusalCause::address_out_of_bounds) + 1> kCauses = {
    "other",         "no_pool_enabled",       "pool_not_usable", "no_pool_for_node",  "no_pool_qualified",
    "full",          "full_and_strict",       "block_limit",     "no_block_to_claim", "address_in_no_pool",
    "address_taken", "address_out_of_bounds",
};

}  // namespace

Step<AssignAnswer> plan_assign(const Snapshot& snapshot, const AssignRequest& request, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<AssignAnswer>> {
    Assignment in(reader, request, now);
    auto done = assign(in);
    if (!done && done.error().error() != nullptr) return fail(std::move(*done.error().error()));
    // Also when more has to be read: what a refusal would write is asked for along with it.
    std::vector<PlannedWrite> writes = done && in.fresh ? in.draft.writes() : in.marks();
    TRY_VOID(reader.ready());
    if (!done) return Plan<AssignAnswer>{std::move(*done.error().refusal()), std::move(writes)};
    return Plan<AssignAnswer>{std::move(in.answer), std::move(writes)};
  });
}

std::uint32_t block_limit_of(const AssignRequest& request, const IpamConfig& config) {
  const std::uint32_t configured = config.max_blocks_per_host;
  if (request.block_limit == 0) return configured > 0 ? configured : request.default_block_limit;
  return configured > 0 ? std::min(configured, request.block_limit) : request.block_limit;
}

std::uint32_t rotation_start(const AffinityOwner& owner) {
  std::uint32_t hash = 2166136261U;
  for (const char c : owner.name) {
    hash *= 16777619U;
    hash ^= static_cast<unsigned char>(c);
  }
  return hash;
}

Step<std::optional<ClaimedAhead>> plan_claim_ahead(const Snapshot& snapshot, const AssignRequest& like,
                                                   net::Family family, std::uint32_t least_free, const Instant& now) {
  using Answer = std::optional<ClaimedAhead>;
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Answer>> {
    Assignment in(reader, like, now);
    auto claimed = claim_ahead(in, family, least_free);
    if (claimed && *claimed) {
      Plan<Answer> plan{Answer(), in.draft.writes()};
      const auto written = std::ranges::find(plan.writes, Key(block_key(**claimed)), &PlannedWrite::key);
      plan.answer = ClaimedAhead{**claimed, std::get<Block>(*written->value).sequence_number};
      return plan;
    }
    // A refusal says why there is no block; nobody asked for one.
    if (claimed || claimed.error().refusal() != nullptr) return Plan<Answer>{Answer(), {}};
    if (Error* error = claimed.error().error()) return fail(std::move(*error));
    return fail(Stop<>(*claimed.error().not_read()));
  });
}

Result<void> apply_wishes(const AnnotatedWishes& said, const WishesWanted& wanted, AssignRequest& request) {
  for (const net::Family family : net::kFamilies) {
    if (!wanted.pools[family]) continue;
    for (const PodWishes* wishes : {&said.name_space, &said.pod}) {
      if (wishes->pools[family]) request.pools[family] = *wishes->pools[family];
    }
  }
  const auto& families = said.pod.families ? said.pod.families : said.name_space.families;
  if (wanted.families && families) {
    for (const net::Family family : net::kFamilies) request.count[family] = (*families)[family] ? 1 : 0;
  }
  if (!wanted.addresses) return {};
  for (const net::Address& address : said.pod.addresses) {
    if (std::ranges::find(request.addresses, address) == request.addresses.end()) request.addresses.push_back(address);
  }
  if (request.addresses.size() <= kWishedAddressesMax) return {};
  return fail(ErrorCode::invalid_argument,
              "{} addresses are requested with those of the pod's annotations, at most {} are allowed",
              request.addresses.size(), kWishedAddressesMax);
}

Result<void> check_something_is_asked(const AssignRequest& request) {
  if (request.count.v4 > 0 || request.count.v6 > 0 || !request.addresses.empty()) return {};
  return fail(ErrorCode::invalid_argument,
              "neither family is wanted: set ipam.assign_ipv4 or ipam.assign_ipv6 to \"true\"");
}

std::string_view name_of(RefusalCause cause) { return kCauses.at(static_cast<std::size_t>(cause)); }

Error to_error(const Refusal& refusal) {
  std::string details;
  for (const auto& group : groups_of(refusal.considered)) details += (details.empty() ? "" : "; ") + clause_of(group);
  return {refusal.code, refusal.summary, std::move(details)};
}

bool mostly_cools(std::uint64_t cooling, const net::Count& usable) {
  return net::Count(cooling) + net::Count(cooling) > usable;
}

std::string cooling_text(std::uint64_t cooling, const net::Count& usable, WallTime first_end) {
  const std::string at = rfc3339_rounded_up(first_end);
  if (!mostly_cools(cooling, usable)) return "the first cooling one is free again at " + at;
  const std::string which = usable <= net::Count(cooling) ? "all" : fmt::format("{} of", cooling);
  return fmt::format(
      "{} {} addresses cool down, and the first is free again at {}: unless that many pods ended just now, sandboxes "
      "fail once they have an address, and each try takes another; the main plugin's error is in the log of kubelet "
      "or the runtime",
      which, usable, at);
}

}  // namespace croft::core
