#include "store/kube/kube_store.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "store/kube/informer.h"
#include "store/kube/object_list.h"
#include "store/kube/objects.h"
#include "store/pause.h"
#include "store/store.h"

namespace croft::store::kube {
namespace {

using wire::kube::ApiObject;

/// More records than this are not followed: each is a stream, and a connection has about 100.
constexpr std::size_t kFollowedMax = 40;

/// One stream for each listing, single record and followed one, each with a thread that waits for it. Keeps the
/// readiness known. Both must outlive it.
class KubeWatch final : public Watch {
 public:
  KubeWatch(Objects& objects, CalicoReadiness& readiness, const WatchScope& scope, Revision after)
      : objects_(objects), readiness_(readiness) {
    for (const Key& key : scope.records) {
      if (objects_.keeps(key.kind)) feed_scope(key.kind, &key, {}, after, putting(key.kind, key, {}));
    }
    for (const core::Listing& listing : scope.lists) {
      const auto mapping = objects_.mapping_of(listing.kind);
      if (!mapping || !objects_.keeps(listing.kind)) continue;
      for (const wire::kube::ApiSelection& select : (*mapping)->selections({listing.kind, listing.name_prefix, true})) {
        feed_scope(listing.kind, nullptr, select, after, putting(listing.kind, {}, listing.name_prefix));
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
    given_ = reached_.empty() ? kAll : *std::ranges::min_element(reached_);
    return std::exchange(changes_, {});
  }

  [[nodiscard]] bool is_complete_up_to(Revision position) override { return given_ >= position; }

  void follow(const Key& key, Revision after) override {
    if (followed_.contains(key) || !objects_.keeps(key.kind)) return;
    // Not known to be unchanged: it counts as changed.
    if (followed_.size() >= kFollowedMax) return add(Change::touched(key, after));
    feed(followed_[key], key.kind, &key, {}, after,
         [this, key](const ApiObject&, bool is_gone, Revision revision) -> Result<void> {
           add(is_gone ? Change::deleted(key, revision) : Change::touched(key, revision));
           return {};
         },
         {});
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
  /// For a scope in which nothing can change.
  static constexpr Revision kAll{~std::uint64_t{0}};

  void feed_scope(Kind kind, const Key* record, wire::kube::ApiSelection select, Revision after, Take take) {
    std::size_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = reached_.size();
      reached_.push_back(after);
    }
    feed(feeds_.emplace_back(), kind, record, std::move(select), after, std::move(take),
         [this, number](Revision revision) {
           const std::lock_guard lock(mutex_);
           reached_[number] = std::max(reached_[number], revision);
         });
  }
  /// One stream, of one record or of a selection. None where there is nothing to follow, which is told.
  void feed(Feed& feed, Kind kind, const Key* record, wire::kube::ApiSelection select, Revision after, Take take,
            decltype(Followed::passed) passed) {
    auto followed = followed_by(kind, record, std::move(select));
    if (!followed) return fail_with(followed.error());
    followed->from = resource_version_of(after);
    followed->take = std::move(take);
    followed->passed = std::move(passed);
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
    TRY(const ObjectMapping* mapping, objects_.mapping_of(kind));
    Followed followed;
    TRY(followed.asked.collection, wire::kube::collection_path(mapping->resource_of(kind)));
    followed.asked.of = mapping->list_of(kind);
    followed.asked.select = std::move(select);
    if (record != nullptr) {
      TRY(const std::string name, mapping->object_name(*record));
      followed.asked.select.field_selector = "metadata.name=" + name;
    }
    return followed;
  }

  /// Tells what a record is now.
  [[nodiscard]] Take putting(Kind kind, std::optional<Key> record, std::string name_prefix) {
    return [this, kind, record = std::move(record), name_prefix = std::move(name_prefix)](
               const ApiObject& object, bool is_gone, Revision revision) -> Result<void> {
      TRY(const ObjectMapping* mapping, objects_.mapping_of(kind));
      TRY(Stored stored, mapping->decode(kind, record ? &*record : nullptr, object.value, object.meta));
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
  std::vector<Revision> reached_;  ///< by the streams of the scope, and what came up to there is in changes_
  std::optional<Error> error_;
  Revision given_;                        ///< all up to it has been returned; not of the streams' threads
  std::vector<Feed> feeds_, unfollowed_;  ///< the last, and followed_: their threads use all of the above
  std::map<Key, Feed> followed_;
};

}  // namespace

}  // namespace croft::store::kube

namespace croft::store {
namespace {

using kube::Objects;

/// A write whose condition says "whatever is there" meets others that often at most.
constexpr int kTriesMax = 20;

/// How many candidates for a free block are asked for by themselves, in how many requests at once. The first most
/// likely is free, and to list all blocks costs most.
constexpr std::array<std::size_t, 3> kCandidates = {1, 3, 12};

Objects::Keys other_lengths_of(const core::FreeBlock& wanted) {
  return {{Kind::block, core::block_names_of(wanted.pool.family())}, wanted.length};
}

class KubeStore final : public Store, public Pausable, public Naming {
 public:
  KubeStore(std::unique_ptr<kube::Api> api, wire::calico::Digests digests, const Clock& clock, KubeStoreOptions options)
      : api_(std::move(api)),
        digests_(std::move(digests)),
        clock_(clock),
        options_(std::move(options)),
        group_(options_.group) {}

  [[nodiscard]] Result<ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    Objects::Wanted asked;
    asked.records.assign(wanted.records.begin(), wanted.records.end());
    asked.lists = wanted.lists;
    for (const core::Listing& listing : wanted.keys) asked.keys.insert({listing});
    asked.claims_may_lag = !wanted.to_keep;
    for (const core::FreeBlock& block : wanted.free_blocks) asked.keys.insert(other_lengths_of(block));
    // A reader will write: whether Calico's data is ready is asked along (Objects::Wanted::beside).
    TRY(Objects::Together found, read_objects(asked, deadline));
    ReadAnswer answer;
    answer.records = std::move(found.records);
    for (const core::FreeBlock& block : wanted.free_blocks) {
      std::map<Key, bool> known;  // whether it is there
      auto record = answer.records.begin();
      for (const Key& key : wanted.records) known.emplace(key, (record++)->has_value());
      TRY(core::FoundBlock free, find_free(block, found.keys.at(other_lengths_of(block)), known, deadline));
      answer.free_blocks.push_back(std::move(free));
    }
    for (const core::Listing& listing : wanted.keys) {
      answer.keys.push_back(std::make_shared<const std::vector<Key>>(std::move(found.keys.at({listing}))));
    }
    for (const core::Listing& listing : wanted.lists) answer.lists.push_back(std::move(found.lists.at(listing)));
    return answer;
  }

  /// As the API has them, which is the order of the objects' names.
  [[nodiscard]] Result<void> for_each(const ListRequest& request, const Until& until, const Take& take) override {
    const core::Listing listing{request.kind, request.name_prefix, true};
    if (!request.in_order) {
      TRY(Objects * objects, as_found(until()));
      return objects->for_each(listing, request.limit, until, take);
    }
    // Claims too are asked of its etcd: a decision on them outside an ADD does not rest on the API's memory.
    Objects::Wanted asked;
    asked.lists.insert(listing);
    TRY(Objects::Together found, read_objects(asked, until()));
    for (Record& record : found.lists.at(listing)) TRY_VOID(take(record));
    return {};
  }

  /// A decision from memory is one from watches: its conditions tell what they may have missed.
  [[nodiscard]] Result<Revision> commit(std::span<const Write> writes, const WriteToken& token,
                                        Deadline deadline) override {
    TRY_VOID(check_writes(writes));
    TRY(Objects * objects, as_found(deadline));
    if (writes.size() > 1) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("a Kubernetes API writes one record at a time, not {}", writes.size()));
    }
    const Write& write = writes.front();
    const bool is_kept = objects->keeps(write.key.kind);
    // A register that is Calico's alone remembers no blocks that are gone: as Calico, the clock tells their numbers.
    const bool is_let_go = !is_kept && write.key.kind == Kind::high_water_mark;
    if (is_write_question(write)) TRY_VOID(check_takes_writes(*objects, deadline));
    if (write.only_check || is_let_go || (!is_kept && !write.value)) return check(write, deadline);
    TRY(const kube::ObjectMapping* mapping, objects->mapping_of(write.key.kind));
    TRY_VOID(mapping->check_write(write));
    TRY_VOID(check_is_ready(*objects, deadline));
    if (write.condition.kind == Condition::Kind::absent && !write.value) return check(write, deadline);
    if (write.condition.kind != Condition::Kind::any) return objects->write(write, token, deadline);
    return write_whatever_is_there(*objects, write, token, deadline);
  }

  [[nodiscard]] std::vector<Result<Revision>> commit_each(std::span<const Write> writes, const WriteToken& token,
                                                          Deadline deadline) override {
    std::vector<Result<Revision>> outcomes(writes.size(), Result<Revision>(Revision()));
    const auto all_together = [&]() -> Result<void> {
      TRY(Objects * objects, as_found(deadline));
      TRY_VOID(check_is_ready(*objects, deadline));
      std::vector<kube::Request> requests;
      std::vector<std::size_t> asked, alone;
      for (std::size_t i = 0; i < writes.size(); ++i) {
        const auto sound = check_writes(writes.subspan(i, 1));
        auto request = sound ? objects->first_request(writes[i], token) : fail(sound.error());
        if (!request) {
          outcomes[i] = fail(request.error());
        } else if (*request) {
          requests.push_back(**std::move(request));
          asked.push_back(i);
        } else {
          alone.push_back(i);
        }
      }
      const auto answers = objects->api().call_all(requests, deadline);
      for (std::size_t k = 0; k < asked.size(); ++k) {
        auto settled = objects->settled_by(writes[asked[k]], answers[k]);
        if (settled) {
          outcomes[asked[k]] = *std::move(settled);
        } else {
          alone.push_back(asked[k]);
        }
      }
      for (const std::size_t i : alone) outcomes[i] = commit(writes.subspan(i, 1), token, deadline);
      return {};
    };
    if (const auto done = all_together(); !done) {
      for (auto& outcome : outcomes) outcome = fail(done.error());
    }
    return outcomes;
  }

  [[nodiscard]] Result<Revision> position(Deadline deadline) override {
    TRY(Objects * objects, as_found(deadline));
    return objects->position(deadline);
  }

  [[nodiscard]] Result<std::unique_ptr<Watch>> watch(const WatchScope& scope, Revision after,
                                                     Deadline deadline) override {
    TRY(Objects * objects, as_found(deadline));
    for (const Key& key : scope.records) TRY_VOID(check_kind(*objects, key.kind));
    for (const core::Listing& listing : scope.lists) TRY_VOID(check_kind(*objects, listing.kind));
    return std::make_unique<kube::KubeWatch>(*objects, ready_, scope, after);
  }

  [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline) override { return std::unique_ptr<Turn>(); }

  [[nodiscard]] Capabilities capabilities() const override {
    return {.atomic_commit = false,
            .foreign_writers = true,
            .lacks = options_.services != nullptr
                         ? core::Kinds{Kind::vacancy, Kind::range_allocation}
                         : core::Kinds{Kind::vacancy, Kind::range_allocation, Kind::service, Kind::service_cidr},
            .services = core::System::kubernetes};
  }

  /// Memory comes from watches, which a restore by the runbook ends.
  [[nodiscard]] std::uint64_t epoch() const override { return 0; }

  [[nodiscard]] Result<std::optional<StoredPause>> pause(Deadline deadline) override {
    TRY(Objects * objects, as_found(deadline));
    return kube::read_pause(*objects, deadline);
  }
  [[nodiscard]] Result<void> change_pause(const std::optional<StoredPause>& there,
                                          const std::optional<core::Pause>& next, Deadline deadline) override {
    TRY(Objects * objects, as_found(deadline));
    return kube::change_pause(*objects, there, next, deadline);
  }
  void fill() override {
    const std::lock_guard lock(ready_.mutex);
    ready_.is_filling = true;
  }
  [[nodiscard]] Result<std::string> place_of(const Key& key, Deadline deadline) override {
    TRY(const Objects* objects, as_found(deadline));
    if (!objects->keeps(key.kind)) return std::string(core::name_of(key.kind)) + "/" + key.name;
    TRY(const kube::ObjectMapping* mapping, objects->mapping_of(key.kind));
    TRY(const std::string name, mapping->object_name(key));
    return fmt::format("{}/{}", mapping->resource_of(key.kind).resource, name);
  }

  /// A writer may have seen it ready just before, and an API server goes on with a request for a minute.
  [[nodiscard]] std::chrono::seconds settling() const override { return kube::kReadyFor + kRequestMax; }

 private:
  /// `keys` are those of blocks of other lengths. For some blocks it is known already whether they are there.
  [[nodiscard]] Result<core::FoundBlock> find_free(const core::FreeBlock& wanted, std::vector<Key> keys,
                                                   const std::map<Key, bool>& known, Deadline deadline) {
    // Whether the one block of such a question is there its own record tells.
    if (wanted.pool.length() == wanted.length) return core::find_free_block(wanted, keys);
    core::FreeBlock probe = wanted;
    std::vector<net::Prefix> passed;
    for (const std::size_t count : kCandidates) {
      std::vector<core::FoundBlock> candidates;
      Objects::Wanted asked;
      while (candidates.size() < count) {
        core::FoundBlock candidate = core::find_free_block(probe, keys);
        if (!candidate.block) break;
        const auto there = known.find(core::block_key(*candidate.block));
        if (there != known.end() && !there->second) {
          candidate.passed = std::move(passed);
          return candidate;
        }
        probe.out.insert(*candidate.block);
        if (there != known.end()) break;
        asked.records.push_back(core::block_key(*candidate.block));
        candidates.push_back(std::move(candidate));
      }
      if (candidates.empty()) continue;
      TRY(const Objects::Together found, read_objects(asked, deadline));
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (!found.records[i]) {
          candidates[i].passed = std::move(passed);
          return std::move(candidates[i]);
        }
        passed.push_back(*candidates[i].block);
      }
    }
    const Objects::Keys all{{Kind::block, core::block_names_of(wanted.pool.family())}};
    Objects::Wanted asked;
    asked.keys.insert(all);
    TRY(const Objects::Together found, read_objects(asked, deadline));
    core::FoundBlock free = core::find_free_block(wanted, found.keys.at(all));
    free.passed = std::move(passed);
    return free;
  }

