#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/planted.h"
#include "ipam/decide/draft.h"
#include "ipam/use/transact.h"

namespace croft::engine {
namespace {

using core::Key;
using core::Kind;
using core::Value;
using store::Condition;
using store::Revision;
using store::Write;

template <class T>
const T* value_in(const std::optional<Value>& value) {
  return value ? std::get_if<T>(&*value) : nullptr;
}

[[nodiscard]] Result<void> without_revision(const Result<Revision>& written) {
  return written ? Result<void>() : fail(written.error());
}

/// Commits the writes of one plan, one by one, to a store that has no atomic commit
/// (docs/notes/calico-ipam.md#write-order). `as_read` is the snapshot the plan was made from. The order:
///
///   1. claims are announced (affinity rows `pending`, new pools disabled), new blocks are made, empty;
///   2. what the plan depends on is looked at once more (below); handles count up, and claims of blocks that were made
///      are confirmed; claims to be given up say so (`pendingDeletion`), high-water marks of blocks that go are raised;
///   3. the blocks are written, each against the revision read: the first one decides;
///   4. the other claims are confirmed, handles count what their blocks hold, rows go, hints are written.
///
/// Handles and claim rows may count too high, never too low. So nothing has to be taken back, whatever stops a commit
/// part-way. A handle that counts too many is lowered by the next call that plans it, its DEL or the collector
/// (core::plan_mend_handle). A row without its block goes with the next claim. A call that is decided again finds its
/// own part: an address that its owner holds is the answer. Two things only are put right at once. An empty block whose
/// pool changed meanwhile is removed by its maker. A claim whose block could not be given up, and is its owner's still,
/// says again that it holds.
///
/// A handle is written each time that an address comes to it, also where it counts enough: a late write of its old
/// revision fails then. It is lowered or deleted under the revision that was read before the blocks were written; each
/// block that it counts too many in is written by the plan. So a block's write that is still in flight fails, and one
/// whose maker counted up since makes the lowering fail (conflict: the plan is made again).
///
/// A block that is made rests on what the plan only looked at: its pool, and the mark of a block that came and went. A
/// look before the block is made proves nothing of the moment after. So the block is made first, empty; then both are
/// looked at, in the store itself; only then a holder is written into it:
///
/// - Deleting a pool disables it, then lists its blocks. Either the claim finds another pool than it read, or the list
///   has its block.
/// - A mark is raised before its block is deleted, and the block can be made only after that: the look sees the mark.
///
/// Records that are no part of this are written with step 3, in the order of the plan: of node ranges the node's record
/// first. A crash leaves a node with one family of two, or a cursor behind, which the next call for the node completes.
///
/// Success: all is written, but for rows, hints and counts that may stay too high. Errors: of commit_once; and that of
/// the write which would have enabled a new pool, which is then there and disabled, marked as half made
/// (core::Pool::being_made): who asks for it again completes it, and the message names the remedy. After any of them
/// repeating the operation is right.
class OrderedCommit {
 public:
  OrderedCommit(const Context& context, const core::Snapshot& as_read, Deadline deadline)
      : context_(context), as_read_(as_read), deadline_(deadline) {}

  [[nodiscard]] Result<void> run(std::vector<Write> writes) {
    sort(std::move(writes));
    for (const Write& write : reservations_) TRY_VOID(write_one(write));
    for (const Write& write : new_pools_) TRY_VOID(announce_pool(write));
    for (const Write& write : claims_) TRY_VOID(announce_claim(write));
    for (Write& write : blocks_) TRY_VOID(make_block(write));
    if (auto looked = look_once_more(); !looked) {
      if (looked.error().code == ErrorCode::conflict) remove_made();
      return looked;
    }
    if (!is_planted("handle_after_block")) TRY_VOID(count_up());
    if (auto decided = decide(); !decided) {
      if (decided.error().code != ErrorCode::unknown_outcome) {
        for (const Write& row : left_) take_back(row);
      }
      return decided;
    }
    if (is_planted("handle_after_block")) TRY_VOID(count_up());
    return follow_up();
  }

 private:
  [[nodiscard]] Result<void> decide() {
    for (const Write& write : leaving_) TRY_VOID(announce_leaving(write));
    for (const Write& write : marks_) TRY_VOID(raise_mark(write.key, *value_in<core::HighWaterMark>(write.value)));
    for (const Write& write : blocks_) {
      const bool is_made = made_.contains(write.key) && core::is_empty(std::get<core::Block>(*write.value));
      if (!is_made) TRY_VOID(write_one(write));
    }
    for (const Write& write : deciding_) TRY_VOID(write_one(write));
    return {};
  }

