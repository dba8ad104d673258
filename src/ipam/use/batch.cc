#include "ipam/use/batch.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "base/planted.h"
#include "ipam/decide/draft.h"

namespace croft::engine {
namespace {

/// How long a batch is decided: the turn is held meanwhile, and a single decision may take a second at the worst. Calls
/// that have not been decided by then wait for the next one.
constexpr std::chrono::milliseconds kPlanningTime{50};
/// How many records a store writes for one: beside some it keeps a second one.
std::size_t records_of(core::Kind kind) { return kind == core::Kind::block || kind == core::Kind::pool ? 2 : 1; }

/// The writes that several plans come to, each record once, and how each is guarded. The loader's snapshot shows the
/// writes.
class JointPlan {
 public:
  JointPlan(Loader& loader, bool keeps_before) : loader_(loader), keeps_before_(keeps_before) {}

  /// Whether one commit has room for these writes too. The first plan always fits: by itself it is no other than alone.
  [[nodiscard]] bool has_room_for(const std::vector<core::PlannedWrite>& more) const {
    if (net_.empty()) return true;
    std::size_t records = records_;
    for (const core::PlannedWrite& write : more) records += net_.contains(write.key) ? 0 : records_of(write.key.kind);
    return records < store::kCommitWritesMax;
  }

  void add(std::vector<core::PlannedWrite> writes) {
    for (core::PlannedWrite& write : writes) add(std::move(write));
  }

  [[nodiscard]] bool empty() const { return net_.empty(); }

  /// As transact() commits them.
  [[nodiscard]] std::vector<store::Write> writes() const {
    std::vector<store::Write> result;
    result.reserve(net_.size());
    for (const auto& [key, one] : net_) {
      if (one.only_check) {
        result.push_back({key, std::nullopt, one.condition, true});
        continue;
      }
      const std::optional<core::Value>& value = *loader_.snapshot().find(key);
      const bool came_and_went = !value && one.condition.kind == store::Condition::Kind::absent;
      result.push_back({key, value, one.condition, came_and_went});
    }
    put_guarded_first(result);
    return result;
  }

  /// The snapshot as read, without the plans: the base of a commit in order.
  [[nodiscard]] core::Snapshot as_read() const {
    core::Snapshot snapshot = loader_.snapshot();
    for (const auto& [key, one] : net_) {
      if (one.before) snapshot.set(key, *one.before);
    }
    return snapshot;
  }

 private:
  struct One {
    bool only_check = false;
    store::Condition condition;
    std::optional<std::optional<core::Value>> before;  ///< as it was read; none when it was not
  };

  void add(core::PlannedWrite write) {
    const auto [at, is_new] = net_.try_emplace(write.key);
    One& one = at->second;
    if (is_new) {
      one = {write.only_check, loader_.condition_of(write), {}};
      const std::optional<core::Value>* before = loader_.snapshot().find(write.key);
      if (keeps_before_ && before != nullptr) one.before = *before;
      records_ += records_of(write.key.kind);
    } else {
      // The first plan that rests on a reading sets the condition for all.
      const bool is_unguarded = one.condition.kind == store::Condition::Kind::any;
      if (is_unguarded && loader_.has_loaded(write.key)) one.condition = loader_.condition_of(write);
      if (!write.only_check) one.only_check = false;
    }
    if (!write.only_check) loader_.show_planned(write.key, std::move(write.value));
  }