  /// kube-apiserver's --request-timeout, and a little.
  static constexpr std::chrono::seconds kRequestMax{68};

  /// The records by the group that Calico has chosen, which is asked for when it is needed first. A read may do by the
  /// older one while there is nothing better: a plugin alone is spared the question, a command that looks is not.
  [[nodiscard]] Result<Objects*> as_found(Deadline deadline, bool will_do_by_guess = false) {
    const std::lock_guard lock(layout_mutex_);
    if (has_moved_) return fail(moved());
    if (!group_ && (!will_do_by_guess || options_.own_denied)) {
      TRY(group_, kube::discover_calico_group(*api_, deadline));
    }
    const wire::calico::ApiGroup group = group_.value_or(wire::calico::ApiGroup::crd_v1);
    auto& objects = objects_[group];
    if (objects) return objects.get();
    bool has_own = options_.croft_kinds;
    if (has_own && options_.own_denied) {
      TRY(has_own, kube::may_read_croft_kinds(*api_, options_.own_denied, deadline));
    }
    std::vector<std::unique_ptr<kube::ObjectMapping>> mappings;
    if (has_own) mappings.push_back(kube::make_croft_mapping(digests_.sha256));
    mappings.push_back(kube::make_calico_mapping(group, digests_));
    mappings.push_back(kube::make_node_mapping());
    mappings.push_back(kube::make_namespace_mapping());
    if (options_.services != nullptr) std::ranges::move(options_.services(), std::back_inserter(mappings));
    objects = std::make_unique<Objects>(*api_, std::move(mappings), clock_);
    return objects.get();
  }
  /// After an error: whether Calico's records have gone to its other group since, as when they were migrated. An object
  /// that says nothing of that counts as absent.
  [[nodiscard]] bool has_moved(Deadline deadline) {
    if (options_.group) return false;
    const auto now = kube::discover_calico_group(*api_, deadline);
    const std::lock_guard lock(layout_mutex_);
    if (!now || !group_ || *now == *group_) return false;
    if (!std::exchange(has_moved_, true) && options_.moved != nullptr) options_.moved();
    return true;
  }
  [[nodiscard]] static Error moved() {
    return {ErrorCode::unavailable,
            "Calico's records have gone to its other API group since this program began, as when Calico's data was "
            "migrated; start this program again",
            {}};
  }
  [[nodiscard]] Result<void> check_is_ready(Objects& objects, Deadline deadline) {
    auto ready = kube::check_calico_is_ready(objects, ready_, deadline);
    if (!ready && has_moved(deadline)) return fail(moved());
    return ready;
  }

