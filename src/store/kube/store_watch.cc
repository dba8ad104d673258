#include "store/kube/store_watch.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/pauses.h"

namespace croft::store::kube {
namespace {

using wire::kube::ApiEvent;

/// How long a thread sleeps on its stream before it looks whether it is still wanted.
constexpr std::chrono::milliseconds kLook{500};
/// Before a stream that ended is opened again; then longer each time, up to the second.
constexpr std::chrono::milliseconds kPauseMin{50};
constexpr std::chrono::milliseconds kPauseMax{2000};
/// A stream that was open so long was one: servers end theirs after minutes. One that ends sooner, whatever came over
/// it, makes the next pause longer, else whatever stands before the API would be asked again and again without pause.
constexpr std::chrono::seconds kLasting{5};
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

/// One stream and its thread. Opened again from the last revision seen, as long as the server knows it.
class Feed {
 public:
  Feed(Objects& objects, Changes& changes, Look look, Revision after)
      : objects_(objects), changes_(changes), look_(std::move(look)), seen_(after), thread_([this] { run(); }) {}
  ~Feed() {
    stop();
    thread_.join();
  }
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  /// Lets it end; whoever destroys many says so to all first.
  void stop() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    stopped_.notify_all();
  }

 private:
  [[nodiscard]] bool is_stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }
  [[nodiscard]] bool sleeps(std::chrono::nanoseconds span) {
    std::unique_lock lock(mutex_);
    return !stopped_.wait_for(lock, span, [this] { return stopping_; });
  }
  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const {
    return Deadline::after(objects_.clock().now(), span);
  }

  void run() {
    Pauses pauses(kPauseMin, kPauseMax, static_cast<std::uint64_t>(objects_.clock().now().since_boot.count()));
    while (!is_stopping()) {
      const auto path = watch_path();
      if (!path) return changes_.fail_with(path.error());
      WatchAnswer opened = objects_.api().watch(*path, in(std::chrono::seconds{10}));
      if (opened.answer.outcome == Answer::Outcome::refused && opened.answer.status.code == 410) return lost();
      // Who may not follow would go on with what it remembers, and never hear that it has changed.
      if (opened.answer.outcome == Answer::Outcome::refused && opened.answer.status.code == 403) {
        return fail_with(opened.answer.error);
      }
      if (opened.stream) {
        const auto since = objects_.clock().now().since_boot;
        follow(*opened.stream);
        if (objects_.clock().now().since_boot - since >= kLasting) pauses.reset();
      }
      if (failed_) return;
      if (!sleeps(pauses.next())) return;
    }
  }

  void lost() { fail_with({ErrorCode::too_old, "the API server no longer knows what has changed; read again", {}}); }
  void fail_with(Error error) {
    failed_ = true;
    changes_.fail_with(std::move(error));
  }

  [[nodiscard]] Result<std::string> watch_path() const {
    TRY(const Form* form, objects_.form_of(look_.kind));
    TRY(const std::string collection, wire::kube::collection_path(form->resource_of(look_.kind)));
    wire::kube::ApiWatchQuery query;
    query.resource_version = resource_version_of(seen_);
    if (look_.record) {
      TRY(const std::string name, form->object_name(*look_.record));
      query.select.field_selector = "metadata.name=" + name;
    } else {
      query.select = look_.select;
    }
    return wire::kube::watch_path(collection, query);
  }

  /// Until the stream ends. What comes and makes no sense is not asked for again from here: it would come again.
  void follow(WatchStream& stream) {
    while (!is_stopping() && !failed_) {
      const auto event = stream.next(in(kLook));
      if (!event) {
        if (event.error().code == ErrorCode::corrupt) nonsense(event.error());
        return;
      }
      if (!*event) continue;
      if ((*event)->type == ApiEvent::Type::error) {
        if ((*event)->is_too_old()) lost();
        return;
      }
      if (const auto taken = take(**event); !taken) return nonsense(taken.error());
    }
  }

  void nonsense(const Error& error) {
    fail_with(
        error.in(fmt::format("a watch of {} records: what the API server tells is no change", name_of(look_.kind))));
  }

  /// Error: corrupt, when it makes no sense.
  [[nodiscard]] Result<void> take(const ApiEvent& event) {
    TRY(const Form* form, objects_.form_of(look_.kind));
    std::string name;
    if (look_.record) {
      TRY(name, form->object_name(*look_.record));
    }
    TRY_VOID(wire::kube::check_event(event, form->list_of(look_.kind), name));
    TRY(const Revision revision, revision_of(event.object->meta.resource_version));
    if (event.type != ApiEvent::Type::bookmark) tell(event, revision);
    seen_ = std::max(seen_, revision);
    return {};
  }

  void tell(const ApiEvent& event, Revision revision) {
    const auto form = objects_.form_of(look_.kind);
    const bool is_gone = event.type == ApiEvent::Type::deleted;
    if (look_.by_label) {
      const auto key = (*form)->key_of_name(look_.kind, event.object->meta.name);
      if (!key) return;
      return changes_.tell_by_label(*key, revision, is_gone);
    }
    if (look_.followed) {
      changes_.add(is_gone ? Change::deleted(*look_.record, revision) : Change::touched(*look_.record, revision));
      return;
    }
    const Key* key = look_.record ? &*look_.record : nullptr;
    auto stored = (*form)->decode(look_.kind, key, event.object->value, event.object->meta);
    if (!stored) return fail_with(std::move(stored).error());
    if (!stored->record.key.name.starts_with(look_.name_prefix)) return;
    if (is_gone || stored->is_deleted) {
      changes_.add(Change::deleted(stored->record.key, revision));
    } else {
      changes_.add(Change::put(std::move(stored->record)));
    }
  }

  Objects& objects_;
  Changes& changes_;
  const Look look_;
  Revision seen_;        ///< of the thread
  bool failed_ = false;  ///< of the thread
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;  ///< guarded by mutex_
  std::thread thread_;     ///< the last: it uses all of the above
};

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
    followed_.emplace(key, std::make_unique<Feed>(objects_, changes_, Look{key.kind, {}, {}, key, true}, after));
  }

  void unfollow(const Key& key) override {
    followed_.erase(key);
    in_sight_.erase(key);
  }

 private:
  void add(Look look, Revision after) {
    feeds_.push_back(std::make_unique<Feed>(objects_, changes_, std::move(look), after));
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
    take_readiness(objects_, readiness_, *asked, objects_.api().call(asked->request, soon));
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
