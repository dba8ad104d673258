#include "store/cached/cached_store.h"

#include <algorithm>
#include <utility>

#include "base/pacing.h"
#include "base/texts.h"

namespace croft::store {
namespace {

using std::chrono::nanoseconds;

/// How long the watch may stay behind a commit of this process before it counts as broken.
constexpr std::chrono::seconds kLagMax{1};
/// For one read of the follower. The limit doubles after each time that everything could not be read: where many begin
/// at once, and each needs longer than this, none would ever come to an end.
constexpr std::chrono::seconds kReadLimit{10};
constexpr unsigned kReadLimitDoublings = 4;
/// More claims of the whole cluster are not kept.
constexpr std::size_t kClaimsMax = 500'000;
/// How many records are read together when the follower fills gaps.
constexpr std::size_t kGapsMax = 64;
/// How long a step waits for changes, and the follower after a failure: longer each time, for the agents of a cluster
/// all fail at once.
constexpr std::chrono::milliseconds kStepWait{500};
constexpr std::chrono::milliseconds kRetryWait{250};
constexpr std::chrono::milliseconds kRetryWaitMax{4000};

/// The answers to `wanted`: those to `rest` are in `found`, the others in `known`, each in its order.
template <class Asked, class Answer>
std::vector<Answer> joined(const std::set<Asked>& wanted, const std::set<Asked>& rest, std::vector<Answer> known,
                           std::vector<Answer> found) {
  if (rest.size() == wanted.size()) return found;
  auto next_known = known.begin();
  auto next_found = found.begin();
  std::vector<Answer> all;
  for (const Asked& asked : wanted) all.push_back(std::move(rest.contains(asked) ? *next_found++ : *next_known++));
  return all;
}

}  // namespace

CachedStore::CachedStore(Store& beneath, core::AffinityOwner node, const Clock& clock,
                         const CachedStoreOptions& options)
    : ForwardingStore(beneath),
      node_(std::move(node)),
      clock_(clock),
      options_(options),
      uncached_(*this),
      cache_(node_) {}
CachedStore::~CachedStore() = default;

// ---------------------------------------------------------------- following

Deadline CachedStore::read_deadline() const {
  return Deadline::after(clock_.now(), kReadLimit * (1U << std::min(rebuilds_failed_, kReadLimitDoublings)));
}

Result<void> CachedStore::check_size(const Cache& cache) const {
  if (cache.record_count() <= options_.records_max && cache.affinity_count() <= kClaimsMax) return {};
  return fail(ErrorCode::corrupt,
              "the register has {} records that a node follows, and {} claims: more than {} or {} are not "
              "kept in memory; calls go to the store",
              cache.record_count(), cache.affinity_count(), options_.records_max, kClaimsMax);
}

Result<void> CachedStore::rebuild() {
  Cache fresh(node_);
  TRY(const Revision from, beneath().position(read_deadline()));
  const std::uint64_t epoch = beneath().epoch();
  core::Missing wanted = fresh.first_read();
  wanted.to_keep = true;
  TRY(const ReadAnswer answer, beneath().read(wanted, read_deadline()));
  fresh.learn_all(wanted, answer);
  TRY_VOID(check_size(fresh));
  for (core::Missing gaps = fresh.unknown(kGapsMax); !gaps.empty();) {
    TRY(const ReadAnswer found, beneath().read(gaps, read_deadline()));
    fresh.learn(found);
    core::Missing left = fresh.unknown(kGapsMax);
    if (left.records == gaps.records) break;  // claims without block, handles without record
    gaps = std::move(left);
  }
  TRY(watch_, beneath().watch(fresh.scope(), from, read_deadline()));
  followed_.clear();
  for (const auto& [cidr, since] : fresh.own_blocks()) {
    watch_->follow(core::block_key(cidr), from);
    followed_.insert(cidr);
  }
  watched_generation_ = fresh.own_blocks_generation();
  relist_at_since_boot_ = clock_.now().since_boot + options_.relist_interval;
  const std::lock_guard lock(mutex_);
  std::swap(cache_, fresh);
  awaited_.clear();
  watched_from_ = from;
  epoch_ = epoch;
  in_use_ = true;
  ++rebuilt_;
  return {};
}

/// With mutex_ held.
void CachedStore::follow_own_blocks() {
  if (cache_.own_blocks_generation() == watched_generation_) return;
  watched_generation_ = cache_.own_blocks_generation();
  const auto& own = cache_.own_blocks();
  std::erase_if(followed_, [&](const net::Prefix& cidr) {
    if (own.contains(cidr)) return false;
    const Key key = core::block_key(cidr);
    watch_->unfollow(key);
    std::erase_if(awaited_, [&](const Awaited& awaited) { return awaited.key == key; });
    return true;
  });
  for (const auto& [cidr, since] : own) {
    // A block is not older than the claim on it, and may have been written in the same commit.
    const Revision before(std::max<std::uint64_t>(since.value, 1) - 1);
    if (followed_.insert(cidr).second) watch_->follow(core::block_key(cidr), before);
  }
}

/// With mutex_ held: takes what the watch has come to off the list.
void CachedStore::strike_awaited(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    if (in_flight_ > 0) seen_in_flight_[change.key] = std::max(seen_in_flight_[change.key], change.revision);
    std::erase_if(awaited_, [&](const Awaited& awaited) {
      return awaited.key == change.key && awaited.revision <= change.revision;
    });
  }
}

