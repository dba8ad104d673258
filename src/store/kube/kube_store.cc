#include "store/kube/kube_store.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "store/check_request.h"
#include "store/kube/account.h"
#include "store/kube/calico_cluster.h"
#include "store/kube/objects.h"
#include "store/kube/store_watch.h"
#include "store/naming.h"
#include "store/write_question.h"

namespace croft::store {
namespace {

using kube::Objects;

/// A write whose condition says "whatever is there" meets others that often at most.
constexpr int kTriesMax = 20;
/// Pages of one list are of one moment, and that is not older.
constexpr std::chrono::seconds kListAgeMax{60};
constexpr std::size_t kListsMax = 8;

/// How many candidates for a free block are asked for by themselves, in how many requests at once: the first most
/// likely is free, and to list all blocks costs most.
constexpr std::array<std::size_t, 3> kCandidates = {1, 3, 12};

Objects::OtherLengths other_lengths_of(const core::FreeBlock& wanted) {
  return {{Kind::block, core::block_names_of(wanted.pool.family())}, wanted.length};
}

class KubeStore final : public Store, public Sealable, public Naming {
 public:
  KubeStore(std::unique_ptr<kube::Api> api, LayoutOf lay_out, const Clock& clock, KubeStoreOptions options)
      : api_(std::move(api)), lay_out_(std::move(lay_out)), clock_(clock), options_(options) {}

  [[nodiscard]] Result<ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    Objects::Wanted asked;
    asked.records.assign(wanted.records.begin(), wanted.records.end());
    asked.lists = wanted.lists;
    asked.keys = wanted.keys;
    asked.claims_may_lag = !wanted.to_keep;
    for (const core::FreeBlock& block : wanted.free_blocks) asked.other_lengths.insert(other_lengths_of(block));
    // Who reads will write: whether Calico's data is ready is asked along (Objects::Wanted::beside).
    TRY(Objects::Together found, read_objects(asked, deadline));
    ReadAnswer answer;
    answer.records = std::move(found.records);
    for (const core::FreeBlock& block : wanted.free_blocks) {
      std::map<Key, bool> known;  // whether it is there
      auto record = answer.records.begin();
      for (const Key& key : wanted.records) known.emplace(key, (record++)->has_value());
      TRY(core::FoundBlock free, find_free(block, found.other_lengths.at(other_lengths_of(block)), known, deadline));
      answer.free_blocks.push_back(std::move(free));
    }
    for (const core::Listing& listing : wanted.keys) {
      answer.keys.push_back(std::make_shared<const std::vector<Key>>(std::move(found.keys.at(listing))));
    }
    for (const core::Listing& listing : wanted.lists) answer.lists.push_back(std::move(found.lists.at(listing)));
    return answer;
  }

  [[nodiscard]] Result<Page> list(const ListRequest& request, Deadline deadline) override {
    TRY_VOID(check_list(request));
    TRY(const auto list, whole_list(request, deadline));
    const std::vector<Record>& records = *list;
    auto from = records.begin();
    if (!request.after.empty()) {
      from = std::ranges::upper_bound(records, request.after, {},
                                      [](const Record& record) -> const std::string& { return record.key.name; });
    }
    Page page;
    for (std::size_t count = 0; from != records.end() && count < request.limit; ++from, ++count) {
      request.keys_only ? page.keys.push_back(from->key) : page.records.push_back(*from);
    }
    page.more = from != records.end();
    if (page.more) keep(request, list);
    return page;
  }

  /// As the API has them, which is the order of the objects' names.
  [[nodiscard]] Result<void> for_each(ListRequest request, const std::function<Deadline()>& until,
                                      const std::function<Result<void>(Record&)>& take) override {
    TRY_VOID(check_list(request));
    TRY(Objects * objects, laid_out(until()));
    return objects->for_each({request.kind, request.name_prefix, true}, request.limit, until, take);
  }

