#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/time_text.h"
#include "ipam/decide/assignment.h"
#include "ipam/decide/claim.h"

namespace croft::core {
namespace {

using net::Address;
using net::Prefix;

/// With the pod, where that is known: who asked for this address has to talk to somebody.
std::string holder_text(const Attribute& holder) {
  const auto said = [&](std::string_view key) {
    const auto found = holder.secondary.find(std::string(key));
    return found != holder.secondary.end() ? found->second : std::string();
  };
  const std::string pod = said(kPodKey), node = said(kNodeKey);
  std::string text = "held by " + holder.handle_id.value_or("an unknown handle");
  if (!pod.empty()) text += fmt::format(", pod {}/{}", said(kNamespaceKey), pod);
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
          fmt::format("requested address {} cannot be assigned: it is in no pool", address.to_string()),
          std::move(considered), RefusalCause::address_in_no_pool};
}

/// One address in the pool that contains it.
class WantedAddress {
 public:
  WantedAddress(Assignment& assignment, const Address& address, const Pool& pool)
      : in_(assignment), address_(address), pool_(pool), cidr_(Prefix::containing(address, pool.block_length)) {}

  [[nodiscard]] AssignFlow<void> take() {
    TRY_VOID(check_pool());
    if (in_.request.living.contains(address_)) {
      return refuse(refusal(ErrorCode::unavailable, "somebody on this node lives with the address"));
    }
    TRY(Look look, look_at_block());
    Block& block = look.block;
    const net::Ordinal ordinal = *net::ordinal_of(cidr_, address_);
    if (const Attribute* holder = attribute_of(block, ordinal);
        in_.request.cooling_addresses && holder != nullptr && holder->cooling) {
      block = without_unused_attributes(with_freed(block, ordinal));
    }
    auto taken = take_address(block, address_, in_.attribute());
    if (!taken) {
      in_.cooling.insert(cidr_);
      return refuse(refusal(ErrorCode::exhausted, "the address is " + state_text(in_, block, ordinal),
                            RefusalCause::address_taken));
    }
    in_.accept(*std::move(taken), look.is_new ? &pool_ : nullptr);
    return {};
  }

 private:
  struct Look {
    Block block;
    bool is_new = false;
  };

  [[nodiscard]] Refusal refusal(ErrorCode code, std::string reason, RefusalCause cause = RefusalCause::other) const {
    return {code,
            fmt::format("requested address {} cannot be assigned", address_.to_string()),
            {{pool_.name, pool_.cidr, std::move(reason)}},
            cause};
  }

  [[nodiscard]] AssignFlow<void> check_pool() const {
    const std::vector<AskedPool>& asked = in_.request.pools[address_.family()];
    const auto is_this = [&](const AskedPool& one) { return is_asked(one, pool_.name, pool_.cidr); };
    if (!asked.empty() && std::none_of(asked.begin(), asked.end(), is_this)) {
      std::string names;
      for (const AskedPool& one : asked) names += (names.empty() ? "" : ", ") + text_of(one);
      return refuse(refusal(ErrorCode::refused_by_configuration,
                            fmt::format("it is none of the network's pools ({}: {})",
                                        address_.family() == net::Family::v4 ? "ipv4_pools" : "ipv6_pools", names),
                            RefusalCause::pool_not_usable));
    }
    if (!is_enabled(pool_)) {
      return refuse(
          refusal(ErrorCode::refused_by_configuration, "the pool is disabled", RefusalCause::address_in_no_pool));
    }
    if (!allows(pool_, in_.request.use)) {
      return refuse(refusal(ErrorCode::refused_by_configuration, "the pool is not for this use (allowedUses)"));
    }
    if (const Error* damage = in_.pools.damaged_reservation(pool_);
        damage != nullptr && !in_.request.reserved_addresses) {
      return refuse(refusal(damage->code, damage->message));
    }
    if (!in_.request.reserved_addresses && in_.pools.is_reserved(address_)) {
      return refuse(refusal(ErrorCode::refused_by_configuration,
                            "the address is reserved (the pool's network, gateway or broadcast, or a reservation's)"));
    }
    return {};
  }

  /// The block with the address as one may be given out of it: what is read for that is asked for together.
  [[nodiscard]] AssignFlow<Look> look_at_block() {
    const auto there = in_.draft.block(cidr_);
    if (!there) return fail(there.error());
    TRY_VOID(in_.reader.ready());
    if (!there->has_value()) {
      TRY(const auto other, block_in_the_way(in_.reader, cidr_));
      if (other) return refuse(refusal(ErrorCode::refused_by_configuration, in_the_way_text(*other, cidr_)));
    }
    Look look;
    look.is_new = !there->has_value();
    if (look.is_new && !in_.pools.config().auto_allocate_blocks) {
      return refuse(refusal(ErrorCode::refused_by_configuration,
                            fmt::format("nobody has claimed block {}, and only an operator claims blocks "
                                        "(autoAllocateBlocks is off): croft affinity claim",
                                        cidr_.to_string()),
                            RefusalCause::no_block_to_claim));
    }
    if (look.is_new) {
      TRY(look.block, in_.make_block(cidr_));
    } else {
      look.block = **there;
    }
    if (in_.pools.config().strict_affinity && look.block.affinity != in_.request.node) {
      return refuse(refusal(ErrorCode::refused_by_configuration,
                            fmt::format("block {} belongs to {} and affinity is strict", cidr_.to_string(),
                                        look.block.affinity ? to_string(*look.block.affinity) : "nobody"),
                            RefusalCause::address_out_of_bounds));
    }
    return look;
  }

  Assignment& in_;
  const Address& address_;
  const Pool& pool_;
  const Prefix cidr_;
};

}  // namespace

AssignFlow<void> assign_explicit(Assignment& assignment, const std::vector<Address>& wanted,
                                 const std::vector<AssignedAddress>& held) {
  const Owner& owner = assignment.request.owner;
  for (const AssignedAddress& other : held) {
    if (std::find(wanted.begin(), wanted.end(), other.address) != wanted.end()) continue;
    return refuse(
        {ErrorCode::refused_by_configuration,
         fmt::format("container {} interface {} already holds {} and now asks for {}: delete it first",
                     owner.container_id, owner.interface_name, other.address.to_string(), wanted.front().to_string()),
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

}  // namespace croft::core
