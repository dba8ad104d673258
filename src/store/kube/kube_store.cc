#include "store/kube/kube_store.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "store/check_request.h"
#include "store/kube/calico_cluster.h"
#include "store/kube/objects.h"
#include "store/kube/store_watch.h"

namespace croft::store {
namespace {

using kube::Objects;

/// A write whose condition says "whatever is there" meets others that often at most.
constexpr int kTriesMax = 20;
/// Pages of one list are of one moment, and that is not older.
constexpr std::chrono::seconds kListAgeMax{60};
constexpr std::size_t kListsMax = 8;

/// Of a list in order, the records of a window.
std::span<const Record> within(const core::KeyWindow& window, const std::vector<Record>& records) {
  const auto name_of = [](const Record& record) -> const std::string& { return record.key.name; };
  const auto from = std::ranges::lower_bound(records, window.from, {}, name_of);
  const auto before = std::ranges::lower_bound(records, window.before, {}, name_of);
  return from < before ? std::span<const Record>(from, before) : std::span<const Record>();
}

class KubeStore final : public Store {
 public:
  KubeStore(std::unique_ptr<kube::Api> api, FormsOf lay_out, const Clock& clock)
      : api_(std::move(api)), lay_out_(std::move(lay_out)), clock_(clock) {}

  [[nodiscard]] Result<ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    const std::vector<Key> keys(wanted.records.begin(), wanted.records.end());
    std::set<core::Listing> listings(wanted.lists.begin(), wanted.lists.end());
    listings.insert(wanted.keys.begin(), wanted.keys.end());
    for (const core::KeyWindow& window : wanted.windows) listings.insert(window.listing);
    for (const core::KeyWindow& window : wanted.counts) listings.insert(window.listing);
    TRY(Objects * objects, laid_out(deadline));
    TRY(Objects::Together found, objects->read(keys, listings, deadline));
    ReadAnswer answer;
    answer.records = std::move(found.records);
    for (const core::Listing& listing : wanted.keys) {
      auto listed = std::make_shared<std::vector<Key>>();
      for (const Record& record : found.lists.at(listing)) listed->push_back(record.key);
      answer.keys.push_back(std::move(listed));
    }
    for (const core::KeyWindow& window : wanted.windows) {
      const auto seen = within(window, found.lists.at(window.listing));
      core::KeysInWindow& keys_seen = answer.windows.emplace_back();
      for (const Record& record : seen.first(std::min(seen.size(), core::kKeyWindowMax))) {
        keys_seen.keys.push_back(record.key);
      }
      keys_seen.more = seen.size() > core::kKeyWindowMax;
    }
    for (const core::KeyWindow& window : wanted.counts) {
      answer.counts.push_back(within(window, found.lists.at(window.listing)).size());
    }
    for (const core::Listing& listing : wanted.lists) answer.lists.push_back(std::move(found.lists.at(listing)));
    return answer;
  }

  [[nodiscard]] Result<Page> list(const ListRequest& request, Deadline deadline) override {
    TRY_VOID(check_list(request));
    TRY(const auto records, whole_list(request, deadline));
    auto from = records->begin();
    if (!request.after.empty()) {
      from = std::ranges::upper_bound(*records, request.after, {},
                                      [](const Record& record) -> const std::string& { return record.key.name; });
    }
    Page page;
    for (; from != records->end(); ++from) {
      const std::size_t taken = request.keys_only ? page.keys.size() : page.records.size();
      if (taken == request.limit) {
        page.more = true;
        break;
      }
      if (request.keys_only) {
        page.keys.push_back(from->key);
      } else {
        page.records.push_back(*from);
      }
    }
    if (page.more) keep(request, records);
    return page;
  }

