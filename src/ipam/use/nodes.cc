#include "ipam/use/nodes.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/did_you_mean.h"
#include "base/printable.h"
#include "base/texts.h"
#include "ipam/use/inspect.h"
#include "ipam/use/transact.h"

namespace croft::engine {

using core::AffinityOutcome;

Result<AffinityOutcome> release_affinity(const Context& context, const core::AffinityRelease& release, bool apply) {
  return transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant& now) {
    return written_if(apply, core::plan_release_affinity(snapshot, release, now));
  });
}

Result<AffinitiesReleased> release_host_affinities(const Context& context, const core::AffinityOwner& owner,
                                                   bool must_be_empty, bool apply) {
  TRY_VOID(core::check_node_name(owner.name));
  std::vector<core::Affinity> rows;
  TRY_VOID(
      for_each_affinity(context, core::owned_names_of(owner), [&](const core::Affinity& row) { rows.push_back(row); }));
  AffinitiesReleased result;
  for (const core::Affinity& row : rows) {
    const auto outcome = release_affinity(context, {row.owner, row.cidr, must_be_empty, {}}, apply);
    if (!outcome) {
      result.failure = outcome.error();
    } else if (*outcome == AffinityOutcome::not_empty) {
      result.not_empty.push_back(row.cidr);
    } else {
      result.released.push_back(row.cidr);
    }
  }
  return result;
}

Result<AffinitiesClaimed> claim_affinity(const Context& context, const core::AffinityOwner& owner,
                                         const net::Prefix& cidr) {
  TRY_VOID(core::check_node_name(owner.name));
  TRY(const std::vector<core::Pool> pools, list_pools(context));
  const auto pool = std::find_if(pools.begin(), pools.end(), [&](const core::Pool& p) {
    return core::is_enabled(p) && p.cidr.contains(cidr) && p.cidr.family() == cidr.family();
  });
  if (pool == pools.end()) {
    return fail(ErrorCode::invalid_argument, "The requested CIDR ({}) is not within any configured pools.", cidr);
  }
  if (cidr.length() > pool->block_length) {
    return fail(ErrorCode::invalid_argument, "The requested CIDR ({}) is smaller than the minimum.", cidr);
  }
  if (pool->block_length - cidr.length() > 12) {
    return fail(ErrorCode::invalid_argument, "{} has more than {} blocks; claim it in parts", cidr, kClaimBlocksMax);
  }
  AffinitiesClaimed result;
  const std::uint64_t blocks = std::uint64_t{1} << (pool->block_length - cidr.length());
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const net::Prefix block = cidr.subprefix(i, pool->block_length);
    TRY(const core::ClaimOutcome outcome, decided(context, core::plan_claim_affinity, owner, block));
    (outcome == core::ClaimOutcome::belongs_to_others ? result.others : result.claimed).push_back(block);
  }
  return result;
}

Result<std::vector<NodeView>> list_nodes(const Context& context) {
  std::map<std::string, NodeView> nodes;
  Loader loader(context.store, Deadline::after(context.clock.now(), context.time_limit));
  const core::Listing listing{core::Kind::node, ""};
  core::Missing missing;
  missing.lists.insert(listing);
  TRY_VOID(loader.load(missing));
  for (const auto& [key, value] : *loader.snapshot().list(listing)) {
    NodeView& view = nodes[key.name];
    view.node = std::get<core::Node>(value);
    view.recorded = true;
  }
  for (const auto& [key, why] : loader.snapshot().unreadable(listing)) nodes[key.name].recorded = true;
  TRY_VOID(for_each_block(context, [&](const core::Block& block) {
    const bool is_hosts = block.affinity && block.affinity->type == core::AffinityOwner::Type::host;
    if (is_hosts) ++nodes[block.affinity->name].blocks;
    core::for_each_held(block, [&](net::Ordinal, const core::Attribute& holder) {
      const std::string node = core::member_of(holder.secondary, core::kNodeKey);
      if (node.empty()) return;
      NodeView& view = nodes[node];
      ++view.held;
      if (!is_hosts || block.affinity->name != node) ++view.borrowed;
    });
  }));
  std::vector<NodeView> result;
  for (auto& [name, view] : nodes) {
    view.node.name = name;
    result.push_back(std::move(view));
  }
  return result;
}

Result<core::Node> label_node(const Context& context, const std::string& name, const core::LabelChanges& changes) {
  return decided(context, core::plan_label_node, name, changes);
}

Result<void> check_node_known(const Context& context, const std::string& name) {
  constexpr std::size_t kNamedMax = 8;
  TRY_VOID(core::check_node_name(name));
  TRY(const std::vector<NodeView> nodes, list_nodes(context));
  std::vector<std::string> known;
  for (const NodeView& view : nodes) {
    if (view.node.name == name) return {};
    known.push_back(view.node.name);
  }
  if (const std::string meant = did_you_mean(name, known); !meant.empty()) {
    return fail(ErrorCode::not_found, "the register knows no node {}{}", echo(name), meant);
  }
  known.resize(std::min(known.size(), kNamedMax));
  std::string names = joined(known);
  if (nodes.size() > kNamedMax) names += fmt::format(" and {} more", nodes.size() - kNamedMax);
  return fail(ErrorCode::not_found, "the register knows no node {}; it knows {}", echo(name),
              names.empty() ? "none" : names);
}

