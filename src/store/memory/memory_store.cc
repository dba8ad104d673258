#include "store/memory/memory_store.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
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

class MemoryData {
 public:
  [[nodiscard]] Result<Revision> commit(std::span<const Write> writes, const WriteToken& token, bool is_filling) {
    const std::lock_guard lock(mutex_);
    if (pause_ && !is_filling) return fail(paused(pause_->pause));
    for (const Write& write : writes) {
      if (!holds(write)) return fail(conflict_on(write.key));
    }
    ++last_revision_.value;
    for (const Write& write : writes) apply(write, token);
    changed_.notify_all();
    return last_revision_;
  }

  ReadAnswer read(const core::Missing& wanted) const {
    const std::lock_guard lock(mutex_);
    ReadAnswer answer;
    for (const Key& key : wanted.records) answer.records.push_back(find(key));
    for (const core::Listing& listing : wanted.lists) {
      auto& records = answer.lists.emplace_back();
      for_all(listing, [&](const Entries::value_type& e) { records.push_back(record_of(e)); });
    }
    for (const core::Listing& listing : wanted.keys) {
      std::vector<Key> keys;
      for_all(listing, [&](const Entries::value_type& e) { keys.push_back(e.first); });
      answer.keys.push_back(std::make_shared<const std::vector<Key>>(std::move(keys)));
    }
    for (const core::FreeBlock& block : wanted.free_blocks) {
      std::vector<Key> keys;
      for_all({Kind::block, core::block_names_of(block.pool.family())},
              [&](const Entries::value_type& e) { keys.push_back(e.first); });
      answer.free_blocks.push_back(core::find_free_block(block, keys));
    }
    return answer;
  }

  bool contains(const Key& key) const {
    const std::lock_guard lock(mutex_);
    return entries_.contains(key);
  }

  void look_at(Kind kind, const std::function<void(const Key&, const Value&)>& look) const {
    const std::lock_guard lock(mutex_);
    for_all({kind, {}}, [&](const Entries::value_type& e) {
      if (e.second.value) look(e.first, *e.second.value);
    });
  }

  std::optional<StoredPause> pause() const {
    const std::lock_guard lock(mutex_);
    return pause_;
  }

  [[nodiscard]] Result<void> change_pause(const std::optional<StoredPause>& there,
                                          const std::optional<core::Pause>& next) {
    const std::lock_guard lock(mutex_);
    if ((there ? there->revision : 0) != (pause_ ? pause_->revision : 0)) {
      return fail(ErrorCode::conflict, "the pause was changed by somebody else");
    }
    ++last_revision_.value;
    pause_ = next ? std::optional(StoredPause{*next, last_revision_.value}) : std::nullopt;
    return {};
  }

  Revision last_revision() const {
    const std::lock_guard lock(mutex_);
    return last_revision_;
  }

  void damage(const Key& key, ErrorCode code) {
    const std::lock_guard lock(mutex_);
    ++last_revision_.value;
    put(key, fail(code, fmt::format("record {} {} is damaged", core::name_of(key.kind), key.name)), {});
    changed_.notify_all();
  }

  void keep_no_history() {
    forget_history();
    const std::lock_guard lock(mutex_);
    keeps_history_ = false;
  }

  void forget_history() {
    const std::lock_guard lock(mutex_);
    history_.clear();
    forgotten_ = last_revision_;
  }

  /// The changes after `position`, which moves on; waits a moment when there are none. Nothing when they are forgotten.
  std::optional<std::vector<Change>> changes_after(Revision& position) const {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kWatchWait, [&] { return last_revision_ > position; });
    if (position < forgotten_) return {};
    const auto first = std::upper_bound(history_.begin(), history_.end(), position,
                                        [](Revision r, const Change& change) { return r < change.revision; });
    position = last_revision_;
    return std::vector(first, history_.end());
  }

  Page page(const ListRequest& request, const std::string& after) const {
    const std::lock_guard lock(mutex_);
    auto it = after < request.name_prefix ? entries_.lower_bound({request.kind, request.name_prefix})
                                          : entries_.upper_bound({request.kind, after});
    // An empty `after` means from the start; names are never empty.
    const auto in_list = [&] {
      return it != entries_.end() && it->first.kind == request.kind && it->first.name.starts_with(request.name_prefix);
    };
    Page page;
    for (; in_list() && page.records.size() < request.limit; ++it) {
      page.records.push_back(request.keys_only ? Record{it->first, {}, {}, {}} : record_of(*it));
    }
    page.more = in_list();
    return page;
  }

 private:
  using Entries = std::map<Key, Entry>;

  static Record record_of(const Entries::value_type& e) {
    return {e.first, e.second.value, e.second.revision, e.second.token};
  }

  std::optional<Record> find(const Key& key) const {
    const auto it = entries_.find(key);
    return it == entries_.end() ? std::nullopt : std::optional(record_of(*it));
  }

  template <class Add>
  void for_all(const core::Listing& listing, Add add) const {
    for (auto it = entries_.lower_bound({listing.kind, listing.name_prefix});
         it != entries_.end() && it->first.kind == listing.kind && it->first.name.starts_with(listing.name_prefix);
         ++it) {
      add(*it);
    }
  }

  bool holds(const Write& write) const {
    const auto it = entries_.find(write.key);
    switch (write.condition.kind) {
      case Condition::Kind::absent:
        return it == entries_.end();
      case Condition::Kind::revision:
        return it != entries_.end() && it->second.revision == write.condition.revision;
      case Condition::Kind::any:
        return true;
    }
    return false;
  }

  void apply(const Write& write, const WriteToken& token) {
    if (write.only_check) return;
    if (write.value) return put(write.key, *write.value, token);
    if (entries_.erase(write.key) > 0) remember([&] { return Change::deleted(write.key, last_revision_); });
  }

  void put(const Key& key, Result<Value> value, const WriteToken& token) {
    entries_.insert_or_assign(key, Entry{std::move(value), last_revision_, token});
    remember([&] { return Change::put(*find(key)); });
  }

  template <class MakeChange>
  void remember(MakeChange change) {
    if (!keeps_history_) {
      forgotten_ = last_revision_;
      return;
    }
    history_.push_back(change());
    if (history_.size() <= kHistoryMax) return;
    forgotten_ = history_.front().revision;
    history_.pop_front();
  }

  static constexpr std::size_t kHistoryMax = 10000;
  static constexpr std::chrono::milliseconds kWatchWait{10};

  mutable std::mutex mutex_;  ///< guards all below
  mutable std::condition_variable changed_;
  Entries entries_;
  std::optional<StoredPause> pause_;
  Revision last_revision_;
  std::deque<Change> history_;
  bool keeps_history_ = true;
  Revision forgotten_;  ///< changes up to this one may be missing in history_
};

