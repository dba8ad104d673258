#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/block/snapshot.h"

namespace croft::core {

/// The pools and reservations of a snapshot, as every decision looks at them.
class PoolTable {
 public:
  /// Reads all pools and reservations; meaningful once `reader.complete()`.
  explicit PoolTable(Reader& reader);

  [[nodiscard]] const std::vector<const Pool*>& pools() const { return pools_; }  ///< ascending by name
  /// The pool that contains an address or block, disabled or not; null when there is none.
  [[nodiscard]] const Pool* containing(const net::Address& address) const;
  [[nodiscard]] const Pool* named(const std::string& name) const;
  [[nodiscard]] bool is_reserved(const net::Address& address) const;
  [[nodiscard]] IsReserved reservations() const;
  /// How long addresses of a block cool: its pool's cooldown, or the default when its pool is gone.
  [[nodiscard]] std::chrono::seconds cooldown_of(const net::Prefix& block) const;

 private:
  std::vector<const Pool*> pools_;
  std::vector<net::Prefix> reserved_;
};

/// Changes to blocks and handles that belong to one commit. Holds working copies, so that one decision may touch a
/// block several times; stamps, vacancies and handle counts are added when the writes are taken out.
class Draft {
 public:
  Draft(Reader& reader, const PoolTable& pools, const Instant& now) : reader_(reader), pools_(pools), now_(now) {}

  /// The working copy of a block, cooled addresses freed; absent when there is no such block or it is unknown (the
  /// reader notes that). Error: corrupt.
  [[nodiscard]] Result<std::optional<Block>> block(const net::Prefix& cidr);

  /// Replaces the working copy. `handle_ids` are the handles whose count in this block may have changed.
  void put(Block block, const std::vector<std::string>& handle_ids);

  /// A block that the snapshot knows to be absent comes into being: affinity and claim cursor are written with it, and
  /// the commit depends on the pool and the block's high-water mark being as read (both must have been looked up).
  void put_new(Block block, const Pool& pool, const std::vector<std::string>& handle_ids);

  /// The writes of the commit. Reads handles; check `reader.complete()` afterwards.
  [[nodiscard]] std::vector<PlannedWrite> writes();

  [[nodiscard]] const Instant& now() const { return now_; }

 private:
  struct Change {
    Block block;
    const Pool* created_in = nullptr;
    std::vector<std::string> handle_ids;
  };

  void write_block(const Change& change, std::vector<PlannedWrite>& writes);
  void write_handles(std::vector<PlannedWrite>& writes);

  Reader& reader_;
  const PoolTable& pools_;
  const Instant now_;
  std::map<net::Prefix, Change> changes_;
  std::map<const Pool*, PlannedWrite> claims_;  ///< of the pools in which blocks come into being: the new claim cursor
};

/// The vacancy a block has for its owner (records.h); absent when it has no owner, nothing free and nothing cooling.
[[nodiscard]] std::optional<Vacancy> vacancy_of(const Block& block, const PoolTable& pools, const Instant& now);

/// How many addresses of the block a handle holds.
[[nodiscard]] std::uint32_t count_of_handle(const Block& block, const std::string& handle_id);

}  // namespace croft::core
