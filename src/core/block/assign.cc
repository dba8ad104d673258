#include "core/block/assign.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/time_text.h"
#include "core/block/claim.h"
#include "core/block/draft.h"

namespace croft::core {
namespace {

using net::Address;
using net::Family;
using net::Prefix;

/// One decision in the making. Every step returns nothing when the snapshot was incomplete; `run` then says so.
class Assignment {
 public:
  Assignment(const Snapshot& snapshot, const AssignRequest& request, const Instant& now)
      : reader_(snapshot), request_(request), pools_(reader_), draft_(reader_, pools_, now) {}

  Step<AssignAnswer> run() {
    const bool done = decide();
    if (error_) return *std::move(error_);
    std::vector<PlannedWrite> writes;
    if (done && !refusal_) writes = draft_.writes();
    if (!reader_.complete()) return reader_.missing();
    if (refusal_) return Plan<AssignAnswer>{*std::move(refusal_), {}};
    return Plan<AssignAnswer>{std::move(answer_), fresh_ ? std::move(writes) : std::vector<PlannedWrite>()};
  }

 private:
  /// False: incomplete, refused or failed.
  bool decide() {
    const Handle* handle = reader_.get<Handle>(handle_key(handle_id_));
    if (!reader_.complete() || !collect_held(handle)) return false;
    return serve(Family::v4) && serve(Family::v6);
  }

  bool fail_with(Error error) {
    error_ = std::move(error);
    return false;
  }
  bool refuse(ErrorCode code, std::string summary, std::vector<PoolVerdict> considered) {
    refusal_ = Refusal{code, std::move(summary), std::move(considered)};
    return false;
  }

  /// Fills held_ with what the owner holds already, in every block its handle names.
  bool collect_held(const Handle* handle) {
    if (handle == nullptr) return true;
    std::vector<Prefix> cidrs;
    for (const auto& [text, count] : handle->blocks) {
      const auto cidr = Prefix::parse(text);
      if (!cidr) return fail_with(Error{ErrorCode::corrupt, "handle " + handle->id + ": " + cidr.error().message, {}});
      cidrs.push_back(*cidr);
      static_cast<void>(reader_.get<Block>(block_key(*cidr)));
    }
    if (!reader_.complete()) return false;
    for (const Prefix& cidr : cidrs) {
      const auto block = draft_.block(cidr);
      if (!block) return fail_with(block.error());
      if (!*block) continue;  // over-counted: a handle may name a block that is gone
      for (const net::Ordinal ordinal : held_by(**block, request_.owner)) {
        held_.push_back(described(**block, net::address_at(cidr, ordinal), true));
      }
    }
    return true;
  }

  bool serve(Family family) {
    std::vector<Address> wanted;
    std::copy_if(request_.addresses.begin(), request_.addresses.end(), std::back_inserter(wanted),
                 [&](const Address& a) { return a.family() == family; });
    std::vector<AssignedAddress> held;
    std::copy_if(held_.begin(), held_.end(), std::back_inserter(held),
                 [&](const AssignedAddress& a) { return a.address.family() == family; });
    if (!wanted.empty()) return serve_explicit(wanted, held);
    if (!(family == Family::v4 ? request_.ipv4 : request_.ipv6)) return true;
    if (held.empty()) return serve_automatic(family);
    answer_.addresses.insert(answer_.addresses.end(), held.begin(), held.end());
    return true;
  }

  bool serve_explicit(const std::vector<Address>& wanted, const std::vector<AssignedAddress>& held) {
    for (const AssignedAddress& other : held) {
      if (std::find(wanted.begin(), wanted.end(), other.address) == wanted.end()) {
        return refuse(ErrorCode::refused_by_configuration,
                      fmt::format("container {} interface {} already holds {} and now asks for {}: delete it first",
                                  request_.owner.container_id, request_.owner.interface_name, other.address.to_string(),
                                  wanted.front().to_string()),
                      {});
      }
    }
    for (const Address& address : wanted) {
      const auto before = std::find_if(held.begin(), held.end(), [&](const auto& h) { return h.address == address; });
      if (before != held.end()) {
        answer_.addresses.push_back(*before);
      } else if (!assign_explicit(address)) {
        return false;
      }
    }
    return true;
  }