  Loader& loader_;
  const bool keeps_before_;
  std::map<core::Key, One> net_;
  std::size_t records_ = 0;
};

/// Whether nothing may be begun for it any more.
bool is_over(const BatchedCall& call, const Instant& now) {
  return call.not_after.passed(now) || (call.is_left && call.is_left(now));
}

/// One round over the calls that wait: what is read has the deadline, what is committed the limit.
class Round {
 public:
  Round(const Context& context, std::span<BatchedCall> calls, std::size_t most, Deadline deadline, Deadline limit,
        BatchMemory* memory)
      : context_(context),
        calls_(calls),
        most_(most),
        limit_(limit),
        memory_(memory),
        is_atomic_(context.store.capabilities().atomic_commit),
        loader_(remembered(deadline)),
        plan_(loader_, !is_atomic_ || is_planted("batch_blind")) {}
  /// Memory that shows plans which were not committed is none.
  ~Round() {
    if (memory_ != nullptr && (trouble_ || (!is_done_ && !plan_.empty()))) memory_->loader.reset();
  }
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  /// Answers whether there is something to commit.
  [[nodiscard]] bool decide() {
    planning_until_ = Deadline::after(context_.clock.now(), kPlanningTime);
    if (!is_warm_ && !read_together()) return false;
    for (BatchedCall& call : calls_) {
      if (call.fate == BatchFate::alone) hold(call);
      if (call.fate != BatchFate::waits || is_behind_another(call)) continue;
      const Instant before = context_.clock.now();
      is_full_ |= (decided_ > 0 && planning_until_.passed(before)) || planned_.size() == most_;
      if (is_over(call, before)) {
        call.fate = BatchFate::failed;
        call.error = late();
      } else if (is_full_) {
        hold(call);
      } else if (!plan_one(call)) {
        break;  // the store does not answer
      }
      if (call.fate == BatchFate::alone) hold(call);
    }
    return !plan_.empty();
  }

  [[nodiscard]] Result<void> commit() {
    if (memory_ != nullptr) return commit_from_memory();
    if (is_atomic_) return commit_settled(context_, loader_.snapshot(), plan_.writes(), limit_);
    const core::Snapshot as_read = plan_.as_read();
    return commit_settled(context_, as_read, plan_.writes(), limit_);
  }

  [[nodiscard]] const std::vector<BatchedCall*>& planned() const { return planned_; }
  /// Whether a call that is to be committed is over by now.
  [[nodiscard]] bool is_any_over() const {
    const Instant now = context_.clock.now();
    return std::ranges::any_of(planned_, [&](const BatchedCall* call) { return is_over(*call, now); });
  }
  /// Why the store did not answer.
  [[nodiscard]] const std::optional<Error>& trouble() const { return trouble_; }

 private:
  /// The loader of memory, where there is one.
  [[nodiscard]] Loader& remembered(Deadline deadline) {
    std::optional<Loader>& loader = memory_ != nullptr ? memory_->loader : own_;
    const std::uint64_t epoch = context_.store.epoch();
    is_warm_ = loader.has_value() && memory_->epoch == epoch;
    if (memory_ != nullptr) memory_->epoch = epoch;
    if (!is_warm_) loader.emplace(context_.store, deadline);
    loader->set_deadline(deadline);
    return *loader;
  }
  [[nodiscard]] Result<void> commit_from_memory() {
    if (context_.store.epoch() != memory_->epoch) {
      return fail(ErrorCode::conflict, "the register is another one than that which was remembered; read again");
    }
    const std::vector<store::Write> writes = plan_.writes();
    TRY(const store::Revision at, commit_once(context_, writes, limit_));
    loader_.committed(writes, at);
    is_done_ = true;
    return {};
  }

  [[nodiscard]] bool is_behind_another(const BatchedCall& call) const { return held_.contains(call.owner); }
  void hold(const BatchedCall& call) { held_.insert(call.owner); }

  /// Reads at once what each call asks for first, so that a batch costs no more reads than a call. False when that
  /// failed.
  [[nodiscard]] bool read_together() {
    core::Missing all;
    std::size_t asked = 0;
    for (BatchedCall& call : calls_) {
      if (call.fate != BatchFate::waits || planning_until_.passed(context_.clock.now()) || asked++ >= most_) continue;
      core::Step<bool> step = call.decide(loader_.snapshot(), context_.clock.now());
      if (auto* missing = std::get_if<core::Missing>(&step)) {
        all.records.merge(missing->records);
        all.lists.merge(missing->lists);
        all.keys.merge(missing->keys);
        all.free_blocks.merge(missing->free_blocks);
      }
    }
    return all.empty() || load(all);
  }