  /// A decision from memory is one from watches: its conditions tell what they may have missed.
  [[nodiscard]] Result<Revision> commit(std::span<const Write> writes, const WriteToken& token,
                                        Deadline deadline) override {
    TRY_VOID(check_writes(writes));
    TRY(Objects * objects, laid_out(deadline));
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
    TRY(const kube::Form* form, objects->form_of(write.key.kind));
    TRY_VOID(form->check_write(write));
    TRY_VOID(check_is_ready(*objects, deadline));
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

  [[nodiscard]] std::vector<Result<Revision>> commit_each(std::span<const Write> writes, const WriteToken& token,
                                                          Deadline deadline) override {
    std::vector<Result<Revision>> outcomes(writes.size(), Result<Revision>(Revision()));
    const auto all_together = [&]() -> Result<void> {
      TRY(Objects * objects, laid_out(deadline));
      TRY_VOID(check_is_ready(*objects, deadline));
      std::vector<kube::Request> requests;
      std::vector<std::size_t> asked, alone;
      for (std::size_t i = 0; i < writes.size(); ++i) {
        auto request = first_request(*objects, writes[i], token);
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
        auto settled = objects->settled_by(writes[asked[k]], token, answers[k], deadline);
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
    return objects->position(deadline);
  }

  [[nodiscard]] Result<std::unique_ptr<Watch>> watch(const WatchScope& scope, Revision after,
                                                     Deadline deadline) override {
    TRY(Objects * objects, laid_out(deadline));
    for (const Key& key : scope.records) TRY_VOID(check_kind(*objects, key.kind));
    for (const core::Listing& listing : scope.lists) TRY_VOID(check_kind(*objects, listing.kind));
    return kube::make_watch(*objects, ready_, scope, after);
  }

  [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline) override { return std::unique_ptr<Turn>(); }

  [[nodiscard]] Capabilities capabilities() const override {
    return {.atomic_commit = false,
            .foreign_writers = true,
            .late_commits = true,
            .commit_bytes_max = kBlockBytesMax,
            .lacks = options_.sees_services ? core::Kinds{Kind::vacancy, Kind::range_allocation}
                                            : core::Kinds{Kind::vacancy, Kind::range_allocation, Kind::service,
                                                          Kind::service_cidr, Kind::ip_address},
            .services = core::System::kubernetes};
  }

  /// What is remembered comes from watches, which a restore by the runbook ends.
  [[nodiscard]] std::uint64_t epoch() const override { return 0; }

  [[nodiscard]] Result<std::optional<StoredSeal>> seal(Deadline deadline) override {
    TRY(Objects * objects, laid_out(deadline));
    return kube::read_seal(*objects, deadline);
  }
  [[nodiscard]] Result<void> put_seal(const std::optional<StoredSeal>& there, const core::Seal& seal,
                                      Deadline deadline) override {
    TRY(Objects * objects, laid_out(deadline));
    return kube::change_seal(*objects, there, seal, deadline);
  }
  [[nodiscard]] Result<void> remove_seal(const StoredSeal& there, Deadline deadline) override {
    TRY(Objects * objects, laid_out(deadline));
    return kube::change_seal(*objects, there, std::nullopt, deadline);
  }
  void work_under(std::string move) override {
    const std::lock_guard lock(ready_.mutex);
    ready_.worker = std::move(move);
    ready_.ready_at.reset();
  }
  [[nodiscard]] Result<std::string> place_of(const Key& key, Deadline deadline) override {
    TRY(const Objects* objects, laid_out(deadline));
    if (!objects->keeps(key.kind)) return std::string(core::name_of(key.kind)) + "/" + key.name;
    TRY(const kube::Form* form, objects->form_of(key.kind));
    TRY(const std::string name, form->object_name(key));
    return fmt::format("{}/{}", form->resource_of(key.kind).resource, name);
  }

  /// A writer may have seen it ready just before, and an API server goes on with a request for a minute.
  [[nodiscard]] std::chrono::seconds settling() const override { return kube::kReadyFor + kRequestMax; }

 private:
  /// `keys` are those of blocks of other lengths. Of some blocks it is known already whether they are there.
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
    const core::Listing all{Kind::block, core::block_names_of(wanted.pool.family())};
    Objects::Wanted asked;
    asked.keys.insert(all);
    TRY(const Objects::Together found, read_objects(asked, deadline));
    core::FoundBlock free = core::find_free_block(wanted, found.keys.at(all));
    free.passed = std::move(passed);
    return free;
  }

  /// kube-apiserver's --request-timeout, and a little.
  static constexpr std::chrono::seconds kRequestMax{65};

  [[nodiscard]] static Result<std::optional<kube::Request>> first_request(const Objects& objects, const Write& write,
                                                                          const WriteToken& token) {
    TRY_VOID(check_writes({&write, 1}));
    if (write.only_check || !objects.keeps(write.key.kind)) return std::optional<kube::Request>();
    TRY(const kube::Form* form, objects.form_of(write.key.kind));
    TRY_VOID(form->check_write(write));
    return objects.first_request(write, token);
  }

  /// What is known of the cluster; asked for when it is needed first. Only `guess` may be answered with one.
  [[nodiscard]] Result<Objects*> laid_out(Deadline deadline, LayoutCare care = LayoutCare::ask) {
    const std::lock_guard lock(layout_mutex_);
    if (has_moved_) return fail(moved());
    const bool will_do = !layouts_.empty() && (!is_guess_ || care == LayoutCare::guess);
    if (will_do) return layouts_.back().get();
    TRY(Layout layout, lay_out_(*api_, care, deadline));
    is_guess_ = layout.is_guess;
    layouts_.push_back(std::make_unique<Objects>(*api_, std::move(layout.forms), clock_, options_.finishes_deletions));
    return layouts_.back().get();
  }
  /// After an error: whether Calico's records have gone to its other group since, as when they were migrated. What says
  /// nothing of that is none.
  [[nodiscard]] bool has_moved(const Objects& objects, Deadline deadline) {
    const auto now = lay_out_(*api_, LayoutCare::ask, deadline);
    if (!now) return false;
    const auto is_of_blocks = [](const auto& form) { return form->has(Kind::block); };
    const auto form = std::ranges::find_if(now->forms, is_of_blocks);
    const auto before = objects.form_of(Kind::block);
    if (form == now->forms.end() || !before) return false;
    if ((*form)->resource_of(Kind::block).group == (*before)->resource_of(Kind::block).group) return false;
    const std::lock_guard lock(layout_mutex_);
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
    if (!ready && has_moved(objects, deadline)) return fail(moved());
    return ready;
  }

  /// A record of Calico's was read: Calico would choose the same. Where there is none the register may be in the other
  /// group (discover_calico_group).
  void confirm_layout(const Objects* objects) {
    const std::lock_guard lock(layout_mutex_);
    if (layouts_.back().get() == objects) is_guess_ = false;
  }

  /// Reads by a guess while there is nothing better: a plugin alone is spared the question.
  [[nodiscard]] Result<Objects::Together> read_objects(Objects::Wanted& wanted, Deadline deadline) {
    TRY(Objects * objects, laid_out(deadline, LayoutCare::guess));
    std::optional<kube::ReadinessQuestion> asked_beside;
    const auto ask_beside = [&] {
      asked_beside = kube::readiness_question(*objects, ready_);
      wanted.beside = asked_beside ? std::optional(asked_beside->request) : std::nullopt;
    };
    ask_beside();
    auto found = objects->read(wanted, deadline);
    // By a guess a kind may not be served; and a register without a pool may be the one that is not there: that of the
    // other group has some.
    const bool is_unknown = !found && found.error().code == ErrorCode::refused_by_configuration;
    if ((is_unknown || (found && lists_no_pool(*found))) && is_guessed(objects)) {
      TRY(objects, laid_out(deadline));
      ask_beside();
      found = objects->read(wanted, deadline);
    } else if (is_unknown && has_moved(*objects, deadline)) {
      return fail(moved());
    }
    if (!found) return found;
    if (found->beside && asked_beside) kube::take_readiness(*objects, ready_, *asked_beside, *found->beside);
    if (has_calicos(*found)) confirm_layout(objects);
    return found;
  }
  [[nodiscard]] bool is_guessed(const Objects* objects) {
    const std::lock_guard lock(layout_mutex_);
    return is_guess_ && layouts_.back().get() == objects;
  }
  [[nodiscard]] static bool lists_no_pool(const Objects::Together& found) {
    return std::ranges::any_of(
        found.lists, [](const auto& listed) { return listed.first.kind == Kind::pool && listed.second.empty(); });
  }
  [[nodiscard]] static bool has_calicos(const Objects::Together& found) {
    const auto is_there = [](const auto& listed) {
      return wire::calico::has_crd(listed.first.kind) && !listed.second.empty();
    };
    return std::ranges::any_of(found.lists, is_there) || std::ranges::any_of(found.keys, is_there) ||
           std::ranges::any_of(found.records, [](const std::optional<Record>& record) {
             return record && wire::calico::has_crd(record->key.kind);
           });
  }

  [[nodiscard]] static Result<void> check_kind(const Objects& objects, Kind kind) {
    if (objects.keeps(kind)) TRY_VOID(objects.form_of(kind));
    return {};
  }

  /// etcd takes 1.5 MiB an object, unless the cluster's is told otherwise; managedFields are part of that.
  static constexpr std::size_t kBlockBytesMax = (std::size_t{1536} - 256) << 10;

  using List = std::shared_ptr<const std::vector<Record>>;
  using ListKey = std::pair<Kind, std::string>;
  struct Kept {
    List list;
    std::chrono::nanoseconds taken_at{};
  };

  /// The list that an earlier page began, or a new one.
  [[nodiscard]] Result<List> whole_list(const ListRequest& request, Deadline deadline) {
    if (!request.after.empty()) {
      const std::lock_guard lock(mutex_);
      const auto found = lists_.find({request.kind, request.name_prefix});
      const bool is_good = found != lists_.end() && clock_.now().since_boot - found->second.taken_at < kListAgeMax;
      if (is_good) return found->second.list;
    }
    const core::Listing listing{request.kind, request.name_prefix, true};
    Objects::Wanted asked;
    asked.lists.insert(listing);
    TRY(Objects::Together found, read_objects(asked, deadline));
    return std::make_shared<const std::vector<Record>>(std::move(found.lists.at(listing)));
  }

  void keep(const ListRequest& request, const List& list) {
    const std::lock_guard lock(mutex_);
    const ListKey key{request.kind, request.name_prefix};
    // One that begins anew is newer; one that goes on keeps its age.
    if (!request.after.empty() && lists_.contains(key)) return;
    if (lists_.size() >= kListsMax) lists_.clear();
    lists_.insert_or_assign(key, Kept{list, clock_.now().since_boot});
  }

  /// As far as the API tells without a write: that its etcd is full, or that an admission policy refuses, it does not.
  [[nodiscard]] Result<void> check_takes_writes(Objects& objects, Deadline deadline) {
    TRY_VOID(check_is_ready(objects, deadline));
    TRY(const kube::Form* form, objects.form_of(Kind::block));
    const auto resource = form->resource_of(Kind::block);
    const kube::NeededRights needed{resource.group, resource.resource, {"update"}};
    const auto done = kube::check_rights(objects.api(), {&needed, 1}, deadline);
    // What can't be told is nothing against it: a node must not go because of it.
    if (done || done.error().code != ErrorCode::permission_denied) return {};
    return fail(ErrorCode::permission_denied,
                done.error().message +
                    ", so no address can be given; deploy/kubernetes/access.yaml has accounts with "
                    "the rights of plugins and agents");
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
    return record ? record->revision : objects->position(deadline);
  }

  [[nodiscard]] Result<Revision> write_whatever_is_there(Objects& objects, const Write& write, const WriteToken& token,
                                                         Deadline deadline) {
    std::optional<Revision> before;
    for (int tries = 0; tries < kTriesMax; ++tries) {
      TRY(const auto record, objects.get(write.key, deadline));
      if (!record && !write.value) return objects.position(deadline);
      const auto now = record ? std::optional(record->revision) : std::nullopt;
      if (tries > 0 && before == now) break;  // nobody has written it: the conflict is none
      before = now;
      auto written = !record       ? objects.create(write.key, *write.value, token, deadline)
                     : write.value ? objects.update(write.key, *write.value, record->revision, token, deadline)
                                   : objects.remove(write.key, record->revision, token, deadline);
      if (written || written.error().code != ErrorCode::conflict) return written;
    }
    return fail(kube::conflict_on(write.key));
  }

  const std::unique_ptr<kube::Api> api_;
  const LayoutOf lay_out_;
  const Clock& clock_;
  const KubeStoreOptions options_;
  mutable std::mutex layout_mutex_;
  std::vector<std::unique_ptr<Objects>> layouts_;  ///< guarded by layout_mutex_: a guess, and what was found
  bool is_guess_ = true;                           ///< guarded by layout_mutex_: the last one is
  bool has_moved_ = false;                         ///< guarded by layout_mutex_
  kube::CalicoReadiness ready_;
  std::mutex mutex_;
  std::map<ListKey, Kept> lists_;  ///< guarded by mutex_: that are read page by page
};

}  // namespace

std::unique_ptr<Store> make_kube_store(std::unique_ptr<kube::Api> api, LayoutOf lay_out, const Clock& clock,
                                       KubeStoreOptions options) {
  return std::make_unique<KubeStore>(std::move(api), std::move(lay_out), clock, options);
}

}  // namespace croft::store
