#include "store/etcd/store_watch.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "store/calico/layout.h"
#include "store/etcd/codec.h"
#include "store/etcd/place.h"
#include "store/etcd/resuming_watch.h"

namespace croft::store::etcd {
namespace {

class StoreWatch final : public Watch {
 public:
  StoreWatch(Store& store, Kv& kv, const Places& places, Epoch& epoch, const Clock& clock, Random& random,
             const WatchScope& scope, store::Revision after)
      : store_(store),
        epoch_(epoch),
        number_(epoch_of(after)),
        places_(places),
        watch_(kv, clock, random),
        scope_(scope) {
    add_range(kEpochPlace, "", after);
    for (const Key& key : scope_.records) add_record(key, after);
    for (const core::Listing& listing : scope_.lists) add_list(listing, after);
  }

  [[nodiscard]] Result<std::vector<Change>> next(Deadline deadline) override {
    TRY_VOID(check_epoch(deadline));
    TRY(const WatchUpdate update, watch_.next(deadline));
    if (update.what == WatchUpdate::What::idle) return std::vector<Change>();
    TRY_VOID(check_epoch(deadline));
    if (update.cluster != cluster_) return fail(ErrorCode::too_old, "etcd's watch is of another cluster");
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
    for (const Event& event : update.events) TRY_VOID(add_change(event, deadline, changes));
    return changes;
  }

  void follow(const Key& key, store::Revision after) override {
    auto place = places_.place_of(key);
    if (!place || followed_.contains(*place)) return;
    // The data beside a record changes together with it.
    followed_.try_emplace(*place, Followed{key, add_range(*place, "", after)});
  }

  void unfollow(const Key& key) override {
    const auto place = places_.place_of(key);
    const auto found = place ? followed_.find(*place) : followed_.end();
    if (found == followed_.end()) return;
    watch_.forget(found->second.id);
    followed_.erase(found);
  }

 private:
  /// A stream that is opened anew may lead to an etcd that was restored meanwhile.
  [[nodiscard]] Result<void> check_epoch(Deadline deadline) {
    if (watch_.connects() != connects_) {
      TRY(const Epoch::Known now, epoch_.look(deadline));
      connects_ = watch_.connects();
      cluster_ = now.cluster;
    }
    if (epoch_.number() == number_) return {};
    return fail(ErrorCode::too_old, "the register is another one, or was restored; read everything again");
  }

  std::int64_t add_range(std::string from, std::string to, store::Revision after) {
    WatchCreate create;
    create.id = ++last_id_;
    create.key = std::move(from);
    create.range_end = std::move(to);
    create.start_revision = in_etcd(after) + 1;
    watch_.watch(create);
    return create.id;
  }

  void add_record(const Key& key, store::Revision after) {
    if (auto place = places_.place_of(key)) add_range(*std::move(place), "", after);
    if (auto beside = calico::place_beside(key)) add_range(*std::move(beside), "", after);
    kinds_.insert(key.kind);
  }

  void add_list(const core::Listing& listing, store::Revision after) {
    auto ranges = places_.ranges_of(listing);
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
      if (auto key = places_.record_at(kind, place); key && is_in(scope_, *key)) return Seen{*std::move(key), false};
      if (auto key = calico::record_beside(kind, place); key && is_in(scope_, *key)) return Seen{*std::move(key), true};
    }
    return std::nullopt;
  }

  /// Adds the change that an event tells about one of the records that are watched.
  [[nodiscard]] Result<void> add_change(const Event& event, Deadline deadline, std::vector<Change>& changes) {
    const store::Revision revision = in_epoch(number_, event.kv.mod_revision);
    if (event.kv.key == kEpochPlace) {
      TRY_VOID(epoch_.look(deadline));
      return check_epoch(deadline);
    }
    const bool is_deletion = event.type == Event::Type::deletion;
    if (const auto followed = followed_.find(event.kv.key); followed != followed_.end()) {
      const Key& key = followed->second.key;
      changes.push_back(is_deletion ? Change::deleted(key, revision) : Change::touched(key, revision));
      return {};
    }
    const auto seen = seen_at(event.kv.key);
    if (!seen) return {};
    if (is_deletion && !seen->beside) {
      changes.push_back(Change::deleted(seen->key, revision));
    } else if (calico::place_beside(seen->key)) {
      // Its two halves are watched apart: half an event and half of what was known before may never have been together.
      TRY(auto record, store_.get(seen->key, deadline));
      changes.push_back(record ? Change::put(*std::move(record)) : Change::deleted(seen->key, revision));
    } else {
      TRY(auto record, decode(places_, seen->key, event.kv, std::nullopt, number_));
      changes.push_back(Change::put(std::move(record)));
    }
    return {};
  }

  struct Followed {
    Key key;
    std::int64_t id = 0;
  };

  Store& store_;
  Epoch& epoch_;
  const EpochNumber number_;  ///< of which all revisions are
  std::uint64_t connects_ = 0, cluster_ = 0;
  const Places& places_;
  ResumingWatch watch_;
  const WatchScope scope_;
  std::set<Kind> kinds_;                      ///< of the scope
  std::map<std::string, Followed> followed_;  ///< by place
  std::int64_t last_id_ = 0;
};

}  // namespace

std::unique_ptr<Watch> make_watch(Store& store, Kv& kv, const Places& places, Epoch& epoch, const Clock& clock,
                                  Random& random, const WatchScope& scope, store::Revision after) {
  return std::make_unique<StoreWatch>(store, kv, places, epoch, clock, random, scope, after);
}

}  // namespace croft::store::etcd
