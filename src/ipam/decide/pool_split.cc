#include "ipam/decide/pool_split.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "ipam/decide/draft.h"

namespace croft::core {
namespace {

[[nodiscard]] Result<int> part_length(const Pool& pool, std::uint64_t parts) {
  if (parts < 2 || !std::has_single_bit(parts)) {
    return fail(invalid_argument(fmt::format("a pool is split into 2, 4, 8 … parts, not {}", parts)));
  }
  if (parts > kSplitPartsMax) {
    return fail(invalid_argument(
        fmt::format("{} parts are too many for one commit: at most {}; split the parts again", parts, kSplitPartsMax)));
  }
  const int length = pool.cidr.length() + std::countr_zero(parts);
  if (length > pool.block_length) {
    return fail(invalid_argument(fmt::format("{} parts of pool {} ({}) would be smaller than its blocks of /{}", parts,
                                             pool.name, pool.cidr.to_string(), pool.block_length)));
  }
  return length;
}

std::optional<net::Address> gateway_of(const Pool& pool, const net::Prefix& part, SplitGateways gateways) {
  if (!pool.gateway || gateways == SplitGateways::none) return {};
  return part.contains(*pool.gateway) ? pool.gateway : part.first().next();
}

/// The state of an address, in the block that contains it if there is one. May leave the reader incomplete.
[[nodiscard]] Result<AddressState> state_in(Draft& draft, const Pool& pool, const net::Address& address) {
  const net::Prefix cidr = net::Prefix::containing(address, pool.block_length);
  TRY(const std::optional<Block> block, draft.block(cidr));
  return block ? state_of(*block, *net::ordinal_of(cidr, address)) : AddressState::free;
}

class Split {
 public:
  Split(Reader& reader, const PoolSplit& split, const Instant& now)
      : reader_(reader),
        split_(split),
        generation_(reader_.get(pool_set_key())),
        pools_(reader_),
        draft_(reader_, pools_, now) {}

  [[nodiscard]] Flow<Plan<PoolsSplit>> run() {
    TRY_VOID(reader_.ready());
    const Pool* pool = find();
    if (pool == nullptr) {
      return fail(ErrorCode::not_found, fmt::format("there is no pool {}", net::echo(split_.pool)));
    }
    TRY(const int length, part_length(*pool, split_.parts));
    if (pool->gateway && split_.gateways == SplitGateways::refuse) {
      return fail(ErrorCode::refused_by_configuration,
                  fmt::format("pool {} has gateway {}, which lies in one part only: --gateways first gives each "
                              "part its first address, --gateways none gives none",
                              pool->name, pool->gateway->to_string()));
    }
    reservation_ = reader_.get(reservation_key(reservation_name_of(pool->name)));
    answer_.before = pool->name;
    for (std::uint64_t i = 0; i < split_.parts; ++i) {
      TRY_VOID(add_part(*pool, i, pool->cidr.subprefix(i, length)));
    }
    TRY_VOID(reader_.ready());
    remove(*pool);
    return Plan<PoolsSplit>{std::move(answer_), std::move(writes_)};
  }

 private:
  [[nodiscard]] const Pool* find() const {
    const auto it = std::find_if(pools_.pools().begin(), pools_.pools().end(), [&](const Pool* p) {
      return p->name == split_.pool || p->cidr.to_string() == split_.pool;
    });
    return it == pools_.pools().end() ? nullptr : *it;
  }

  [[nodiscard]] Result<void> add_part(const Pool& pool, std::uint64_t index, const net::Prefix& cidr) {
    Pool part = pool;
    part.name = fmt::format("split-{}-{}", pool.name, index);
    part.cidr = cidr;
    part.gateway = gateway_of(pool, cidr, split_.gateways);
    part.being_made = part.being_deleted = false;
    part.rest.reset();  // what a foreign format says of one object is not true of another
    TRY_VOID(check_pool_name(part.name));
    if (reader_.get(pool_key(part.name)) != nullptr) {
      return fail(ErrorCode::already_exists, "pool " + part.name + " exists already");
    }
    if (part.gateway && part.gateway != pool.gateway) {
      TRY_VOID(check_gateway(pool, part));
    }
    // Where the pool keeps its own addresses out of use, its parts do so too.
    if (reservation_ != nullptr) {
      TRY_VOID(reserve(pool, part));
    }
    writes_.push_back(to_put(pool_key(part.name), part));
    answer_.parts.push_back(std::move(part));
    return {};
  }

  [[nodiscard]] Result<void> check_gateway(const Pool& pool, const Pool& part) {
    if (!part.cidr.contains(*part.gateway) || part.cidr.length() + 2 > net::bit_length(part.cidr.family())) {
      return fail(invalid_argument(fmt::format("{} is too small to have a gateway", part.cidr.to_string())));
    }
    TRY(const AddressState state, state_in(draft_, pool, *part.gateway));
    if (state == AddressState::free) {
      // It must not be taken while the pool is split.
      depend_on_block(pool, *part.gateway);
      return {};
    }
    return fail(ErrorCode::refused_for_safety,
                fmt::format("{} would be the gateway of {}, and is {}", part.gateway->to_string(),
                            part.cidr.to_string(), name_of(state)));
  }

  void depend_on_block(const Pool& pool, const net::Address& address) {
    const Key key = block_key(net::Prefix::containing(address, pool.block_length));
    const bool known = std::any_of(writes_.begin(), writes_.end(), [&](const PlannedWrite& w) { return w.key == key; });
    if (!known) writes_.push_back(to_check(key));
  }

  [[nodiscard]] Result<void> reserve(const Pool& pool, const Pool& part) {
    Reservation reservation = reservation_for(part);
    if (reservation.cidrs.empty()) return {};
    const auto key = reservation_key(reservation.name);
    if (reader_.get(key) != nullptr) {
      return fail(ErrorCode::already_exists, "reservation " + reservation.name + " exists already");
    }
    for (const net::Prefix& reserved : reservation.cidrs) {
      TRY(const AddressState state, state_in(draft_, pool, reserved.first()));
      if (state == AddressState::held) answer_.held_reserved.push_back(reserved.first());
    }
    writes_.push_back(to_put(key, std::move(reservation)));
    return {};
  }

  void remove(const Pool& pool) {
    if (reservation_ != nullptr) {
      writes_.push_back(to_delete(reservation_key(reservation_->name)));
    }
    writes_.push_back(to_delete(pool_key(pool.name)));
    const std::uint64_t generation = generation_ != nullptr ? generation_->generation : 0;
    writes_.push_back(to_put(pool_set_key(), PoolSet{generation + 1}));
  }

  Reader& reader_;
  const PoolSplit& split_;
  // Read before the lists: what changes after them then shows as a conflict on it.
  const PoolSet* generation_;
  PoolTable pools_;
  Draft draft_;
  const Reservation* reservation_ = nullptr;
  PoolsSplit answer_;
  std::vector<PlannedWrite> writes_;
};

}  // namespace

Step<PoolsSplit> plan_split_pool(const Snapshot& snapshot, const PoolSplit& split, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) { return Split(reader, split, now).run(); });
}

}  // namespace croft::core