  [[nodiscard]] bool load(const core::Missing& missing) {
    auto read = loader_.load(missing);
    if (read) return true;
    trouble_ = std::move(read).error();
    return false;
  }

  /// At a moment after the reading, as transact().
  [[nodiscard]] core::Step<bool> decide_one(BatchedCall& call) {
    if (is_planted("batch_blind")) return call.decide(plan_.as_read(), context_.clock.now());
    return call.decide(loader_.snapshot(), context_.clock.now());
  }

  /// False when reading failed.
  [[nodiscard]] bool plan_one(BatchedCall& call) {
    ++decided_;
    for (int round = 0; round < kReadRoundsMax; ++round) {
      core::Step<bool> step = decide_one(call);
      if (const auto* missing = std::get_if<core::Missing>(&step)) {
        if (missing->damaged) break;
        if (!load(*missing)) return false;
        continue;
      }
      auto* plan = std::get_if<core::Plan<bool>>(&step);
      if (plan == nullptr || !plan->answer || plan->writes.empty()) break;
      if (!plan_.has_room_for(plan->writes)) {
        is_full_ = true;
        hold(call);
        return true;
      }
      plan_.add(std::move(plan->writes));
      planned_.push_back(&call);
      return true;
    }
    call.fate = BatchFate::alone;
    return true;
  }

