#include "ipam/use/ordered_commit.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/planted.h"
#include "ipam/decide/draft.h"
#include "ipam/use/commit_once.h"
#include "ipam/use/each_record.h"
#include "ipam/use/handle_counts.h"
#include "services/decide/range_bytes.h"

namespace croft::engine {
namespace {

using core::Key;
using core::Kind;
using core::Value;
using store::Condition;
using store::Record;
using store::Revision;
using store::Write;

template <class T>
const T* value_in(const std::optional<Value>& value) {
  return value ? std::get_if<T>(&*value) : nullptr;
}

class OrderedCommit {
 public:
  OrderedCommit(const Context& context, const core::Snapshot& as_read, Deadline deadline, Earlier& earlier)
      : context_(context), as_read_(as_read), deadline_(deadline), earlier_(earlier) {}

  [[nodiscard]] Result<bool> run(std::vector<Write> writes) {
    sort(std::move(writes));
    const auto decided = decide();
    if (decided) {
      follow_up();
      if (pool_trouble_) return fail(*std::move(pool_trouble_));
      return handles_are_exact_;
    }
    if (decided.error().code != ErrorCode::unknown_outcome) take_back();
    return fail(decided.error());
  }

 private:
  /// A write that was done and can be taken back.
  struct Done {
    Key key;
    std::optional<Value> before;
    Revision revision;
  };

  // --- sorting ---

  void sort(std::vector<Write> writes) {
    for (const Write& write : writes) {
      if (write.key.kind == Kind::block && !write.only_check) note_block(write);
    }
    for (Write& write : writes) list_for(write).push_back(std::move(write));
    // The set of pools is what excludes others: before the pools themselves.
    std::stable_partition(deciding_.begin(), deciding_.end(), [](const Write& w) { return w.key.kind != Kind::pool; });
    for (const Write& write : handles_) plan_handle(write);
  }

  std::vector<Write>& list_for(const Write& write) {
    if (write.only_check) return checks_;
    const bool is_put = write.value.has_value();
    switch (write.key.kind) {
      case Kind::block:
        return blocks_;
      case Kind::affinity:
        if (is_put) return claimed_.contains(write.key) ? claims_ : confirmations_;
        return given_up_.contains(write.key) ? leaving_ : removals_;
      case Kind::handle:
        return handles_;
      case Kind::high_water_mark:
        return is_put ? marks_ : removals_;
      case Kind::pool:
        return is_put && write.condition.kind == Condition::Kind::absent ? new_pools_ : deciding_;
      case Kind::reservation:
        return is_put ? reservations_ : removals_;
      case Kind::vacancy:
        return hints_;
      case Kind::range_allocation:
        return ranges_;
      default:
        return deciding_;
    }
  }

  void note_block(const Write& write) {
    const core::Block* before = read_before<core::Block>(write.key);
    const core::Block* after = value_in<core::Block>(write.value);
    const auto owner = [](const core::Block* block) {
      return block != nullptr ? block->affinity : std::optional<core::AffinityOwner>();
    };
    const net::Prefix cidr = after != nullptr ? after->cidr : core::cidr_of(write.key).value();
    if (owner(before) != owner(after)) {
      if (owner(before)) given_up_.insert(core::affinity_key(*owner(before), cidr));
      if (owner(after)) claimed_.insert(core::affinity_key(*owner(after), cidr));
    }
    for (const auto& [handle_id, count] : gains(before, after)) {
      changes_[handle_id].gained[cidr.to_string()] = count;
    }
  }

  void plan_handle(const Write& write) {
    const core::Handle* stored = read_before<core::Handle>(write.key);
    HandleChange& change = changes_[write.key.name];
    if (stored != nullptr) change.stored = *stored;
    change.condition = write.condition;
    if (const auto* planned = value_in<core::Handle>(write.value)) change.planned = *planned;
    planned_.insert(write.key.name);
  }

