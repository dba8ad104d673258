#include "store/memory/memory_store.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "store/check_request.h"

namespace croft::store {
namespace {

struct Entry {
  Value value;
  Revision revision;
  WriteToken token;
};

Error conflict_on(const Key& key) {
  return {ErrorCode::conflict,
          fmt::format("{} {} was changed by somebody else; read again", core::name_of(key.kind), key.name),
          {}};
}

Error after_fault(Fault fault) {
  switch (fault) {
    case Fault::lose_reply:
    case Fault::lose_request:
      return {ErrorCode::unknown_outcome, "scripted: the reply was lost", {}};
    case Fault::conflict:
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
  Result<Revision> commit(std::span<const Write> writes, const WriteToken& token) {
    const std::lock_guard lock(mutex_);
    for (const Write& write : writes) {
      if (!holds(write)) return fail(conflict_on(write.key));
    }
    ++last_revision_.value;
    for (const Write& write : writes) apply(write, token);
    return last_revision_;
  }

  std::vector<std::optional<Record>> get(std::span<const Key> keys) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::optional<Record>> records;
    for (const Key& key : keys) {
      const auto it = entries_.find(key);
      records.push_back(it == entries_.end() ? std::nullopt : std::optional(record_of(*it)));
    }
    return records;
  }

  /// Calls `add` for the entries of a page; true when there are more.
  template <class Add>
  bool for_page(const ListRequest& request, Add add) const {
    const std::lock_guard lock(mutex_);
    auto it = request.after < request.name_prefix ? entries_.lower_bound({request.kind, request.name_prefix})
                                                  : entries_.upper_bound({request.kind, request.after});
    // An empty `after` means from the start; names are never empty.
    const auto in_list = [&] {
      return it != entries_.end() && it->first.kind == request.kind && it->first.name.starts_with(request.name_prefix);
    };
    for (std::size_t count = 0; in_list() && count < request.limit; ++count, ++it) add(record_of(*it));
    return in_list();
  }

 private:
  using Entries = std::map<Key, Entry>;

  static Record record_of(const Entries::value_type& e) {
    return {e.first, e.second.value, e.second.revision, e.second.token};
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
    if (write.value) {
      entries_.insert_or_assign(write.key, Entry{*write.value, last_revision_, token});
    } else {
      entries_.erase(write.key);
    }
  }

  mutable std::mutex mutex_;  ///< guards all below
  Entries entries_;
  Revision last_revision_;
};

MemoryStore::MemoryStore() : MemoryStore(std::make_shared<MemoryData>()) {}
MemoryStore::MemoryStore(std::shared_ptr<MemoryData> data) : data_(std::move(data)) {}
MemoryStore::~MemoryStore() = default;

void MemoryStore::set_faults(FaultScript script) {
  const std::lock_guard lock(mutex_);
  faults_ = std::move(script);
}

CallCounts MemoryStore::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

Result<std::optional<Record>> MemoryStore::get(const Key& key, Deadline) {
  {
    const std::lock_guard lock(mutex_);
    ++counts_.get;
  }
  return std::move(data_->get({&key, 1}).front());
}

Result<std::vector<std::optional<Record>>> MemoryStore::get_many(std::span<const Key> keys, Deadline) {
  {
    const std::lock_guard lock(mutex_);
    ++counts_.get_many;
  }
  return data_->get(keys);
}

Result<Page> MemoryStore::list(const ListRequest& request, Deadline) {
  {
    const std::lock_guard lock(mutex_);
    ++counts_.list;
  }
  TRY_VOID(check_list(request));
  Page page;
  page.more = data_->for_page(request, [&](Record record) { page.records.push_back(std::move(record)); });
  return page;
}

Result<KeyPage> MemoryStore::list_keys(const ListRequest& request, Deadline) {
  {
    const std::lock_guard lock(mutex_);
    ++counts_.list_keys;
  }
  TRY_VOID(check_list(request));
  KeyPage page;
  page.more = data_->for_page(request, [&](Record record) { page.keys.push_back(std::move(record.key)); });
  return page;
}

Result<Revision> MemoryStore::commit(std::span<const Write> writes, const WriteToken& token, Deadline) {
  TRY_VOID(check_writes(writes));
  std::optional<Fault> fault;
  {
    const std::lock_guard lock(mutex_);
    const Fault* scripted = faults_.fault_of(++counts_.commit);
    if (scripted != nullptr) fault = *scripted;
  }
  if (fault && *fault != Fault::lose_reply) return fail(after_fault(*fault));
  auto committed = data_->commit(writes, token);
  if (fault) return fail(after_fault(*fault));  // the caller can't tell whether its conditions held either
  return committed;
}

Result<std::unique_ptr<Store::Turn>> MemoryStore::take_turn(Deadline) {
  const std::lock_guard lock(mutex_);
  ++counts_.take_turn;
  return std::unique_ptr<Turn>();
}

Capabilities MemoryStore::capabilities() const { return {.atomic_commit = true, .shared = false, .durable = false}; }

}  // namespace croft::store
