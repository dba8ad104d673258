#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/u128.h"
#include "base/result.h"
#include "base/space/sparse_taken_set.h"
#include "os/directory.h"

namespace croft::store::hostlocal {

/// The hash of what a reservation's content comes down to (wire::host_local::holder_key). Part of the index's format.
[[nodiscard]] std::uint32_t content_hash(std::string_view key);

/// Addresses as numbers in one space: IPv4 ones as their IPv4-mapped form.
[[nodiscard]] net::U128 number_of(const net::Address& address);
[[nodiscard]] net::Address address_of(net::U128 number);
/// The same where the family is known: an IPv4-mapped number of an IPv6 range stays IPv6.
[[nodiscard]] net::Address address_of(net::U128 number, net::Family family);

/// The knowledge of a directory without reading it again: either everything was read just now, or the index says so. A
/// view says where to look; what it says of holders has to be read from the file before anything is done about it.
class View {
 public:
  virtual ~View() = default;

  /// False when it says so from the index and not from the files.
  [[nodiscard]] virtual bool is_first_hand() const = 0;
  [[nodiscard]] virtual std::uint64_t reservation_count() const = 0;
  /// `first` and `last` of one family.
  [[nodiscard]] virtual std::optional<net::Address> next_free(const net::Address& first, const net::Address& last) = 0;
  /// Addresses whose content has this hash.
  [[nodiscard]] virtual std::vector<net::Address> with_hash(std::uint32_t hash) = 0;

  /// Follow what was done to the files.
  virtual void add(const net::Address& address, std::uint32_t hash) = 0;
  virtual void remove(const net::Address& address, std::uint32_t hash) = 0;

  /// True when an answer may be wrong because the index could not be read or contradicts itself.
  [[nodiscard]] virtual bool failed() const = 0;
};

/// Which places hold reservations whose content has a given hash: a hash table with open addressing and linear probing
/// over cells that lie anywhere. `Cells` offers `size()` (a power of two), `get(i)` and `set(i, cell)`; a cell of 0 is
/// unused. Two contents may share a hash, so what is found has to be looked at. Damaged cells give wrong answers, never
/// an endless loop.
template <class Cells>
class HolderTable {
 public:
  explicit HolderTable(Cells& cells) : cells_(cells) {}

  /// Calls f(SparsePlace) for each place with this hash.
  template <class F>
  void for_each(std::uint32_t hash, F&& f) const {
    const std::uint32_t size = cells_.size();
    std::uint32_t index = hash & (size - 1);
    for (std::uint32_t probes = 0; probes < size; ++probes, index = (index + 1) & (size - 1)) {
      const std::uint64_t cell = cells_.get(index);
      if (cell == 0) return;
      if (hash_of(cell) == hash) f(place_of(cell));
    }
  }

  /// False when there is no room, or the place is too far up to be written down.
  bool add(std::uint32_t hash, core::space::SparsePlace place) {
    if (place.slot >= kSlotsMax) return false;
    const std::uint32_t size = cells_.size();
    std::uint32_t index = hash & (size - 1);
    for (std::uint32_t probes = 0; probes < size; ++probes, index = (index + 1) & (size - 1)) {
      if (cells_.get(index) != 0) continue;
      cells_.set(index, cell_of(hash, place));
      return true;
    }
    return false;
  }

  /// False when it is not there. Entries that probing brought behind it move up, so that no mark has to stay.
  bool remove(std::uint32_t hash, core::space::SparsePlace place) {
    const std::uint32_t mask = cells_.size() - 1;
    const auto found = find(hash, place);
    if (!found) return false;
    std::uint32_t hole = *found;
    std::uint32_t index = hole;
    for (std::uint32_t probes = 0; probes <= mask; ++probes) {
      index = (index + 1) & mask;
      const std::uint64_t cell = cells_.get(index);
      if (cell == 0) break;
      const std::uint32_t home = hash_of(cell) & mask;
      // It may move into the hole unless its home lies behind the hole on the way to it.
      if (((index - home) & mask) < ((index - hole) & mask)) continue;
      cells_.set(hole, cell);
      hole = index;
    }
    cells_.set(hole, 0);
    return true;
  }

  static std::uint32_t hash_of(std::uint64_t cell) { return static_cast<std::uint32_t>(cell >> 32); }

 private:
  static constexpr std::uint32_t kBits = 64;
  static constexpr std::uint32_t kSlotsMax = 1U << 25;