  template <class T>
  const T* read_before(const Key& key) const {
    const std::optional<Value>* found = as_read_.find(key);
    return found != nullptr ? value_in<T>(*found) : nullptr;
  }

  // --- up to the decision ---

  [[nodiscard]] Result<void> decide() {
    TRY_VOID(look_once_more());
    for (const Write& write : reservations_) TRY_VOID(do_one(write));
    for (const Write& write : new_pools_) TRY_VOID(announce_pool(write));
    for (const Write& write : claims_) TRY_VOID(announce(write, core::AffinityState::pending));
    for (Write& write : blocks_) TRY_VOID(make_block(write));
    TRY_VOID(look_around_made());
    if (!is_planted("handle_after_block")) TRY_VOID(count_up());
    for (const Write& write : leaving_) TRY_VOID(announce_leaving(write));
    for (const Write& write : marks_) TRY_VOID(raise_mark(write));
    for (const Write& write : blocks_) TRY_VOID(write_block(write));
    if (is_planted("handle_after_block")) TRY_VOID(count_up());
    // Ranges alone: their writes are the decision. With a Service: what it takes is taken first.
    for (const Write& write : ranges_) TRY_VOID(deciding_.empty() ? do_one(write) : mark_taken(write));
    for (const Write& write : deciding_) TRY_VOID(do_one(write));
    return blocks_.empty() && deciding_.empty() && ranges_.empty() ? decide_without_blocks() : Result<void>();
  }

  /// A plan that writes no block stands or falls with its guarded rows and handles.
  [[nodiscard]] Result<void> decide_without_blocks() {
    for (const Write& write : std::exchange(confirmations_, {})) TRY_VOID(do_one(write));
    for (auto& [handle_id, change] : std::exchange(changes_, {})) TRY_VOID(count_exactly(handle_id, change));
    for (const Write& write : std::exchange(removals_, {})) TRY_VOID(do_one(write));
    return {};
  }

  /// Reads what the plan depends on without writing it, and the rows whose revision it doesn't know.
  [[nodiscard]] Result<void> look_once_more() {
    std::vector<Key> keys;
    for (const auto* writes : {&leaving_, &marks_}) {
      for (const Write& write : *writes) keys.push_back(write.key);
    }
    const bool checks_now = std::ranges::none_of(blocks_, [&](const Write& write) { return makes(write); });
    if (checks_now) {
      for (const Write& write : checks_) keys.push_back(write.key);
    }
    for (const auto& [handle_id, change] : changes_) {
      if (!planned_.contains(handle_id)) keys.push_back(core::handle_key(handle_id));
    }
    if (keys.empty()) return {};
    TRY(auto records, context_.store.get_many(keys, deadline_));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Error* damage = records[i] ? core::damage_of(records[i]->value) : nullptr;
      if (damage != nullptr) return fail(*damage);
      seen_[keys[i]] = std::move(records[i]);
    }
    if (checks_now) {
      for (const Write& check : checks_) {
        const auto& record = seen_.at(check.key);
        TRY_VOID(still_holds(check, record ? Condition::if_revision(record->revision) : Condition::if_absent()));
      }
    }
    for (auto& [handle_id, change] : changes_) {
      if (!planned_.contains(handle_id)) TRY_VOID(adopt_handle(handle_id, change));
    }
    return {};
  }

  /// The last look at what a claim of a block that was just made rests on: see the header. Not from memory.
  [[nodiscard]] Result<void> look_around_made() {
    if (made_.empty()) return {};
    Loader loader(context_.store, deadline_);
    core::Missing missing;
    TRY_VOID(read_until_complete(context_.clock, loader, [&]() -> const core::Missing* {
      core::Reader reader(loader.snapshot());
      for (const Write& check : checks_) reader.ask(check.key);
      missing = reader.missing();
      missing.to_keep = true;
      return missing.unread() ? &missing : nullptr;
    }));
    for (const Write& check : checks_) TRY_VOID(still_holds(check, loader.condition_of(core::to_check(check.key))));
    return {};
  }

