#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "store/etcd/store_parts.h"

namespace croft::store::etcd {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kPauseMin = std::chrono::milliseconds{50};
constexpr nanoseconds kPauseMax = std::chrono::seconds{2};
/// To connect, to ask for the epoch, and to read a record: what is left of a caller's step may be too short for each,
/// every time.
constexpr nanoseconds kConnectTime = std::chrono::seconds{1};
/// Between two questions how far the stream is.
constexpr nanoseconds kProgressInterval = std::chrono::milliseconds{400};
/// A stream that has not answered one in this time is opened anew.
constexpr nanoseconds kAnswerTime = std::chrono::seconds{5};

/// When a connection is lost it opens another stream, maybe to another member, and each watch goes on after the last
/// revision that was delivered.
class StoreWatch final : public Watch {
 public:
  StoreWatch(const CallContext& parts, Store& store, Random& random, const WatchScope& scope, store::Revision after)
      : parts_(parts), store_(store), random_(random), number_(epoch_of(after)), scope_(scope) {
    add_range(kEpochPlace, "", after);
    for (const Key& key : scope_.records) add_record(key, after);
    for (const core::Listing& listing : scope_.lists) add_list(listing, after);
  }

  [[nodiscard]] Result<std::vector<Change>> next(Deadline deadline) override {
    TRY_VOID(check_epoch());
    TRY(const auto response, next_response(deadline));
    std::vector<Change> changes;
    if (!response) return changes;
    TRY_VOID(check_epoch());
    if (response->header().cluster_id() != cluster_)
      return fail(ErrorCode::too_old, "etcd's watch is of another cluster");
    if (response->canceled() && response->compact_revision() != 0) {
      return fail(ErrorCode::too_old, "etcd has compacted changes that were not seen; read again");
    }
    if (response->canceled()) return fail(ErrorCode::too_old, "etcd ended the watch: " + response->cancel_reason());
    for (const Event& event : response->events()) TRY_VOID(add_change(event, deadline, changes));
    return changes;
  }

  [[nodiscard]] bool is_complete_up_to(store::Revision position) override {
    if (epoch_of(position) != number_) return false;
    if (passed_ >= etcd_revision_of(position)) return true;
    if (!std::exchange(is_proof_, true) && stream_) is_in_order_ = stream_->answers_in_order(soon());
    if (is_resumed_ && !is_in_order_) return false;
    const nanoseconds now = parts_.clock.now().since_boot;
    if (!stream_ || now < next_question_) return false;
    // Two that are under way would both overtake events on an old server.
    if (asked_ && now - *asked_ < kAnswerTime) return false;
    next_question_ = now + kProgressInterval;
    if (asked_ || !stream_->ask_progress()) stream_.reset();
    asked_ = now;
    is_quiet_ = true;
    return false;
  }

  void follow(const Key& key, store::Revision after) override {
    auto place = parts_.places.place_of(key);
    if (!place || followed_.contains(*place)) return;
    // The data beside a record changes together with it.
    followed_.try_emplace(*place, Followed{key, add_range(*place, "", after)});
  }

  void unfollow(const Key& key) override {
    const auto place = parts_.places.place_of(key);
    const auto found = place ? followed_.find(*place) : followed_.end();
    if (found == followed_.end()) return;
    forget(found->second.id);
    followed_.erase(found);
  }

 private:
  [[nodiscard]] Result<void> check_epoch() const {
    if (parts_.epoch.number() == number_) return {};
    return fail(ErrorCode::too_old, "the register is another one, or was restored; read everything again");
  }

  // ---------------------------------------------------------------- the stream

  [[nodiscard]] Deadline soon() const { return Deadline::after(parts_.clock.now(), kConnectTime); }

  [[nodiscard]] Result<void> connect(Deadline deadline) {
    pause(deadline);
    TRY(auto stream, parts_.client.open_watch(soon()));
    is_in_order_ = is_proof_ && stream->answers_in_order(soon());
    for (const auto& [id, watch] : watches_) TRY_VOID(stream->add(watch));
    stream_ = std::move(stream);
    answered_ = 0;
    asked_.reset();
    // Its watches have to come to now first.
    next_question_ = parts_.clock.now().since_boot + kProgressInterval;
    return {};
  }