Result<void> CachedStore::fill_unknown(Deadline deadline) {
  core::Missing gaps;
  {
    // The watch may be quicker than the answer to a commit of ours, which fills its own gaps.
    const std::lock_guard lock(mutex_);
    if (!fill_due_ || in_flight_ > 0) return {};
    fill_due_ = false;
    gaps = cache_.unknown(kGapsMax);
  }
  if (gaps.empty()) return {};
  TRY(const ReadAnswer found, beneath().read(gaps, deadline));
  const std::lock_guard lock(mutex_);
  cache_.learn(found);
  return {};
}

Result<void> CachedStore::step(Deadline deadline) {
  const auto give_up = [&](const Error& error) {
    watch_.reset();
    const std::lock_guard lock(mutex_);
    in_use_ = false;
    return fail(error);
  };
  {
    const std::lock_guard lock(mutex_);
    if (!in_use_) watch_.reset();  // a reader found that it lags
  }
  if (!watch_ || clock_.now().since_boot >= relist_at_since_boot_) {
    const auto rebuilt = rebuild();
    if (!rebuilt) {
      ++rebuilds_failed_;
      return give_up(rebuilt.error());
    }
    rebuilds_failed_ = 0;
    return {};
  }
  const auto changes = watch_->next(deadline);
  if (!changes) return give_up(changes.error());
  Result<void> fits;
  {
    const std::lock_guard lock(mutex_);
    if (cache_.apply(*changes)) fill_due_ = true;
    strike_awaited(*changes);
    fits = check_size(cache_);
    if (!fits) cache_ = Cache(node_);
    if (fits) follow_own_blocks();
  }
  if (!fits) return give_up(fits.error());
  const auto filled = fill_unknown(read_deadline());
  if (!filled) return give_up(filled.error());
  return {};
}

CachedStore::State CachedStore::state() const {
  const std::lock_guard lock(mutex_);
  return {in_use_, cache_.own_blocks().size(), cache_.affinity_count(), rebuilt_, from_memory_};
}

// ---------------------------------------------------------------- reading

/// A call whose time is over must not go on from memory either: its caller has gone its own way.
Result<void> CachedStore::check_deadline(Deadline deadline) const {
  if (!deadline.passed(clock_.now())) return {};
  return fail(ErrorCode::deadline_exceeded, "the time for this call is over");
}

/// With mutex_ held.
bool CachedStore::is_usable_now() {
  const bool lags = !awaited_.empty() && clock_.now().since_boot - awaited_.front().done_since_boot > kLagMax;
  if (lags || beneath().epoch() != epoch_) in_use_ = false;
  return in_use_;
}

ReadAnswer CachedStore::from_memory(const core::Missing& wanted, core::Missing& rest) {
  const std::lock_guard lock(mutex_);
  if (!is_usable_now()) {
    rest = wanted;
    return {};
  }
  ReadAnswer known = cache_.answer(wanted, rest);
  if (!rest.unread()) ++from_memory_;
  return known;
}

Result<ReadAnswer> CachedStore::pass_on(const core::Missing& wanted, Deadline deadline) {
  TRY(ReadAnswer answer, beneath().read(wanted, deadline));
  const std::lock_guard lock(mutex_);
  if (in_use_) cache_.learn(answer);
  return answer;
}

/// Only what memory does not know is asked for: what a decision rests on is proven by its commit, piece by piece.
Result<ReadAnswer> CachedStore::read(const core::Missing& wanted, Deadline deadline) {
  TRY_VOID(check_deadline(deadline));
  core::Missing rest;
  ReadAnswer known = from_memory(wanted, rest);
  if (!rest.unread()) return known;
  TRY(ReadAnswer found, pass_on(rest, deadline));
  return ReadAnswer{
      joined(wanted.records, rest.records, std::move(known.records), std::move(found.records)),
      joined(wanted.lists, rest.lists, std::move(known.lists), std::move(found.lists)),
      joined(wanted.keys, rest.keys, std::move(known.keys), std::move(found.keys)),
      joined(wanted.free_blocks, rest.free_blocks, std::move(known.free_blocks), std::move(found.free_blocks))};
}

// ---------------------------------------------------------------- writing

Result<void> CachedStore::begin_commit(bool from_memory, Deadline deadline) {
  TRY_VOID(check_deadline(deadline));
  const std::lock_guard lock(mutex_);
  if (from_memory && rebuilt_ > 0 && beneath().epoch() != epoch_) {
    return fail(ErrorCode::conflict, "the register is another one than that which was remembered; read again");
  }
  ++in_flight_;
  return {};
}

Result<Revision> CachedStore::commit_noted(bool from_memory, std::span<const Write> writes, const WriteToken& token,
                                           Deadline deadline) {
  TRY_VOID(begin_commit(from_memory, deadline));
  auto committed = beneath().commit(writes, token, deadline);
  const std::lock_guard lock(mutex_);
  note_outcome(writes, token, committed, seen_while_in_flight());
  return committed;
}