  /// `now` is the condition that holds.
  [[nodiscard]] static Result<void> still_holds(const Write& check, const Condition& now) {
    const bool holds = check.condition.kind == Condition::Kind::any || check.condition == now;
    return holds ? Result<void>() : changed(check.key);
  }

  [[nodiscard]] static Result<void> changed(const Key& key) {
    return fail(ErrorCode::conflict,
                std::string(core::name_of(key.kind)) + " " + key.name + " was changed by somebody else; read again");
  }

  /// A handle that counts enough already, so that the plan leaves it as it is.
  [[nodiscard]] Result<void> adopt_handle(const std::string& handle_id, HandleChange& change) {
    const auto& record = seen_.at(core::handle_key(handle_id));
    const core::Handle* now = record ? std::get_if<core::Handle>(&record->value) : nullptr;
    const core::Handle* read = read_before<core::Handle>(core::handle_key(handle_id));
    if (now == nullptr || read == nullptr || *now != *read) return changed(core::handle_key(handle_id));
    change.stored = *now;
    change.planned = *now;
    change.condition = Condition::if_revision(record->revision);
    return {};
  }

  [[nodiscard]] Result<Revision> write_one(const Key& key, std::optional<Value> value, Condition condition,
                                           store::WriteToken* used = nullptr) const {
    const Write write{key, std::move(value), condition, false};
    return written(write, commit_once(context_, {&write, 1}, deadline_, nullptr, used));
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

  /// Writes and notes how to take it back. `before` is what was there if the condition holds.
  [[nodiscard]] Result<void> do_one(const Key& key, std::optional<Value> before, std::optional<Value> value,
                                    Condition condition) {
    store::WriteToken token;
    const auto revision = write_one(key, std::move(value), condition, &token);
    if (revision) {
      done_.push_back({key, std::move(before), *revision});
      return {};
    }
    if (revision.error().code == ErrorCode::refused_by_configuration) note_if_done(key, std::move(before), token);
    if (revision.error().code == ErrorCode::conflict && key.kind == Kind::block) contested_ = key;
    return fail(revision.error());
  }

  /// A store may find only afterwards that something has changed the record on its way: it is written all the same.
  void note_if_done(const Key& key, std::optional<Value> before, const store::WriteToken& token) {
    core::Missing wanted;
    wanted.records.insert(key);
    wanted.to_keep = true;
    const auto answer = context_.store.read(wanted, deadline_);
    if (!answer || !answer->records.front() || answer->records.front()->token != token) return;
    done_.push_back({key, std::move(before), answer->records.front()->revision});
  }
  [[nodiscard]] Result<void> do_one(const Write& write) {
    const std::optional<Value>* before = as_read_.find(write.key);
    return do_one(write.key, before != nullptr ? *before : std::nullopt, write.value, write.condition);
  }

  [[nodiscard]] Result<void> announce_pool(const Write& write) {
    core::Pool pool = std::get<core::Pool>(*write.value);
    pool.being_made = !pool.disabled;
    pool.disabled = true;
    return do_one(write.key, std::nullopt, std::move(pool), write.condition);
  }

  /// Also when the row is there in this state: whoever wants to delete it as it was then fails.
  [[nodiscard]] Result<void> announce(const Write& write, core::AffinityState state) {
    core::Affinity row = std::get<core::Affinity>(*write.value);
    row.state = state;
    const std::optional<Value>* before = as_read_.find(write.key);
    return do_one(write.key, before != nullptr ? *before : std::nullopt, std::move(row), write.condition);
  }

  [[nodiscard]] Result<void> announce_leaving(const Write& write) {
    const auto& record = seen_.at(write.key);
    if (!record) return {};
    core::Affinity row = std::get<core::Affinity>(record->value);
    row.state = core::AffinityState::pending_deletion;
    return do_one(write.key, record->value, std::move(row), Condition::if_revision(record->revision));
  }

  /// Marks only rise, whoever writes them.
  [[nodiscard]] Result<void> raise_mark(const Write& write) {
    const auto& record = seen_.at(write.key);
    if (!record) return ignore_revision(write_one(write.key, write.value, Condition::if_absent()));
    const auto number = std::get<core::HighWaterMark>(*write.value).sequence_number;
    if (std::get<core::HighWaterMark>(record->value).sequence_number >= number) return {};
    return ignore_revision(write_one(write.key, write.value, Condition::if_revision(record->revision)));
  }

  [[nodiscard]] static Result<void> ignore_revision(const Result<Revision>& written) {
    return written ? Result<void>() : fail(written.error());
  }

  // --- ranges of Services ---

  [[nodiscard]] static const core::RangeAllocation* as_range(const std::optional<Value>& value) {
    return value_in<core::RangeAllocation>(value);
  }
  [[nodiscard]] std::string bits_before(const Key& key) const {
    const auto* before = read_before<core::RangeAllocation>(key);
    return before != nullptr ? before->data : std::string();
  }

  /// The range with what the plan takes, and still with what it gives back.
  [[nodiscard]] Result<void> mark_taken(const Write& write) {
    const core::RangeAllocation* after = as_range(write.value);
    if (after == nullptr) return do_one(write);
    core::RangeAllocation both = *after;
    both.data = core::service::united(bits_before(write.key), after->data);
    if (as_read_.find(write.key) != nullptr && read_before<core::RangeAllocation>(write.key) != nullptr &&
        core::service::without(both.data, bits_before(write.key)).empty()) {
      return {};  // it takes nothing
    }
    const std::optional<Value>* before = as_read_.find(write.key);
    return do_one(write.key, before != nullptr ? *before : std::nullopt, std::move(both), write.condition);
  }

  /// Clears bits in the range as it is by now. A bit that stays set costs one value until a repair.
  void clear_bits(const Key& key, const std::string& bits) const {
    if (bits.empty()) return;
    Conflicts conflicts(context_);
    for (int tries = 0; tries < kTriesMax; ++tries) {
      const auto record = get_sound(context_, key, deadline_);
      if (!record || !*record) return;
      core::RangeAllocation range = std::get<core::RangeAllocation>((*record)->value);
      std::string cleared = core::service::without(range.data, bits);
      if (cleared == range.data) return;
      range.data = std::move(cleared);
      const auto written = write_one(key, std::move(range), Condition::if_revision((*record)->revision));
      if (written || written.error().code != ErrorCode::conflict) return;
      if (!conflicts.wait({{key, Condition::if_revision((*record)->revision)}}, deadline_)) return;
    }
  }

  /// What the plan gives back. Nobody else can have taken it meanwhile: it is still marked.
  void give_back(const Write& write) const {
    const core::RangeAllocation* after = as_range(write.value);
    if (after != nullptr) clear_bits(write.key, core::service::without(bits_before(write.key), after->data));
  }

  /// Whether a block comes into being.
  [[nodiscard]] bool makes(const Write& write) const {
    return value_in<core::Block>(write.value) != nullptr && read_before<core::Block>(write.key) == nullptr;
  }

  /// A block that comes into being with holders does so empty first. So a handle never counts a block before it exists,
  /// one that counts a block that does not exist can be lowered safely, and nobody has an address of it before
  /// look_around_made().
  [[nodiscard]] Result<void> make_block(Write& write) {
    if (!makes(write)) return {};
    const core::Block& after = std::get<core::Block>(*write.value);
    core::Block first = after;
    if (!core::is_empty(after)) {
      first = core::new_block(after.cidr, after.affinity, context_.clock.now(), {});
      first.affinity_claim_time = after.affinity_claim_time;
      first.sequence_number.value = after.sequence_number.value - 1;  // as it was before the addresses were taken
      first.rest = after.rest;
    }
    TRY_VOID(do_one(write.key, std::nullopt, std::move(first), write.condition));
    made_.insert(write.key);
    write.condition = Condition::if_revision(done_.back().revision);
    return {};
  }

  [[nodiscard]] Result<void> write_block(const Write& write) {
    if (made_.contains(write.key) && core::is_empty(std::get<core::Block>(*write.value))) return {};
    TRY_VOID(do_one(write));
    // Of a block that was made empty first, the end of both writes is what there is to take back.
    const auto made = std::find_if(done_.begin(), done_.end(), [&](const Done& d) { return d.key == write.key; });
    if (made != std::prev(done_.end())) done_.erase(made);
    return {};
  }

  /// All together. What was done is noted, whatever became of the others.
  [[nodiscard]] Result<void> count_up() {
    std::vector<Write> writes;
    std::vector<HandleChange*> changes;
    for (auto& [handle_id, change] : changes_) {
      auto target = raised(change);
      if (change.gained.empty() || target == change.stored) continue;
      writes.push_back({core::handle_key(handle_id), std::move(target), change.condition, false});
      changes.push_back(&change);
    }
    const auto outcomes = write_each(writes);
    Result<void> failed;
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (!outcomes[i]) {
        if (failed) failed = fail(outcomes[i].error());
        continue;
      }
      done_.push_back({writes[i].key, changes[i]->stored, *outcomes[i]});
      changes[i]->stored = std::get<core::Handle>(*writes[i].value);
      changes[i]->condition = Condition::if_revision(*outcomes[i]);
    }
    return failed;
  }

