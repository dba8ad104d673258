#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "register/records.h"
#include "register/snapshot.h"
#include "store/store.h"

namespace croft::engine {

/// The common arguments of every use case. References outlive the calls; use from one thread at a time, one Context a
/// thread.
struct Context {
  store::Store& store;
  const Clock& clock;
  Random& random;
  /// For one use case, all its tries included.
  std::chrono::nanoseconds time_limit = std::chrono::seconds(15);
  /// A moment after which nothing may be begun, however much of the limit is left: the caller goes its own way then.
  Deadline not_after{};
  /// How a pause between two tries is made; empty: the thread sleeps. Tests pass the time by hand.
  std::function<void(std::chrono::nanoseconds)> wait_by{};
  /// Whether the caller has gone its own way, sooner than not_after said: no try is begun then; empty: it can't.
  std::function<bool(const Instant& now)> is_left{};
};

/// Pauses, but not past the deadline.
void wait(const Context& context, std::chrono::nanoseconds span, Deadline deadline);

/// Until when a use case that begins now may go on.
[[nodiscard]] inline Deadline deadline_of_use_case(const Context& context) {
  const Deadline limit = Deadline::after(context.clock.now(), context.time_limit);
  return {std::min(limit.at_since_boot, context.not_after.at_since_boot)};
}

/// When a use case takes its turn among the writers of the store.
enum class TurnTaking {
  first,           ///< before reading: it will surely write
  before_writing,  ///< only once a decision wants to write; then it is made again on a fresh snapshot
};

/// Loads what decisions ask for and commits what they plan; the one place where the store is read for a decision.
/// Used by transact(), one object a try, and by looks that decide nothing.
class Loader {
 public:
  Loader(store::Store& store, Deadline deadline) : store_(store), deadline_(deadline) {
    const store::Capabilities can = store.capabilities();
    snapshot_.foreign_writers = can.foreign_writers;
    snapshot_.atomic_commit = can.atomic_commit;
    snapshot_.lacks = can.lacks;
  }

  /// Reads what is missing into the snapshot. Errors: those of the store, and that of a damaged record that the
  /// decision can't do without.
  [[nodiscard]] Result<void> load(const core::Missing& missing);
  [[nodiscard]] const core::Snapshot& snapshot() const { return snapshot_; }
  /// Shows a record as it will be once a plan is committed (core::Snapshot::set_planned), also beside what is read from
  /// now on. Its condition stays what it is.
  void show_planned(const core::Key& key, std::optional<core::Value> value);
  [[nodiscard]] Deadline deadline() const { return deadline_; }

  /// The planned writes with the conditions that the loaded revisions give. A guarded key must have been loaded.
  [[nodiscard]] std::vector<store::Write> conditional(std::vector<core::PlannedWrite> writes) const;
  /// The same of one write.
  [[nodiscard]] store::Condition condition_of(const core::PlannedWrite& write) const;
  [[nodiscard]] bool has_loaded(const core::Key& key) const { return conditions_.contains(key); }
  /// The writes that were shown are done: what was loaded is as after their commit.
  void committed(std::span<const store::Write> writes, store::Revision at);
  void set_deadline(Deadline deadline) { deadline_ = deadline; }

 private:
  void remember(const core::Key& key, std::optional<store::Record> record);
  void show_planned_in_lists();
  void remember_list(const core::Listing& listing, std::vector<store::Record> records);