  /// Whether the group is known, for good once a record of Calico's was `seen` by a guess: Calico would choose the
  /// same.
  [[nodiscard]] bool is_certain(bool seen) {
    const std::lock_guard lock(layout_mutex_);
    if (seen && !group_) group_ = wire::calico::ApiGroup::crd_v1;
    return group_.has_value();
  }

  [[nodiscard]] Result<Objects::Together> read_objects(Objects::Wanted& wanted, Deadline deadline) {
    TRY(Objects * objects, as_found(deadline, true));
    std::optional<kube::ReadinessQuestion> asked_beside;
    const auto read = [&] {
      asked_beside = kube::readiness_question(*objects, ready_);
      wanted.beside = asked_beside ? std::optional(asked_beside->request) : std::nullopt;
      return objects->read(wanted, deadline);
    };
    auto found = read();
    // By a guess a kind may not be served; and a register without a pool may be the one that is not there.
    const bool is_unknown = !found && found.error().code == ErrorCode::refused_by_configuration;
    if (!is_certain(found && has_calicos(*found)) && (is_unknown || (found && lists_no_pool(*found)))) {
      const Objects* const guessed = objects;
      TRY(objects, as_found(deadline));
      if (objects != guessed) found = read();
    } else if (is_unknown && has_moved(deadline)) {
      return fail(moved());
    }
    if (!found) return found;
    if (asked_beside) static_cast<void>(kube::take_readiness(*objects, ready_, *asked_beside, *found->beside));
    return found;
  }
  [[nodiscard]] static bool lists_no_pool(const Objects::Together& found) {
    return std::ranges::any_of(
        found.lists, [](const auto& listed) { return listed.first.kind == Kind::pool && listed.second.empty(); });
  }
  [[nodiscard]] static bool has_calicos(const Objects::Together& found) {
    const auto is_there = [](Kind kind, const auto& listed) { return wire::calico::has_crd(kind) && !listed.empty(); };
    return std::ranges::any_of(found.lists, [&](const auto& one) { return is_there(one.first.kind, one.second); }) ||
           std::ranges::any_of(found.keys,
                               [&](const auto& one) { return is_there(one.first.listing.kind, one.second); }) ||
           std::ranges::any_of(found.records, [](const std::optional<Record>& record) {
             return record && wire::calico::has_crd(record->key.kind);
           });
  }

