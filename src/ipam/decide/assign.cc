#include "ipam/decide/assign.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/planted.h"
#include "ipam/decide/assignment.h"
#include "ipam/decide/family_search.h"
#include "register/handle_blocks.h"

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

using Blocks = std::set<Prefix>;

/// The blocks, among those of the node and those taken from, that hold something of the owner and that its handle does
/// not name: somebody deleted or edited the handle. Reads nothing.
Blocks unnamed_blocks(const Assignment& in) {
  const Snapshot& snapshot = in.reader.snapshot();
  const Handle* handle = in.reader.find(handle_key(in.handle_id));
  Blocks read;
  for (const Family family : net::kFamilies) {
    for (const Kind kind : {Kind::vacancy, Kind::affinity}) {
      const auto* rows = snapshot.list({kind, owned_names_of(in.request.node, family)});
      if (rows == nullptr) continue;
      for (const auto& [key, value] : *rows) {
        if (const auto cidr = cidr_of(key)) read.insert(*cidr);
      }
    }
  }
  for (const AssignedAddress& one : in.answer.addresses) read.insert(one.block);
  std::erase_if(read, [&](const Prefix& cidr) {
    const Block* block = in.reader.find(block_key(cidr));
    const bool is_named = handle != nullptr && handle->blocks.contains(cidr.to_string());
    return block == nullptr || block->deleted || is_named ||
           std::ranges::none_of(block->attributes, [&](const Attribute& a) { return a.handle_id == in.handle_id; }) ||
           held_by(*block, in.request.owner).empty();
  });
  return read;
}

/// Collects the addresses that the owner holds already, in the blocks that its handle names and in those that it should
/// name too. The latter mend the handle.
[[nodiscard]] Flow<void> collect_held(Assignment& in, const Handle* handle, const Blocks& unnamed) {
  if (is_planted("repeat_forgotten")) return {};
  std::vector<Prefix> blocks(unnamed.begin(), unnamed.end());
  if (handle != nullptr) {
    for (const auto& [cidr, count, name] : blocks_of(*handle)) blocks.push_back(cidr);
  }
  for (const Prefix& cidr : blocks) in.reader.ask(block_key(cidr));
  TRY_VOID(in.reader.ready());
  for (const Prefix& cidr : blocks) {
    TRY(const auto block, in.draft.block(cidr));
    if (!block) continue;  // over-counted: a handle may name a block that is gone
    if (unnamed.contains(cidr)) {
      in.draft.put(*block, {in.handle_id});
      in.fresh = true;
    }
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

[[nodiscard]] AssignFlow<void> assign(Assignment& in, const Blocks& unnamed) {
  const AssignRequest& request = in.request;
  const Handle* handle = in.reader.get(handle_key(in.handle_id));
  // Asked for together, so that a store far away is asked once.
  if (in.reader.atomic_commit()) static_cast<void>(in.node_labels());
  for (const Family family : net::kFamilies) {
    if (request.count[family] > 0 && wanted_of(family, request).empty())
      prefetch_own_blocks(in.reader, request.node, family);
  }
  TRY_VOID(in.reader.ready());
  TRY_VOID(collect_held(in, handle, unnamed));
  for (const Family family : net::kFamilies) TRY_VOID(serve(in, family, request.count[family]));
  return {};
}

}  // namespace

Step<AssignAnswer> plan_assign(const Snapshot& snapshot, const AssignRequest& request, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<AssignAnswer>> {
    std::optional<Assignment> in(std::in_place, reader, request, now);
    auto done = assign(*in, {});
    if (!done && done.error().error() != nullptr) return fail(std::move(*done.error().error()));
    const bool is_decided = reader.ready() && (!done || in->fresh);
    if (const Blocks unnamed = is_decided ? unnamed_blocks(*in) : Blocks(); !unnamed.empty()) {
      in.emplace(reader, request, now);
      done = assign(*in, unnamed);
      if (!done && done.error().error() != nullptr) return fail(std::move(*done.error().error()));
    }
    // Also when more has to be read: what a refusal would write is asked for along with it.
    std::vector<PlannedWrite> writes = done && in->fresh ? in->draft.writes() : in->marks();
    TRY_VOID(reader.ready());
    if (!done) return Plan<AssignAnswer>{std::move(*done.error().refusal()), std::move(writes)};
    return Plan<AssignAnswer>{std::move(in->answer), std::move(writes)};
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