  store::Store& store_;
  Deadline deadline_;
  core::Snapshot snapshot_;
  std::map<core::Key, store::Condition> conditions_;
  std::set<core::Key> planned_;
};

/// Guarded writes first: they decide, and the first put among them is the witness of an unknown outcome.
void put_guarded_first(std::vector<store::Write>& writes);

/// Tries after which a use case gives up on conflicts (docs/notes/calico-ipam.md#algorithms: 100).
inline constexpr int kTriesMax = 100;
/// Rounds of reading within one try; a decision that asks for more has lost its way.
inline constexpr int kReadRoundsMax = 100000;

/// One commit() of the store, with an unknown outcome settled by reading back the token
/// (docs/notes/reliability.md#unknown-outcomes). While nothing has changed it commits again with the same conditions
/// and token, after pauses that double up to a second, a limited number of times and until the deadline. Returns the
/// revision, or conflict, or why not; unknown_outcome only when it could not be settled. A conflict after a lost reply
/// may hide that it was done before another wrote: who decides again finds what is there.
[[nodiscard]] Result<store::Revision> commit_once(const Context& context, std::span<const store::Write> writes,
                                                  Deadline deadline);

/// The same of writes that have nothing to do with each other, each a commit of its own: their outcomes in their order.
[[nodiscard]] std::vector<Result<store::Revision>> commit_each_once(const Context& context,
                                                                    std::span<const store::Write> writes,
                                                                    Deadline deadline);

/// Commits the writes of one plan, made from `as_read`, one by one to a store that has no atomic commit, in the order
/// that keeps the register true (ordered_commit.cc).
[[nodiscard]] Result<void> commit_in_order(const Context& context, const core::Snapshot& as_read,
                                           std::vector<store::Write> writes, Deadline deadline);

/// Commits the writes of a plan made from `as_read`: at once where the store can, else by commit_in_order().
/// Unknown outcomes are settled. Returns done, conflict, or
/// why not.
[[nodiscard]] Result<void> commit_settled(const Context& context, const core::Snapshot& as_read,
                                          std::vector<store::Write> writes, Deadline deadline);

/// The answer of a use case that is at its deadline and has written nothing.
[[nodiscard]] Error late();
/// The same of one whose caller has gone its own way (Context::is_left).
[[nodiscard]] Error left();

/// The loop of reading: `lacking()` looks at the loader's snapshot and says what it lacks, null when it lacks nothing;
/// that is loaded, and it looks again. Errors: of Loader::load; late().
template <class Lacking>
[[nodiscard]] Result<void> read_until_complete(const Clock& clock, Loader& loader, Lacking lacking) {
  const core::Missing* missing = lacking();
  for (int round = 0; missing != nullptr; ++round) {
    if (round == kReadRoundsMax) return fail(ErrorCode::internal, "a decision never stopped asking for more");
    // A store that answers from memory looks at no clock; the turn must not be kept past the deadline.
    if (loader.deadline().passed(clock.now())) return fail(late());
    TRY_VOID(loader.load(*missing));
    missing = lacking();
  }
  return {};
}

/// The same for who reads without a decision: calls `look(core::Reader&)`, which keeps what it makes of the register,
/// until all that it asks for was there.
template <class Look>
[[nodiscard]] Result<void> read_for(const Clock& clock, Loader& loader, Look look) {
  core::Missing missing;
  return read_until_complete(clock, loader, [&]() -> const core::Missing* {
    core::Reader reader(loader.snapshot());
    look(reader);
    missing = reader.missing();
    return reader.is_all_read() ? nullptr : &missing;
  });
}

/// The conflicts of one call, and its waits between them. A caller that has met another writer waits a random time: up
/// to what the try took, from its reading to its conflict, times the number of conflicts; where a try takes next to
/// nothing, up to moments that grow to a second. A wait leaves time for one more try.
class Conflicts {
 public:
  /// The first try begins now, each further one when wait() returns.
  explicit Conflicts(const Context& context) : context_(context), began_(context.clock.now()) {}

  /// After a conflict.
  void wait(Deadline deadline);

 private:
  const Context& context_;
  Instant began_;  ///< this try
  int count_ = 0;
};

/// The answer of a use case whose deadline has come while it met a conflict at each try.
[[nodiscard]] Error late_by_conflicts(int tries);

/// Decides and commits until it holds: reads what `decide` asks for, commits its plan against what was read, and starts
/// over on a conflict. `decide(const Snapshot&, const Instant& now)` returns a core::Step<Answer> and is pure, but for
/// what it keeps of its earlier looks. The answer returned is durable. Errors: those of the store and of the decision;
/// deadline_exceeded; unavailable after kTriesMax conflicts.
template <class Decide>
auto transact(const Context& context, TurnTaking turn_taking, Decide decide) {
  using StepType = decltype(decide(std::declval<const core::Snapshot&>(), std::declval<const Instant&>()));
  using PlanType = std::variant_alternative_t<1, StepType>;
  using Answer = decltype(PlanType::answer);
  return [&]() -> Result<Answer> {
    const Deadline deadline = deadline_of_use_case(context);
    std::unique_ptr<store::Store::Turn> turn;
    bool has_turn = false;
    const auto take_turn = [&]() -> Result<void> {
      TRY(turn, context.store.take_turn(deadline));
      has_turn = true;
      return {};
    };
    if (turn_taking == TurnTaking::first) TRY_VOID(take_turn());
    Conflicts conflicts(context);
    for (int tries = 0; tries < kTriesMax; ++tries) {
      const Instant now = context.clock.now();
      if (tries > 0 && deadline.passed(now)) return fail(late_by_conflicts(tries));
      if (context.is_left && context.is_left(now)) return fail(left());
      Loader loader(context.store, deadline);
      StepType step;
      TRY_VOID(read_until_complete(context.clock, loader, [&] {
        // A moment after the reading: what the decision notes of its clock must not be older than what it saw.
        step = decide(std::as_const(loader).snapshot(), context.clock.now());
        return std::get_if<core::Missing>(&step);
      }));
      if (auto* error = std::get_if<Error>(&step)) return fail(std::move(*error));
      PlanType& plan = std::get<PlanType>(step);
      if (plan.writes.empty()) return std::move(plan.answer);
      if (!has_turn) {
        TRY_VOID(take_turn());
        // Others may have written while this one waited; a store without a queue makes nobody wait.
        if (turn != nullptr) continue;
      }
      std::vector<store::Write> writes = loader.conditional(std::move(plan.writes));
      if (context.is_left && context.is_left(context.clock.now())) return fail(left());
      const auto done = commit_settled(context, loader.snapshot(), std::move(writes), deadline);
      if (done) return std::move(plan.answer);
      if (done.error().code != ErrorCode::conflict) return fail(done.error());
      conflicts.wait(deadline);
    }
    return fail(ErrorCode::unavailable, "too many writers changed the same records at once (100 tries); try again");
  }();
}

/// The same of a decision by these arguments, and by the time where it takes that; the turn comes before the writing.
template <class Plan, class... Arguments>
auto decided(const Context& context, Plan plan, const Arguments&... arguments) {
  return transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant& now) {
    if constexpr (std::is_invocable_v<Plan, const core::Snapshot&, const Arguments&..., const Instant&>) {
      return plan(snapshot, arguments..., now);
    } else {
      return plan(snapshot, arguments...);
    }
  });
}

