#include "core/block/assign.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "core/block/assign_automatic.h"
#include "core/block/assign_explicit.h"
#include "core/block/assignment.h"
#include "core/block/own_blocks.h"
#include "core/register/handle_blocks.h"

namespace croft::core {
namespace {

using net::Address;
using net::Family;
using net::Prefix;

template <class T, class AddressOf>
std::vector<T> of_family(Family family, const std::vector<T>& all, AddressOf address_of) {
  std::vector<T> result;
  std::copy_if(all.begin(), all.end(), std::back_inserter(result),
               [&](const T& one) { return address_of(one).family() == family; });
  return result;
}

std::vector<Address> wanted_of(Family family, const AssignRequest& request) {
  return of_family(family, request.addresses, [](const Address& a) { return a; });
}

/// What the owner holds already, in every block its handle names.
[[nodiscard]] Flow<void> collect_held(Assignment& in, const Handle* handle) {
  if (handle == nullptr) return {};
  const HandleBlocks named = blocks_of(*handle);
  if (named.damage) return fail(*named.damage);
  for (const auto& [cidr, count, name] : named.blocks) in.reader.ask(block_key(cidr));
  TRY_VOID(in.reader.ready());
  for (const auto& [cidr, count, name] : named.blocks) {
    TRY(const auto block, in.draft.block(cidr));
    if (!block) continue;  // over-counted: a handle may name a block that is gone
    for (const net::Ordinal ordinal : held_by(*block, in.request.owner)) {
      AssignedAddress held = in.described(*block, net::address_at(cidr, ordinal), true);
      // It may be of the damaged pool, which has its prefix and gateway: without these it is another answer than
      // before. Whatever is of a pool that can be read is answered, whichever else cannot.
      if (const auto& damage = in.pools.damaged_pool(); damage && held.pool.empty()) {
        return fail(
            damage->in(fmt::format("{} is held already, and of no pool that can be read", held.address.to_string())));
      }
      in.held.push_back(std::move(held));
    }
  }
  return {};
}

[[nodiscard]] AssignFlow<void> serve(Assignment& in, Family family, std::uint32_t count) {
  const std::vector<Address> wanted = wanted_of(family, in.request);
  const std::vector<AssignedAddress> held =
      of_family(family, in.held, [](const AssignedAddress& a) { return a.address; });
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
  if (!in.reader.reads_one_by_one()) static_cast<void>(in.node_labels());
  for (const Family family : net::kFamilies) {
    if (request.count[family] > 0 && wanted_of(family, request).empty())
      prefetch_own_blocks(in.reader, request.node, family);
  }
  TRY_VOID(in.reader.ready());
  TRY_VOID(collect_held(in, handle));
  for (const Family family : net::kFamilies) TRY_VOID(serve(in, family, request.count[family]));
  return {};
}

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

}  // namespace croft::core