  bool assign_explicit(const Address& address) {
    const Pool* pool = pools_.containing(address);
    const std::string summary = fmt::format("requested address {} cannot be assigned", address.to_string());
    if (pool == nullptr) {
      std::vector<PoolVerdict> considered;
      for (const Pool* p : pools_.pools()) considered.push_back({p->name, p->cidr, "does not contain it"});
      return refuse(considered.empty() ? ErrorCode::no_pool : ErrorCode::refused_by_configuration,
                    summary + ": it is in no pool", std::move(considered));
    }
    const auto refuse_pool = [&](ErrorCode code, std::string reason) {
      return refuse(code, summary, {{pool->name, pool->cidr, std::move(reason)}});
    };
    if (pool->disabled) return refuse_pool(ErrorCode::refused_by_configuration, "the pool is disabled");
    if (pools_.is_reserved(address)) {
      return refuse_pool(ErrorCode::refused_by_configuration,
                         "the address is reserved (network, gateway or broadcast)");
    }
    const Prefix cidr = Prefix::containing(address, pool->block_length);
    auto block = draft_.block(cidr);
    if (!block) return fail_with(block.error());
    if (!reader_.complete()) return false;
    const bool is_new = !block->has_value();
    if (is_new && !make_block(cidr, block->emplace())) return false;
    const net::Ordinal ordinal = *net::ordinal_of(cidr, address);
    auto taken = take_address(**block, address, attribute());
    if (!taken) return refuse_pool(ErrorCode::exhausted, "the address is " + state_text(**block, ordinal));
    accept(*std::move(taken), is_new ? pool : nullptr);
    return true;
  }

  [[nodiscard]] std::string state_text(const Block& block, net::Ordinal ordinal) const {
    const Attribute& holder = *attribute_of(block, ordinal);
    if (!holder.cooling) return "held by " + holder.handle_id.value_or("an unknown handle");
    return "cooling until " +
           rfc3339_rounded_up(cooldown_end(holder.cooling->released_at, pools_.cooldown_of(block.cidr), draft_.now()));
  }

  bool serve_automatic(Family family) {
    std::vector<const Pool*> usable;
    std::vector<PoolVerdict> considered;
    if (!choose_pools(family, usable, considered)) return false;
    const auto vacancies = vacancies_in(usable, family);
    if (!reader_.complete()) return false;
    for (const Pool* pool : usable) {
      for (const Prefix& cidr : ready(vacancies, *pool)) {
        const Tried tried = take_from(cidr);
        if (tried != Tried::full) return tried == Tried::taken;
      }
      const ClaimChoice choice = choose_block_to_claim(reader_, pools_, *pool, request_.node);
      if (!reader_.complete()) return false;
      if (choice.block) return claim(*choice.block, *pool);
      considered.push_back({pool->name, pool->cidr, choice.reason});
    }
    return last_look(family, usable, vacancies, std::move(considered));
  }

  /// Before refusing, blocks that only a hint called not ready: the clock may have been set.
  bool last_look(Family family, const std::vector<const Pool*>& usable, const std::map<Prefix, Vacancy>& vacancies,
                 std::vector<PoolVerdict> considered) {
    std::map<std::string, std::optional<WallTime>> first_ends;
    for (const auto& [cidr, vacancy] : vacancies) {
      const Tried tried = take_from(cidr);
      if (tried != Tried::full) return tried == Tried::taken;
      const auto block = draft_.block(cidr);
      if (!block || !*block) continue;
      const auto end = first_cooldown_end(**block, pools_.cooldown_of(cidr), draft_.now());
      auto& first = first_ends[pools_.containing(cidr.first())->name];
      if (end && (!first || *end < *first)) first = end;
    }
    for (PoolVerdict& verdict : considered) {
      if (const auto& end = first_ends[verdict.pool]) {
        verdict.reason += "; the first cooling one is free again at " + rfc3339_rounded_up(*end);
      }
    }
    const bool configured_away = usable.empty();
    const ErrorCode code = !configured_away     ? ErrorCode::exhausted
                           : no_pool_of(family) ? ErrorCode::no_pool
                                                : ErrorCode::refused_by_configuration;
    return refuse(code,
                  fmt::format("no {} address for node {}: {}", net::name_of(family), request_.node.name,
                              !configured_away             ? "every usable pool is full"
                              : code == ErrorCode::no_pool ? "there is no pool of this family; create one"
                                                           : "no pool may be used"),
                  std::move(considered));
  }

