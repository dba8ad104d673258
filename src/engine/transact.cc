#include "engine/transact.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "base/assert.h"

namespace croft::engine {
namespace {

store::WriteToken new_token(Random& random) {
  store::WriteToken token;
  for (std::size_t i = 0; i < token.bytes.size(); i += 8) {
    const std::uint64_t bits = random.next();
    for (std::size_t k = 0; k < 8; ++k) token.bytes[i + k] = static_cast<std::uint8_t>(bits >> (8 * k));
  }
  return token;
}

enum class Fate { applied, lost, may_still_come };

/// What became of a commit whose reply was lost. A put of the commit shows its token; if the commit has none, a record
/// that was to be deleted tells by being gone, which another deleter may have caused: then deciding again is right.
[[nodiscard]] Result<Fate> fate_of(store::Store& store, std::span<const store::Write> writes,
                                   const store::WriteToken& token, Deadline deadline) {
  const auto put =
      std::find_if(writes.begin(), writes.end(), [](const store::Write& w) { return w.value.has_value(); });
  const store::Write& witness = put != writes.end() ? *put : writes.front();
  TRY(const std::optional<store::Record> record, store.get(witness.key, deadline));
  if (record && record->token == token) return Fate::applied;
  switch (witness.condition.kind) {
    case store::Condition::Kind::absent:
      return record ? Fate::lost : Fate::may_still_come;
    case store::Condition::Kind::revision:
      return record && record->revision == witness.condition.revision ? Fate::may_still_come : Fate::lost;
    case store::Condition::Kind::any:
      break;
  }
  return Fate::may_still_come;
}

}  // namespace

Result<void> Loader::load(const core::Missing& missing) {
  for (const auto& listing : missing.lists) TRY_VOID(load_list(listing));
  for (const auto& listing : missing.keys) TRY_VOID(load_keys(listing));
  return load_records(missing);
}

void Loader::remember(const core::Key& key, std::optional<store::Record> record) {
  if (record) {
    conditions_[key] = store::Condition::if_revision(record->revision);
    snapshot_.set(key, std::move(record->value));
  } else {
    conditions_[key] = store::Condition::if_absent();
    snapshot_.set(key, std::nullopt);
  }
}

Result<void> Loader::load_records(const core::Missing& missing) {
  const std::vector<core::Key> keys(missing.records.begin(), missing.records.end());
  if (keys.empty()) return {};
  TRY(auto records, store_.get_many(keys, deadline_));
  CROFT_ASSERT(records.size() == keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) remember(keys[i], std::move(records[i]));
  return {};
}

Result<void> Loader::load_list(const core::Listing& listing) {
  store::ListRequest request{listing.kind, listing.name_prefix, "", store::kListLimitMax};
  std::vector<core::KeyedValue> values;
  for (bool more = true; more;) {
    TRY(store::Page page, store_.list(request, deadline_));
    more = page.more && !page.records.empty();
    for (store::Record& record : page.records) {
      request.after = record.key.name;
      values.emplace_back(record.key, record.value);
      conditions_[record.key] = store::Condition::if_revision(record.revision);
      snapshot_.set(record.key, std::move(record.value));
    }
  }
  snapshot_.set_list(listing, std::move(values));
  return {};
}

Result<void> Loader::load_keys(const core::Listing& listing) {
  store::ListRequest request{listing.kind, listing.name_prefix, "", store::kListLimitMax};
  std::vector<core::Key> keys;
  for (bool more = true; more;) {
    TRY(store::KeyPage page, store_.list_keys(request, deadline_));
    more = page.more && !page.keys.empty();
    if (!page.keys.empty()) request.after = page.keys.back().name;
    std::move(page.keys.begin(), page.keys.end(), std::back_inserter(keys));
  }
  snapshot_.set_keys(listing, std::move(keys));
  return {};
}

std::vector<store::Write> Loader::conditional(std::vector<core::PlannedWrite> writes) const {
  std::vector<store::Write> result;
  result.reserve(writes.size());
  for (core::PlannedWrite& write : writes) {
    store::Condition condition = store::Condition::always();
    if (write.guard == core::Guard::as_read) {
      const auto it = conditions_.find(write.key);
      CROFT_ASSERT(it != conditions_.end());
      condition = it->second;
    }
    result.push_back({std::move(write.key), std::move(write.value), condition, write.only_check});
  }
  // Guarded writes first: they decide, and the first put among them is the witness of an unknown outcome.
  std::stable_partition(result.begin(), result.end(), [](const store::Write& w) {
    return w.condition.kind != store::Condition::Kind::any && !w.only_check;
  });
  return result;
}

Result<void> commit_settled(const Context& context, std::span<const store::Write> writes, Deadline deadline) {
  const store::WriteToken token = new_token(context.random);
  for (;;) {
    const auto committed = context.store.commit(writes, token, deadline);
    if (committed) return {};
    if (committed.error().code != ErrorCode::unknown_outcome) return fail(committed.error());
    const auto fate = fate_of(context.store, writes, token, deadline);
    if (!fate) {
      return fail(ErrorCode::unknown_outcome,
                  fmt::format("{}; reading back failed too: {}", committed.error().message, fate.error().message));
    }
    if (*fate == Fate::applied) return {};
    if (*fate == Fate::lost) return fail(ErrorCode::conflict, "another writer came first");
    if (deadline.passed(context.clock.now())) return fail(committed.error());
  }
}

void wait_after_conflict(const Context& context, int tries) {
  if (tries < 1) return;
  const std::int64_t most_us = std::min<std::int64_t>(std::int64_t{100} << std::min(tries, 8), 20000);
  const auto us = static_cast<std::int64_t>(context.random.next() % static_cast<std::uint64_t>(most_us));
  std::this_thread::sleep_for(std::chrono::microseconds(us));
}

}  // namespace croft::engine
