#include "history/use/recorder.h"

#include <algorithm>
#include <iterator>

#include "ipam/use/inspect.h"

namespace croft::engine {
namespace {

using core::history::Gap;
using core::history::kNotOver;
using core::history::Moment;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// One look at the watch: a daemon that is told to end waits for it. Changes are known as closely as this.
constexpr std::chrono::milliseconds kLook{500};
/// API servers say once a minute how far a watch is, and a dead connection to one is opened anew after five. A watch
/// that nobody has vouched for in this time is given up.
constexpr seconds kUnprovenMax{360};
/// The wall clock falls behind the other one by less than this while it is not set back.
constexpr std::chrono::milliseconds kSetBackMin{50};
/// A quiet history says so often that it lives.
constexpr seconds kSignOfLife{10};
constexpr std::chrono::minutes kUsesInterval{5};
constexpr seconds kPageTime{30};
/// Between two positions while the store has been silent about so many.
constexpr seconds kQuestionInterval{5};
constexpr std::size_t kUnprovenFew = 6;
/// For a position, and for opening a watch.
constexpr seconds kQuestionTime{2};
/// Holders that come and go in one write, so that the first look at a large register is not one transaction.
constexpr std::size_t kHoldersMax = 2000;

bool is_set_back(const Instant& before, const Instant& now) {
  return now.wall - before.wall < now.since_boot - before.since_boot - kSetBackMin;
}
Error set_back() { return {ErrorCode::too_old, "the clock was set back", {}}; }

}  // namespace

Result<void> Recorder::step() {
  const auto done = watch_ == nullptr ? begin() : follow();
  // Changes that were taken from the watch and not written are lost to it.
  if (!done) watch_ = nullptr;
  return done;
}

Result<void> Recorder::begin() {
  TRY(HistoryLog::State state, log_.state());
  open_ = std::move(state.open);
  blocks_.clear();
  asked_.clear();
  // Some is recorded behind the time until which everything is: that comes twice too when the clock is set back.
  const Instant before = std::exchange(last_, context_.clock.now());
  const WallTime recorded = std::max(before.wall, state.latest);
  const WallTime begun = last_.wall;
  const WallTime alive = state.alive.value_or(begun);
  const WallTime latest = state.alive ? std::max(alive, recorded) : begun;
  // Holders that come and go while the list is read are not seen. A history of the future was written before the clock
  // was set back.
  HistoryEntry entry;
  // It may have been set back at any time since the last step.
  const auto away = is_set_back(before, last_) ? last_.since_boot - before.since_boot : nanoseconds(0);
  Gap gap{std::min(alive, begun - away), std::max(latest + away, begun), latest > begun || away > nanoseconds(0)};
  entry.gap = gap;
  entry.begins = true;
  // A log that cannot be written is not worth a list.
  TRY_VOID(write(entry));

  const auto in = [this](seconds span) { return Deadline::after(context_.clock.now(), span); };
  TRY(const store::Revision position, context_.store.position(in(kQuestionTime)));
  const store::WatchScope scope{{}, {{core::Kind::block, ""}}};
  TRY(auto watch, context_.store.watch(scope, position, in(kQuestionTime)));
  // It connects here: old servers send what was written before that in portions, and nobody tells the last of them.
  TRY(early_, watch->next(in(seconds(1))));
  TRY_VOID(read_pools());
  const auto seen = [&] {
    const WallTime now = context_.clock.now().wall;
    return Moment{state.alive ? std::min(gap.from, now) : WallTime{}, now};
  };
  const auto take = [&](store::Record& record) -> Result<void> {
    if (is_ending_ && is_ending_()) return fail(ErrorCode::unavailable, "ending");
    const auto cidr = core::block_cidr_of(record.key);
    if (!cidr) return {};
    blocks_[*cidr].revision = record.revision;
    take_listed(*cidr, record.get_if<core::Block>(), seen(), entry);
    return write_some(entry);
  };
  store::ListRequest blocks;
  blocks.kind = core::Kind::block;
  TRY_VOID(context_.store.for_each(
      blocks, [&] { return in(kPageTime); }, take));
  std::vector<net::Address> gone;
  for (const auto& [address, print] : open_) {
    const auto after = blocks_.upper_bound(*net::Prefix::from(address, net::bit_length(address.family())));
    const bool is_in_block = after != blocks_.begin() && std::prev(after)->first.contains(address);
    if (!is_in_block) gone.push_back(address);
  }
  for (const net::Address& address : gone) {
    open_.erase(address);
    entry.changes.emplace_back().ended.push_back({address, seen()});
    TRY_VOID(write_some(entry));
  }
  const Instant now = context_.clock.now();
  if (is_set_back(last_, now)) return fail(set_back());
  last_ = now;
  gap.until = std::max(gap.until, now.wall);
  entry.gap = gap;
  entry.alive = begun;
  TRY_VOID(write(entry));
  looked_ = begun;
  proven_ = now.since_boot;
  watch_ = std::move(watch);
  return {};
}

void Recorder::take_listed(const net::Prefix& range, const core::Block* block, const Moment& seen,
                           HistoryEntry& entry) {
  Known& known = blocks_[range];
  if (block != nullptr) {
    known.sequence = block->sequence_number;
    return take_in(range, block->deleted ? nullptr : block, seen, entry);
  }
  known.unreadable_since = seen.after;
  entry.unseen.push_back({range, seen.after, kNotOver});
}

Result<void> Recorder::follow() {
  const Instant begun = context_.clock.now();
  if (begun.since_boot >= next_question_) {
    // Where nobody answers the watch may still come to what it missed.
    const auto position = context_.store.position(Deadline::after(begun, kQuestionTime));
    if (position) asked_.push_back({begun.wall, *position});
    next_question_ = begun.since_boot + (asked_.size() < kUnprovenFew ? nanoseconds(kLook) : kQuestionInterval);
  }
  TRY(auto changes, watch_->next(Deadline::after(context_.clock.now(), kLook)));
  changes.insert(changes.begin(), std::move_iterator(early_.begin()), std::move_iterator(early_.end()));
  early_.clear();
  const Instant now = context_.clock.now();
  if (is_set_back(last_, now)) return fail(set_back());
  last_ = now;
  const Moment seen{std::min(looked_, now.wall), now.wall};
  HistoryEntry entry;
  for (const store::Change& change : changes) {
    TRY_VOID(take(change, seen, entry));
    TRY_VOID(write_some(entry));
  }
  while (!asked_.empty() && watch_->is_complete_up_to(asked_.front().position)) {
    looked_ = asked_.front().at;
    proven_ = now.since_boot;
    asked_.pop_front();
  }
  if (now.since_boot - proven_ > kUnprovenMax) {
    return fail(ErrorCode::unavailable, "the store no longer says how far the watch of its blocks is");
  }
  if (now.since_boot >= next_uses_) count_uses(now, entry);
  const bool is_quiet = entry.changes.empty() && entry.unseen.empty() && entry.uses.empty();
  if (is_quiet && looked_ - told_ < kSignOfLife) return {};
  entry.alive = looked_;
  return write(entry);
}

Result<void> Recorder::take(const store::Change& change, const Moment& seen, HistoryEntry& entry) {
  const auto cidr = core::block_cidr_of(change.key);
  if (change.key.kind != core::Kind::block || !cidr) return {};
  // The pools may be others since the last block that came.
  if (!blocks_.contains(*cidr)) TRY_VOID(read_pools());
  Known& known = blocks_[*cidr];
  if (change.revision < known.revision) return {};  // older than what was read
  if (change.revision == known.revision && !known.unreadable_since) return {};
  const bool is_there = change.what == store::Change::What::put && change.record;
  const auto* const block = is_there ? change.record->get_if<core::Block>() : nullptr;
  known.revision = change.revision;
  if (is_there && block == nullptr) {
    if (known.unreadable_since) return {};
    known.unreadable_since = seen.after;
    entry.unseen.push_back({*cidr, seen.after, kNotOver});
    return {};
  }
  const Moment since{known.unreadable_since.value_or(seen.after), seen.by};
  const bool is_next = block != nullptr && block->sequence_number.value == known.sequence.value + 1;
  // A store may leave out states. Another number than the next one tells that it has.
  if (!is_next || known.unreadable_since) entry.unseen.push_back({*cidr, since.after, seen.by});
  take_in(*cidr, block == nullptr || block->deleted ? nullptr : block, since, entry);
  known.unreadable_since.reset();
  if (block != nullptr) known.sequence = block->sequence_number;
  if (!is_there) blocks_.erase(*cidr);
  return {};
}

void Recorder::count_uses(const Instant& now, HistoryEntry& entry) {
  next_uses_ = now.since_boot + kUsesInterval;
  // A count that fails is missing in the forecast only.
  const auto fills = fill_of_pools(context_);
  if (!fills || !read_pools()) return;
  for (const core::PoolFill& fill : *fills) {
    entry.uses.push_back(
        {fill.pool.name, static_cast<double>(fill.held + fill.cooling), (fill.capacity - fill.reserved).as_double()});
  }
  entry.at = now.wall;
}

Result<void> Recorder::read_pools() {
  TRY(const auto pools, list_pools(context_));
  pools_.clear();
  for (const core::Pool& pool : pools) pools_.emplace_back(pool.cidr, pool.name);
  return {};
}

void Recorder::take_in(const net::Prefix& range, const core::Block* block, const Moment& seen, HistoryEntry& entry) {
  auto changes = core::history::changes_of(open_, range, block, seen);
  const auto pool = std::ranges::find_if(pools_, [&](const auto& one) { return one.first.contains(range); });
  for (auto& begun : changes.begun) {
    if (pool != pools_.end()) begun.holding.pool = pool->second;
  }
  // At once: a block may change twice in one look.
  for (const auto& ended : changes.ended) open_.erase(ended.address);
  for (const auto& begun : changes.begun) open_.insert_or_assign(begun.holding.address, begun.print);
  if (!changes.ended.empty() || !changes.begun.empty()) entry.changes.push_back(std::move(changes));
}

Result<void> Recorder::write_some(HistoryEntry& entry) {
  std::size_t holders = entry.unseen.size();
  for (const auto& changes : entry.changes) holders += changes.ended.size() + changes.begun.size();
  return holders < kHoldersMax ? Result<void>() : write(entry);
}

Result<void> Recorder::write(HistoryEntry& entry) {
  TRY_VOID(log_.write(entry));
  if (entry.alive) told_ = *entry.alive;
  entry = {};
  return {};
}

}  // namespace croft::engine
