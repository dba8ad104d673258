#include "ipam/use/transact.h"

#include <thread>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/pacing.h"
#include "base/planted.h"

namespace croft::engine {

namespace {

store::WriteToken new_token(const Context& context) {
  store::WriteToken token;
  for (std::size_t i = 0; i < token.bytes.size(); i += 8) {
    const std::uint64_t bits = context.random.next();
    for (std::size_t k = 0; k < 8; ++k) token.bytes[i + k] = static_cast<std::uint8_t>(bits >> (8 * k));
  }
  return token;
}

/// The revision of a commit that turned out to be applied. None when another writer has been at the first record since,
/// or it was a delete: no later condition on that revision will hold.
store::Revision revision_of(const Context& context, const store::Write& first, const store::WriteToken& token,
                            Deadline deadline) {
  const auto record = context.store.get(first.key, deadline);
  return record && *record && (*record)->token == token ? (*record)->revision : store::Revision();
}

/// A store in trouble is asked quickly at first, for most troubles are over soon, and about a dozen seconds at most.
constexpr int kRepeatsMax = 16;
constexpr std::chrono::milliseconds kPauseMin{10};
constexpr std::chrono::seconds kPauseMax{1};

/// A commit that was not done, after one of the same call of which nobody knows: that one may be done yet.
[[nodiscard]] Result<store::Revision> in_doubt(Result<store::Revision> committed) {
  if (committed) return committed;
  const ErrorCode code = committed.error().code;
  if (code != ErrorCode::unavailable && code != ErrorCode::deadline_exceeded) return committed;
  return fail(
      ErrorCode::unknown_outcome,
      fmt::format("it may or may not have been written; sending it again failed: {}", committed.error().message));
}

/// Settles a commit: `committed` is the store's first answer.
[[nodiscard]] Result<store::Revision> settled(const Context& context, std::span<const store::Write> writes,
                                              const store::WriteToken& token, Result<store::Revision> committed,
                                              Deadline deadline) {
  bool is_in_doubt = false;
  Backoff pauses(kPauseMin, kPauseMax, context.random.next());
  for (int repeats = 0;; ++repeats) {
    const bool is_unknown = !committed && committed.error().code == ErrorCode::unknown_outcome;
    // A conflict may be with the request before, which came after all.
    const bool may_be_with_itself = is_in_doubt && !committed && committed.error().code == ErrorCode::conflict;
    if (!is_unknown && !may_be_with_itself) return is_in_doubt ? in_doubt(std::move(committed)) : committed;
    is_in_doubt = true;
    if (is_planted("unknown_taken_as_done")) return store::Revision();
    const auto fate = context.store.fate_of(writes, token, deadline);
    if (!fate) {
      return fail(ErrorCode::unknown_outcome,
                  fmt::format("{}; reading back failed too: {}", committed.error().message, fate.error().message));
    }
    if (is_planted("lost_taken_as_applied")) return store::Revision();
    if (*fate == store::Fate::applied) return revision_of(context, writes.front(), token, deadline);
    if (*fate == store::Fate::lost) return fail(ErrorCode::conflict, "another writer came first");
    // A record that was made and deleted again looks as it did before.
    if (may_be_with_itself) return committed;
    if (repeats == kRepeatsMax || deadline.passed(context.clock.now())) return committed;
    // Nothing has changed yet: the request may be on its way still, or the store in trouble.
    wait(context, pauses.next(), deadline);
    committed = context.store.commit(writes, token, deadline);
  }
}

}  // namespace

Result<store::Revision> commit_once(const Context& context, std::span<const store::Write> writes, Deadline deadline) {
  const store::WriteToken token = new_token(context);
  return settled(context, writes, token, context.store.commit(writes, token, deadline), deadline);
}

std::vector<Result<store::Revision>> commit_each_once(const Context& context, std::span<const store::Write> writes,
                                                      Deadline deadline) {
  const store::WriteToken token = new_token(context);
  auto outcomes = context.store.commit_each(writes, token, deadline);
  for (std::size_t i = 0; i < writes.size(); ++i) {
    outcomes[i] = settled(context, writes.subspan(i, 1), token, std::move(outcomes[i]), deadline);
  }
  return outcomes;
}

Result<void> Loader::load(const core::Missing& missing) {
  if (missing.damaged) return fail(*missing.damaged);
  TRY(store::ReadAnswer answer, store_.read(missing, deadline_));
  CROFT_ASSERT(answer.records.size() == missing.records.size());
  CROFT_ASSERT(answer.lists.size() == missing.lists.size() && answer.keys.size() == missing.keys.size());
  CROFT_ASSERT(answer.free_blocks.size() == missing.free_blocks.size());
  // Single records last: of a record that is in a list too, what was looked up by its key counts.
  auto list = answer.lists.begin();
  for (const core::Listing& listing : missing.lists) remember_list(listing, std::move(*list++));
  auto keys = answer.keys.begin();
  for (const core::Listing& listing : missing.keys) snapshot_.set_keys(listing, std::move(*keys++));
  auto found = answer.free_blocks.begin();
  for (const core::FreeBlock& block : missing.free_blocks) snapshot_.set_free_block(block, *found++);
  auto record = answer.records.begin();
  for (const core::Key& key : missing.records) remember(key, std::move(*record++));
  if (!missing.lists.empty() || !missing.keys.empty()) show_planned_in_lists();
  return {};
}

void Loader::show_planned(const core::Key& key, std::optional<core::Value> value) {
  planned_.insert(key);
  snapshot_.set_planned(key, std::move(value));
}

void Loader::show_planned_in_lists() {
  for (const core::Key& key : planned_) {
    std::optional<core::Value> value = *snapshot_.find(key);
    snapshot_.set_planned(key, std::move(value));
  }
}

void Loader::remember(const core::Key& key, std::optional<store::Record> record) {
  if (planned_.contains(key)) return;
  if (record) {
    conditions_[key] = store::Condition::if_revision(record->revision);
    if (!record->value) return snapshot_.set_unreadable(key, std::move(record->value).error());
    snapshot_.set(key, *std::move(record->value));
  } else {
    conditions_[key] = store::Condition::if_absent();
    snapshot_.set(key, std::nullopt);
  }
}

void Loader::remember_list(const core::Listing& listing, std::vector<store::Record> records) {
  std::vector<core::KeyedValue> values;
  values.reserve(records.size());
  for (store::Record& record : records) {
    const core::Key key = record.key;
    if (record.value) values.emplace_back(key, *record.value);
    remember(key, std::move(record));
  }
  snapshot_.set_list(listing, std::move(values));
}

void Loader::committed(std::span<const store::Write> writes, store::Revision at) {
  for (const store::Write& write : writes) {
    if (write.only_check) continue;
    conditions_[write.key] = write.value ? store::Condition::if_revision(at) : store::Condition::if_absent();
  }
  planned_.clear();
  snapshot_.end_planning();
}

store::Condition Loader::condition_of(const core::PlannedWrite& write) const {
  if (write.guard == core::Guard::none) return store::Condition::always();
  const auto it = conditions_.find(write.key);
  CROFT_ASSERT(it != conditions_.end());
  const bool is_new = it->second.kind == store::Condition::Kind::absent;
  if (is_planted("compare_dropped") && !is_new && write.value) return store::Condition::always();
  if (is_planted("claim_unguarded") && is_new) return store::Condition::always();
  return it->second;
}

std::vector<store::Write> Loader::conditional(std::vector<core::PlannedWrite> writes) const {
  std::vector<store::Write> result;
  result.reserve(writes.size());
  for (core::PlannedWrite& write : writes) {
    const store::Condition condition = condition_of(write);
    result.push_back({std::move(write.key), std::move(write.value), condition, write.only_check});
  }
  put_guarded_first(result);
  return result;
}

void put_guarded_first(std::vector<store::Write>& writes) {
  std::stable_partition(writes.begin(), writes.end(), [](const store::Write& w) {
    return w.condition.kind != store::Condition::Kind::any && !w.only_check;
  });
}

Result<void> commit_settled(const Context& context, const core::Snapshot& as_read, std::vector<store::Write> writes,
                            Deadline deadline) {
  if (writes.size() > 1 && !context.store.capabilities().atomic_commit) {
    return commit_in_order(context, as_read, std::move(writes), deadline);
  }
  TRY_VOID(commit_once(context, writes, deadline));
  return {};
}

Error late() {
  return {ErrorCode::deadline_exceeded, "the time for this call is up before all was read; nothing was changed", {}};
}

Error left() { return {ErrorCode::deadline_exceeded, "the caller has gone its own way; nothing was changed", {}}; }

Error late_by_conflicts(int tries) {
  return {ErrorCode::deadline_exceeded,
          fmt::format("the time for this call is up: at each of {} tries the store said that somebody else had changed "
                      "the same records; nothing was changed",
                      tries),
          {}};
}

void wait(const Context& context, std::chrono::nanoseconds span, Deadline deadline) {
  const std::chrono::nanoseconds left = deadline.at_since_boot - context.clock.now().since_boot;
  span = std::min(span, left);
  if (span <= std::chrono::nanoseconds{0}) return;
  if (context.wait_by) return context.wait_by(span);
  std::this_thread::sleep_for(span);
}

void Conflicts::wait(Deadline deadline) {
  ++count_;
  // The quick tries end most contention; behind sixteen somebody is in trouble.
  constexpr int kQuickTries = 16;
  const int doublings = count_ <= kQuickTries ? std::min(count_, 8) : std::min(count_ - kQuickTries + 8, 13);
  const std::chrono::microseconds grown =
      std::min(std::chrono::microseconds(100) * (1 << doublings), std::chrono::microseconds(1'000'000));
  const Instant now = context_.clock.now();
  const std::chrono::nanoseconds took = now.since_boot - began_.since_boot;
  const auto most = std::max<std::chrono::nanoseconds>(took * count_, grown).count();
  const std::chrono::nanoseconds drawn{
      static_cast<std::int64_t>(context_.random.next() % static_cast<std::uint64_t>(most))};
  engine::wait(context_, std::min(drawn, deadline.at_since_boot - now.since_boot - took), deadline);
  began_ = context_.clock.now();
}

}  // namespace croft::engine
