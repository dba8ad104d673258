#include "ipam/audit/attachments.h"

#include <algorithm>
#include <cstdint>
#include <variant>

#include <fmt/format.h>

#include "base/net/prefix.h"
#include "base/time_text.h"
#include "ipam/decide/assign.h"
#include "register/records.h"

namespace croft::core::audit {
namespace {

using Addresses = std::vector<net::Address>;

bool contains(const Addresses& addresses, const net::Address& address) {
  return std::find(addresses.begin(), addresses.end(), address) != addresses.end();
}

std::string words_of(const Owner& owner) {
  return fmt::format("container {} interface {} in network {}", owner.container_id, owner.interface_name,
                     owner.network);
}

/// An error that keeps every node from new addresses alike, and that no node can mend: no room, or a damaged record.
bool is_of_the_register(ErrorCode code) {
  return code == ErrorCode::exhausted || code == ErrorCode::corrupt || code == ErrorCode::newer_version;
}

bool is_young(const Attribute& holder, const Instant& now) {
  const auto since = parse_go_utc_text(member_of(holder.secondary, kTimestampKey));
  // A time in the future was written before the clock was set back: its age is unknown.
  return !since || *since > now.wall || now.wall - *since < kCollectAgeMin;
}

bool is_under(const Authority& authority, const Attribute& holder, const Owner& owner) {
  const auto node = holder.secondary.find(kNodeKey);
  return owner.network == authority.network && node != holder.secondary.end() && node->second == authority.node;
}

/// A holder without interface is valid with any of its container.
bool is_valid(const GcAttachments& valid, const Owner& owner) {
  if (!owner.interface_name.empty()) return valid.contains({owner.container_id, owner.interface_name});
  const auto any = valid.lower_bound({owner.container_id, ""});
  return any != valid.end() && any->first == owner.container_id;
}

}  // namespace

Step<Addresses> held_addresses(const Snapshot& snapshot, const Owner& owner) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Addresses>> {
    const Handle* handle = reader.get(handle_key(handle_of(owner)));
    TRY_VOID(reader.ready());
    Addresses held;
    if (handle == nullptr) return Plan<Addresses>{};
    for (const auto& [cidr, count, name] : blocks_of(*handle)) {
      const Block* block = reader.get(block_key(cidr));
      if (block == nullptr) continue;
      for (const net::Ordinal ordinal : held_by(*block, owner)) held.push_back(net::address_at(cidr, ordinal));
    }
    std::sort(held.begin(), held.end());
    return Plan<Addresses>{std::move(held), {}};
  });
}

Result<void> check_attachment(const Owner& owner, const Addresses& held, const Addresses& expected,
                              const std::vector<Pool>& pools) {
  if (held.empty()) {
    return fail(ErrorCode::not_found, fmt::format("no address is recorded for {}", words_of(owner)));
  }
  if (expected.empty()) return {};
  for (const net::Address& address : expected) {
    const bool ours = std::any_of(pools.begin(), pools.end(), [&](const auto& p) { return p.cidr.contains(address); });
    if (ours && !contains(held, address)) {
      return fail(ErrorCode::not_found,
                  fmt::format("{} is in prevResult but not recorded for {}", address.to_string(), words_of(owner)));
    }
  }
  for (const net::Address& address : held) {
    if (!contains(expected, address)) {
      return fail(ErrorCode::not_found,
                  fmt::format("{} is recorded for {} but not in prevResult", address.to_string(), words_of(owner)));
    }
  }
  return {};
}

Step<AssignAnswer> try_assign(const Snapshot& snapshot, const StatusRequest& request, const Instant& now) {
  AssignRequest probe;
  // An owner that cannot exist: it is never committed.
  probe.owner = {"status", "probe", "status"};
  probe.node = request.node;
  probe.count = {request.wanted.v4 ? 1U : 0U, request.wanted.v6 ? 1U : 0U};
  probe.pools = request.pools;
  probe.for_some_pod = true;
  auto step = plan_assign(snapshot, probe, now);
  if (auto* plan = std::get_if<Plan<AssignAnswer>>(&step)) plan->writes.clear();
  return step;
}

std::optional<Error> unready(const AssignAnswer& answer, bool fail_when_full) {
  const auto* refusal = std::get_if<Refusal>(&answer);
  if (refusal == nullptr) return std::nullopt;
  // An operator's `croft pool disable` is no fault of any node.
  const bool are_all_disabled =
      refusal->code == ErrorCode::refused_by_configuration && refusal->cause == RefusalCause::no_pool_enabled;
  if ((is_of_the_register(refusal->code) || are_all_disabled) && !fail_when_full) return std::nullopt;
  return to_error(*refusal);
}

void add_garbage(const Block& block, const Authority& authority, const GcAttachments& valid, const Instant& now,
                 Garbage& garbage) {
  for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
    const net::Ordinal ordinal(i);
    const Attribute* holder = attribute_of(block, ordinal);
    if (holder == nullptr || !holder->handle_id) continue;
    const auto owner = owner_of(*holder->handle_id, holder->secondary);
    if (!owner || !is_under(authority, *holder, *owner) || is_valid(valid, *owner)) continue;
    if (is_young(*holder, now)) {
      ++garbage.kept_young;
    } else {
      garbage.leaked.push_back(
          {net::address_at(block.cidr, ordinal), holder->handle_id, sequence_of(block, ordinal), block.cidr});
    }
  }
}

}  // namespace croft::core::audit