  /// Longer each time, until something comes of it.
  void pause(Deadline deadline) {
    const nanoseconds jitter{static_cast<std::int64_t>(random_.next() % 1000) * pause_.count() / 1000};
    const nanoseconds left = deadline.at_since_boot - parts_.clock.now().since_boot;
    const nanoseconds span = std::min(pause_ / 2 + jitter / 2, left);
    if (span > nanoseconds{0}) std::this_thread::sleep_for(span);
    pause_ = std::clamp(pause_ * 2, kPauseMin, kPauseMax);
  }

  /// Events, or that a watch has ended; nothing at the deadline, also when no member could be reached.
  [[nodiscard]] Result<std::optional<WatchResponse>> next_response(Deadline deadline) {
    for (;;) {
      const bool late = deadline.passed(parts_.clock.now());
      if (!stream_) {
        if (late) return std::optional<WatchResponse>();
        if (const auto connected = connect(deadline); !connected) {
          if (!is_transient(connected.error().code)) return fail(connected.error());
          continue;
        }
        // It may lead to an etcd that was restored meanwhile.
        const auto now = parts_.epoch.look(soon());
        if (!now) {
          stream_.reset();
          return fail(now.error());
        }
        cluster_ = now->cluster;
        TRY_VOID(check_epoch());
        is_resumed_ = std::exchange(was_connected_, true);
        // A member sends what was missed in portions, and answers overtake those.
        if (is_resumed_ && is_proof_ && !is_in_order_) {
          stream_.reset();
          return fail(ErrorCode::too_old,
                      "etcd before 3.4.25 and 3.5.8 does not say whether all that a lost connection missed has come");
        }
      }
      auto response = stream_->next(deadline);
      if (!response) {
        stream_.reset();
        if (!is_transient(response.error().code)) return fail(response.error());
        continue;
      }
      if (!*response) return response;
      pause_ = nanoseconds{0};
      if (note(**response)) return response;
      if (late) return std::optional<WatchResponse>();
    }
  }

  /// Remembers where to resume; false for what says nothing of records.
  [[nodiscard]] bool note(const WatchResponse& response) {
    if (response.watch_id() == wire::etcd::kAllWatches && !response.canceled() && !response.created()) {
      // Older servers send an answer ahead of events that wait. Those come before the next one is asked for; where some
      // come behind that, others may wait still.
      if (is_quiet_ || is_in_order_) passed_ = std::max(passed_, answered_);
      answered_ = response.header().revision();
      asked_.reset();
      return false;
    }
    if (!response.events().empty()) is_quiet_ = false;
    const auto watch = watches_.find(response.watch_id());
    // One that is refused may have no id; one that was forgotten has ended.
    if (response.canceled()) return response.watch_id() <= 0 || watch != watches_.end();
    if (watch == watches_.end() || response.created()) return false;
    // An answer without events comes in order behind those of its watch.
    const Revision at =
        response.events().empty() ? response.header().revision() : response.events().rbegin()->kv().mod_revision();
    watch->second.set_start_revision(std::max(watch->second.start_revision(), at + 1));
    return !response.events().empty();
  }

  void forget(std::int64_t id) {
    watches_.erase(id);
    // A stream that takes no more is lost, and next() will see to that.
    if (stream_ && !stream_->cancel(id)) stream_.reset();
  }

  std::int64_t add_range(std::string from, std::string to, store::Revision after) {
    WatchCreate watch;
    watch.set_watch_id(++last_id_);
    watch.set_key(std::move(from));
    watch.set_range_end(std::move(to));
    watch.set_start_revision(etcd_revision_of(after) + 1);
    if (stream_ && !stream_->add(watch)) stream_.reset();
    watches_.emplace(last_id_, std::move(watch));
    return last_id_;
  }

  // ---------------------------------------------------------------- what is watched

  void add_record(const Key& key, store::Revision after) {
    if (auto place = parts_.places.place_of(key)) add_range(*std::move(place), "", after);
    if (auto beside = calico::place_beside(key)) add_range(*std::move(beside), "", after);
    kinds_.insert(key.kind);
  }