  [[nodiscard]] Result<void> count_exactly(const std::string& handle_id, const HandleChange& change) const {
    if (change.planned == change.stored) return {};
    return ignore_revision(write_one(core::handle_key(handle_id), change.planned, change.condition));
  }

  // --- after the decision: nothing here can fail the commit ---

  void follow_up() {
    for (const Write& write : claims_) confirm(write);
    for (const Write& write : new_pools_) enable(write);
    for (const Write& write : confirmations_) static_cast<void>(write_one(write.key, write.value, write.condition));
    count_down();
    for (const Write& write : leaving_) remove_announced(write);
    for (const Write& write : removals_) static_cast<void>(write_one(write.key, std::nullopt, write.condition));
    for (const Write& write : hints_) static_cast<void>(write_one(write.key, write.value, write.condition));
    if (deciding_.empty()) return;
    for (const Write& write : ranges_) give_back(write);
  }

  [[nodiscard]] const Done* done(const Key& key) const {
    const auto it = std::find_if(done_.begin(), done_.end(), [&](const Done& d) { return d.key == key; });
    return it == done_.end() ? nullptr : &*it;
  }

  void confirm(const Write& write) {
    const Done* announced = done(write.key);
    if (announced == nullptr) return;
    static_cast<void>(write_one(write.key, write.value, Condition::if_revision(announced->revision)));
  }

