#include "hostlocal/directory/holder_table.h"

#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace croft::store::hostlocal {
namespace {

using core::space::SparsePlace;

struct Cells {
  std::vector<std::uint64_t> cells = std::vector<std::uint64_t>(16);
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(cells.size()); }
  [[nodiscard]] std::uint64_t get(std::uint32_t index) const { return cells[index]; }
  void set(std::uint32_t index, std::uint64_t cell) { cells[index] = cell; }
};

std::set<std::uint32_t> slots_with(const HolderTable<Cells>& table, std::uint32_t hash) {
  std::set<std::uint32_t> slots;
  table.for_each(hash, [&](SparsePlace place) { slots.insert(place.slot); });
  return slots;
}

TEST(HolderTable, RefusesWhenFullAndEndsWhenFull) {
  Cells cells;
  HolderTable table(cells);
  for (std::uint32_t i = 0; i < 16; ++i) ASSERT_TRUE(table.add(7, {i, 0}));
  EXPECT_FALSE(table.add(7, {16, 0}));
  EXPECT_EQ(slots_with(table, 7).size(), 16U);
  EXPECT_TRUE(slots_with(table, 8).empty());
  EXPECT_FALSE(table.remove(7, {16, 0}));
  EXPECT_TRUE(table.remove(7, {3, 0}));
  EXPECT_EQ(slots_with(table, 7).size(), 15U);
}

TEST(HolderTable, RefusesAPlaceItCannotWrite) {
  Cells cells;
  EXPECT_FALSE(HolderTable(cells).add(1, {1U << 25, 0}));
}

// Hashes of four bits: every removal closes a gap in some chain.
RC_GTEST_PROP(HolderTable, IsAMapFromHashesToPlaces, ()) {
  const auto steps = *rc::gen::container<std::vector<std::pair<std::uint32_t, std::uint32_t>>>(
      rc::gen::pair(rc::gen::inRange(0U, 16U), rc::gen::inRange(0U, 4U)));
  Cells cells;
  HolderTable table(cells);
  std::set<std::pair<std::uint32_t, std::uint32_t>> model;
  for (const auto& step : steps) {
    const auto [hash, slot] = step;
    if (model.erase(step) > 0) {
      RC_ASSERT(table.remove(hash, {slot, 1}));
    } else if (model.size() < 15) {
      RC_ASSERT(table.add(hash, {slot, 1}));
      model.insert(step);
    }
    for (std::uint32_t h = 0; h < 16; ++h) {
      std::set<std::uint32_t> expected;
      for (const auto& [model_hash, model_slot] : model) {
        if (model_hash == h) expected.insert(model_slot);
      }
      RC_ASSERT(slots_with(table, h) == expected);
    }
  }
}

}  // namespace
}  // namespace croft::store::hostlocal
