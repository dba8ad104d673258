#include "store/etcd/store_watch.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "store/etcd/codec.h"
#include "store/etcd/place.h"
#include "store/etcd/resuming_watch.h"

namespace croft::store::etcd {
namespace {

class StoreWatch final : public Watch {
 public:
  StoreWatch(Store& store, Kv& kv, const Places& places, const Clock& clock, Random& random, const WatchScope& scope,
             store::Revision after)
      : store_(store), kv_(kv), places_(places), watch_(kv, clock, random), scope_(scope), position_(after) {
    for (const Key& key : scope_.records) add_record(key);
    for (const core::Listing& listing : scope_.lists) add_list(listing);
  }

  [[nodiscard]] Result<std::vector<Change>> next(Deadline deadline) override {
    TRY(const WatchUpdate update, watch_.next(deadline));
    switch (update.what) {
      case WatchUpdate::What::events:
        break;
      case WatchUpdate::What::compacted:
        return fail(ErrorCode::too_old, "etcd has compacted changes that were not seen; read again");
      case WatchUpdate::What::canceled:
        return fail(ErrorCode::too_old, "etcd ended the watch: " + update.reason);
      default:
        return std::vector<Change>();
    }
    note_beside(update.events);
    std::vector<Change> changes;
    for (const Event& event : update.events) {
      TRY_VOID(add_change(event, deadline, changes));
      const auto revision = static_cast<std::uint64_t>(event.kv.mod_revision);
      if (revision > position_.value) position_ = store::Revision(revision);
    }
    return changes;
  }

  [[nodiscard]] store::Revision position() const override { return position_; }

 private:
  void add_range(std::string from, std::string to, Kind kind) {
    WatchCreate create;
    create.id = ++last_id_;
    create.key = std::move(from);
    create.range_end = std::move(to);
    create.start_revision = static_cast<Revision>(position_.value) + 1;
    watch_.watch(create);
    kinds_.insert(kind);
  }

  void add_record(const Key& key) {
    if (auto place = places_.place_of(key)) add_range(*std::move(place), "", key.kind);
    if (auto beside = place_beside(key)) add_range(*std::move(beside), "", key.kind);
  }

  void add_list(const core::Listing& listing) {
    auto ranges = places_.ranges_of(listing);
    CROFT_ASSERT(ranges.has_value());
    for (PlaceRange& range : *ranges) add_range(std::move(range.from), std::move(range.to), listing.kind);
    if (const auto root = places_beside(listing.kind)) {
      const std::string prefix = *root + listing.name_prefix;
      add_range(prefix, wire::etcd::end_of_prefix(prefix), listing.kind);
    }
  }

  /// The watched record that a key is, or is beside of.
  struct Seen {
    Key key;
    bool beside = false;
  };
  [[nodiscard]] std::optional<Seen> seen_at(const std::string& place) const {
    for (const Kind kind : kinds_) {
      if (auto key = places_.record_at(kind, place); key && is_in(scope_, *key)) return Seen{*std::move(key), false};
      if (auto key = record_beside(kind, place); key && is_in(scope_, *key)) return Seen{*std::move(key), true};
    }
    return std::nullopt;
  }

  /// An event has a record or what is beside it: the latter is remembered, so that a change of the record costs no
  /// reading.
  void note_beside(const std::vector<Event>& events) {
    for (const Event& event : events) {
      const auto seen = seen_at(event.kv.key);
      if (!seen || !seen->beside) continue;
      if (event.type == Event::Type::deletion) {
        beside_[seen->key] = std::nullopt;
      } else {
        beside_[seen->key] = event.kv.value;
      }
    }
  }

  [[nodiscard]] Result<std::optional<std::string>> beside_of(const Key& key, Deadline deadline) {
    const auto place = place_beside(key);
    if (!place) return std::optional<std::string>();
    if (const auto known = beside_.find(key); known != beside_.end()) return known->second;
    TRY(const RangeResponse found, kv_.range(RangeRequest::one(*place), deadline));
    auto& beside = beside_[key];
    if (!found.kvs.empty()) beside = found.kvs.front().value;
    return beside;
  }

  /// What an event says about one of the records that are watched.
  [[nodiscard]] Result<void> add_change(const Event& event, Deadline deadline, std::vector<Change>& changes) {
    const auto seen = seen_at(event.kv.key);
    if (!seen) return {};
    Change change{seen->key, std::nullopt};
    if (seen->beside) {
      // Of one commit with the record itself as a rule; then this says nothing new.
      const bool known = !changes.empty() && changes.back().key == seen->key && changes.back().record &&
                         changes.back().record->revision.value == static_cast<std::uint64_t>(event.kv.mod_revision);
      if (known) return {};
      TRY(change.record, store_.get(seen->key, deadline));
    } else if (event.type == Event::Type::deletion) {
      beside_.erase(seen->key);
    } else {
      TRY(const auto beside, beside_of(seen->key, deadline));
      TRY(change.record, decode(places_, seen->key, event.kv, beside));
    }
    changes.push_back(std::move(change));
    return {};
  }

  Store& store_;
  Kv& kv_;
  const Places& places_;
  ResumingWatch watch_;
  const WatchScope scope_;
  store::Revision position_;
  std::set<Kind> kinds_;
  std::map<Key, std::optional<std::string>> beside_;  ///< what is beside the records of which an event came
  std::int64_t last_id_ = 0;
};

}  // namespace

std::unique_ptr<Watch> make_watch(Store& store, Kv& kv, const Places& places, const Clock& clock, Random& random,
                                  const WatchScope& scope, store::Revision after) {
  return std::make_unique<StoreWatch>(store, kv, places, clock, random, scope, after);
}

}  // namespace croft::store::etcd
