#include "ipam/decide/affinity_changes.h"

#include <algorithm>

#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "ipam/decide/claim_choice.h"
#include "register/owner.h"

namespace croft::core {

Step<AffinityOutcome> plan_release_affinity(const Snapshot& snapshot, const AffinityRelease& release,
                                            const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<AffinityOutcome>> {
    const PoolTable pools(reader);
    const Affinity* row = reader.get(affinity_key(release.owner, release.cidr));
    Draft draft(reader, pools, now);
    TRY(auto block, draft.block(release.cidr));
    TRY_VOID(reader.ready());

    const bool is_owners = block && block->affinity == release.owner;
    if (!is_owners) {
      if (row == nullptr) return Plan<AffinityOutcome>{AffinityOutcome::not_there, {}};
      draft.drop_affinity(*row);
      return finish(draft, block ? AffinityOutcome::belonged_to_others : AffinityOutcome::released);
    }
    if (release.sequence_number && *release.sequence_number != block->sequence_number) {
      return Plan<AffinityOutcome>{AffinityOutcome::changed, {}};
    }
    if (release.must_be_empty && !is_empty(*block)) return Plan<AffinityOutcome>{AffinityOutcome::not_empty, {}};
    block->affinity.reset();
    block->affinity_claim_time.reset();
    draft.put(*std::move(block), {});
    return finish(draft, AffinityOutcome::released);
  });
}

Step<ClaimOutcome> plan_claim_affinity(const Snapshot& snapshot, const AffinityOwner& owner, const net::Prefix& cidr,
                                       const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<ClaimOutcome>> {
    const PoolTable pools(reader);
    static_cast<void>(reader.get(high_water_mark_key(cidr)));
    static_cast<void>(reader.get(affinity_key(owner, cidr)));
    Draft draft(reader, pools, now);
    TRY(auto block, draft.block(cidr));
    TRY_VOID(reader.ready());
    const Pool* pool = pools.containing(cidr.first());
    if (pool == nullptr || !is_enabled(*pool) || pool->block_length != cidr.length()) {
      return fail(ErrorCode::invalid_argument,
                  "{} is no block of an enabled pool; `croft pool list` shows their block sizes", cidr);
    }
    if (block && block->affinity) {
      return Plan<ClaimOutcome>{*block->affinity == owner ? ClaimOutcome::had_already : ClaimOutcome::belongs_to_others,
                                {}};
    }
    if (block) {
      // Nobody's: what is held in it stays held, and its owner is found again.
      block->affinity = owner;
      block->affinity_claim_time = next_whole_second(now.wall);
      draft.put_claimed(*std::move(block), *pool, {});
      return finish(draft, ClaimOutcome::claimed);
    }
    TRY(const auto obstacle, obstacle_of(reader, cidr));
    if (obstacle) return fail(ErrorCode::refused_by_configuration, *obstacle);
    draft.put_claimed(new_block(cidr, owner, now, number_before(reader, cidr)), *pool, {});
    return finish(draft, ClaimOutcome::claimed);
  });
}

Step<bool> plan_free_cooled(const Snapshot& snapshot, const net::Prefix& cidr, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    const PoolTable pools(reader);
    Draft draft(reader, pools, now);
    TRY(auto block, draft.block(cidr));
    TRY_VOID(reader.ready());
    // Marks alone are no reason to write: they go along with what was freed.
    if (!block || *block == with_clock_marks(*reader.get(block_key(cidr)), now)) return Plan<bool>{false, {}};
    draft.put(*std::move(block), {});
    return finish(draft, true);
  });
}

Step<bool> plan_mend_handle(const Snapshot& snapshot, const std::string& handle_id) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    const Handle* handle = reader.get(handle_key(handle_id));
    TRY_VOID(reader.ready());
    if (handle == nullptr) return Plan<bool>{false, {}};
    Handle mended = *handle;
    std::vector<PlannedWrite> writes;
    for (const auto& [cidr, count, name] : blocks_of(*handle)) {
      const Block* block = reader.get(block_key(cidr));
      if (block != nullptr) TRY_VOID(check_writable(*block));
      const std::uint32_t held = block != nullptr ? count_of_handle(*block, handle_id) : 0;
      if (held == 0) mended.blocks.erase(name);
      if (held > 0) mended.blocks[name] = held;
      // Somebody may have counted the handle up and be about to write the block
      // (docs/notes/calico-ipam.md#write-order): written anew, it makes that write fail.
      if (block != nullptr && held < count) {
        writes.push_back(to_put(block_key(cidr), with_next_sequence_number(*block)));
      } else {
        writes.push_back(to_check(block_key(cidr)));
      }
      if (writes.size() > kMendBlocksMax) break;
    }
    TRY_VOID(reader.ready());
    if (mended == *handle) return Plan<bool>{false, {}};
    const auto key = handle_key(handle_id);
    writes.push_back(mended.blocks.empty() ? to_delete(key) : to_put(key, std::move(mended)));
    return Plan<bool>{true, std::move(writes)};
  });
}

Step<Node> plan_label_node(const Snapshot& snapshot, const std::string& name, const LabelChanges& changes) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Node>> {
    TRY_VOID(check_node_name(name));
    const Node* stored = reader.get(node_key(name));
    TRY_VOID(reader.ready());
    const bool sets_some = std::ranges::any_of(changes, [](const auto& change) { return change.second.has_value(); });
    if (stored == nullptr && !sets_some) {
      return fail(ErrorCode::not_found, "the register has no record of node {}", echo(name));
    }
    Node node;
    node.name = name;
    if (stored != nullptr) node = *stored;
    for (const auto& [key, value] : changes) {
      if (!value) {
        node.labels.erase(key);
        continue;
      }
      TRY_VOID(check_label(key, *value));
      node.labels[key] = *value;
    }
    if (stored != nullptr && *stored == node) return Plan<Node>{std::move(node), {}};
    return Plan<Node>{node, {to_put(node_key(name), node)}};
  });
}

Step<bool> plan_note_removed(const Snapshot& snapshot, const RemovedNode& removed) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    const auto key = removed_node_key(removed.node);
    const auto* stored = reader.get(key);
    TRY_VOID(reader.ready());
    RemovedNode both = removed;
    if (stored != nullptr) {
      for (const auto& [block, sequence] : stored->held) both.held[block] = std::max(both.held[block], sequence);
    }
    if (stored != nullptr && *stored == both) return Plan<bool>{false, {}};
    return Plan<bool>{true, {to_put(key, std::move(both))}};
  });
}

Step<bool> plan_forget_removed(const Snapshot& snapshot, const RemovedNode& seen) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    const auto key = removed_node_key(seen.node);
    const auto* stored = reader.get(key);
    TRY_VOID(reader.ready());
    if (stored == nullptr || *stored != seen) return Plan<bool>{false, {}};
    return Plan<bool>{true, {to_delete(key)}};
  });
}

Step<bool> plan_delete_node(const Snapshot& snapshot, const std::string& name) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    TRY_VOID(check_node_name(name));
    const Node* stored = reader.get(node_key(name));
    TRY_VOID(reader.ready());
    if (stored == nullptr) return Plan<bool>{false, {}};
    return Plan<bool>{true, {to_delete(node_key(name))}};
  });
}

}  // namespace croft::core
