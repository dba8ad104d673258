#include "history/use/recorder.h"

#include <algorithm>
#include <iterator>

#include "ipam/use/inspect.h"

namespace croft::engine {
namespace {

using core::history::Moment;
using std::chrono::seconds;

/// One look at the watch: a daemon that is told to end waits for it.
constexpr seconds kLook{1};
/// A change is told that much after it was made, on a store that is not sick.
constexpr seconds kLag{2};
/// A quiet history says so often that it lives.
constexpr seconds kSignOfLife{10};
constexpr std::chrono::minutes kUsesInterval{5};
/// For reading a page, and for opening a watch.
constexpr seconds kPageTime{30};
/// Blocks of one write, so that the first look at a large register is not one transaction.
constexpr std::size_t kChangesMax = 200;

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
  const auto limit = [this] { return Deadline::after(context_.clock.now(), kPageTime); };
  TRY(const store::Revision position, context_.store.position(limit()));
  const store::WatchScope scope{{}, {{core::Kind::block, ""}, {core::Kind::pool, ""}}};
  TRY(auto watch, context_.store.watch(scope, position, limit()));
  TRY_VOID(read_pools());
  const WallTime begun = context_.clock.now().wall;
  HistoryEntry entry;
  const auto seen = [&] { return Moment{state.alive.value_or(WallTime{}), context_.clock.now().wall}; };
  const auto take = [&](store::Record& record) -> Result<void> {
    const auto cidr = core::block_cidr_of(record.key);
    if (!cidr) return {};
    blocks_[*cidr] = record.revision;
    const auto* const block = record.get_if<core::Block>();
    // A block that cannot be read holds what it held.
    if (block == nullptr) return {};
    take_in(*cidr, block->deleted ? nullptr : block, seen(), entry);
    return entry.changes.size() < kChangesMax ? Result<void>() : write(entry);
  };
  store::ListRequest blocks;
  blocks.kind = core::Kind::block;
  TRY_VOID(context_.store.for_each(blocks, limit, take));
  core::history::Changes gone;
  for (const auto& [address, print] : open_) {
    const auto after = blocks_.upper_bound(*net::Prefix::from(address, net::bit_length(address.family())));
    const bool is_in_block = after != blocks_.begin() && std::prev(after)->first.contains(address);
    if (!is_in_block) gone.ended.push_back({address, seen()});
  }
  for (const auto& ended : gone.ended) open_.erase(ended.address);
  entry.changes.push_back(std::move(gone));
  if (state.alive && *state.alive < begun) entry.gap = core::history::Gap{*state.alive, begun};
  entry.alive = begun;
  TRY_VOID(write(entry));
  looked_ = begun;
  watch_ = std::move(watch);
  return {};
}

Result<void> Recorder::follow() {
  TRY(const auto changes, watch_->next(Deadline::after(context_.clock.now(), kLook)));
  const Instant now = context_.clock.now();
  const Moment seen{std::min(looked_ - kLag, now.wall), now.wall};
  HistoryEntry entry;
  for (const store::Change& change : changes) {
    if (change.key.kind == core::Kind::pool) TRY_VOID(read_pools());
    const auto cidr = core::block_cidr_of(change.key);
    if (change.key.kind != core::Kind::block || !cidr) continue;
    store::Revision& known = blocks_[*cidr];
    if (change.revision < known) continue;  // older than what was read
    known = change.revision;
    const bool is_there = change.what == store::Change::What::put && change.record;
    const auto* const block = is_there ? change.record->get_if<core::Block>() : nullptr;
    if (is_there && block == nullptr) continue;
    if (!is_there) blocks_.erase(*cidr);
    take_in(*cidr, block == nullptr || block->deleted ? nullptr : block, seen, entry);
  }
  if (now.since_boot >= next_uses_) {
    next_uses_ = now.since_boot + kUsesInterval;
    TRY(const auto fills, fill_of_pools(context_));
    for (const core::PoolFill& fill : fills) {
      entry.uses.push_back(
          {fill.pool.name, static_cast<double>(fill.held + fill.cooling), (fill.capacity - fill.reserved).as_double()});
    }
    entry.at = now.wall;
  }
  const bool is_quiet = entry.changes.empty() && entry.uses.empty();
  looked_ = now.wall;
  if (is_quiet && now.wall >= told_ && now.wall - told_ < kSignOfLife) return {};
  entry.alive = now.wall;
  return write(entry);
}

Result<void> Recorder::read_pools() {
  TRY(const auto pools, list_pools(context_));
  pools_.clear();
  for (const core::Pool& pool : pools) pools_.emplace_back(pool.cidr, pool.name);
  return {};
}

void Recorder::take_in(const net::Prefix& range, const core::Block* block, Moment seen, HistoryEntry& entry) {
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

Result<void> Recorder::write(HistoryEntry& entry) {
  TRY_VOID(log_.write(entry));
  if (entry.alive) told_ = *entry.alive;
  entry = {};
  return {};
}

}  // namespace croft::engine