  const Context& context_;
  const std::span<BatchedCall> calls_;
  const std::size_t most_;  ///< calls of one commit
  const Deadline limit_;
  BatchMemory* const memory_;
  const bool is_atomic_;
  bool is_warm_ = false;  ///< memory had something
  bool is_done_ = false;
  std::optional<Loader> own_;  ///< without memory
  Loader& loader_;
  JointPlan plan_;
  std::vector<BatchedCall*> planned_;
  std::set<std::string_view> held_;  ///< owners whose next call must not overtake an earlier one
  bool is_full_ = false;
  std::size_t decided_ = 0;
  Deadline planning_until_;
  std::optional<Error> trouble_;
};

bool is_waiting(const BatchedCall& call) { return call.fate == BatchFate::waits; }

/// Those whose time is over are told so; all of them when that of the batch is. False when nobody is left.
bool tell_the_late(const Clock& clock, Deadline limit, std::span<BatchedCall> calls) {
  const Instant now = clock.now();
  bool is_any_left = false;
  for (BatchedCall& call : calls) {
    if (!is_waiting(call)) continue;
    if (is_over(call, now) || limit.passed(now)) {
      call.fate = BatchFate::failed;
      call.error = late();
    } else {
      is_any_left = true;
    }
  }
  return is_any_left;
}

/// The first moment at which somebody's time is over.
Deadline earliest(Deadline limit, std::span<const BatchedCall> calls) {
  Deadline first = limit;
  for (const BatchedCall& call : calls) {
    if (is_waiting(call)) first.at_since_boot = std::min(first.at_since_boot, call.not_after.at_since_boot);
  }
  return first;
}

/// By how much a commit becomes smaller at a conflict that a fresh reading may not mend. The longer it takes, the
/// likelier another writer comes between: on a store without atomic commits each call's handle is written before the
/// block.
constexpr std::size_t kFewer = 4;

/// The store itself is in trouble, whoever asks.
bool is_trouble_of_all(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::permission_denied || code == ErrorCode::read_only ||
         code == ErrorCode::corrupt || code == ErrorCode::newer_version;
}

/// On a fresh reading, and over another connection perhaps.
bool is_worth_another_try(ErrorCode code) { return code == ErrorCode::conflict || is_trouble_of_all(code); }

/// Applies an error to the calls it concerns. It is their answer, or each finds out alone, or, when somebody's time was
/// up, the others go on.
void take_error(const Error& error, BatchedCall& call) {
  if (error.code == ErrorCode::deadline_exceeded) return;
  call.fate = is_trouble_of_all(error.code) ? BatchFate::failed : BatchFate::alone;
  if (call.fate == BatchFate::failed) call.error = error;
}

void take_error_by_all(const Error& error, std::span<BatchedCall> calls) {
  for (BatchedCall& call : calls) {
    if (is_waiting(call)) take_error(error, call);
  }
}

}  // namespace

std::vector<core::KeyOf<core::Block>> blocks_at_odds(const core::Snapshot& snapshot, const std::string& handle_id) {
  std::vector<core::KeyOf<core::Block>> keys;
  const core::Reader reader(snapshot);
  const core::Handle* handle = reader.find(core::handle_key(handle_id));
  if (handle == nullptr) return keys;
  for (const auto& [name, count] : handle->blocks) {
    const auto cidr = net::Prefix::parse(name);
    if (!cidr) continue;
    const auto key = core::block_key(*cidr);
    const core::Block* block = reader.find(key);
    if (block == nullptr || core::count_of_handle(*block, handle_id) < count) keys.push_back(key);
  }
  return keys;
}

BatchDone commit_together(const Context& direct, store::Store& cached, std::span<BatchedCall> calls, std::size_t most,
                          BatchMemory* memory) {
  BatchDone did;
  did.most = std::max<std::size_t>(most, 1);
  store::Store* const stores[] = {&cached, &direct.store};
  std::size_t tries = 0;  // that were in vain
  bool has_met_others = false;
  std::unique_ptr<store::Store::Turn> turn;  // null where the store has no queue
  bool has_turn = false;
  const Deadline limit = deadline_of_use_case(direct);
  // It goes round again after a conflict, and without those whose time is up.
  while (tell_the_late(direct.clock, limit, calls)) {
    const Deadline deadline = earliest(limit, calls);
    if (!has_turn) {
      auto taken = cached.take_turn(deadline);
      if (!taken) {
        take_error_by_all(taken.error(), calls);
        continue;
      }
      turn = *std::move(taken);
      has_turn = true;
    }
    store::Store& asked = *stores[std::min(tries, std::size(stores) - 1)];
    const Context context{asked, direct.clock, direct.random, direct.time_limit, direct.not_after, direct.wait_by};
    Round round(context, calls, did.most, deadline, limit, tries == 0 ? memory : nullptr);
    const bool is_to_commit = round.decide();
    if (round.trouble()) {
      if (is_worth_another_try(round.trouble()->code) && ++tries < std::size(stores)) continue;
      take_error_by_all(*round.trouble(), calls);
      continue;
    }
    if (!is_to_commit) break;
    if (round.is_any_over()) continue;
    ++did.commits;
    const auto done = round.commit();
    if (done) {
      for (BatchedCall* call : round.planned()) call->fate = BatchFate::done;
      did.from_memory = tries == 0;
      did.most = std::max(did.most, 2 * round.planned().size());
      break;
    }
    const bool may_be_memory = tries == 0 && direct.store.capabilities().atomic_commit;
    if (done.error().code == ErrorCode::conflict && round.planned().size() > 1 && !may_be_memory) {
      did.most = std::max<std::size_t>(round.planned().size() / kFewer, 1);
      // Where each record is written by itself memory asks again for the one that failed, but not for one that was
      // only looked at.
      if (std::exchange(has_met_others, true)) tries = 1;
      continue;
    }
    if (is_worth_another_try(done.error().code) && ++tries < std::size(stores)) continue;
    for (BatchedCall* call : round.planned()) take_error(done.error(), *call);
    if (done.error().code != ErrorCode::deadline_exceeded) break;
  }
  return did;
}

}  // namespace croft::engine