  // --- sorting ---

  void sort(std::vector<Write> writes) {
    for (const Write& write : writes) {
      if (write.key.kind == Kind::block && !write.only_check) note_owners(write);
    }
    for (Write& write : writes) list_for(write).push_back(std::move(write));
    // The set of pools is what excludes others: before the pools themselves.
    std::stable_partition(deciding_.begin(), deciding_.end(), [](const Write& w) { return w.key.kind != Kind::pool; });
  }

  std::vector<Write>& list_for(const Write& write) {
    if (write.only_check) return checks_;
    const bool is_put = write.value.has_value();
    switch (write.key.kind) {
      case Kind::block:
        return blocks_;
      case Kind::affinity:
        if (is_put) return claimed_.contains(write.key) ? claims_ : rows_;
        return given_up_.contains(write.key) ? leaving_ : rows_;
      case Kind::handle:
        return handles_;
      case Kind::high_water_mark:
        return is_put ? marks_ : rows_;
      case Kind::pool:
        return is_put && write.condition.kind == Condition::Kind::absent ? new_pools_ : deciding_;
      case Kind::reservation:
        return is_put ? reservations_ : rows_;
      case Kind::vacancy:
        return hints_;
      default:
        return deciding_;
    }
  }

  void note_owners(const Write& write) {
    const core::Block* before = read_before<core::Block>(write.key);
    const core::Block* after = value_in<core::Block>(write.value);
    const auto owner = [](const core::Block* block) {
      return block != nullptr ? block->affinity : std::optional<core::AffinityOwner>();
    };
    if (owner(before) == owner(after)) return;
    const net::Prefix cidr = after != nullptr ? after->cidr : core::cidr_of(write.key).value();
    if (owner(before)) given_up_.insert(core::affinity_key(*owner(before), cidr));
    if (owner(after)) claimed_.insert(core::affinity_key(*owner(after), cidr));
  }

  template <class T>
  const T* read_before(const Key& key) const {
    const std::optional<Value>* found = as_read_.find(key);
    return found != nullptr ? value_in<T>(*found) : nullptr;
  }

  /// The last look at what the plan depends on without writing it, and at what a claim of a block that was just made
  /// rests on: see the header. Not from memory.
  [[nodiscard]] Result<void> look_once_more() {
    if (made_.empty() && checks_.empty()) return {};
    Loader loader(context_.store, deadline_);
    core::Missing missing;
    TRY_VOID(read_until_complete(context_.clock, loader, [&]() -> const core::Missing* {
      core::Reader reader(loader.snapshot());
      for (const Write& check : checks_) reader.ask(check.key);
      missing = reader.missing();
      missing.to_keep = true;
      return missing.unread() ? &missing : nullptr;
    }));
    for (const Write& check : checks_) {
      const Condition now = loader.condition_of(core::to_check(check.key));
      if (check.condition.kind == Condition::Kind::any || check.condition == now) continue;
      return fail(ErrorCode::conflict, fmt::format("{} {} was changed by somebody else; read again",
                                                   core::name_of(check.key.kind), check.key.name));
    }
    return {};
  }

  // --- writing ---

  [[nodiscard]] Result<Revision> put(const Key& key, std::optional<Value> value, Condition condition) const {
    const Write write{key, std::move(value), condition, false};
    return written(write, commit_once(context_, {&write, 1}, deadline_));
  }
  [[nodiscard]] Result<void> write_one(const Write& write) const {
    return without_revision(put(write.key, write.value, write.condition));
  }
  /// The same of several that have nothing to do with each other; their outcomes in their order.
  [[nodiscard]] std::vector<Result<Revision>> write_each(const std::vector<Write>& writes) const {
    auto outcomes = commit_each_once(context_, writes, deadline_);
    for (std::size_t i = 0; i < writes.size(); ++i) outcomes[i] = written(writes[i], std::move(outcomes[i]));
    return outcomes;
  }
  /// A delete that finds nothing is done: by us, if the reply was lost, or by somebody else.
  [[nodiscard]] Result<Revision> written(const Write& write, Result<Revision> outcome) const {
    if (outcome || write.value || outcome.error().code != ErrorCode::conflict) return outcome;
    const auto now = get_newest(context_, write.key, deadline_);
    return now && !*now ? Result<Revision>(Revision()) : outcome;
  }

