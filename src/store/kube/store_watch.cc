#include "store/kube/store_watch.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "store/kube/informer.h"

namespace croft::store::kube {
namespace {

using wire::kube::ApiEvent;

/// More records than this are not followed one by one: each is a stream, and a connection has about 100. Those with
/// their owner's label need none of their own.
constexpr std::size_t kFollowedMax = 40;

/// What a stream looks at.
struct Look {
  Kind kind = Kind::pool;
  std::string name_prefix;            ///< of a listing
  wire::kube::ApiSelection select{};  ///< of it
  std::optional<Key> record;          ///< or this one
  bool followed = false;              ///< only whether it changes
  bool by_label = false;              ///< and that of all that have the owner's label
};

/// Where the changes of all streams meet.
class Changes {
 public:
  void add(Change change) {
    const std::lock_guard lock(mutex_);
    changes_.push_back(std::move(change));
    came_.notify_one();
  }
  void fail_with(Error error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    came_.notify_one();
  }
  /// A record that its owner's label shows, followed or not. `is_lost`: it is deleted, or somebody wrote it without the
  /// label.
  void tell_by_label(const Key& key, Revision revision, bool is_lost) {
    const std::lock_guard lock(mutex_);
    if (is_lost) lost_.emplace_back(key, revision);
    is_lost ? static_cast<void>(told_by_label_.erase(key)) : static_cast<void>(told_by_label_[key] = revision);
    changes_.push_back(Change::touched(key, revision));
    came_.notify_one();
  }
  /// Who begins to follow one hears what was told of it before.
  void tell_again(const Key& key, Revision after) {
    const std::lock_guard lock(mutex_);
    const auto told = told_by_label_.find(key);
    if (told == told_by_label_.end() || told->second <= after) return;
    changes_.push_back(Change::touched(key, told->second));
    came_.notify_one();
  }
  [[nodiscard]] std::vector<std::pair<Key, Revision>> lost() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lost_, {});
  }
  [[nodiscard]] Result<std::vector<Change>> take(const Clock& clock, Deadline deadline) {
    std::unique_lock lock(mutex_);
    while (changes_.empty() && !error_) {
      const auto left = deadline.at_since_boot - clock.now().since_boot;
      if (left.count() <= 0) break;
      came_.wait_for(lock, std::min<std::chrono::nanoseconds>(left, std::chrono::hours{1}));
    }
    if (error_) return fail(*error_);
    std::vector<Change> taken(std::make_move_iterator(changes_.begin()), std::make_move_iterator(changes_.end()));
    changes_.clear();
    return taken;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Change> changes_;
  std::vector<std::pair<Key, Revision>> lost_;
  std::map<Key, Revision> told_by_label_;
  std::optional<Error> error_;
};

/// One stream.
class Feed final : private Informer::User {
 public:
  Feed(Objects& objects, Changes& changes, Look look, Followed followed, Revision after)
      : objects_(objects),
        changes_(changes),
        look_(std::move(look)),
        after_(after),
        informer_(objects.api(), objects.clock(), std::move(followed), *this) {}
  void stop() { informer_.stop(); }

 private:
  [[nodiscard]] std::optional<std::string> begin() override { return resource_version_of(after_); }

  [[nodiscard]] Informer::Next ended(const Error& why, bool /*lasted*/) override {
    // Who may not follow would go on with what it remembers, and never hear that it has changed. What makes no sense
    // is not asked for again from here: it would come again.
    if (why.code == ErrorCode::too_old) return lost();
    if (why.code == ErrorCode::permission_denied) return fail_with(why);
    if (why.code == ErrorCode::corrupt) {
      return fail_with(
          why.in(fmt::format("a watch of {} records: what the API server tells is no change", name_of(look_.kind))));
    }
    return Informer::Next::again;
  }
  [[nodiscard]] Informer::Next lost() {
    return fail_with({ErrorCode::too_old, "the API server no longer knows what has changed; read again", {}});
  }
  [[nodiscard]] Informer::Next fail_with(Error error) {
    changes_.fail_with(std::move(error));
    return Informer::Next::end;
  }

  [[nodiscard]] Result<void> take(const ApiEvent& event, Revision revision) override {
    if (event.type != ApiEvent::Type::bookmark) TRY_VOID(tell(event, revision));
    return {};
  }
  [[nodiscard]] Result<void> tell(const ApiEvent& event, Revision revision) {
    TRY(const Form* form, objects_.form_of(look_.kind));
    const bool is_gone = event.type == ApiEvent::Type::deleted;
    if (look_.by_label) {
      const auto key = form->key_of_name(look_.kind, event.object->meta.name);
      if (key) changes_.tell_by_label(*key, revision, is_gone);
      return {};
    }
    if (look_.followed) {
      changes_.add(is_gone ? Change::deleted(*look_.record, revision) : Change::touched(*look_.record, revision));
      return {};
    }
    const Key* key = look_.record ? &*look_.record : nullptr;
    TRY(Stored stored, form->decode(look_.kind, key, event.object->value, event.object->meta));
    if (!stored.record.key.name.starts_with(look_.name_prefix)) return {};
    const bool is_no_more = is_gone || stored.is_deleted;
    changes_.add(is_no_more ? Change::deleted(stored.record.key, revision) : Change::put(std::move(stored.record)));
    return {};
  }