  /// Whoever asked for a pool wants to use it: that it stayed disabled is no success. One that others have changed
  /// since is theirs by now.
  void enable(const Write& write) {
    const Done* announced = done(write.key);
    if (announced == nullptr || std::get<core::Pool>(*write.value).disabled) return;
    const auto written = write_one(write.key, write.value, Condition::if_revision(announced->revision));
    if (written || written.error().code == ErrorCode::conflict || pool_trouble_) return;
    pool_trouble_ = written.error().in(
        fmt::format("pool {} is made, and disabled until it is asked for again, or `croft pool enable {}`",
                    write.key.name, write.key.name));
  }

  void remove_announced(const Write& write) {
    const Done* announced = done(write.key);
    if (announced == nullptr) return;
    static_cast<void>(write_one(write.key, std::nullopt, Condition::if_revision(announced->revision)));
  }

  void count_down() {
    std::vector<Write> writes;
    for (const auto& [handle_id, change] : changes_) {
      if (change.planned == change.stored) continue;
      writes.push_back({core::handle_key(handle_id), change.planned, change.condition, false});
    }
    const auto outcomes = write_each(writes);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (outcomes[i]) continue;
      handles_are_exact_ = false;
      if (outcomes[i].error().code != ErrorCode::conflict) continue;
      recount(context_, writes[i].key.name, written_blocks(), deadline_);
    }
  }

