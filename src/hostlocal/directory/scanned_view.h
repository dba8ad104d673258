#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/space/sparse_taken_set.h"
#include "hostlocal/directory/view.h"

namespace croft::store::hostlocal {

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