  [[nodiscard]] bool no_pool_of(Family family) const {
    return std::none_of(pools_.pools().begin(), pools_.pools().end(),
                        [&](const Pool* p) { return p->cidr.family() == family; });
  }

  /// Sheet §3.6. Fills the pools to use in order, and a verdict for each that may not be used.
  bool choose_pools(Family family, std::vector<const Pool*>& usable, std::vector<PoolVerdict>& considered) {
    const auto& names = family == Family::v4 ? request_.ipv4_pools : request_.ipv6_pools;
    for (const std::string& name : names) {
      const auto it = std::find_if(pools_.pools().begin(), pools_.pools().end(),
                                   [&](const Pool* p) { return p->name == name || p->cidr.to_string() == name; });
      const Pool* pool = it == pools_.pools().end() ? nullptr : *it;
      if (pool == nullptr || pool->cidr.family() != family || pool->disabled) {
        for (const Pool* p : pools_.pools()) {
          considered.push_back({p->name, p->cidr,
                                p != pool     ? "not the one asked for"
                                : p->disabled ? "disabled"
                                              : "of the other family"});
        }
        return refuse(ErrorCode::refused_by_configuration,
                      fmt::format("the given pool ({}) does not exist, or is not enabled, or is not {} ({})", name,
                                  net::name_of(family), family == Family::v4 ? "ipv4_pools" : "ipv6_pools"),
                      std::move(considered));
      }
      if (std::find(usable.begin(), usable.end(), pool) == usable.end()) usable.push_back(pool);
    }
    if (!names.empty()) return true;
    for (const Pool* pool : pools_.pools()) {
      if (pool->cidr.family() != family) continue;
      if (auto reason = rejection_of(*pool)) {
        considered.push_back({pool->name, pool->cidr, *std::move(reason)});
      } else {
        usable.push_back(pool);
      }
    }
    return true;
  }

  /// Why a pool that was not asked for by name does not serve this request.
  [[nodiscard]] static std::optional<std::string> rejection_of(const Pool& pool) {
    if (pool.disabled) return "disabled";
    if (pool.assignment_mode == AssignmentMode::manual)
      return "serves only requests that name it (assignmentMode Manual)";
    if (std::find(pool.allowed_uses.begin(), pool.allowed_uses.end(), PoolUse::workload) == pool.allowed_uses.end()) {
      return "not for workloads (allowedUses)";
    }
    const auto selects_all = [](const std::string& selector) { return selector.empty() || selector == "all()"; };
    if (!selects_all(pool.node_selector)) return "its nodeSelector is not evaluated by this version";
    if (!selects_all(pool.namespace_selector)) return "its namespaceSelector is not evaluated by this version";
    return {};
  }

  std::map<Prefix, Vacancy> vacancies_in(const std::vector<const Pool*>& usable, Family family) {
    std::map<Prefix, Vacancy> result;
    for (const auto& [key, value] : reader_.list({Kind::vacancy, owned_names_of(request_.node, family)})) {
      const auto cidr = cidr_of(key);
      const auto* vacancy = std::get_if<Vacancy>(&value);
      if (!cidr || vacancy == nullptr) continue;  // a hint that can't be read is no hint
      const bool in_pool =
          std::any_of(usable.begin(), usable.end(), [&](const Pool* p) { return p->cidr.contains(*cidr); });
      if (in_pool) result[*cidr] = *vacancy;
    }
    return result;
  }

  /// The node's blocks of one pool that should have an address now, longest ready first.
  [[nodiscard]] std::vector<Prefix> ready(const std::map<Prefix, Vacancy>& vacancies, const Pool& pool) const {
    std::vector<std::pair<WallTime, Prefix>> order;
    for (const auto& [cidr, vacancy] : vacancies) {
      if (pool.cidr.contains(cidr) && vacancy.ready_at <= draft_.now().wall) order.emplace_back(vacancy.ready_at, cidr);
    }
    std::sort(order.begin(), order.end());
    std::vector<Prefix> result;
    for (const auto& [ready_at, cidr] : order) result.push_back(cidr);
    return result;
  }