  [[nodiscard]] static Result<void> check_kind(const Objects& objects, Kind kind) {
    if (objects.keeps(kind)) TRY_VOID(objects.mapping_of(kind));
    return {};
  }

  /// As far as the API tells without a write: that its etcd is full, or that an admission policy refuses, it does not.
  [[nodiscard]] Result<void> check_takes_writes(Objects& objects, Deadline deadline) {
    TRY_VOID(check_is_ready(objects, deadline));
    TRY(const kube::ObjectMapping* mapping, objects.mapping_of(Kind::block));
    const auto resource = mapping->resource_of(Kind::block);
    const kube::NeededRights needed{resource.group, resource.resource, {"update"}};
    const auto done = kube::check_rights(objects.api(), {&needed, 1}, deadline);
    // An unanswered question is nothing against it: a node must not go because of it.
    if (done || done.error().code != ErrorCode::permission_denied) return {};
    return fail(ErrorCode::permission_denied,
                done.error().message +
                    ", so no address can be given; deploy/kubernetes/access.yaml has accounts with "
                    "the rights of plugins and agents");
  }

  [[nodiscard]] static Condition condition_of(const std::optional<Record>& record) {
    return record ? Condition::if_revision(record->revision) : Condition::if_absent();
  }

  /// Whether the condition holds; nothing is written.
  [[nodiscard]] Result<Revision> check(const Write& write, Deadline deadline) {
    TRY(Objects * objects, as_found(deadline));
    TRY(const auto record, objects->get(write.key, deadline));
    const bool holds = write.condition.kind == Condition::Kind::any || write.condition == condition_of(record);
    if (!holds) return fail(conflict_on(write.key));
    return record ? record->revision : objects->position(deadline);
  }