  [[nodiscard]] Result<Revision> commit_as_of(std::optional<Revision> /*as_of*/, std::span<const Write> writes,
                                              const WriteToken& token, Deadline deadline) override {
    TRY_VOID(check_writes(writes));
    TRY(Objects * objects, laid_out(deadline));
    if (writes.size() > 1) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("a Kubernetes API writes one record at a time, not {}", writes.size()));
    }
    const Write& write = writes.front();
    const bool is_gone_anyhow = !kube::has_records(write.key.kind) && !write.value;
    if (write.only_check || is_gone_anyhow) return check(write, deadline);
    TRY(const kube::Form* form, objects->form_of(write.key.kind));
    TRY_VOID(form->check_write(write));
    TRY_VOID(kube::check_calico_is_ready(*objects, ready_, deadline));
    switch (write.condition.kind) {
      case Condition::Kind::absent:
        if (!write.value) return check(write, deadline);
        return objects->create(write.key, *write.value, token, deadline);
      case Condition::Kind::revision:
        return write.value ? objects->update(write.key, *write.value, write.condition.revision, token, deadline)
                           : objects->remove(write.key, write.condition.revision, token, deadline);
      case Condition::Kind::any:
        break;
    }
    return write_whatever_is_there(*objects, write, token, deadline);
  }

  [[nodiscard]] Result<Fate> fate_of(std::span<const Write> writes, const WriteToken& token,
                                     Deadline deadline) override {
    const Write& witness = writes.front();
    TRY(Objects * objects, laid_out(deadline));
    TRY(const auto found, objects->look(witness.key, deadline));
    if (found && found->stored.record.token == token) return Fate::applied;
    const bool is_there = found && !found->stored.is_deleted;
    switch (witness.condition.kind) {
      case Condition::Kind::absent:
        return is_there ? Fate::lost : Fate::may_still_come;
      case Condition::Kind::revision:
        return is_there && found->stored.record.revision == witness.condition.revision ? Fate::may_still_come
                                                                                       : Fate::lost;
      case Condition::Kind::any:
        break;
    }
    return Fate::may_still_come;
  }

  [[nodiscard]] Result<Revision> position(Deadline deadline) override {
    TRY(Objects * objects, laid_out(deadline));
    return kube::position_now(*objects, deadline);
  }

  [[nodiscard]] Result<std::unique_ptr<Watch>> watch(const WatchScope& scope, Revision after,
                                                     Deadline deadline) override {
    TRY(Objects * objects, laid_out(deadline));
    for (const Key& key : scope.records) TRY_VOID(check_kind(*objects, key.kind));
    for (const core::Listing& listing : scope.lists) TRY_VOID(check_kind(*objects, listing.kind));
    return kube::make_watch(*objects, scope, after);
  }

  [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline) override { return std::unique_ptr<Turn>(); }

  [[nodiscard]] Capabilities capabilities() const override {
    return {.atomic_commit = false,
            .shared = true,
            .durable = true,
            .foreign_writers = true,
            .commit_bytes_max = kBlockBytesMax,
            .sees_kubernetes = false,
            .kubernetes_services = true};
  }

  [[nodiscard]] std::uint64_t history() const override { return 0; }
  [[nodiscard]] Result<std::uint64_t> prove_history(Deadline) override { return 0; }

 private:
  /// What is known of the cluster; asked for when it is needed first.
  [[nodiscard]] Result<Objects*> laid_out(Deadline deadline) {
    const std::lock_guard lock(layout_mutex_);
    if (!objects_) {
      TRY(auto forms, lay_out_(*api_, deadline));
      objects_.emplace(*api_, std::move(forms), clock_);
    }
    return &*objects_;
  }

  [[nodiscard]] static Result<void> check_kind(const Objects& objects, Kind kind) {
    if (kube::has_records(kind)) TRY_VOID(objects.form_of(kind));
    return {};
  }

  /// etcd takes 1.5 MiB an object, unless the cluster's is told otherwise; managedFields are part of that.
  static constexpr std::size_t kBlockBytesMax = (std::size_t{1536} - 256) << 10;

  using List = std::shared_ptr<const std::vector<Record>>;
  using ListKey = std::pair<Kind, std::string>;
  struct Kept {
    List records;
    std::chrono::nanoseconds taken_at{};
  };

  /// The list that an earlier page began, or a new one.
  [[nodiscard]] Result<List> whole_list(const ListRequest& request, Deadline deadline) {
    if (!request.after.empty()) {
      const std::lock_guard lock(mutex_);
      const auto found = lists_.find({request.kind, request.name_prefix});
      const bool is_good = found != lists_.end() && clock_.now().since_boot - found->second.taken_at < kListAgeMax;
      if (is_good) return found->second.records;
    }
    TRY(Objects * objects, laid_out(deadline));
    const core::Listing listing{request.kind, request.name_prefix};
    TRY(Objects::Together found, objects->read({}, {listing}, deadline));
    return List(std::make_shared<const std::vector<Record>>(std::move(found.lists.at(listing))));
  }

  void keep(const ListRequest& request, const List& records) {
    const std::lock_guard lock(mutex_);
    const ListKey key{request.kind, request.name_prefix};
    // One that begins anew is newer; one that goes on keeps its age.
    if (!request.after.empty() && lists_.contains(key)) return;
    if (lists_.size() >= kListsMax) lists_.clear();
    lists_.insert_or_assign(key, Kept{records, clock_.now().since_boot});
  }

  /// Whether the condition holds; nothing is written.
  [[nodiscard]] Result<Revision> check(const Write& write, Deadline deadline) {
    TRY(Objects * objects, laid_out(deadline));
    TRY(const auto record, objects->get(write.key, deadline));
    const bool holds =
        write.condition.kind == Condition::Kind::any ||
        (write.condition.kind == Condition::Kind::absent ? !record
                                                         : record && record->revision == write.condition.revision);
    if (!holds) return fail(kube::conflict_on(write.key));
    return record ? record->revision : position(deadline);
  }

  [[nodiscard]] Result<Revision> write_whatever_is_there(Objects& objects, const Write& write, const WriteToken& token,
                                                         Deadline deadline) {
    for (int tries = 0; tries < kTriesMax; ++tries) {
      TRY(const auto record, objects.get(write.key, deadline));
      if (!record && !write.value) return position(deadline);
      auto written = !record       ? objects.create(write.key, *write.value, token, deadline)
                     : write.value ? objects.update(write.key, *write.value, record->revision, token, deadline)
                                   : objects.remove(write.key, record->revision, token, deadline);
      if (written || written.error().code != ErrorCode::conflict) return written;
    }
    return fail(kube::conflict_on(write.key));
  }

  const std::unique_ptr<kube::Api> api_;
  const FormsOf lay_out_;
  const Clock& clock_;
  std::mutex layout_mutex_;
  std::optional<Objects> objects_;  ///< guarded by layout_mutex_ until it is there; then it stays
  kube::CalicoReadiness ready_;
  std::mutex mutex_;
  std::map<ListKey, Kept> lists_;  ///< guarded by mutex_: that are read page by page
};

}  // namespace

std::unique_ptr<Store> make_kube_store(std::unique_ptr<kube::Api> api, FormsOf lay_out, const Clock& clock) {
  return std::make_unique<KubeStore>(std::move(api), std::move(lay_out), clock);
}

}  // namespace croft::store