  [[nodiscard]] std::vector<net::Prefix> written_blocks() const {
    std::vector<net::Prefix> result;
    for (const Write& write : blocks_) result.push_back(core::cidr_of(write.key).value());
    return result;
  }

  // --- taking back ---

  /// Another call for the same node may have answered with them already.
  [[nodiscard]] static bool stays(Kind kind) { return kind == Kind::node || kind == Kind::node_range; }

  /// The last first. A block that others have changed since stays, and with it all that it needs.
  void take_back() {
    const Deadline most = Deadline::after(context_.clock.now(), kTakeBackTime);
    deadline_ = {std::min(most.at_since_boot, context_.ends_by.at_since_boot)};
    const auto contested = look_at_contested();
    if (!contested) {
      earlier_ = Earlier::maybe_done;
      return;
    }
    for (auto it = done_.rbegin(); it != done_.rend(); ++it) {
      if (stays(it->key.kind)) continue;
      if (*contested) {
        const Record& now = **contested;
        if (it->key == now.key && it->revision != now.revision) return;
        if (needs(std::get<core::Block>(now.value), *it)) {
          if (it->key.kind == Kind::handle) earlier_ = Earlier::maybe_done;
          continue;
        }
      }
      const auto undone = it->key.kind == Kind::block ? take_back_block(*it) : restore(*it);
      if (undone) continue;
      if (it->key.kind == Kind::block) return;
      if (it->key.kind == Kind::handle && undone.error().code == ErrorCode::conflict) {
        recount(context_, it->key.name, written_blocks(), deadline_);
      }
    }
  }

  /// The block at which another's write was met, as it is now: ours may be in it all the same, when the request came
  /// twice and another wrote in between. Absent: there is none. Error: nobody knows what it needs.
  [[nodiscard]] Result<std::optional<Record>> look_at_contested() {
    const bool needs_something = std::ranges::any_of(done_, [](const Done& d) { return may_be_needed(d.key.kind); });
    if (!contested_ || !needs_something) return std::optional<Record>();
    return get_newest(context_, *contested_, deadline_);
  }

  [[nodiscard]] static bool may_be_needed(Kind kind) { return kind == Kind::handle || kind == Kind::affinity; }

  /// Whether a block would be without a handle of one of its holders, or without its owner's row, if that were taken
  /// back.
  [[nodiscard]] bool needs(const core::Block& block, const Done& one) const {
    if (one.key.kind == Kind::affinity) {
      return claimed_.contains(one.key) && block.affinity && core::affinity_key(*block.affinity, block.cidr) == one.key;
    }
    if (one.key.kind != Kind::handle) return false;
    const auto* before = value_in<core::Handle>(one.before);
    const std::string name = block.cidr.to_string();
    const bool counts = before != nullptr && before->blocks.contains(name);
    return core::count_of_handle(block, one.key.name) > (counts ? before->blocks.at(name) : 0);
  }

  [[nodiscard]] Result<void> restore(const Done& one) {
    auto restored = ignore_revision(write_one(one.key, one.before, Condition::if_revision(one.revision)));
    if (restored || restored.error().code != ErrorCode::conflict) return restored;
    // Others have written it since, and what they keep of it is theirs; but what this commit took in it still is taken,
    // whoever made the record.
    if (one.key.kind == Kind::range_allocation) take_out_bits(one);
    if (one.key.kind == Kind::ip_address && !one.before) remove_own_object(one);
    return restored;
  }

