#include "store/memory/memory_store.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <ranges>
#include <set>

#include <fmt/format.h>

#include "store/store.h"

namespace croft::store {
namespace {

struct Entry {
  Result<Value> value;
  Revision revision;
  WriteToken token;
};

Error after_fault(Fault fault) {
  switch (fault) {
    case Fault::lose_reply:
    case Fault::lose_request:
      return {ErrorCode::unknown_outcome, "scripted: the reply was lost", {}};
    case Fault::conflict:
    case Fault::repeat_request:
      return {ErrorCode::conflict, "scripted: somebody else wrote first", {}};
    case Fault::unavailable:
      return {ErrorCode::unavailable, "scripted: the store is away", {}};
    case Fault::storage_full:
      return {ErrorCode::storage_full, "scripted: the disk is full", {}};
  }
  return {ErrorCode::internal, "scripted: unknown fault", {}};
}

}  // namespace

/// The store that several clients share.
struct MemoryData {
  using Entries = std::map<Key, Entry>;

  static Record record_of(const Entries::value_type& e) {
    return {e.first, e.second.value, e.second.revision, e.second.token};
  }

  // With the mutex held.

  std::optional<Record> find(const Key& key) const {
    const auto it = entries.find(key);
    return it == entries.end() ? std::nullopt : std::optional(record_of(*it));
  }

  template <class Add>
  void for_all(const core::Listing& listing, Add add) const {
    for (auto it = entries.lower_bound({listing.kind, listing.name_prefix});
         it != entries.end() && it->first.kind == listing.kind && it->first.name.starts_with(listing.name_prefix);
         ++it) {
      add(*it);
    }
  }
  std::vector<Key> keys_of(const core::Listing& listing) const {
    std::vector<Key> keys;
    for_all(listing, [&](const Entries::value_type& e) { keys.push_back(e.first); });
    return keys;
  }

  bool holds(const Write& write) const {
    const auto it = entries.find(write.key);
    switch (write.condition.kind) {
      case Condition::Kind::absent:
        return it == entries.end();
      case Condition::Kind::revision:
        return it != entries.end() && it->second.revision == write.condition.revision;
      case Condition::Kind::any:
        return true;
    }
    return false;
  }

  void apply(const Write& write, const WriteToken& token) {
    if (write.only_check) return;
    if (write.value) return put(write.key, *write.value, token);
    if (entries.erase(write.key) > 0) remember([&] { return Change::deleted(write.key, last_revision); });
  }

  void put(const Key& key, Result<Value> value, const WriteToken& token) {
    entries.insert_or_assign(key, Entry{std::move(value), last_revision, token});
    remember([&] { return Change::put(*find(key)); });
  }

  template <class MakeChange>
  void remember(MakeChange change) {
    if (!keeps_history) {
      forgotten = last_revision;
      return;
    }
    history.push_back(change());
    if (history.size() <= kHistoryMax) return;
    forgotten = history.front().revision;
    history.pop_front();
  }

  void forget_history() {
    history.clear();
    forgotten = last_revision;
  }

  static constexpr std::size_t kHistoryMax = 10000;

  std::mutex mutex;  ///< guards all below
  std::condition_variable changed;
  Entries entries;
  std::optional<StoredPause> pause;
  Revision last_revision;
  std::deque<Change> history;
  bool keeps_history = true;
  Revision forgotten;  ///< changes up to this one may be missing in the history
};

namespace {

class MemoryWatch final : public Watch {
 public:
  MemoryWatch(std::shared_ptr<MemoryData> data, WatchScope scope, Revision after)
      : data_(std::move(data)), scope_(std::move(scope)), position_(after) {}