  [[nodiscard]] Result<Revision> write_whatever_is_there(Objects& objects, const Write& write, const WriteToken& token,
                                                         Deadline deadline) {
    Write seen = write;
    for (int tries = 0; tries < kTriesMax; ++tries) {
      TRY(const auto record, objects.get(write.key, deadline));
      if (!record && !write.value) return objects.position(deadline);
      const Condition now = condition_of(record);
      if (tries > 0 && seen.condition == now) break;  // nobody has written it: the conflict is none
      seen.condition = now;
      auto written = objects.write(seen, token, deadline);
      if (written || written.error().code != ErrorCode::conflict) return written;
    }
    return fail(conflict_on(write.key));
  }

  const std::unique_ptr<kube::Api> api_;
  const wire::calico::Digests digests_;
  const Clock& clock_;
  const KubeStoreOptions options_;
  mutable std::mutex layout_mutex_;
  std::optional<wire::calico::ApiGroup> group_;                         ///< guarded by layout_mutex_: once it is known
  std::map<wire::calico::ApiGroup, std::unique_ptr<Objects>> objects_;  ///< guarded by layout_mutex_
  bool has_moved_ = false;                                              ///< guarded by layout_mutex_
  kube::CalicoReadiness ready_;
};

}  // namespace

std::unique_ptr<Store> make_kube_store(std::unique_ptr<kube::Api> api, wire::calico::Digests digests,
                                       const Clock& clock, KubeStoreOptions options) {
  return std::make_unique<KubeStore>(std::move(api), std::move(digests), clock, std::move(options));
}

}  // namespace croft::store
