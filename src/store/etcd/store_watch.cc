#include "store/etcd/store_watch.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/etcd/codec.h"
#include "store/etcd/place.h"
#include "store/etcd/resuming_watch.h"

namespace croft::store::etcd {
namespace {

class StoreWatch final : public Watch {
 public:
  StoreWatch(Store& store, Kv& kv, const Clock& clock, Random& random, const WatchScope& scope, store::Revision after)
      : store_(store), watch_(kv, clock, random), scope_(scope), position_(after) {
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
    if (auto place = place_of(key)) add_range(*std::move(place), "", key.kind);
    if (auto beside = place_beside(key)) add_range(*std::move(beside), "", key.kind);
  }

  void add_list(const core::Listing& listing) {
    for (PlaceRange& range : ranges_of(listing)) add_range(std::move(range.from), std::move(range.to), listing.kind);
    if (const auto root = places_beside(listing.kind)) {
      const std::string prefix = *root + listing.name_prefix;
      add_range(prefix, wire::etcd::end_of_prefix(prefix), listing.kind);
    }
  }

  /// What an event says about one of the records that are watched.
  [[nodiscard]] Result<void> add_change(const Event& event, Deadline deadline, std::vector<Change>& changes) {
    for (const Kind kind : kinds_) {
      if (const auto key = record_at(kind, event.kv.key); key && is_in(scope_, *key)) {
        if (event.type == Event::Type::deletion) {
          changes.push_back({*key, std::nullopt});
          return {};
        }
        if (!place_beside(*key)) {
          TRY(Record record, decode(*key, event.kv, std::nullopt));
          changes.push_back({*key, std::move(record)});
          return {};
        }
        return add_as_it_is(*key, deadline, changes);
      }
      if (const auto key = record_beside(kind, event.kv.key); key && is_in(scope_, *key)) {
        return add_as_it_is(*key, deadline, changes);
      }
    }
    return {};
  }

  /// A record with something beside it is read again: an event has only one of the two.
  [[nodiscard]] Result<void> add_as_it_is(const Key& key, Deadline deadline, std::vector<Change>& changes) {
    TRY(auto record, store_.get(key, deadline));
    if (!changes.empty() && changes.back().key == key) changes.pop_back();
    changes.push_back({key, std::move(record)});
    return {};
  }

  Store& store_;
  ResumingWatch watch_;
  const WatchScope scope_;
  store::Revision position_;
  std::set<Kind> kinds_;
  std::int64_t last_id_ = 0;
};

}  // namespace

std::unique_ptr<Watch> make_watch(Store& store, Kv& kv, const Clock& clock, Random& random, const WatchScope& scope,
                                  store::Revision after) {
  return std::make_unique<StoreWatch>(store, kv, clock, random, scope, after);
}

}  // namespace croft::store::etcd