  Objects& objects_;
  Changes& changes_;
  const Look look_;
  const Revision after_;
  Informer informer_;  ///< the last: it uses all of the above
};

/// Error: the kind has no objects, or the record can be none.
[[nodiscard]] Result<Followed> followed_by(const Objects& objects, const Look& look) {
  TRY(const Form* form, objects.form_of(look.kind));
  Followed followed;
  TRY(followed.collection, wire::kube::collection_path(form->resource_of(look.kind)));
  followed.of = form->list_of(look.kind);
  followed.select = look.select;
  if (look.record) {
    TRY(followed.name, form->object_name(*look.record));
    followed.select.field_selector = "metadata.name=" + followed.name;
  }
  return followed;
}

class KubeWatch final : public Watch {
 public:
  KubeWatch(Objects& objects, CalicoReadiness& readiness, const WatchScope& scope, Revision after)
      : objects_(objects), readiness_(readiness) {
    for (const Key& key : scope.records) {
      if (objects_.keeps(key.kind)) add({key.kind, {}, {}, key}, after);
    }
    for (const core::Listing& listing : scope.lists) {
      if (owner_.empty()) owner_ = wire::kube::owner_in_name(listing.name_prefix).value_or("");
      const auto form = objects_.form_of(listing.kind);
      if (!form || !objects_.keeps(listing.kind)) continue;
      for (const wire::kube::ApiSelection& select : (*form)->selections({listing.kind, listing.name_prefix, true})) {
        add({listing.kind, listing.name_prefix, select, {}}, after);
      }
    }
    follow_by_label(Kind::block, after);
  }
  ~KubeWatch() override {
    for (const auto& feed : feeds_) feed->stop();
    for (const auto& [key, feed] : followed_) feed->stop();
  }

  [[nodiscard]] Result<std::vector<Change>> next(Deadline deadline) override {
    keep_readiness();
    auto changes = changes_.take(objects_.clock(), deadline);
    for (const auto& [key, revision] : changes_.lost()) {
      if (in_sight_.erase(key) > 0) follow(key, revision);
    }
    return changes;
  }

  void follow(const Key& key, Revision after) override {
    if (followed_.contains(key) || in_sight_.contains(key) || !objects_.keeps(key.kind)) return;
    if (by_label_.contains(key.kind) && objects_.is_labelled(key, owner_)) {
      in_sight_.insert(key);
      return changes_.tell_again(key, after);
    }
    if (followed_.size() >= kFollowedMax) {
      // Not known to be unchanged: it counts as changed.
      changes_.add(Change::touched(key, after));
      return;
    }
    if (auto feed = make({key.kind, {}, {}, key, true}, after)) followed_.emplace(key, std::move(feed));
  }

  void unfollow(const Key& key) override {
    followed_.erase(key);
    in_sight_.erase(key);
  }

 private:
  /// Null: there is nothing to follow, which was told.
  [[nodiscard]] std::unique_ptr<Feed> make(Look look, Revision after) {
    auto followed = followed_by(objects_, look);
    if (followed) return std::make_unique<Feed>(objects_, changes_, std::move(look), *std::move(followed), after);
    changes_.fail_with(followed.error());
    return nullptr;
  }
  void add(Look look, Revision after) {
    if (auto feed = make(std::move(look), after)) feeds_.push_back(std::move(feed));
  }

  void follow_by_label(Kind kind, Revision after) {
    const auto form = objects_.form_of(kind);
    const auto select = form && !owner_.empty() ? (*form)->followed_by_label(kind, owner_) : std::nullopt;
    if (!select) return;
    by_label_.insert(kind);
    add({kind, {}, *select, {}, true, true}, after);
  }

  /// So that no commit has to ask first.
  void keep_readiness() {
    const auto asked = readiness_question(objects_, readiness_);
    if (!asked) return;
    const Deadline soon = Deadline::after(objects_.clock().now(), std::chrono::seconds{2});
    static_cast<void>(take_readiness(objects_, readiness_, *asked, objects_.api().call(asked->request, soon)));
  }

  Objects& objects_;
  CalicoReadiness& readiness_;
  std::string owner_;  ///< whose records are watched, as in their names; empty: nobody's
  Changes changes_;
  std::vector<std::unique_ptr<Feed>> feeds_;
  std::map<Key, std::unique_ptr<Feed>> followed_;
  std::set<Kind> by_label_;  ///< kinds with a stream for all records with the owner's label
  std::set<Key> in_sight_;   ///< followed records that such a stream shows
};

}  // namespace

std::unique_ptr<Watch> make_watch(Objects& objects, CalicoReadiness& readiness, const WatchScope& scope,
                                  Revision after) {
  return std::make_unique<KubeWatch>(objects, readiness, scope, after);
}

}  // namespace croft::store::kube