  /// Waits a moment when there are none.
  [[nodiscard]] Result<std::vector<Change>> next(Deadline) override {
    std::unique_lock lock(data_->mutex);
    data_->changed.wait_for(lock, kWait, [&] { return data_->last_revision > position_; });
    if (position_ < data_->forgotten) return fail(ErrorCode::too_old, "changes were forgotten; read again");
    const auto first = std::ranges::upper_bound(data_->history, position_, {}, &Change::revision);
    position_ = data_->last_revision;
    std::vector<Change> seen;
    for (const Change& change : std::ranges::subrange(first, data_->history.end())) {
      if (is_in(scope_, change.key)) {
        seen.push_back(change);
      } else if (followed_.contains(change.key)) {
        seen.push_back(change.record ? Change::touched(change.key, change.revision) : change);
      }
    }
    return seen;
  }
  [[nodiscard]] bool is_complete_up_to(Revision position) override { return position_ >= position; }

  void follow(const Key& key, Revision after) override {
    followed_.insert(key);
    position_ = std::min(position_, after);
  }
  void unfollow(const Key& key) override { followed_.erase(key); }

 private:
  static constexpr std::chrono::milliseconds kWait{10};

  const std::shared_ptr<MemoryData> data_;
  const WatchScope scope_;
  std::set<Key> followed_;
  Revision position_;
};

}  // namespace

MemoryStore::MemoryStore() : MemoryStore(std::make_shared<MemoryData>()) {}
MemoryStore::MemoryStore(std::shared_ptr<MemoryData> data) : data_(std::move(data)) {}
MemoryStore::~MemoryStore() = default;

void MemoryStore::keep_no_history() {
  const std::lock_guard lock(data_->mutex);
  data_->forget_history();
  data_->keeps_history = false;
}

void MemoryStore::forget_history() {
  const std::lock_guard lock(data_->mutex);
  data_->forget_history();
}

void MemoryStore::damage(const Key& key, ErrorCode code) {
  const std::lock_guard lock(data_->mutex);
  ++data_->last_revision.value;
  data_->put(key, fail(code, fmt::format("record {} {} is damaged", core::name_of(key.kind), key.name)), {});
  data_->changed.notify_all();
}

bool MemoryStore::contains(const Key& key) const {
  const std::lock_guard lock(data_->mutex);
  return data_->entries.contains(key);
}

void MemoryStore::look_at(Kind kind, const std::function<void(const Key&, const Value&)>& look) const {
  const std::lock_guard lock(data_->mutex);
  data_->for_all({kind, {}}, [&](const MemoryData::Entries::value_type& e) {
    if (e.second.value) look(e.first, *e.second.value);
  });
}

void MemoryStore::set_faults(FaultScript script) {
  const std::lock_guard lock(mutex_);
  faults_ = std::move(script);
}

CallCounts MemoryStore::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void MemoryStore::count(std::uint64_t CallCounts::*calls) {
  const std::lock_guard lock(mutex_);
  ++(counts_.*calls);
}

Result<void> MemoryStore::for_each(const ListRequest& request, const Until& until, const Take& take) {
  std::string after;
  for (bool more = true; more;) {
    static_cast<void>(until());
    Page part = page(request, after);
    more = part.more;
    if (more) after = part.records.back().key.name;
    for (Record& record : part.records) TRY_VOID(take(record));
  }
  return {};
}

Page MemoryStore::page(const ListRequest& request, const std::string& after) {
  count(&CallCounts::list);
  const std::lock_guard lock(data_->mutex);
  // An empty `after` means from the start; names are never empty.
  auto it = after < request.name_prefix ? data_->entries.lower_bound({request.kind, request.name_prefix})
                                        : data_->entries.upper_bound({request.kind, after});
  const auto in_list = [&] {
    return it != data_->entries.end() && it->first.kind == request.kind &&
           it->first.name.starts_with(request.name_prefix);
  };
  Page page;
  for (; in_list() && page.records.size() < request.limit; ++it) {
    page.records.push_back(request.keys_only ? Record{it->first, {}, {}, {}} : MemoryData::record_of(*it));
  }
  page.more = in_list();
  return page;
}

Result<ReadAnswer> MemoryStore::read(const core::Missing& wanted, Deadline) {
  count(&CallCounts::read);
  const std::lock_guard lock(data_->mutex);
  ReadAnswer answer;
  for (const Key& key : wanted.records) answer.records.push_back(data_->find(key));
  for (const core::Listing& listing : wanted.lists) {
    auto& records = answer.lists.emplace_back();
    data_->for_all(listing, [&](const auto& e) { records.push_back(MemoryData::record_of(e)); });
  }
  for (const core::Listing& listing : wanted.keys) {
    answer.keys.push_back(std::make_shared<const std::vector<Key>>(data_->keys_of(listing)));
  }
  for (const core::FreeBlock& block : wanted.free_blocks) {
    const auto keys = data_->keys_of({Kind::block, core::block_names_of(block.pool.family())});
    answer.free_blocks.push_back(core::find_free_block(block, keys));
  }
  return answer;
}

Result<Revision> MemoryStore::position(Deadline) {
  const std::lock_guard lock(data_->mutex);
  return data_->last_revision;
}

Result<std::unique_ptr<Watch>> MemoryStore::watch(const WatchScope& scope, Revision after, Deadline) {
  return std::unique_ptr<Watch>(std::make_unique<MemoryWatch>(data_, scope, after));
}

template <class Apply>
auto MemoryStore::with_fault(Apply apply) -> decltype(apply()) {
  std::optional<Fault> fault;
  {
    const std::lock_guard lock(mutex_);
    if (const Fault* scripted = faults_.fault_of(++counts_.commit)) fault = *scripted;
  }
  if (fault && !is_applied(*fault)) return fail(after_fault(*fault));
  auto applied = apply();
  if (fault) return fail(after_fault(*fault));  // the caller can't tell whether its conditions held either
  return applied;
}

Result<Revision> MemoryStore::commit(std::span<const Write> writes, const WriteToken& token, Deadline) {
  TRY_VOID(check_writes(writes));
  if (writes.size() > 1 && !capabilities().atomic_commit) {
    return fail(ErrorCode::invalid_argument, "this store commits one write at a time");
  }
  return with_fault([&]() -> Result<Revision> {
    const std::lock_guard lock(data_->mutex);
    if (data_->pause && !is_filling_) return fail(paused(data_->pause->pause));
    for (const Write& write : writes) {
      if (!data_->holds(write)) return fail(conflict_on(write.key));
    }
    ++data_->last_revision.value;
    for (const Write& write : writes) data_->apply(write, token);
    data_->changed.notify_all();
    return data_->last_revision;
  });
}

Result<std::optional<StoredPause>> MemoryStore::pause(Deadline) {
  const std::lock_guard lock(data_->mutex);
  return data_->pause;
}

Result<void> MemoryStore::change_pause(const std::optional<StoredPause>& there, const std::optional<core::Pause>& next,
                                       Deadline) {
  return with_fault([&]() -> Result<void> {
    const std::lock_guard lock(data_->mutex);
    if ((there ? there->revision : 0) != (data_->pause ? data_->pause->revision : 0)) {
      return fail(ErrorCode::conflict, "the pause was changed by somebody else");
    }
    const std::uint64_t revision = ++data_->last_revision.value;
    data_->pause = next ? std::optional(StoredPause{*next, revision}) : std::nullopt;
    return {};
  });
}

Result<std::unique_ptr<Store::Turn>> MemoryStore::take_turn(Deadline) {
  count(&CallCounts::take_turn);
  return std::unique_ptr<Turn>();
}

Capabilities MemoryStore::capabilities() const {
  const std::lock_guard lock(mutex_);
  return capabilities_;
}

void MemoryStore::set_capabilities(Capabilities capabilities) {
  const std::lock_guard lock(mutex_);
  capabilities_ = capabilities;
}

}  // namespace croft::store