namespace {

/// The addresses held on a node, in any block.
struct HeldOnNode {
  core::RemovedNode record;
  std::uint64_t count = 0;
  std::string some;  ///< addresses, a few
  /// Blocks that cannot be read: what they hold, and on which node, is not known.
  std::vector<std::string> damaged;
};

[[nodiscard]] Result<HeldOnNode> held_on(const Context& context, const std::string& name) {
  constexpr std::uint64_t kNamedMax = 3;
  HeldOnNode found;
  found.record.node = name;
  const auto count_held = [&](const core::Block& block) {
    core::for_each_held(block, [&](net::Ordinal ordinal, const core::Attribute& holder) {
      if (core::member_of(holder.secondary, core::kNodeKey) != name) return;
      core::SequenceNumber& sequence = found.record.held[block.cidr.to_string()];
      sequence = std::max(sequence, core::sequence_of(block, ordinal));
      if (found.count < kNamedMax) {
        const std::string pod = core::member_of(holder.secondary, core::kPodKey);
        const std::string name_space = core::member_of(holder.secondary, core::kNamespaceKey);
        found.some += (found.count == 0 ? "" : ", ") + net::address_at(block.cidr, ordinal).to_string() +
                      (pod.empty() || name_space.empty() ? "" : " of pod " + name_space + "/" + pod);
      }
      ++found.count;
    });
  };
  TRY_VOID(for_each_record(
      context, {core::Kind::block, ""},
      [&](const store::Record& record) {
        const auto* block = record.get_if<core::Block>();
        if (block == nullptr) {
          found.damaged.push_back(record.key.name);
        } else if (!block->deleted) {
          count_held(*block);
        }
      },
      OnDamage::visit));
  if (found.count > kNamedMax) found.some += ", …";
  return found;
}

/// Refuses to take a node for free of addresses where that isn't known.
[[nodiscard]] Result<void> check_node_holds_nothing(const HeldOnNode& held, const std::string& name) {
  if (held.count > 0) {
    return fail(ErrorCode::refused_for_safety,
                "node {} holds {} ({}): if it is gone for good, --force gives up its blocks and lets "
                "the collector free them. A pod that still runs there would then share its address",
                name, counted(held.count, "address", "es"), held.some);
  }
  if (held.damaged.empty()) return {};
  return fail(ErrorCode::refused_for_safety,
              "what node {} holds is not known: {} damaged ({}{}); restore what is damaged "
              "(docs/runbooks/damaged-records.md), or --force goes on without it",
              name, counted_as(held.damaged.size(), "block is", "blocks are"), held.damaged.front(),
              held.damaged.size() > 1 ? ", …" : "");
}

/// True: it was there. Gone is gone, whoever did it in the end: its reply may have been lost.
[[nodiscard]] Result<bool> delete_record(const Context& context, const std::string& name) {
  bool was_there = false;
  const auto decide = [&](const core::Snapshot& snapshot, const Instant&) -> core::Step<bool> {
    auto step = core::plan_delete_node(snapshot, name);
    if (auto* const plan = std::get_if<core::Plan<bool>>(&step)) {
      was_there |= !plan->writes.empty();
      plan->answer |= was_there;
    }
    return step;
  };
  return transact(context, TurnTaking::before_writing, decide);
}

/// A node that has a record may be alive, and its pods live in its ranges.
[[nodiscard]] Result<void> check_no_range(const Context& context, const std::string& name) {
  std::string held;
  TRY_VOID(for_each_record(
      context, {core::Kind::node_range, ""},
      [&](const store::Record& record) {
        const auto& range = std::get<core::NodeRange>(*record.value);
        if (range.node == name) held += (held.empty() ? "" : ", ") + range.cidr.to_string();
      },
      OnDamage::skip));
  if (held.empty()) return {};
  return fail(ErrorCode::refused_for_safety,
              "node {} has a record and the node range {}: if it is gone for good, --force gives that back "
              "for other nodes",
              name, held);
}

}  // namespace

Result<NodeRemoved> remove_node(const Context& context, const NodeRemoval& removal) {
  const std::string& name = removal.name;
  const core::AffinityOwner owner{core::AffinityOwner::Type::host, name};
  TRY_VOID(core::check_node_name(name));
  TRY(const HeldOnNode held, held_on(context, name));
  if (!removal.force) TRY_VOID(check_node_holds_nothing(held, name));
  NodeRemoved result;
  result.held = held.count;
  TRY(const auto record,
      context.store.get(core::node_key(name), Deadline::after(context.clock.now(), context.time_limit)));
  const bool keeps_record = context.store.capabilities().foreign_writers;
  if (record && !keeps_record && !removal.force) TRY_VOID(check_no_range(context, name));
  if (removal.dry_run) {
    TRY(result.affinities, release_host_affinities(context, owner, /*must_be_empty=*/false, /*apply=*/false));
    result.record_deleted = record.has_value() && !keeps_record && !result.affinities.failure;
    return result;
  }
  // First of all: whoever stops behind this and does it again finds the same.
  if (held.count > 0) {
    TRY_VOID(decided(context, core::plan_note_removed, held.record));
  }
  TRY(result.affinities, release_host_affinities(context, owner, /*must_be_empty=*/false));
  if (result.affinities.failure || keeps_record) return result;
  TRY(result.record_deleted, delete_record(context, name));
  return result;
}

}  // namespace croft::engine