namespace {

class MemoryWatch final : public Watch {
 public:
  MemoryWatch(std::shared_ptr<MemoryData> data, WatchScope scope, Revision after)
      : data_(std::move(data)), scope_(std::move(scope)), position_(after) {}

  [[nodiscard]] Result<std::vector<Change>> next(Deadline) override {
    auto changes = data_->changes_after(position_);
    if (!changes) return fail(ErrorCode::too_old, "changes were forgotten; read again");
    std::vector<Change> seen;
    for (Change& change : *changes) {
      if (is_in(scope_, change.key)) {
        seen.push_back(std::move(change));
      } else if (followed_.contains(change.key)) {
        seen.push_back(change.record ? Change::touched(change.key, change.revision) : std::move(change));
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
  std::shared_ptr<MemoryData> data_;
  const WatchScope scope_;
  std::set<Key> followed_;
  Revision position_;
};

}  // namespace

MemoryStore::MemoryStore() : MemoryStore(std::make_shared<MemoryData>()) {}
MemoryStore::MemoryStore(std::shared_ptr<MemoryData> data) : data_(std::move(data)) {}
MemoryStore::~MemoryStore() = default;

void MemoryStore::keep_no_history() { data_->keep_no_history(); }

void MemoryStore::set_faults(FaultScript script) {
  const std::lock_guard lock(mutex_);
  faults_ = std::move(script);
}

CallCounts MemoryStore::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

bool MemoryStore::contains(const Key& key) const { return data_->contains(key); }

void MemoryStore::look_at(Kind kind, const std::function<void(const Key&, const Value&)>& look) const {
  data_->look_at(kind, look);
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
  {
    const std::lock_guard lock(mutex_);
    ++counts_.list;
  }
  return data_->page(request, after);
}

Result<ReadAnswer> MemoryStore::read(const core::Missing& wanted, Deadline) {
  {
    const std::lock_guard lock(mutex_);
    ++counts_.read;
  }
  return data_->read(wanted);
}

Result<Revision> MemoryStore::position(Deadline) { return data_->last_revision(); }

Result<std::unique_ptr<Watch>> MemoryStore::watch(const WatchScope& scope, Revision after, Deadline) {
  return std::unique_ptr<Watch>(std::make_unique<MemoryWatch>(data_, scope, after));
}

Result<Revision> MemoryStore::commit(std::span<const Write> writes, const WriteToken& token, Deadline) {
  TRY_VOID(check_writes(writes));
  if (writes.size() > 1 && !capabilities().atomic_commit) {
    return fail(ErrorCode::invalid_argument, "this store commits one write at a time");
  }
  const std::optional<Fault> fault = next_fault();
  if (fault && !is_applied(*fault)) return fail(after_fault(*fault));
  auto committed = data_->commit(writes, token, is_filling_);
  if (fault) return fail(after_fault(*fault));  // the caller can't tell whether its conditions held either
  return committed;
}

std::optional<Fault> MemoryStore::next_fault() {
  const std::lock_guard lock(mutex_);
  const Fault* scripted = faults_.fault_of(++counts_.commit);
  return scripted != nullptr ? std::optional(*scripted) : std::nullopt;
}

Result<std::optional<StoredPause>> MemoryStore::pause(Deadline) { return data_->pause(); }

Result<void> MemoryStore::change_pause(const std::optional<StoredPause>& there, const std::optional<core::Pause>& next,
                                       Deadline) {
  const std::optional<Fault> fault = next_fault();
  if (fault && !is_applied(*fault)) return fail(after_fault(*fault));
  auto changed = data_->change_pause(there, next);
  if (fault) return fail(after_fault(*fault));
  return changed;
}

Result<std::unique_ptr<Store::Turn>> MemoryStore::take_turn(Deadline) {
  const std::lock_guard lock(mutex_);
  ++counts_.take_turn;
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

void MemoryStore::damage(const Key& key, ErrorCode code) { data_->damage(key, code); }

void MemoryStore::forget_history() { data_->forget_history(); }

}  // namespace croft::store