std::vector<Result<Revision>> CachedStore::commit_each_noted(bool from_memory, std::span<const Write> writes,
                                                             const WriteToken& token, Deadline deadline) {
  if (const auto begun = begin_commit(from_memory, deadline); !begun) {
    return std::vector<Result<Revision>>(writes.size(), fail(begun.error()));
  }
  auto outcomes = beneath().commit_each(writes, token, deadline);
  const std::lock_guard lock(mutex_);
  const std::map<Key, Revision> seen = seen_while_in_flight();
  for (std::size_t i = 0; i < writes.size(); ++i) note_outcome(writes.subspan(i, 1), token, outcomes[i], seen);
  return outcomes;
}

/// With mutex_ held: a commit is no longer under way. The changes that the watch has told since the first of those
/// under way began.
std::map<Key, Revision> CachedStore::seen_while_in_flight() {
  return --in_flight_ == 0 ? std::exchange(seen_in_flight_, {}) : seen_in_flight_;
}

/// With mutex_ held: what became of a commit of this process.
void CachedStore::note_outcome(std::span<const Write> writes, const WriteToken& token,
                               const Result<Revision>& committed, const std::map<Key, Revision>& seen) {
  if (!in_use_) return;
  if (!committed) return cache_.doubt(writes);
  cache_.committed(writes, token, *committed);
  // Everything may have been read anew while this was under way.
  if (*committed <= watched_from_) return;
  for (const Write& write : writes) {
    if (write.only_check || !write.value || !cache_.is_watched(write.key)) continue;
    if (const auto at = seen.find(write.key); at != seen.end() && at->second >= *committed) continue;
    awaited_.push_back({write.key, *committed, clock_.now().since_boot});
  }
}

Result<Revision> CachedStore::commit(std::span<const Write> writes, const WriteToken& token, Deadline deadline) {
  return commit_noted(true, writes, token, deadline);
}

std::vector<Result<Revision>> CachedStore::commit_each(std::span<const Write> writes, const WriteToken& token,
                                                       Deadline deadline) {
  return commit_each_noted(true, writes, token, deadline);
}

Result<std::unique_ptr<Store::Turn>> CachedStore::take_turn(Deadline deadline) {
  /// The place among this process's writers, and with it the one among all, which is given back first.
  struct OwnTurn final : Turn {
    std::unique_lock<std::timed_mutex> own;
    std::unique_ptr<Turn> beneath;
  };
  constexpr nanoseconds kWaitMax = std::chrono::hours{1};
  const nanoseconds now = clock_.now().since_boot;
  const nanoseconds left = deadline.at_since_boot > now ? deadline.at_since_boot - now : nanoseconds{0};
  std::unique_lock<std::timed_mutex> own(turn_, std::min(left, kWaitMax));
  if (!own.owns_lock()) return fail(ErrorCode::deadline_exceeded, "too many writers wait in this process");
  auto turn = std::make_unique<OwnTurn>();
  TRY(turn->beneath, beneath().take_turn(deadline));
  turn->own = std::move(own);
  return turn;
}

// ---------------------------------------------------------------- without memory

Result<ReadAnswer> CachedStore::Uncached::read(const core::Missing& wanted, Deadline deadline) {
  TRY_VOID(whole_.check_deadline(deadline));
  return whole_.pass_on(wanted, deadline);
}
Result<Revision> CachedStore::Uncached::commit(std::span<const Write> writes, const WriteToken& token,
                                               Deadline deadline) {
  return whole_.commit_noted(false, writes, token, deadline);
}
std::vector<Result<Revision>> CachedStore::Uncached::commit_each(std::span<const Write> writes, const WriteToken& token,
                                                                 Deadline deadline) {
  return whole_.commit_each_noted(false, writes, token, deadline);
}

// ---------------------------------------------------------------- the follower

CacheFollower::CacheFollower(CachedStore& store, const Clock& clock)
    : store_(store), clock_(clock), thread_([this] { run(); }) {}

CacheFollower::~CacheFollower() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::string CacheFollower::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void CacheFollower::run() {
  std::unique_lock lock(mutex_);
  Backoff pauses(kRetryWait, kRetryWaitMax, static_cast<std::uint64_t>(clock_.now().since_boot.count()));
  nanoseconds waited{0};
  nanoseconds went_on_at{0};
  while (!stopping_) {
    lock.unlock();
    const auto done = store_.step(Deadline::after(clock_.now(), kStepWait));
    lock.lock();
    if (done) {
      // To have read everything is no recovery yet: a watch that then fails at once would be read for without pause.
      if (trouble_.empty() || clock_.now().since_boot - went_on_at < waited) continue;
      trouble_.clear();
      pauses.reset();
      continue;
    }
    trouble_ = done.error().message;
    waited = pauses.next();
    wake_.wait_for(lock, waited, [&] { return stopping_; });
    went_on_at = clock_.now().since_boot;
  }
}

}  // namespace croft::store
