#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/net/ranges.h"
#include "base/result.h"
#include "register/snapshot.h"

namespace croft::core {

/// Pools that have addresses in common, by the names of the inner ones. Each comes with the smallest that contains it,
/// of equal ones with the one before it. n log n steps.
[[nodiscard]] std::vector<std::pair<const Pool*, const Pool*>> overlaps_among(std::vector<const Pool*> pools);

/// The pools, reservations and switches of a snapshot, as every decision looks at them. Damaged records are left
/// out, and what that leaves unknown is taken for the worse: addresses of a damaged pool are in no pool and go on
/// cooling, a damaged reservation may keep any address, a damaged configuration is strict about affinity and lets
/// addresses rest.
class PoolTable {
 public:
  /// Reads all pools and reservations and the configuration; meaningful once the reader is ready.
  explicit PoolTable(Reader& reader);

  [[nodiscard]] const std::vector<const Pool*>& pools() const { return pools_; }  ///< ascending by name
  /// The pool that contains an address or block, disabled or not; null when there is none.
  [[nodiscard]] const Pool* containing(const net::Address& address) const;
  [[nodiscard]] const Pool* named(const std::string& name) const;
  /// Why not all pools are known; nothing when they are.
  [[nodiscard]] const std::optional<Error>& damaged_pool() const { return damaged_pool_; }
  /// Why new addresses of a pool can't be given out: a damaged reservation may keep them. One that Croft made for a
  /// pool concerns this pool alone, unless foreign writers may have given it the name.
  [[nodiscard]] const Error* damaged_reservation(const Pool& pool) const;
  [[nodiscard]] bool is_reserved(const net::Address& address) const;
  [[nodiscard]] IsReserved reservations() const;
  /// Keeps addresses out of this decision alone, as if they were reserved. They must outlive it.
  void pass_over(const std::map<net::Address, std::string>& living) { living_ = &living; }
  /// All that is reserved.
  [[nodiscard]] const std::shared_ptr<const net::Intervals>& reserved() const { return reserved_; }
  /// How long addresses of a block cool: its pool's cooldown, or the default when its pool is gone; in Calico's way as
  /// the configuration says.
  [[nodiscard]] Cooldowns cooldowns_of(const net::Prefix& block) const;
  /// The defaults when there is no record (docs/notes/calico-ipam.md#get-config).
  [[nodiscard]] const IpamConfig& config() const { return config_; }

 private:
  std::vector<const Pool*> pools_;
  std::shared_ptr<const net::Intervals> reserved_;
  const std::map<net::Address, std::string>* living_ = nullptr;
  std::optional<Error> damaged_pool_;
  std::vector<std::pair<std::string, Error>> damaged_reservations_;  ///< by name
  bool foreign_writers_ = false;
  IpamConfig config_;
};

/// Changes to blocks and handles that belong to one commit. Holds working copies, so that one decision may touch a
/// block several times. Stamps, affinities, vacancies and handle counts are added when the writes are taken out. A
/// block whose owner changed takes the rows of both along, and one that is nobody's and empty goes.
class Draft {
 public:
  Draft(Reader& reader, const PoolTable& pools, const Instant& now) : reader_(reader), pools_(pools), now_(now) {}

  /// The working copy of a block, cooled addresses freed and the others marked as seen (block.h). Absent when there is
  /// no such block, a deleted one is in its place, or it is unknown, which the reader notes. Error: corrupt.
  [[nodiscard]] Result<std::optional<Block>> block(const net::Prefix& cidr);

  /// Replaces the working copy. `handle_ids` are the handles whose count in this block may have changed.
  void put(Block block, const std::vector<std::string>& handle_ids);

  /// A block claimed for its owner: one that the snapshot knows to be absent comes into being, or an empty one of
  /// somebody else changes hands. The commit depends on the pool being as read.
  void put_claimed(Block block, const Pool& pool, const std::vector<std::string>& handle_ids);

  /// A block that a handle names, as it writes it, and that does not exist: the handle counts it no more.
  void drop_count(const std::string& handle_id, std::string block) { dropped_[handle_id].insert(std::move(block)); }

  /// A claim whose block belongs to somebody else, or to nobody: it goes.
  void drop_affinity(const Affinity& stale);
  /// A claim on a block of its owner that an interrupted change left unconfirmed.
  void confirm_affinity(const Affinity& unconfirmed);

  /// Blocks touched so far.
  [[nodiscard]] std::size_t size() const { return changes_.size(); }

  /// The writes of the commit; last of all, for it takes the working copies. Reads handles: may leave the reader
  /// incomplete.
  [[nodiscard]] std::vector<PlannedWrite> writes();

  [[nodiscard]] const Instant& now() const { return now_; }

 private:
  struct Change {
    Block block;
    const Pool* claimed_in = nullptr;
    std::vector<std::string> handle_ids;
  };

  using Writes = std::map<Key, PlannedWrite>;
  static void add(Writes& writes, PlannedWrite write) { writes[write.key] = std::move(write); }
  void write_block(Change& change, Writes& writes);
  void write_claim(const AffinityOwner& owner, const net::Prefix& cidr, const Pool& pool, Writes& writes);
  void write_vacancy(const Block* before, const Block& after, Writes& writes);
  /// Whether a handle has more in any of the blocks than before.
  [[nodiscard]] bool gains(const std::string& handle_id) const;
  void write_handles(Writes& writes);
  [[nodiscard]] bool has_vacancy_row(const Block& block, const std::optional<Vacancy>& vacancy);

  Reader& reader_;
  const PoolTable& pools_;
  const Instant now_;
  std::map<net::Prefix, Change> changes_;
  std::map<std::string, std::set<std::string>> dropped_;  ///< blocks that do not exist, by the handle that names them
  std::vector<PlannedWrite> affinities_;
};

/// The plan of a decision that only drafts changes. May leave the reader incomplete.
template <class Answer>
[[nodiscard]] Plan<Answer> finish(Draft& draft, Answer answer) {
  return {std::move(answer), draft.writes()};
}

/// All that reservations keep out of use, and what these pools keep by themselves, whatever reservation there is. A
/// pool with a gateway, Croft's own member, keeps those of the reservation made with it. A pool without one may be
/// another program's, which hands them out; of these only the record says so.
[[nodiscard]] std::vector<net::Prefix> reserved_by(Reader& reader, const std::vector<const Pool*>& pools);

/// The vacancy a block has (records.h); absent when nothing is free and nothing cools.
[[nodiscard]] std::optional<Vacancy> vacancy_of(const Block& block, const PoolTable& pools, const Instant& now);

/// How many addresses of the block are in this state, whatever is reserved.
[[nodiscard]] std::uint32_t count_of(const Block& block, AddressState state);
/// How many a handle holds.
[[nodiscard]] std::uint32_t count_of_handle(const Block& block, const std::string& handle_id);

}  // namespace croft::core