/// The same of a decision that takes something away, and whose error is not_found where there is nothing. Gone is gone,
/// whoever did it in the end, for its reply may have been lost: then the answer is `gone`.
template <class Answer, class Decide>
[[nodiscard]] Result<Answer> transact_away(const Context& context, Answer gone, Decide decide) {
  bool was_there = false;
  return transact(context, TurnTaking::first,
                  [&](const core::Snapshot& snapshot, const Instant& now) -> core::Step<Answer> {
                    core::Step<Answer> step = decide(snapshot, now);
                    const auto* const error = std::get_if<Error>(&step);
                    const bool is_gone = error != nullptr && error->code == ErrorCode::not_found;
                    if (was_there && is_gone) return core::Plan<Answer>{gone, {}};
                    was_there |= std::holds_alternative<core::Plan<Answer>>(step);
                    return step;
                  });
}

/// A decision of which nothing is written, unless it is applied: what would come of it.
template <class Answer>
[[nodiscard]] core::Step<Answer> written_if(bool apply, core::Step<Answer> step) {
  auto* const plan = std::get_if<core::Plan<Answer>>(&step);
  if (plan != nullptr && !apply) plan->writes.clear();
  return step;
}

/// The record of a key for who rests on what it says. Errors: those of the store, and that of an unreadable record.
[[nodiscard]] inline Result<std::optional<store::Record>> get_sound(const Context& context, const core::Key& key,
                                                                    Deadline deadline) {
  TRY(auto record, context.store.get(key, deadline));
  if (record && !record->value) return fail(record->value.error());
  return record;
}

/// The same as the store itself has it now: a memory takes a handle that no block of its node mentions for gone.
[[nodiscard]] inline Result<std::optional<store::Record>> get_newest(const Context& context, const core::Key& key,
                                                                     Deadline deadline) {
  core::Missing wanted;
  wanted.records.insert(key);
  wanted.to_keep = true;
  TRY(store::ReadAnswer answer, context.store.read(wanted, deadline));
  std::optional<store::Record> record = std::move(answer.records.front());
  if (record && !record->value) return fail(record->value.error());
  return record;
}

/// The handling of a damaged record during a walk.
enum class OnDamage : std::uint8_t {
  fail,  ///< it ends with the record's error: who visits rests on seeing all
  skip,  ///< the others are visited (DamageReportingStore says what is left out)
  visit,
};

/// As for_each_record, in whatever order, with no more than a page of them in memory (store::Store::for_each).
template <class Visit>
[[nodiscard]] Result<void> for_each_in_any_order(const Context& context, const store::ListRequest& request, Visit visit,
                                                 OnDamage on_damage) {
  const auto visit_one = [&](store::Record& record) -> Result<void> {
    if (record.key.kind == core::Kind::block && !core::block_cidr_of(record.key)) return {};
    if (!record.value && on_damage == OnDamage::fail) return fail(record.value.error());
    if (!record.value && on_damage == OnDamage::skip) return {};
    if constexpr (std::is_void_v<decltype(visit(record))>) {
      visit(record);
      return {};
    } else {
      return visit(record);
    }
  };
  return context.store.for_each(
      request, [&] { return deadline_of_use_case(context); }, visit_one);
}

/// Calls `visit(store::Record&)` for all records of a listing in the order of names; what it returns, if a
/// Result<void>, ends the walk when it failed. Each page (on Kubernetes there is one) has the whole time limit: a
/// register of half a million addresses may be far away. No common moment: what changes meanwhile is seen as it was or
/// as it became. A record in the place of blocks under a name without a CIDR is none, damaged or not. Errors: those of
/// the store, of `visit`, and of a damaged record unless `on_damage` says otherwise.
template <class Visit>
[[nodiscard]] Result<void> for_each_record(const Context& context, const core::Listing& listing, Visit visit,
                                           OnDamage on_damage = OnDamage::fail) {
  return for_each_in_any_order(context, {listing.kind, listing.name_prefix, store::kListLimitMax, false, true},
                               std::move(visit), on_damage);
}

}  // namespace croft::engine