  /// Absent before means: no bits before.
  void take_out_bits(const Done& one) const {
    const auto write = std::find_if(ranges_.begin(), ranges_.end(), [&](const Write& w) { return w.key == one.key; });
    CROFT_ASSERT(write != ranges_.end());
    const core::RangeAllocation* after = as_range(write->value);
    if (after == nullptr || deciding_.empty()) return;
    const core::RangeAllocation* before = as_range(one.before);
    clear_bits(one.key, core::service::without(after->data, before != nullptr ? before->data : std::string()));
  }

  /// An object that this commit made is its own as long as it names the same holder.
  void remove_own_object(const Done& one) const {
    const auto made =
        std::find_if(deciding_.begin(), deciding_.end(), [&](const Write& w) { return w.key == one.key; });
    const auto* ours = made == deciding_.end() ? nullptr : value_in<core::IpAddressObject>(made->value);
    const auto record = context_.store.get(one.key, deadline_);
    if (ours == nullptr || !record || !*record) return;
    const auto* now = std::get_if<core::IpAddressObject>(&(*record)->value);
    if (now == nullptr || now->parent != ours->parent) return;
    static_cast<void>(write_one(one.key, std::nullopt, Condition::if_revision((*record)->revision)));
  }

  /// As it was, but with a sequence number above all that were seen.
  [[nodiscard]] Result<void> take_back_block(const Done& one) {
    const auto written = std::find_if(blocks_.begin(), blocks_.end(), [&](const Write& w) { return w.key == one.key; });
    CROFT_ASSERT(written != blocks_.end());
    const core::Block* after = value_in<core::Block>(written->value);
    const core::Block* before = value_in<core::Block>(one.before);
    if (after == nullptr) {
      return ignore_revision(write_one(one.key, core::stamped(core::stamped(*before)), Condition::if_absent()));
    }
    if (before == nullptr) {
      const core::HighWaterMark mark{core::stamped(*after).sequence_number};
      TRY_VOID(raise_mark_above(core::high_water_mark_key(after->cidr), mark));
      return restore(one);
    }
    core::Block restored = *before;
    restored.sequence_number = after->sequence_number;
    return ignore_revision(
        write_one(one.key, core::stamped(std::move(restored)), Condition::if_revision(one.revision)));
  }

  [[nodiscard]] Result<void> raise_mark_above(const Key& key, const core::HighWaterMark& mark) {
    TRY(auto record, get_sound(context_, key, deadline_));
    seen_[key] = std::move(record);
    return raise_mark({key, mark, Condition::always(), false});
  }

  const Context& context_;
  const core::Snapshot& as_read_;
  Deadline deadline_;
  Earlier& earlier_;
  std::set<Key> made_;                ///< blocks that came into being
  std::set<Key> claimed_, given_up_;  ///< affinity rows of blocks whose owner changes
  std::vector<Write> checks_, reservations_, new_pools_, claims_, leaving_, marks_, blocks_, ranges_, deciding_,
      confirmations_, handles_, removals_, hints_;
  std::map<std::string, HandleChange> changes_;  ///< by handle
  std::set<std::string> planned_;                ///< handles that the plan writes
  std::map<Key, std::optional<Record>> seen_;    ///< by look_once_more
  std::vector<Done> done_;
  std::optional<Key> contested_;  ///< the block whose write was told as a conflict
  bool handles_are_exact_ = true;
  std::optional<Error> pool_trouble_;  ///< a new pool that could not be enabled
};

}  // namespace

Result<bool> commit_in_order(const Context& context, const core::Snapshot& as_read, std::vector<store::Write> writes,
                             Deadline deadline, Earlier& earlier) {
  return OrderedCommit(context, as_read, deadline, earlier).run(std::move(writes));
}

}  // namespace croft::engine
