#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "store/kube/calico_cluster.h"
#include "store/kube/informer.h"

namespace croft::store::kube {
namespace {

using wire::kube::ApiObject;

/// More records than this are not followed: each is a stream, and a connection has about 100.
constexpr std::size_t kFollowedMax = 40;

class KubeWatch final : public Watch {
 public:
  KubeWatch(Objects& objects, CalicoReadiness& readiness, const WatchScope& scope, Revision after)
      : objects_(objects), readiness_(readiness) {
    for (const Key& key : scope.records) {
      if (objects_.keeps(key.kind)) feed(feeds_.emplace_back(), key.kind, &key, {}, after, putting(key.kind, key, {}));
    }
    for (const core::Listing& listing : scope.lists) {
      const auto form = objects_.form_of(listing.kind);
      if (!form || !objects_.keeps(listing.kind)) continue;
      for (const wire::kube::ApiSelection& select : (*form)->selections({listing.kind, listing.name_prefix, true})) {
        feed(feeds_.emplace_back(), listing.kind, nullptr, select, after,
             putting(listing.kind, {}, listing.name_prefix));
      }
    }
  }
  ~KubeWatch() override {
    const auto stop = [](const Feed& feed) {
      if (feed != nullptr) feed->stop();
    };
    for (const Feed& feed : feeds_) stop(feed);
    for (const auto& [key, feed] : followed_) stop(feed);
  }

  [[nodiscard]] Result<std::vector<Change>> next(Deadline deadline) override {
    keep_readiness();
    unfollowed_.clear();
    std::unique_lock lock(mutex_);
    while (changes_.empty() && !error_) {
      const auto left = deadline.at_since_boot - objects_.clock().now().since_boot;
      if (left.count() <= 0) break;
      came_.wait_for(lock, std::min<std::chrono::nanoseconds>(left, std::chrono::hours{1}));
    }
    if (error_) return fail(*error_);
    return std::exchange(changes_, {});
  }

  void follow(const Key& key, Revision after) override {
    if (followed_.contains(key) || !objects_.keeps(key.kind)) return;
    // Not known to be unchanged: it counts as changed.
    if (followed_.size() >= kFollowedMax) return add(Change::touched(key, after));
    feed(followed_[key], key.kind, &key, {}, after,
         [this, key](const ApiObject&, bool is_gone, Revision revision) -> Result<void> {
           add(is_gone ? Change::deleted(key, revision) : Change::touched(key, revision));
           return {};
         });
  }

  void unfollow(const Key& key) override {
    const auto found = followed_.find(key);
    if (found == followed_.end()) return;
    // Its thread may take a while to end; the caller does not wait for it.
    if (found->second != nullptr) found->second->stop();
    unfollowed_.push_back(std::move(found->second));
    followed_.erase(found);
  }

 private:
  using Feed = std::unique_ptr<Informer>;
  using Take = decltype(Followed::take);

  /// One stream, of one record or of a selection. None where there is nothing to follow, which is told.
  void feed(Feed& feed, Kind kind, const Key* record, wire::kube::ApiSelection select, Revision after, Take take) {
    auto followed = followed_by(kind, record, std::move(select));
    if (!followed) return fail_with(followed.error());
    followed->from = resource_version_of(after);
    followed->take = std::move(take);
    // Without the stream what is remembered would never hear that it has changed.
    followed->ended = [this, kind](const Error& why) {
      if (why.code == ErrorCode::too_old) {
        fail_with({why.code, "the API server no longer knows what has changed; read again", {}});
      } else if (why.code == ErrorCode::corrupt) {
        fail_with(why.in(fmt::format("a watch of {} records: what the API server tells is no change", name_of(kind))));
      } else {
        fail_with(why);
      }
    };
    feed = std::make_unique<Informer>(objects_.api(), objects_.clock(), *std::move(followed));
  }
  /// Error: the kind has no objects, or the record can be none.
  [[nodiscard]] Result<Followed> followed_by(Kind kind, const Key* record, wire::kube::ApiSelection select) const {
    TRY(const Form* form, objects_.form_of(kind));
    Followed followed;
    TRY(followed.asked.collection, wire::kube::collection_path(form->resource_of(kind)));
    followed.asked.of = form->list_of(kind);
    followed.asked.select = std::move(select);
    if (record != nullptr) {
      TRY(const std::string name, form->object_name(*record));
      followed.asked.select.field_selector = "metadata.name=" + name;
    }
    return followed;
  }

  /// Tells what a record is now.
  [[nodiscard]] Take putting(Kind kind, std::optional<Key> record, std::string name_prefix) {
    return [this, kind, record = std::move(record), name_prefix = std::move(name_prefix)](
               const ApiObject& object, bool is_gone, Revision revision) -> Result<void> {
      TRY(const Form* form, objects_.form_of(kind));
      TRY(Stored stored, form->decode(kind, record ? &*record : nullptr, object.value, object.meta));
      if (!stored.record.key.name.starts_with(name_prefix)) return {};
      const bool is_no_more = is_gone || stored.is_deleted;
      add(is_no_more ? Change::deleted(stored.record.key, revision) : Change::put(std::move(stored.record)));
      return {};
    };
  }

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
  /// So that no commit has to ask first.
  void keep_readiness() {
    const auto asked = readiness_question(objects_, readiness_);
    if (!asked) return;
    const Deadline soon = Deadline::after(objects_.clock().now(), std::chrono::seconds{2});
    static_cast<void>(take_readiness(objects_, readiness_, *asked, objects_.api().call(asked->request, soon)));
  }

  Objects& objects_;
  CalicoReadiness& readiness_;
  std::mutex mutex_;  ///< guards all up to error_: where the changes of all streams meet
  std::condition_variable came_;
  std::vector<Change> changes_;
  std::optional<Error> error_;
  std::vector<Feed> feeds_, unfollowed_;  ///< the last, and followed_: their threads use all of the above
  std::map<Key, Feed> followed_;
};

}  // namespace

std::unique_ptr<Watch> make_watch(Objects& objects, CalicoReadiness& readiness, const WatchScope& scope,
                                  Revision after) {
  return std::make_unique<KubeWatch>(objects, readiness, scope, after);
}

}  // namespace croft::store::kube