  void add_list(const core::Listing& listing, store::Revision after) {
    auto ranges = parts_.places.ranges_of(listing);
    CROFT_ASSERT(ranges.has_value());
    for (PlaceRange& range : *ranges) add_range(std::move(range.from), std::move(range.to), after);
    if (const auto root = calico::places_beside(listing.kind)) {
      const std::string prefix = *root + listing.name_prefix;
      add_range(prefix, wire::etcd::end_of_prefix(prefix), after);
    }
    kinds_.insert(listing.kind);
  }

  /// The watched record that a key is, or is beside of.
  struct Seen {
    Key key;
    bool beside = false;
  };
  [[nodiscard]] std::optional<Seen> seen_at(const std::string& place) const {
    for (const Kind kind : kinds_) {
      if (auto key = parts_.places.record_at(kind, place); key && is_in(scope_, *key))
        return Seen{*std::move(key), false};
      if (auto key = calico::record_beside(kind, place); key && is_in(scope_, *key)) return Seen{*std::move(key), true};
    }
    return std::nullopt;
  }

  /// Adds the change that an event tells about one of the records that are watched.
  [[nodiscard]] Result<void> add_change(const Event& event, Deadline deadline, std::vector<Change>& changes) {
    const store::Revision revision = revision_in_epoch(number_, event.kv().mod_revision());
    if (event.kv().key() == kEpochPlace) {
      TRY_VOID(parts_.epoch.look(deadline));
      return check_epoch();
    }
    const bool is_deletion = event.type() == Event::DELETE;
    if (const auto followed = followed_.find(event.kv().key()); followed != followed_.end()) {
      const Key& key = followed->second.key;
      changes.push_back(is_deletion ? Change::deleted(key, revision) : Change::touched(key, revision));
      return {};
    }
    const auto seen = seen_at(event.kv().key());
    if (!seen) return {};
    if (is_deletion && !seen->beside) {
      changes.push_back(Change::deleted(seen->key, revision));
    } else if (calico::place_beside(seen->key)) {
      // Its two halves are watched apart: half an event and half of what was known before may never have been together.
      TRY(auto record, store_.get(seen->key, Deadline::after(parts_.clock.now(), kConnectTime)));
      changes.push_back(record ? Change::put(*std::move(record)) : Change::deleted(seen->key, revision));
    } else {
      TRY(auto record, decode(parts_.places, seen->key, event.kv(), std::nullopt, number_));
      changes.push_back(Change::put(std::move(record)));
    }
    return {};
  }

  struct Followed {
    Key key;
    std::int64_t id = 0;
  };

  const CallContext& parts_;
  Store& store_;
  Random& random_;
  const EpochNumber number_;  ///< of which all revisions are
  const WatchScope scope_;
  std::set<Kind> kinds_;                         ///< of the scope
  std::map<std::string, Followed> followed_;     ///< by place
  std::map<std::int64_t, WatchCreate> watches_;  ///< by id; start_revision is where it would resume
  std::int64_t last_id_ = 0;
  std::unique_ptr<WatchStream> stream_;
  std::uint64_t cluster_ = 0;  ///< of the stream
  Revision answered_ = 0;      ///< the last answer of this stream to the question how far it is; 0: none
  Revision passed_ = 0;        ///< all that was written up to it has been returned
  bool is_proof_ = false;      ///< somebody asks what has passed
  bool was_connected_ = false, is_resumed_ = false;
  bool is_in_order_ = false;          ///< answers of this stream come behind the events before them
  bool is_quiet_ = false;             ///< no event has come since the last question
  std::optional<nanoseconds> asked_;  ///< when this stream was asked what it has not answered yet
  nanoseconds next_question_{};
  nanoseconds pause_{};  ///< before the next connection
};

}  // namespace

std::unique_ptr<Watch> make_watch(const CallContext& parts, Store& store, Random& random, const WatchScope& scope,
                                  store::Revision after) {
  return std::make_unique<StoreWatch>(parts, store, random, scope, after);
}

}  // namespace croft::store::etcd