  [[nodiscard]] Result<void> announce_pool(const Write& write) {
    core::Pool pool = std::get<core::Pool>(*write.value);
    pool.being_made = !pool.disabled;
    pool.disabled = true;
    TRY(announced_[write.key], put(write.key, std::move(pool), write.condition));
    return {};
  }

  /// Also when the row is there in this state: whoever wants to delete it as it was then fails.
  [[nodiscard]] Result<void> announce_claim(const Write& write) {
    core::Affinity row = std::get<core::Affinity>(*write.value);
    row.state = core::AffinityState::pending;
    TRY(announced_[write.key], put(write.key, std::move(row), write.condition));
    return {};
  }

  /// Other programs advertise a block by its confirmed row.
  [[nodiscard]] Result<void> announce_leaving(const Write& write) {
    TRY(const auto record, get_sound(context_, write.key, deadline_));
    if (!record) return {};
    core::Affinity row = std::get<core::Affinity>(*record->value);
    row.state = core::AffinityState::pending_deletion;
    TRY(const Revision revision, put(write.key, row, Condition::if_revision(record->revision)));
    left_.push_back({write.key, *record->value, Condition::if_revision(revision), false});
    return {};
  }

  /// A block may have been written before another one failed, and what looks like a conflict may be our own write, sent
  /// twice. The record itself now says whose it is.
  void take_back(const Write& row) const {
    const core::Affinity& claim = std::get<core::Affinity>(*row.value);
    const auto block = get_newest(context_, core::block_key(claim.cidr), deadline_);
    if (!block) return;
    const core::Block* now = *block ? (*block)->get_if<core::Block>() : nullptr;
    if (now != nullptr && now->affinity == claim.owner) static_cast<void>(put(row.key, row.value, row.condition));
  }

  /// Marks only rise, whoever writes them.
  [[nodiscard]] Result<void> raise_mark(const Key& key, const core::HighWaterMark& mark) const {
    TRY(const auto record, get_sound(context_, key, deadline_));
    if (!record) return without_revision(put(key, mark, Condition::if_absent()));
    if (std::get<core::HighWaterMark>(*record->value).sequence_number >= mark.sequence_number) return {};
    return without_revision(put(key, mark, Condition::if_revision(record->revision)));
  }

  /// A block that comes into being with holders does so empty first. So a handle never counts a block before it exists,
  /// and one that counts a missing block can be lowered safely. Nobody has an address of the block before
  /// look_once_more().
  [[nodiscard]] Result<void> make_block(Write& write) {
    if (!write.value || read_before<core::Block>(write.key) != nullptr) return {};
    const core::Block& after = std::get<core::Block>(*write.value);
    core::Block first = after;
    if (!core::is_empty(after)) {
      first = core::new_block(after.cidr, after.affinity, context_.clock.now(), {});
      first.affinity_claim_time = after.affinity_claim_time;
      first.sequence_number.value = after.sequence_number.value - 1;  // as it was before the addresses were taken
      first.rest = after.rest;
    }
    TRY(const Revision revision, put(write.key, first, write.condition));
    write.condition = Condition::if_revision(revision);
    made_.emplace(write.key, Made{revision, first.sequence_number});
    return {};
  }

  /// Changes by others since then stay. A successor starts above its number.
  void remove_made() const {
    for (const auto& [key, made] : made_) {
      const auto mark = core::high_water_mark_key(core::cidr_of(key).value());
      if (!raise_mark(mark, {made.number})) continue;
      static_cast<void>(put(key, std::nullopt, Condition::if_revision(made.revision)));
    }
  }

  // --- handles ---

  [[nodiscard]] bool gains(const std::string& handle_id) const {
    return std::ranges::any_of(blocks_, [&](const Write& write) {
      const core::Block* before = read_before<core::Block>(write.key);
      const core::Block* after = value_in<core::Block>(write.value);
      const std::uint32_t held = before != nullptr ? core::count_of_handle(*before, handle_id) : 0;
      return after != nullptr && core::count_of_handle(*after, handle_id) > held;
    });
  }