  static std::uint64_t cell_of(std::uint32_t hash, core::space::SparsePlace place) {
    return (std::uint64_t{hash} << 32) | (place.slot * kBits + place.bit + 1);
  }
  static core::space::SparsePlace place_of(std::uint64_t cell) {
    const auto number = static_cast<std::uint32_t>(cell) - 1;
    return {number / kBits, number % kBits};
  }
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint32_t hash, core::space::SparsePlace place) const {
    const std::uint32_t size = cells_.size();
    const std::uint64_t wanted = cell_of(hash, place);
    std::uint32_t index = hash & (size - 1);
    for (std::uint32_t probes = 0; probes < size; ++probes, index = (index + 1) & (size - 1)) {
      const std::uint64_t cell = cells_.get(index);
      if (cell == 0) return std::nullopt;
      if (cell == wanted) return index;
    }
    return std::nullopt;
  }

  Cells& cells_;
};

/// A view of everything that was read. Built in two rounds, so that places do not move while holders are recorded:
/// first all addresses, then the contents of those that have one.
class ScannedView final : public View {
 public:
  void see_address(const net::Address& address) { taken_.take(number_of(address)); }
  /// The address must have been seen; one that was not makes the view unfit for an index.
  void see_content(const net::Address& address, std::uint32_t hash);
  /// A file that turned out to have nothing in it, or to be gone.
  void see_nothing(const net::Address& address) { taken_.give_back(number_of(address)); }
  /// Something an index has no words for.
  void mark_unfit() { fit_ = false; }

  [[nodiscard]] bool is_first_hand() const override { return true; }
  [[nodiscard]] std::uint64_t reservation_count() const override { return taken_.taken_count(); }
  [[nodiscard]] std::optional<net::Address> next_free(const net::Address& first, const net::Address& last) override;
  [[nodiscard]] std::vector<net::Address> with_hash(std::uint32_t hash) override;
  void add(const net::Address& address, std::uint32_t hash) override;
  void remove(const net::Address& address, std::uint32_t hash) override;
  [[nodiscard]] bool failed() const override { return false; }

  // The condition for writing an index from it.
  [[nodiscard]] bool is_fit_for_index() const { return fit_; }
  [[nodiscard]] const core::space::SparseTakenSet& taken() const { return taken_; }
  [[nodiscard]] const std::vector<std::uint64_t>& holder_cells() const { return holders_.cells; }
  [[nodiscard]] std::uint32_t holder_count() const { return holder_count_; }

 private:
  struct VectorCells {
    std::vector<std::uint64_t> cells;
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(cells.size()); }
    [[nodiscard]] std::uint64_t get(std::uint32_t index) const { return cells[index]; }
    void set(std::uint32_t index, std::uint64_t cell) { cells[index] = cell; }
  };
  [[nodiscard]] std::optional<core::space::SparsePlace> place_of(const net::Address& address) const;
  void grow();

  core::space::SparseTakenSet taken_;
  VectorCells holders_{std::vector<std::uint64_t>(64)};
  std::uint32_t holder_count_ = 0;
  bool fit_ = true;
};

}  // namespace croft::store::hostlocal

// The index of a directory's reservations: a file `<dataDir>/.croft/<network>.index` that spares reading them all on
// each call. It is only a hint (docs/adr/0005-host-local-index.md says why it cannot lie): it counts for one state of
// the directory, told by the directory's stamp, in one boot of the machine. Its loss costs one rebuild.

namespace croft::store::hostlocal {

/// No index is made for a directory with fewer reservations: it is read on each call.
inline constexpr std::uint64_t kIndexedCountMin = 33;
/// An index is not used longer than this without a look at all files. It bounds how long an invisible change, such as a
/// reservation edited in place, stays unseen.
inline constexpr std::chrono::nanoseconds kIndexAgeMax = std::chrono::hours{1};

/// `<dataDir>/.croft/<network>.index`.
[[nodiscard]] std::string index_path(const std::string& data_dir, const std::string& network);

/// A view that reads from the index no more than it needs, and keeps changes in memory until they are published.
class IndexView : public View {
 public:
  /// The index, when there is one that counts for this stamp; null otherwise, whatever is wrong with it.
  [[nodiscard]] static std::unique_ptr<IndexView> open(const std::string& path, const os::DirectoryStamp& stamp,
                                                       const Clock& clock);

  [[nodiscard]] bool is_first_hand() const override { return false; }
  /// Whether the changes fit; else the index is to be built anew.
  [[nodiscard]] virtual bool has_room() const = 0;
  /// Writes the changes, but not yet that they count.
  [[nodiscard]] virtual Result<void> write_changes() = 0;
  /// Makes the index count for this stamp.
  [[nodiscard]] virtual Result<void> confirm(const os::DirectoryStamp& stamp) = 0;
};

/// Writes a new index for a directory that was read whole, in place of the old one.
[[nodiscard]] Result<void> write_index(const std::string& data_dir, const std::string& network, const ScannedView& view,
                                       const os::DirectoryStamp& stamp, const Instant& now);

}  // namespace croft::store::hostlocal