  enum class Tried { taken, full, stop };

  Tried take_from(const Prefix& cidr) {
    auto block = draft_.block(cidr);
    if (!block) {
      error_ = block.error();
      return Tried::stop;
    }
    if (!reader_.complete()) return Tried::stop;
    if (!*block || (*block)->affinity != request_.node) return Tried::full;  // the hint outlived the claim
    auto taken = take_next(*std::move(*block), attribute(), pools_.reservations());
    if (!taken) return Tried::full;
    accept(*std::move(taken), nullptr);
    return Tried::taken;
  }

  bool claim(const Prefix& cidr, const Pool& pool) {
    Block block;
    if (!make_block(cidr, block)) return false;
    auto taken = take_next(std::move(block), attribute(), pools_.reservations());
    CROFT_ASSERT(taken.has_value());  // choose_block_to_claim passes over wholly reserved blocks
    accept(*std::move(taken), &pool);
    return true;
  }

  bool make_block(const Prefix& cidr, Block& block) {
    const auto* mark = reader_.get<HighWaterMark>(high_water_mark_key(cidr));
    if (!reader_.complete()) return false;
    block = new_block(cidr, request_.node, draft_.now(),
                      mark != nullptr ? std::optional(mark->sequence_number) : std::nullopt);
    return true;
  }

  void accept(Taken taken, const Pool* created_in) {
    fresh_ = true;
    answer_.addresses.push_back(described(taken.block, taken.address, false));
    if (created_in != nullptr) {
      draft_.put_new(std::move(taken.block), *created_in, {handle_id_});
    } else {
      draft_.put(std::move(taken.block), {handle_id_});
    }
  }

  [[nodiscard]] AssignedAddress described(const Block& block, const Address& address, bool held_before) const {
    const Pool* pool = pools_.containing(address);
    AssignedAddress result;
    result.address = address;
    result.pool = pool != nullptr ? pool->name : "";
    result.pool_cidr = pool != nullptr ? pool->cidr : block.cidr;
    result.gateway = pool != nullptr ? pool->gateway : std::nullopt;
    result.block = block.cidr;
    result.sequence_number = sequence_of(block, *net::ordinal_of(block.cidr, address));
    result.held_before = held_before;
    return result;
  }

  /// Handle and owner metadata of sheet §4.4, plus the interface.
  [[nodiscard]] Attribute attribute() const {
    Attribute result;
    result.handle_id = handle_id_;
    result.secondary[kNodeKey] = request_.node.name;
    result.secondary[kTimestampKey] = go_utc_text(draft_.now().wall);
    result.secondary[kInterfaceKey] = request_.owner.interface_name;
    if (!request_.pod.name.empty()) result.secondary[kPodKey] = request_.pod.name;
    if (!request_.pod.namespace_name.empty()) result.secondary[kNamespaceKey] = request_.pod.namespace_name;
    if (request_.owner.network.find('.') != std::string::npos) result.secondary[kNetworkKey] = request_.owner.network;
    return result;
  }

  Reader reader_;
  const AssignRequest& request_;
  const std::string handle_id_ = handle_of(request_.owner);
  PoolTable pools_;
  Draft draft_;
  std::vector<AssignedAddress> held_;
  Assigned answer_;
  bool fresh_ = false;
  std::optional<Refusal> refusal_;
  std::optional<Error> error_;
};

}  // namespace

Step<AssignAnswer> plan_assign(const Snapshot& snapshot, const AssignRequest& request, const Instant& now) {
  return Assignment(snapshot, request, now).run();
}

std::uint64_t rotation_start(const AffinityOwner& owner, std::uint64_t block_count) {
  std::uint32_t hash = 2166136261U;
  for (const char c : owner.name) {
    hash *= 16777619U;
    hash ^= static_cast<unsigned char>(c);
  }
  return hash % block_count;
}

}  // namespace croft::core