  /// Every handle that gets an address, with the higher of its present and future count, and the claims of blocks that
  /// were made: these are the owner's by now. All together.
  [[nodiscard]] Result<void> count_up() {
    std::vector<Write> ups;
    std::vector<Write*> of;
    for (Write& write : handles_) {
      if (!write.value || !gains(write.key.name)) continue;
      core::Handle raised = std::get<core::Handle>(*write.value);
      if (const auto* stored = read_before<core::Handle>(write.key)) {
        for (const auto& [block, count] : stored->blocks) {
          std::uint32_t& entry = raised.blocks[block];
          entry = std::max(entry, count);
        }
      }
      ups.push_back({write.key, std::move(raised), write.condition, false});
      of.push_back(&write);
    }
    const std::size_t handles = ups.size();
    for (const Write& write : std::exchange(claims_, {})) {
      const bool is_made = made_.contains(core::block_key(value_in<core::Affinity>(write.value)->cidr));
      (is_made ? ups : claims_).push_back({write.key, write.value, Condition::if_revision(announced_.at(write.key))});
    }
    const auto outcomes = write_each(ups);
    for (std::size_t i = 0; i < handles; ++i) {
      if (!outcomes[i]) return fail(outcomes[i].error());
      of[i]->condition = Condition::if_revision(*outcomes[i]);
      if (ups[i].value == of[i]->value) of[i]->only_check = true;  // nothing is left to do
    }
    return {};
  }

  /// Every handle as it is planned. Error: conflict, where somebody counted meanwhile. Other failures leave a count too
  /// high.
  [[nodiscard]] Result<void> count_exactly() const {
    std::vector<Write> writes;
    std::ranges::copy_if(handles_, std::back_inserter(writes), [](const Write& write) { return !write.only_check; });
    for (const auto& outcome : write_each(writes)) {
      if (!outcome && (outcome.error().code == ErrorCode::conflict || !is_decided())) return fail(outcome.error());
    }
    return {};
  }

  /// A plan that writes no such record stands or falls with its handles and rows.
  [[nodiscard]] bool is_decided() const { return !blocks_.empty() || !deciding_.empty() || !new_pools_.empty(); }

  [[nodiscard]] Result<void> follow_up() {
    auto counted = count_exactly();
    if (!counted && !is_decided()) return counted;
    for (const Write& write : claims_) {
      static_cast<void>(put(write.key, write.value, Condition::if_revision(announced_.at(write.key))));
    }
    std::optional<Error> pool_trouble;
    for (const Write& write : new_pools_) enable(write, pool_trouble);
    for (const Write& write : rows_) {
      auto done = write_one(write);
      if (!done && !is_decided()) return done;
    }
    for (const Write& write : left_) static_cast<void>(put(write.key, std::nullopt, write.condition));
    for (const Write& write : hints_) static_cast<void>(write_one(write));
    if (pool_trouble) return fail(*std::move(pool_trouble));
    return counted;
  }

  /// The caller of a pool wants to use it: a pool that stayed disabled is no success. One that others have changed
  /// since is theirs by now.
  void enable(const Write& write, std::optional<Error>& trouble) const {
    if (std::get<core::Pool>(*write.value).disabled) return;
    const auto done = put(write.key, write.value, Condition::if_revision(announced_.at(write.key)));
    if (done || done.error().code == ErrorCode::conflict || trouble) return;
    trouble = done.error().in(
        fmt::format("pool {} is made, and disabled until it is asked for again, or `croft pool enable {}`",
                    write.key.name, write.key.name));
  }

  struct Made {
    Revision revision;
    core::SequenceNumber number;
  };

  const Context& context_;
  const core::Snapshot& as_read_;
  const Deadline deadline_;
  std::set<Key> claimed_, given_up_;  ///< affinity rows of blocks whose owner changes
  std::vector<Write> checks_, reservations_, new_pools_, claims_, leaving_, marks_, blocks_, deciding_, handles_, rows_,
      hints_;
  std::map<Key, Made> made_;           ///< blocks that came into being
  std::map<Key, Revision> announced_;  ///< claims and pools
  std::vector<Write> left_;            ///< rows that were announced as leaving: what would put each back as it was
};

}  // namespace

[[nodiscard]] Result<void> commit_in_order(const Context& context, const core::Snapshot& as_read,
                                           std::vector<store::Write> writes, Deadline deadline) {
  return OrderedCommit(context, as_read, deadline).run(std::move(writes));
}

}  // namespace croft::engine
