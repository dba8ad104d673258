#include "ipam/use/transact.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/planted.h"
#include "ipam/use/commit_once.h"
#include "ipam/use/ordered_commit.h"

namespace croft::engine {

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
  in_order_of_commit(result);
  return result;
}

void in_order_of_commit(std::vector<store::Write>& writes) {
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

void pause(const Context& context, std::chrono::nanoseconds span, Deadline deadline) {
  const std::chrono::nanoseconds left = deadline.at_since_boot - context.clock.now().since_boot;
  span = std::min(span, left);
  if (span <= std::chrono::nanoseconds{0}) return;
  if (context.pause_by) return context.pause_by(span);
  std::this_thread::sleep_for(span);
}

void Conflicts::wait(Deadline deadline) {
  ++count_;
  // Where a try takes next to nothing: of contention the quick ones are enough.
  constexpr int kQuickTries = 16;
  constexpr std::chrono::microseconds kLeast{100}, kQuickMax{20'000}, kMax{1'000'000};
  const std::chrono::microseconds grown = count_ <= kQuickTries
                                              ? std::min(kLeast * (1 << std::min(count_ - 1, 8)), kQuickMax)
                                              : std::min(kQuickMax * (1 << std::min(count_ - kQuickTries, 8)), kMax);
  const Instant now = context_.clock.now();
  const std::chrono::nanoseconds took = now.since_boot - began_.since_boot;
  const auto most = std::max<std::chrono::nanoseconds>(took * count_, grown).count();
  const std::chrono::nanoseconds drawn{
      static_cast<std::int64_t>(context_.random.next() % static_cast<std::uint64_t>(most))};
  pause(context_, std::min(drawn, deadline.at_since_boot - now.since_boot - took), deadline);
  began_ = context_.clock.now();
}

}  // namespace croft::engine
